/* SPDX-License-Identifier: Apache-2.0 */
/* include/seqlstm/seqlstm.h on top of sessions. */
#include <stdlib.h>
#include <string.h>

#include <seqlstm/seqlstm.h>

#include "base/config.h"
#include "base/system/clock.h"
#include "base/value/buf.h"
#include "base/value/printable.h"
#include "session/api.h"
#include "session/session.h"

/* What a public session holds besides the inner one: everything that the inner one's options borrow. */
struct seqlstm_session {
    struct sl_session *session;
    struct sl_diagnostics *diagnostics;
    struct sl_model_request request;
    struct sl_override *overrides;
    struct sl_session_options options;
    struct sl_log log;
    struct sl_interrupt interrupt;
    void (*log_fn)(void *context, int32_t level, const char *message);
    void *log_context;
    const int32_t *stop;
};

struct sl_session *sl_api_get_session(const struct seqlstm_session *session)
{
    return session->session;
}

const char *seqlstm_get_version(void)
{
    return SL_VERSION;
}

seqlstm_status sl_api_end(seqlstm_status status, struct seqlstm_error *err)
{
    char shown[sizeof err->message];
    if (status == SEQLSTM_OK || err == NULL || err->struct_size < sizeof *err)
        return status;
    sl_printable_copy(shown, sizeof shown, err->message, strlen(err->message), "\n\t");
    memcpy(err->message, shown, strlen(shown) + 1);
    sl_printable_copy(shown, sizeof err->where, err->where, strlen(err->where), "");
    memcpy(err->where, shown, strlen(shown) + 1);
    return status;
}

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    struct seqlstm_session *s = context;
    struct sl_buf shown = {0};
    if (level == SL_LOG_STATUS) /* what a terminal shows for a moment */
        return;
    sl_printable_append(&shown, message, strlen(message), "\n\t");
    s->log_fn(s->log_context, (int32_t)level + 1, shown.failed ? "no memory for a message" : sl_buf_text(&shown));
    sl_buf_deinit(&shown);
}

static seqlstm_status prepare(const char *path, const struct seqlstm_options *options,
                              struct seqlstm_session **out_session, struct seqlstm_error *err)
{
    struct seqlstm_session *s = calloc(1, sizeof *s);
    if (s == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the session");
    s->request.path = path;
    s->options.model = &s->request;
    s->options.log = &s->log;
    s->options.interrupt = &s->interrupt;
    if (options && options->struct_size >= sizeof *options) {
        s->overrides = calloc((size_t)options->override_count + 1, sizeof *s->overrides);
        if (s->overrides == NULL) {
            free(s);
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the session");
        }
        for (uint32_t i = 0; i < options->override_count; i++)
            s->overrides[i] = (struct sl_override){.origin = "override", .assignment = options->overrides[i]};
        s->request.overrides = s->overrides;
        s->request.override_count = options->override_count;
        s->options.backend_folders = options->backend_folders;
        s->options.backend_folder_count = options->folder_count;
        s->options.forced_backend = options->backend;
        s->options.out_dir = options->out_dir;
        s->options.threads = options->threads;
        s->options.threads_given = options->threads > 0;
        s->options.trust = (options->flags & SEQLSTM_OPEN_TRUST) != 0;
        s->stop = options->stop;
        s->log_fn = options->log;
        s->log_context = options->context;
        if (options->log)
            s->log = (struct sl_log){.write = write_log, .context = s, .level = SL_LOG_DEBUG};
    }
    seqlstm_status status = sl_diagnostics_create(&s->diagnostics, err);
    if (status != SEQLSTM_OK) {
        seqlstm_close(s);
        return status;
    }
    *out_session = s;
    return SEQLSTM_OK;
}

/* The findings are more precise than "2 errors". */
static void explain(const struct seqlstm_session *s, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    struct seqlstm_error ignored = SEQLSTM_ERROR_INIT;
    if (err && err->struct_size >= sizeof *err && sl_diagnostics_count(s->diagnostics, SL_SEVERITY_ERROR) > 0 &&
        sl_diagnostics_render(s->diagnostics, false, &buf, &ignored) == SEQLSTM_OK && buf.data)
        sl_printable_copy(err->message, sizeof err->message, buf.data, strlen(buf.data), "\n\t");
    sl_buf_deinit(&buf);
}

seqlstm_status seqlstm_open_model(const char *path, const struct seqlstm_options *options,
                                  struct seqlstm_session **out_session, struct seqlstm_error *err)
{
    struct seqlstm_session *s = NULL;
    SEQLSTM_TRY(prepare(path, options, &s, err));
    seqlstm_status status = sl_session_open_model(&s->options, s->diagnostics, &s->session, err);
    if (status != SEQLSTM_OK) {
        explain(s, err);
        seqlstm_close(s);
        return sl_api_end(status, err);
    }
    *out_session = s;
    return SEQLSTM_OK;
}

seqlstm_status seqlstm_open_run(const char *run, const struct seqlstm_options *options,
                                struct seqlstm_session **out_session, struct seqlstm_error *err)
{
    struct seqlstm_session *s = NULL;
    SEQLSTM_TRY(prepare(NULL, options, &s, err));
    seqlstm_status status = sl_session_open_run(run, &s->options, s->diagnostics, &s->session, err);
    if (status != SEQLSTM_OK) {
        explain(s, err);
        seqlstm_close(s);
        return sl_api_end(status, err);
    }
    *out_session = s;
    return SEQLSTM_OK;
}

void seqlstm_close(struct seqlstm_session *session)
{
    if (session == NULL)
        return;
    sl_session_close(session->session);
    sl_diagnostics_destroy(session->diagnostics);
    free(session->overrides);
    free(session);
}

const char *seqlstm_get_folder(const struct seqlstm_session *session)
{
    return sl_session_get_folder(session->session);
}

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
    SEQLSTM_TRY(sl_api_end(sl_session_run(session->session, &observer, &result, err), err));
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
    SEQLSTM_TRY(sl_api_end(sl_session_evaluate(session->session, (enum sl_split)which, &evaluation, err), err));
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
    return sl_api_end(sl_session_predict(session->session, &request, false, write_prediction, &writer, err), err);
}

seqlstm_status seqlstm_predict_values(struct seqlstm_session *session, const float *values, const int64_t *lengths,
                                      int64_t count, seqlstm_prediction_fn write, void *context,
                                      struct seqlstm_error *err)
{
    struct prediction_writer writer = {write, context};
    return sl_api_end(
        sl_session_predict_values(session->session, values, lengths, count, write_prediction, &writer, err), err);
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
    return sl_api_end(sl_session_generate(session->session, &request, write_text, &writer, err), err);
}
