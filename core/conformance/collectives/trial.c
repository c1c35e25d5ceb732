/* SPDX-License-Identifier: Apache-2.0 */
/* See trial.h. */
#include "conformance/collectives/trial.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <seqlstm/philox.h>

const struct sl_trial_case sl_trial_cases[] = {
    {"all_reduce", SL_TRIAL_USUAL, sl_trial_all_reduce},
    {"shared", SL_TRIAL_USUAL, sl_trial_shared},
    {"reduce_scatter", SL_TRIAL_USUAL, sl_trial_reduce_scatter},
    {"all_gather", SL_TRIAL_USUAL, sl_trial_all_gather},
    {"broadcast", SL_TRIAL_USUAL, sl_trial_broadcast},
    {"send_receive", SL_TRIAL_USUAL, sl_trial_send_receive},
    {"barrier", SL_TRIAL_USUAL, sl_trial_barrier},
    {"groups", SL_TRIAL_USUAL, sl_trial_groups},
    {"many", SL_TRIAL_USUAL, sl_trial_many},
    {"rounding", SL_TRIAL_USUAL, sl_trial_rounding},
    {"ordered_sum", SL_TRIAL_USUAL, sl_trial_ordered_sum},
    {"time_out", SL_TRIAL_USUAL, sl_trial_time_out},
    {"death", SL_TRIAL_LAST_DIES, sl_trial_death},
    {"leaving", SL_TRIAL_USUAL, sl_trial_leaving},
    {"abort", SL_TRIAL_USUAL, sl_trial_abort},
    {"large", SL_TRIAL_LARGE, sl_trial_large},
    {"times", SL_TRIAL_TIMES, sl_trial_time},
    {0},
};

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
