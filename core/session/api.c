/* SPDX-License-Identifier: Apache-2.0 */
/* include/seqlstm/seqlstm.h on top of sessions: training, evaluation, predictions. */
#include <string.h>

#include <seqlstm/seqlstm.h>

#include "base/system/clock.h"
#include "session/api.h"
#include "session/run_files/run_lock.h"
#include "session/session.h"

struct watcher {
    struct seqlstm_session *session;
    seqlstm_progress_fn progress;
    void *context;
    int64_t last_ns;
};

static void on_step(void *context, const struct sl_train_report *report)
{
    struct watcher *w = context;
    int64_t now = sl_clock_ns();
    bool stop = w->session->stop && *(const volatile int32_t *)w->session->stop != 0;
    if (w->progress && now - w->last_ns >= 100 * 1000 * 1000) {
        w->last_ns = now;
        stop = w->progress(w->context, report->progress.updates, report->progress.epochs, report->loss) != 0 || stop;
    }
    if (stop)
        atomic_store(&w->session->interrupt.stop, 15);
}

seqlstm_status seqlstm_train(struct seqlstm_session *session, seqlstm_progress_fn progress, void *context,
                             struct seqlstm_error *err)
{
    struct watcher watcher = {.session = session, .progress = progress, .context = context};
    struct sl_run_observer observer = {.train = {.context = &watcher, .on_step = on_step}};
    struct sl_run_result result;
    const seqlstm_status ended = sl_session_run(session->session, &observer, &result, err);
    sl_run_lock_release(session->session); /* another session may resume the run while this one predicts */
    SEQLSTM_TRY(sl_api_finish(session, ended, err));
    seqlstm_status status = SEQLSTM_OK;
    if (result.train.end == SL_END_DIVERGED)
        status =
            seqlstm_error_set(err, SEQLSTM_NUMERIC, __FILE__, __LINE__, "training diverged: %s", result.train.reason);
    if (result.train.end == SL_END_INTERRUPTED)
        status =
            seqlstm_error_set(err, SEQLSTM_CANCELLED, __FILE__, __LINE__, "stopped and saved in %s", result.folder);
    return sl_api_end(status, err);
}

seqlstm_status seqlstm_evaluate(struct seqlstm_session *session, const char *split, struct seqlstm_metric *out_metrics,
                                int32_t capacity, int32_t *out_count, struct seqlstm_error *err)
{
    int which = 0;
    while (which < SL_SPLIT_COUNT && strcmp(split, sl_split_get_name((enum sl_split)which)) != 0)
        which++;
    if (which == SL_SPLIT_COUNT)
        return sl_api_end(seqlstm_error_set(err, SEQLSTM_INVALID_ARGUMENT, __FILE__, __LINE__,
                                            "no split `%s`, expected train, valid or test", split),
                          err);
    struct sl_evaluation evaluation;
    SEQLSTM_TRY(
        sl_api_finish(session, sl_session_evaluate(session->session, (enum sl_split)which, &evaluation, err), err));
    for (int32_t m = 0; m < evaluation.values.count && m < capacity; m++)
        out_metrics[m] = (struct seqlstm_metric){evaluation.values.items[m].name, evaluation.values.items[m].value};
    *out_count = evaluation.values.count;
    return SEQLSTM_OK;
}

struct prediction_writer {
    seqlstm_prediction_fn write;
    void *context;
};

static seqlstm_status write_prediction(void *context, const struct sl_prediction *p, struct seqlstm_error *err)
{
    const struct prediction_writer *writer = context;
    seqlstm_status status = writer->write(writer->context, p->record, p->values, p->rows, p->features);
    if (status != SEQLSTM_OK)
        seqlstm_error_set(err, status, __FILE__, __LINE__, "the caller ended the prediction at record %lld",
                          (long long)p->record);
    return status;
}

seqlstm_status seqlstm_predict_file(struct seqlstm_session *session, const char *path, seqlstm_prediction_fn write,
                                    void *context, struct seqlstm_error *err)
{
    struct prediction_writer writer = {write, context};
    struct sl_input_request request = {.path = path};
    return sl_api_finish(session, sl_session_predict(session->session, &request, false, write_prediction, &writer, err),
                         err);
}

seqlstm_status seqlstm_predict_values(struct seqlstm_session *session, const float *values, const int64_t *lengths,
                                      int64_t count, seqlstm_prediction_fn write, void *context,
                                      struct seqlstm_error *err)
{
    struct prediction_writer writer = {write, context};
    return sl_api_finish(
        session, sl_session_predict_values(session->session, values, lengths, count, write_prediction, &writer, err),
        err);
}

const char *seqlstm_find_class(const struct seqlstm_session *session, int64_t index)
{
    const struct sl_data_state *state = sl_session_find_data_state(session->session);
    const struct sl_vocabulary *classes = state ? sl_data_state_find_classes(state) : NULL;
    if (classes == NULL || index < 0 || index >= sl_vocabulary_get_size(classes))
        return NULL;
    return sl_vocabulary_get_text(classes, (int32_t)index, NULL);
}

struct text_writer {
    seqlstm_text_fn write;
    void *context;
};

static seqlstm_status write_text(void *context, const char *text, size_t bytes, struct seqlstm_error *err)
{
    const struct text_writer *writer = context;
    seqlstm_status status = writer->write(writer->context, text, bytes);
    if (status != SEQLSTM_OK)
        seqlstm_error_set(err, status, __FILE__, __LINE__, "the caller ended the text");
    return status;
}

seqlstm_status seqlstm_generate(struct seqlstm_session *session, const char *prompt, int64_t length, double temperature,
                                uint64_t seed, seqlstm_text_fn write, void *context, struct seqlstm_error *err)
{
    struct text_writer writer = {write, context};
    struct sl_generate_request request = {
        .prompt = prompt, .length = length, .temperature = temperature, .top_p = 1, .seed = seed};
    return sl_api_finish(session, sl_session_generate(session->session, &request, write_text, &writer, err), err);
}
