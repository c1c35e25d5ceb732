/* SPDX-License-Identifier: Apache-2.0 */
/* What `conformance --bench` does with a case: which buffers and gradients the backend is given, which variants run how
 * often and in which order, and what becomes of their times. The times are made up. After a failure of any call, no
 * operation and no binding is left. */
#include "descriptors.h"
#include "golden.h"

#include <math.h>

#include "conformance/case_bench.h"
#include "base/value/buf.h"
#include "dispatch/cost/testbed.h"
#include "measure/peak.h"
#include "oom.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

double __wrap_sl_peak_measure(struct sl_pool *pool);
seqlstm_status __wrap_sl_testbed_create(const struct sl_testbed_request *request, struct sl_testbed **out_testbed,
                                        struct seqlstm_error *err);
seqlstm_status __real_sl_testbed_create(const struct sl_testbed_request *request, struct sl_testbed **out_testbed,
                                        struct seqlstm_error *err);
seqlstm_status __wrap_sl_testbed_run(struct sl_testbed *testbed, const struct sl_backend *backend,
                                     const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                     struct seqlstm_binding *binding, double *out_forward_ns, double *out_backward_ns,
                                     struct seqlstm_error *err);

/* ---- the backend: the reference in two variants, and one that cannot be created ---------------------------------- */

static const struct seqlstm_backend *inner;
static struct sl_buf out;
static int ops, bindings, calls, failing; /* failing: the call of this number fails; 0: none */
static int runs, stops_after;             /* the run of this number is interrupted; 0: none */
static struct sl_interrupt interrupt;
static const struct seqlstm_op *slow; /* the operation of the first variant */
static double slow_ns, quick_ns;

static seqlstm_status call(struct seqlstm_error *err)
{
    if (++calls == failing)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "call %d fails", calls);
    return SEQLSTM_OK;
}

static seqlstm_status bench_supports(const char *device_class, const struct seqlstm_desc *desc,
                                     struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    static const char *const variants[] = {"slow", "absent", "quick"};
    SEQLSTM_TRY(inner->supports(device_class, desc, answer, err));
    answer->variant_count = 3;
    for (int v = 0; v < 3; v++)
        snprintf(answer->variants[v], sizeof answer->variants[v], "%s", variants[v]);
    return SEQLSTM_OK;
}

static seqlstm_status bench_op_create(struct seqlstm_instance *instance, uint32_t device,
                                      const struct seqlstm_desc *desc, const char *variant, struct seqlstm_op **out_op,
                                      struct seqlstm_error *err)
{
    if (strcmp(variant, "absent") == 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "it is absent");
    SEQLSTM_TRY(call(err));
    SEQLSTM_TRY(inner->op_create(instance, device, desc, NULL, out_op, err));
    ops++;
    if (strcmp(variant, "slow") == 0)
        slow = *out_op;
    return SEQLSTM_OK;
}

static void bench_op_destroy(struct seqlstm_op *op)
{
    ops -= op != NULL;
    inner->op_destroy(op);
}

static seqlstm_status bench_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                     struct seqlstm_error *err)
{
    SEQLSTM_TRY(call(err));
    SEQLSTM_TRY(inner->op_sizes(op, sizes, err));
    sizes->workspace_bytes += op == slow ? 640 : 0; /* the first variant needs most */
    return SEQLSTM_OK;
}

static seqlstm_status bench_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                    const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                    struct seqlstm_error *err)
{
    SEQLSTM_TRY(call(err));
    SEQLSTM_TRY(inner->op_bind(op, queue, bind, out_binding, err));
    bindings++;
    return SEQLSTM_OK;
}

static void bench_binding_destroy(struct seqlstm_binding *binding)
{
    bindings -= binding != NULL;
    inner->binding_destroy(binding);
}

static const struct seqlstm_backend *bench_query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    inner = seqlstm_reference_query_v0(host_minor);
    table = *inner;
    table.supports = bench_supports;
    table.op_create = bench_op_create;
    table.op_destroy = bench_op_destroy;
    table.op_sizes = bench_op_sizes;
    table.op_bind = bench_op_bind;
    table.binding_destroy = bench_binding_destroy;
    return &table;
}

