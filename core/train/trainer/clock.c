/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trainer/clock.h"

#include <math.h>

#include "base/system/clock.h"

int64_t sl_trainer_read_clock(const struct sl_trainer *trainer)
{
    const struct sl_trainer_request *request = &trainer->request;
    return request->clock_ns ? request->clock_ns(request->clock_context) : sl_clock_ns();
}

struct sl_progress sl_trainer_make_progress(const struct sl_trainer *trainer, int64_t updates, int64_t ordinal,
                                            int64_t tokens)
{
    const struct sl_train_state *state = &trainer->state;
    double share = (double)ordinal / (double)state->epoch_batches;
    return (struct sl_progress){
        .updates = updates,
        .epochs = (double)state->epoch + fmin(share, 1 - 1e-6),
        .tokens = tokens,
        .seconds = trainer->seconds_before + (double)(sl_trainer_read_clock(trainer) - trainer->start_ns) * 1e-9,
    };
}

void sl_trainer_update_progress(struct sl_trainer *trainer)
{
    const struct sl_train_state *state = &trainer->state;
    trainer->progress = sl_trainer_make_progress(trainer, state->updates, state->ordinal, state->tokens);
}

bool sl_trainer_is_time_over(const struct sl_trainer *trainer, const struct sl_progress *progress)
{
    const struct sl_period *most = &trainer->config->max_time;
    return most->unit == SL_PERIOD_SECONDS && progress->seconds - trainer->seconds_before >= most->count;
}

bool sl_trainer_ends(const struct sl_trainer *trainer, const struct sl_progress *progress)
{
    const struct sl_train_config *config = trainer->config;
    return (config->updates > 0 && progress->updates >= config->updates) || sl_trainer_is_time_over(trainer, progress);
}
