/* SPDX-License-Identifier: Apache-2.0 */
/* See turn.h. */
#include "session/run/turn.h"

#include "base/system/clock.h"
#include "data/dataset/state.h"
#include "session/record/session_record.h"
#include "train/recorder.h"
#include "train/trainer/trainer.h"

enum { PREFETCH = 4 };

struct watch {
    const struct sl_recorder *recorder; /* NULL: none */
    int64_t warm, updates, seen;
    int64_t begin_ns, tokens;
    struct sl_interrupt interrupt; /* ends the turn */
    const struct sl_interrupt *outer;
    struct sl_turn turn;
};

static void note_step(void *context, const struct sl_train_report *report)
{
    struct watch *watch = context;
    watch->seen++;
    if (watch->seen > watch->warm)
        watch->turn = (struct sl_turn){.updates = watch->seen - watch->warm,
                                       .rows = report->progress.tokens - watch->tokens,
                                       .ns = (double)(sl_clock_ns() - watch->begin_ns)};
    const bool is_done = watch->recorder && sl_recorder_is_done(watch->recorder);
    if (is_done || watch->seen == watch->warm + watch->updates || sl_interrupt_get_stop(watch->outer))
        atomic_store(&watch->interrupt.stop, 1);
    if (watch->seen == watch->warm) {
        watch->tokens = report->progress.tokens;
        watch->begin_ns = sl_clock_ns();
    }
}

bool sl_session_scales_loss(const struct sl_session *session)
{
    const struct sl_plan *plan = session->train.plan;
    for (int32_t c = 0; c < plan->call_count; c++)
        if (plan->calls[c].node->desc.head.dtype_compute == SEQLSTM_DTYPE_FLOAT16)
            return true;
    return false;
}

seqlstm_status sl_session_take_turn(struct sl_session *session, struct sl_recorder *recorder, int64_t warm,
                                    int64_t updates, struct sl_turn *out_turn, struct seqlstm_error *err)
{
    if (sl_session_is_divided(session))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "the training is divided by `parallel`; use `seqlstm run --profile`, or `--set parallel=none`");
    struct watch watch = {.recorder = recorder, .warm = warm, .updates = updates, .outer = session->options.interrupt};
    watch.begin_ns = sl_clock_ns();
    const struct sl_trainer_request request = {
        .model = session->model,
        .state = session->state,
        .facts = sl_data_state_get_facts(session->state),
        .exec = session->train.exec,
        .sampler = session->sampling.sampler,
        .params = session->params,
        .train = session->train_batcher,
        .is_logits = session->train.graph->output_is_logits,
        .weighted_classes = session->class_weights != NULL,
        .scales_loss = sl_session_scales_loss(session),
        .prefetch = PREFETCH,
        .recorder = recorder,
        .observer = {.context = &watch, .on_step = note_step},
        .interrupt = &watch.interrupt,
        .memory = &session->memory,
    };
    struct sl_trainer *trainer = NULL;
    struct sl_train_result result;
    SEQLSTM_TRY(sl_trainer_create(&request, &trainer, err));
    const seqlstm_status status = sl_trainer_run(trainer, &result, err);
    sl_trainer_destroy(trainer);
    SEQLSTM_TRY(status);
    if (sl_interrupt_get_stop(session->options.interrupt))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "interrupted");
    *out_turn = watch.turn;
    return SEQLSTM_OK;
}

int64_t sl_session_count_updates(const struct sl_session *session)
{
    const struct sl_train_config *train = &session->model->train;
    const int64_t batches = sl_batcher_get_batches(session->train_batcher);
    const int64_t accumulate = train->accumulate > 1 ? train->accumulate : 1;
    const int64_t per_epoch = batches > accumulate ? batches / accumulate : 1;
    int64_t count = INT64_MAX;
    if (train->epochs > 0 && train->epochs < INT64_MAX / per_epoch)
        count = train->epochs * per_epoch;
    return train->updates > 0 && train->updates < count ? train->updates : count;
}
