/* SPDX-License-Identifier: Apache-2.0 */
/* See case_bench.h. */
#include "conformance/case_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/system/pool.h"
#include "base/value/median.h"
#include "base/value/text.h"
#include "dispatch/plan/refusal.h"
#include "dispatch/cost/testbed.h"
#include "registry/plugin.h"
#include "judge/data.h"
#include "measure/flops.h"
#include "measure/peak.h"

enum { ROUNDS_LEAST = 7, ROUNDS_MOST = 101, WARM_UP = 2, REPEATS_MOST = 64 };
static const double sample_ns = 200e3; /* shorter samples are repeated until they are this long */

const char *const sl_case_bench_usual[] = {
    "lstm:bwd:T30B1I64H64:f32:uniform",    "lstm:bwd:T30B32I64H64:f32:uniform",
    "lstm:bwd:T20B20I200H200:f32:uniform", "lstm:bwd:T20B32I64H64:f32:ragged",
    "lstm:inf:T30B1I64H64:f32:uniform",    "lstm:inf:T20B20I200H200:f32:uniform",
    "lstm:bwd:T20B16I64H64D2:f32:ragged",  "gru:bwd:T20B32I64H64:f32:uniform:reset_after",
    "dense:bwd:R400I200O500:f32:flat",     NULL};

/* One variant that is timed. */
struct lane {
    char variant[SEQLSTM_MAX_VARIANT_BYTES];
    struct seqlstm_op *op;
    struct seqlstm_sizes sizes;
    struct seqlstm_binding *binding;
    double ns[ROUNDS_MOST], logs[ROUNDS_MOST];
};

struct track {
    const struct sl_case_bench_request *request;
    const struct sl_backend *backend;
    uint32_t device;
    struct sl_pool *pool;
    double peak;
    struct sl_case c;
    struct sl_profiles profiles;
    struct sl_testbed *testbed;
    struct lane lanes[SEQLSTM_MAX_VARIANTS];
    int32_t count, rounds, repeats;
    struct seqlstm_error *err;
};

static const struct seqlstm_backend *get_table(const struct track *t)
{
    return sl_backend_get_table(t->backend);
}

