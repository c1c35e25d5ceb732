/* SPDX-License-Identifier: Apache-2.0 */
/* See trial.h. */
#include "conformance/collectives/trial.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <seqlstm/philox.h>

bool sl_trial_check(struct sl_trial *trial, bool holds, const char *format, ...)
{
    if (holds || trial->failed)
        return holds;
    va_list args;
    va_start(args, format);
    vsnprintf(trial->detail, sizeof trial->detail, format, args);
    va_end(args);
    trial->failed = true;
    return false;
}

static const char *name_kind(uint32_t kind)
{
    static const char *const names[SEQLSTM_COLLECTIVE_COUNT] = {
        "all_reduce", "reduce_scatter", "all_gather", "broadcast", "send", "receive", "barrier"};
    return kind < SEQLSTM_COLLECTIVE_COUNT ? names[kind] : "?";
}

bool sl_trial_exchange(struct sl_trial *trial, uint32_t kind, uint32_t dtype, uint32_t reduction, int32_t peer,
                       const void *from, void *to, int64_t elems)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_exchange exchange = {
        .kind = kind, .dtype = dtype, .reduction = reduction, .peer = peer, .elems = elems, .from = from, .to = to};
    if (trial->failed)
        return false;
    const seqlstm_status status = sl_connection_run(trial->connection, 0, exchange, &err);
    return sl_trial_check(trial, status == SEQLSTM_OK, "%s of %lld elements of dtype %u failed with status %d: %s",
                          name_kind(kind), (long long)elems, dtype, (int)status, err.message);
}

void *sl_trial_allocate(struct sl_trial *trial, int64_t bytes)
{
    void *memory = malloc(bytes > 0 ? (size_t)bytes : 1);
    sl_trial_check(trial, memory != NULL, "no memory for %lld bytes", (long long)bytes);
    return memory;
}

uint64_t sl_trial_random(const struct sl_trial *trial, uint64_t number, int32_t rank, int64_t element)
{
    return seqlstm_mix64(trial->seed, number << 16 | (uint64_t)rank, (uint64_t)element);
}