/* ---- what the bench asks for ------------------------------------------------------------------------------------- */

double __wrap_sl_peak_measure(struct sl_pool *pool)
{
    (void)pool;
    return 8;
}

static uint64_t asked_workspace;

seqlstm_status __wrap_sl_testbed_create(const struct sl_testbed_request *request, struct sl_testbed **out_testbed,
                                        struct seqlstm_error *err)
{
    asked_workspace = request->sizes->workspace_bytes;
    sl_buf_printf(&out, "rows are %s, backward %d, of inputs %d, of parameters %d, replays %d, profiles %d%s\n",
                  request->on_steps ? "steps" : "sequences", request->backward, request->input_grad,
                  request->param_grad, request->replays, request->profile_count,
                  request->pool ? "" : ", without a pool");
    return __real_sl_testbed_create(request, out_testbed, err);
}

/* Each third run takes 10 % longer. */
seqlstm_status __wrap_sl_testbed_run(struct sl_testbed *testbed, const struct sl_backend *backend,
                                     const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                     struct seqlstm_binding *binding, double *out_forward_ns, double *out_backward_ns,
                                     struct seqlstm_error *err)
{
    (void)testbed, (void)backend;
    assert_non_null(binding);
    assert_in_range(sizes->workspace_bytes, 1, asked_workspace);
    sl_buf_append_char(&out, op == slow ? 's' : 'q');
    *out_forward_ns = (op == slow ? slow_ns : quick_ns) * (++runs % 3 == 0 ? 1.1 : 1);
    *out_backward_ns = *out_forward_ns / 2;
    if (runs == stops_after)
        atomic_store(&interrupt.stop, 15);
    return call(err);
}

static seqlstm_status on_time(void *context, const struct sl_case_time *time, struct seqlstm_error *err)
{
    assert_ptr_equal(context, &out);
    sl_buf_printf(&out,
                  "\n%s, %s: %.0f ns, spread %.4f, %.5f GFLOP/s, %.5f of the peak, %.4f (%.4f to %.4f) of %lld rounds",
                  time->name, time->variant, time->median_ns, time->spread, time->gflops, time->fraction,
                  time->interval.ratio, time->interval.low, time->interval.high, (long long)time->interval.rounds);
    return call(err);
}

static const struct sl_backend_builtin builtin = {"reference", bench_query};

static int32_t threads = 1;

static seqlstm_status bench(const char *const *cases, uint32_t count, const char *variant, struct seqlstm_error *err)
{
    const struct sl_case_bench_request request = {.backend = {.name = "reference"},
                                                  .builtins = &builtin,
                                                  .builtin_count = 1,
                                                  .cases = cases,
                                                  .case_count = count,
                                                  .variant = variant,
                                                  .threads = threads,
                                                  .seed = 3,
                                                  .interrupt = &interrupt,
                                                  .on_time = on_time,
                                                  .context = &out};
    calls = runs = 0;
    atomic_store(&interrupt.stop, 0);
    return sl_case_bench_run(&request, err);
}

static void assert_nothing_left(const char *what, int n)
{
    if (ops || bindings)
        fail_msg("%s %d: %d operations and %d bindings are left", what, n, ops, bindings);
}

/* What is timed on several threads ends them. */
static void no_thread_is_left(void **state)
{
    static const char *const cases[][1] = {{"dense:inf:R7I5O3:f32:flat"}, {"dense:memory:R7I5O3:f32:flat"}};
    (void)state;
    threads = 3;
    for (int k = 0; k < 4; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const int before = threads_count(), files = descriptors_count();
        failing = k == 3 ? 2 : 0;
        const seqlstm_status status = bench(cases[k == 1], 1, k == 2 ? "absent" : NULL, &err);
        assert_int_equal(status, k == 1 ? SEQLSTM_INVALID_ARGUMENT : k == 3 ? SEQLSTM_DEVICE : SEQLSTM_OK);
        assert_int_equal(threads_count(), before);
        assert_int_equal(descriptors_count(), files);
    }
    failing = 0;
    threads = 1;
}