static seqlstm_status open_lanes(struct track *t, const struct seqlstm_answer *answer)
{
    for (uint32_t v = 0; v < answer->variant_count; v++) {
        struct lane *lane = &t->lanes[t->count];
        if (t->request->variant && strcmp(t->request->variant, answer->variants[v]) != 0)
            continue;
        *lane = (struct lane){.sizes.struct_size = sizeof lane->sizes};
        sl_text_snprintf(lane->variant, sizeof lane->variant, "%s", answer->variants[v]);
        seqlstm_status status = sl_plugin_create_op(get_table(t), sl_backend_get_instance(t->backend), t->device,
                                                    &t->c.desc.head, lane->variant, &lane->op, t->err);
        if (status == SEQLSTM_UNSUPPORTED)
            continue;
        t->count += status == SEQLSTM_OK;
        SEQLSTM_TRY(status);
        SEQLSTM_TRY(sl_plugin_get_sizes(get_table(t), lane->op, &lane->sizes, t->err));
    }
    return SEQLSTM_OK;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The batch of the case, with the lengths that its checks have, and a binding of each variant to it. */
static seqlstm_status set_up(struct track *t, struct sl_arena *arena)
{
    struct sl_data *data = NULL;
    struct seqlstm_sizes sizes = {0};
    SEQLSTM_TRY(sl_data_create(arena, &t->c, t->request->seed, t->request->seed, &data, t->err));
    bool on_steps = data->axis.steps > 0 && !t->c.on_sequences;
    SEQLSTM_TRY(sl_profiles_add(&t->profiles, on_steps ? data->axis.sequences : data->rows,
                                on_steps ? data->axis.lengths : NULL, NULL, 1, t->err));
    for (int32_t l = 0; l < t->count; l++) {
        const struct seqlstm_sizes *own = &t->lanes[l].sizes;
        sizes.workspace_bytes = larger(sizes.workspace_bytes, own->workspace_bytes);
        sizes.reserve_bytes = larger(sizes.reserve_bytes, own->reserve_bytes);
        sizes.packed_bytes = larger(sizes.packed_bytes, own->packed_bytes);
    }
    bool backward = t->c.pass == SL_PASS_BACKWARD;
    struct sl_testbed_request testbed = {.desc = &t->c.desc,
                                         .on_steps = on_steps,
                                         .backward = backward,
                                         .input_grad = backward && !t->c.no_input_grad,
                                         .param_grad = backward,
                                         .profiles = &t->profiles,
                                         .profile_count = 1,
                                         .steps_most = INT64_MAX,
                                         .sizes = &sizes,
                                         .backend = t->backend,
                                         .device = t->device,
                                         .pool = t->pool};
    SEQLSTM_TRY(sl_testbed_create(&testbed, &t->testbed, t->err));
    for (int32_t l = 0; l < t->count; l++)
        SEQLSTM_TRY(sl_testbed_bind(t->testbed, t->backend, t->lanes[l].op, 0, &t->lanes[l].binding, t->err));
    return SEQLSTM_OK;
}

static seqlstm_status run_lane(struct track *t, struct lane *lane, int32_t repeats, double *out_ns)
{
    *out_ns = 0;
    for (int32_t k = 0; k < repeats; k++) {
        double forward = 0, backward = 0;
        SEQLSTM_TRY(
            sl_testbed_run(t->testbed, t->backend, lane->op, &lane->sizes, lane->binding, &forward, &backward, t->err));
        *out_ns += (forward + backward) / repeats;
    }
    return SEQLSTM_OK;
}

static seqlstm_status run_rounds(struct track *t)
{
    double slowest = 0, ns;
    for (int32_t l = 0; l < t->count; l++)
        for (int32_t k = 0; k < WARM_UP; k++) {
            SEQLSTM_TRY(run_lane(t, &t->lanes[l], 1, &ns));
            slowest = k > 0 && ns > slowest ? ns : slowest;
        }
    t->repeats = slowest < sample_ns ? (int32_t)fmin(sample_ns / fmax(slowest, 1), REPEATS_MOST - 1) + 1 : 1;
    int64_t end = sl_clock_ns() + (int64_t)(1e9 * t->request->seconds);
    for (t->rounds = 0; t->rounds < ROUNDS_MOST && (t->rounds < ROUNDS_LEAST || sl_clock_ns() < end); t->rounds++) {
        if (sl_interrupt_get_stop(t->request->interrupt))
            SEQLSTM_FAIL(t->err, SEQLSTM_CANCELLED, "interrupted");
        for (int32_t l = 0; l < t->count; l++) { /* another variant begins in each round */
            struct lane *lane = &t->lanes[(l + t->rounds) % t->count];
            SEQLSTM_TRY(run_lane(t, lane, t->repeats, &lane->ns[t->rounds]));
        }
        for (int32_t l = 0; l < t->count; l++)
            t->lanes[l].logs[t->rounds] = log(t->lanes[l].ns[t->rounds] / t->lanes[0].ns[t->rounds]);
    }
    return SEQLSTM_OK;
}

static seqlstm_status report(struct track *t, const char *name)
{
    const struct sl_node node = {.desc = t->c.desc};
    const bool backward = t->c.pass == SL_PASS_BACKWARD;
    const double flops = sl_flops_count(&node, sl_testbed_get_rows(t->testbed, 0), backward, !t->c.no_input_grad);
    for (int32_t l = 0; l < t->count; l++) {
        struct lane *lane = &t->lanes[l];
        struct sl_case_time time = {.name = name, .interval = {.ratio = 1, .low = 1, .high = 1, .rounds = t->rounds}};
        memcpy(time.variant, lane->variant, sizeof time.variant);
        time.median_ns = sl_median(lane->ns, t->rounds); /* sorts them */
        time.spread = (lane->ns[t->rounds - 1 - t->rounds / 4] - lane->ns[t->rounds / 4]) / time.median_ns;
        time.gflops = flops / time.median_ns;
        time.fraction = time.gflops / t->peak;
        if (l > 0)
            SEQLSTM_TRY(sl_interval_compute(lane->logs, t->rounds, 0.95, t->request->seed, &time.interval, t->err));
        SEQLSTM_TRY(t->request->on_time(t->request->context, &time, t->err));
    }
    return SEQLSTM_OK;
}

static void leave(struct track *t)
{
    for (int32_t l = 0; l < t->count; l++) {
        if (t->lanes[l].binding)
            sl_plugin_destroy_binding(get_table(t), t->lanes[l].binding);
        sl_plugin_destroy_op(get_table(t), t->lanes[l].op);
    }
    t->count = 0;
    sl_testbed_destroy(t->testbed);
    t->testbed = NULL;
    sl_profiles_deinit(&t->profiles);
}

static seqlstm_status time_case(struct track *t, const char *name)
{
    struct seqlstm_answer answer;
    struct sl_arena arena;
    SEQLSTM_TRY(sl_case_parse(name, &t->c, t->err));
    if (t->c.pass > SL_PASS_BACKWARD)
        SEQLSTM_FAIL(t->err, SEQLSTM_INVALID_ARGUMENT, "`%s` is a check; inf, fwd and bwd are timed", name);
    SEQLSTM_TRY(sl_backend_supports(t->backend, t->device, &t->c.desc.head, &answer, t->err));
    if (!answer.accepted)
        return SEQLSTM_OK;
    sl_arena_init(&arena);
    seqlstm_status status = open_lanes(t, &answer);
    if (status == SEQLSTM_OK && t->count > 0)
        status = set_up(t, &arena);
    if (status == SEQLSTM_OK && t->count > 0)
        status = run_rounds(t);
    if (status == SEQLSTM_OK && t->count > 0)
        status = report(t, name);
    leave(t);
    sl_arena_deinit(&arena);
    return status;
}

/* Finds the only backend of a registry that was made for it. */
static seqlstm_status find_backend(const struct sl_registry *registry, struct track *t)
{
    for (uint32_t r = 0; r < sl_registry_get_record_count(registry); r++) {
        const struct sl_backend_record *record = sl_registry_get_record(registry, r);
        if (record->status != SL_BACKEND_OK)
            SEQLSTM_FAIL(t->err, SEQLSTM_UNAVAILABLE, "the backend does not load: %.700s", record->reason);
        t->backend = sl_registry_find_backend(registry, record->id);
    }
    if (t->backend == NULL || !sl_backend_find_device(t->backend, &t->device))
        SEQLSTM_FAIL(t->err, SEQLSTM_UNAVAILABLE, "the backend has no device");
    return SEQLSTM_OK;
}

seqlstm_status sl_case_bench_run(const struct sl_case_bench_request *request, struct seqlstm_error *err)
{
    struct sl_registry_request wanted = {.entries = &request->backend,
                                         .entry_count = 1,
                                         .trust = request->trust,
                                         .builtins = request->builtins,
                                         .builtin_count = request->builtin_count,
                                         .log = request->log,
                                         .interrupt = request->interrupt};
    struct sl_registry *registry = NULL;
    struct track *t = calloc(1, sizeof *t);
    if (t == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to time cases");
    t->request = request;
    t->err = err;
    seqlstm_status status = sl_registry_create(&wanted, &registry, err);
    if (status == SEQLSTM_OK)
        status = find_backend(registry, t);
    if (status == SEQLSTM_OK)
        status = sl_pool_create(request->threads, &t->pool, err);
    if (status == SEQLSTM_OK)
        t->peak = sl_peak_measure(t->pool);
    for (uint32_t c = 0; status == SEQLSTM_OK && c < request->case_count; c++)
        status = time_case(t, request->cases[c]);
    sl_registry_destroy(registry);
    sl_pool_destroy(t->pool);
    free(t);
    return status;
}
