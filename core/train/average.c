/* SPDX-License-Identifier: Apache-2.0 */
/* The averaged copy of the weights. */
#include "train/average.h"

#include <string.h>

seqlstm_status sl_average_init(struct sl_average *average, enum sl_average_kind kind, double decay,
                               struct sl_params *params, struct sl_memory *memory, struct seqlstm_error *err)
{
    struct sl_average made = {.kind = kind, .decay = decay, .params = params, .memory = memory};
    if (kind != SL_AVERAGE_NONE) {
        size_t bytes = (size_t)params->elems * sizeof(float);
        made.values = sl_memory_alloc_zeroed(memory, bytes);
        if (!made.values)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %zu bytes of averaged weights", bytes);
    }
    *average = made;
    return SEQLSTM_OK;
}

void sl_average_deinit(struct sl_average *average)
{
    sl_memory_free(average->memory, average->values);
    memset(average, 0, sizeof *average);
}

void sl_average_start(struct sl_average *average)
{
    if (average->kind == SL_AVERAGE_NONE || average->active)
        return;
    memcpy(average->values, average->params->values, (size_t)average->params->trainable_elems * sizeof(float));
    average->active = true;
    average->count = 1;
}

seqlstm_status sl_average_update(struct sl_average *average, struct sl_exec *exec, struct seqlstm_error *err)
{
    if (!average->active)
        return SEQLSTM_OK;
    double share = average->kind == SL_AVERAGE_EMA ? 1 - average->decay : 1 / (double)(average->count + 1);
    SEQLSTM_TRY(sl_exec_vector(exec, SEQLSTM_KIND_VECTOR_LERP, average->values, average->params->values,
                               average->params->trainable_elems, (float)share, err));
    average->count++;
    return SEQLSTM_OK;
}

void sl_average_swap(struct sl_average *average)
{
    if (!average->active)
        return;
    float chunk[1024];
    float *a = average->params->values, *b = average->values;
    for (int64_t left = average->params->trainable_elems; left > 0;) {
        int64_t n = left < 1024 ? left : 1024;
        size_t bytes = (size_t)n * sizeof(float);
        memcpy(chunk, a, bytes);
        memcpy(a, b, bytes);
        memcpy(b, chunk, bytes);
        a += n;
        b += n;
        left -= n;
    }
    sl_params_touch(average->params);
}