static void run(const char *name, const char *variant)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_buf_printf(&out, "== %s%s%s\n", name, variant ? ", only " : "", variant ? variant : "");
    const seqlstm_status status = bench(&name, 1, variant, &err);
    sl_buf_printf(&out, "\nstatus %d%s%s\n", (int)status, status ? ": " : "", status ? err.message : "");
    assert_nothing_left(name, 0);
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

static void each_case_is_timed_as_it_says(void **state)
{
    static const char *const cases[] = {"lstm:bwd:T4B3I5H2:f32:ragged",
                                        "lstm:bwd:T4B3I5H2:f32:ragged:no_dx",
                                        "lstm:inf:T4B3I5H2:f32:uniform",
                                        "dense:bwd:R7I5O3:f32:flat",
                                        "dense:fwd:R7I5O3:f32:flat",
                                        "activation:inf:R6C3:f32:flat",
                                        "dropout:bwd:T3B2C5:f32:ragged:on_sequences",
                                        "dense:memory:R7I5O3:f32:flat",
                                        "dense:bwd:R7",
                                        "dense:inf:R7I5O3:f32-bf16:flat"};
    (void)state;
    slow_ns = 300e3, quick_ns = 200e3;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        run(cases[k], NULL);
    run(cases[0], "quick");
    run(cases[0], "absent");
    slow_ns = 30e3, quick_ns = 20e3; /* shorter than a sample: they are repeated */
    run(cases[0], NULL);
    slow_ns = quick_ns = 10;
    run(cases[0], "slow");
    golden_expect("reports/case_bench.txt", "== ", sl_buf_text(&out));
}

static void nothing_is_left_after_a_failing_call(void **state)
{
    static const char *const cases[] = {"dense:inf:R7I5O3:f32:flat", "lstm:bwd:T4B3I5H2:f32:ragged"};
    bool failed = true;
    (void)state;
    slow_ns = quick_ns = 300e3;
    for (int n = 1; failed; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char expected[32];
        failing = n;
        const seqlstm_status status = bench(cases, 2, NULL, &err);
        failed = calls >= n;
        snprintf(expected, sizeof expected, "call %d fails", n);
        if (status != (failed ? SEQLSTM_DEVICE : SEQLSTM_OK) ||
            (failed && (calls != n || !strstr(err.message, expected))))
            fail_msg("call %d: %d after %d calls, %s", n, (int)status, calls, err.message);
        assert_nothing_left("call", n);
    }
    failing = 0;
}

static void nothing_is_left_without_memory(void **state)
{
    static const char *const cases[] = {"lstm:bwd:T4B3I5H2:f32:ragged"};
    bool failed = true;
    (void)state;
    for (int n = 1; failed; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        sl_buf_deinit(&out);
        out = (struct sl_buf){0};
        oom_fail_at(n);
        const seqlstm_status status = bench(cases, 1, NULL, &err);
        failed = oom_disarm();
        if (status != SEQLSTM_OK && (!failed || !err.message[0]))
            fail_msg("allocation %d: %d, %s", n, (int)status, err.message);
        assert_nothing_left("allocation", n);
    }
}

/* The round in which it comes is the last. */
static void an_interrupt_ends_it(void **state)
{
    static const char *const cases[] = {"dense:inf:R7I5O3:f32:flat"};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    stops_after = 7; /* two runs of each variant before the rounds */
    assert_int_equal(bench(cases, 1, NULL, &err), SEQLSTM_CANCELLED);
    stops_after = 0;
    assert_int_equal(runs, 8);
    assert_nothing_left("run", runs);
}

static int release(void **state)
{
    (void)state;
    sl_buf_deinit(&out);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_is_timed_as_it_says),  cmocka_unit_test(nothing_is_left_after_a_failing_call),
        cmocka_unit_test(nothing_is_left_without_memory), cmocka_unit_test(no_thread_is_left),
        cmocka_unit_test(an_interrupt_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
