/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runs of `verify` over two backends of the test, one of which makes mistakes: what each of them is given of
 * every layer (the reference's inputs, upstream gradients and parts), and what is said of it. Compared with
 * tests/fixtures/reports/verify_runs.txt.
 */
#include <math.h>
#include <unistd.h>

#include "golden.h"
#include "ok.h"
#include "oom.h"
#include "scratch.h"
#include "written_model.h"

#include "base/operation/op_signature.h"
#include "base/value/buf.h"
#include "compare/verify/verify.h"
#include "judge/runner.h"
#include "session/prepare/backends.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static struct sl_buf out;

/* ---- backends: the reference under two other names, the second of which offends --------------------------------- */

static const struct seqlstm_backend *inner;
static union seqlstm_any_desc desc; /* of the newest operation of the offender */

static seqlstm_status offend_supports(const char *device_class, const struct seqlstm_desc *d,
                                      struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    if (d->op == SEQLSTM_OP_RECURRENT && ((const struct seqlstm_recurrent_desc *)d)->layers > 1) {
        snprintf(answer->reason, sizeof answer->reason, "it has no stacks");
        snprintf(answer->value, sizeof answer->value, "2");
        answer->code = SEQLSTM_BIT_REFUSED_OPTION;
        answer->option = SEQLSTM_OPTION_LAYERS;
        return SEQLSTM_OK;
    }
    if (d->op == SEQLSTM_OP_DENSE) {
        snprintf(answer->reason, sizeof answer->reason, "it has no products");
        answer->code = SEQLSTM_BIT_REFUSED_OPERATION;
        return SEQLSTM_OK;
    }
    return inner->supports(device_class, d, answer, err);
}

static seqlstm_status offend_op_create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *d,
                                       const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    memset(&desc, 0, sizeof desc);
    memcpy(&desc, d, d->struct_size < sizeof desc ? d->struct_size : sizeof desc);
    return inner->op_create(instance, device, d, variant, out_op, err);
}

/* Wrong in inference: an output of two units. */
static seqlstm_status offend_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    SEQLSTM_TRY(inner->forward(binding, queue, args, err));
    float *y = args->slots[SEQLSTM_SLOT_RECURRENT_Y];
    if (desc.head.op == SEQLSTM_OP_RECURRENT && desc.recurrent.hidden == 2 &&
        desc.head.mode == SEQLSTM_MODE_INFERENCE && y)
        y[1] += 0.25f;
    return SEQLSTM_OK;
}

/* Wrong in training: a weight of two units. */
static seqlstm_status offend_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                      const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    SEQLSTM_TRY(inner->backward(binding, queue, args, err));
    if (desc.head.op == SEQLSTM_OP_RECURRENT && desc.recurrent.hidden == 2 && desc.recurrent.input == 2)
        ((float *)args->grads[SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_H)])[2] += 1;
    return SEQLSTM_OK;
}

static const struct seqlstm_backend *honest_query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    table = *seqlstm_reference_query_v0(host_minor);
    table.id = "honest";
    return &table;
}

static const struct seqlstm_backend *offender_query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    inner = seqlstm_reference_query_v0(host_minor);
    table = *inner;
    table.id = "offender";
    table.supports = offend_supports;
    table.op_create = offend_op_create;
    table.forward = offend_forward;
    table.backward = offend_backward;
    return &table;
}

static uint32_t builtin_count;

seqlstm_status __wrap_sl_session_open_registry(const struct sl_session *session, const struct sl_registry_entry *first,
                                               uint32_t first_count, bool listed, struct sl_registry **out_registry,
                                               struct seqlstm_error *err);
seqlstm_status __wrap_sl_runner_create(const struct sl_subject *subject, const struct sl_data *data,
                                       const char *variant, struct sl_cuts *cuts, struct sl_runner **out_runner,
                                       struct seqlstm_error *err);
seqlstm_status __real_sl_runner_create(const struct sl_subject *subject, const struct sl_data *data,
                                       const char *variant, struct sl_cuts *cuts, struct sl_runner **out_runner,
                                       struct seqlstm_error *err);
seqlstm_status __wrap_sl_runner_backward(struct sl_runner *runner, uint32_t parts, bool accumulate,
                                         struct seqlstm_error *err);
seqlstm_status __real_sl_runner_backward(struct sl_runner *runner, uint32_t parts, bool accumulate,
                                         struct seqlstm_error *err);

seqlstm_status __wrap_sl_session_open_registry(const struct sl_session *session, const struct sl_registry_entry *first,
                                               uint32_t first_count, bool listed, struct sl_registry **out_registry,
                                               struct seqlstm_error *err)
{
    static const struct sl_backend_builtin builtins[] = {
        {"reference", seqlstm_reference_query_v0}, {"honest", honest_query}, {"offender", offender_query}};
    const struct sl_registry_request request = {
        .all_builtins = true, .builtins = builtins, .builtin_count = builtin_count, .only_folders = true};
    (void)session, (void)first, (void)first_count, (void)listed;
    return sl_registry_create(&request, out_registry, err);
}

/* ---- what a backend is given --------------------------------------------------------------------------------------
 */

static const struct sl_runner *given; /* the newest one of a subject */
static struct sl_interrupt interrupt;
static int runners, last; /* the runner with which it is stopped */

/* The sizes alone, since gradients may cancel each other, and a sum in which each place has another share. */
static void add_numbers(const char *what, const double *values, int64_t elems)
{
    double size = 0, moment = 0;
    if (values == NULL)
        return;
    for (int64_t i = 0; i < elems; i++) {
        size += fabs(values[i]);
        moment += values[i] * (double)(i % 7 + 1);
    }
    sl_buf_printf(&out, " %s %.4g %.4g", what, size, moment);
}

static void add_data(const char *id, const struct sl_data *d)
{
    sl_buf_printf(&out, "%s gets %s: pass %d, lengths %d, %lldx%lld, rows %lld of %lld%s%s, 1/%.4g\n", id, d->c.text,
                  (int)d->c.pass, (int)d->c.lengths, (long long)d->axis.steps, (long long)d->axis.sequences,
                  (long long)d->rows, (long long)d->rows_in, d->c.on_sequences ? ", on sequences" : "",
                  d->c.no_input_grad ? ", no dx" : "", 1 / (double)d->step.normaliser);
    for (int32_t k = 0; k < d->count; k++) {
        if (d->slots[k].role == SL_SLOT_ABSENT)
            continue;
        sl_buf_printf(&out, "  %s %lld:", d->slots[k].name, (long long)d->elems[k]);
        add_numbers("values", d->values[k], d->elems[k]);
        add_numbers("upstream", d->upstream[k], d->elems[k]);
        sl_buf_append_char(&out, '\n');
    }
}

seqlstm_status __wrap_sl_runner_create(const struct sl_subject *subject, const struct sl_data *data,
                                       const char *variant, struct sl_cuts *cuts, struct sl_runner **out_runner,
                                       struct seqlstm_error *err)
{
    const seqlstm_status status = __real_sl_runner_create(subject, data, variant, cuts, out_runner, err);
    if (++runners == last)
        atomic_store(&interrupt.stop, 15);
    given = variant ? *out_runner : NULL;
    if (variant && strcmp(subject->table->id, "offender") != 0) /* the other one gets the same */
        add_data(subject->table->id, data);
    return status;
}

seqlstm_status __wrap_sl_runner_backward(struct sl_runner *runner, uint32_t parts, bool accumulate,
                                         struct seqlstm_error *err)
{
    if (runner == given)
        sl_buf_printf(&out, "  backward of parts %u%s\n", parts, accumulate ? ", accumulated" : "");
    return __real_sl_runner_backward(runner, parts, accumulate, err);
}

/* ---- runs ---------------------------------------------------------------------------------------------------------
 */

/* The JSON, in which how large errors are is `0` within the tolerance and `1` beyond, and reasons end before numbers.
 */
static void add_json(const struct sl_verify_report *report)
{
    static const char key[] = "\"error_over_tolerance\": ";
    struct sl_buf json = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    ok(sl_verify_report_print_json(report, &json, &err), &err);
    const char *at = sl_buf_text(&json), *found;
    while ((found = strstr(at, key)) != NULL) {
        char *end;
        const double worst = strtod(found + strlen(key), &end);
        const char *number = strstr(end, "] is "), *next = strstr(end, key);
        sl_buf_printf(&out, "%.*s%s%d", (int)(found - at), at, key, worst > 1);
        at = end;
        if (number && (next == NULL || number < next)) {
            sl_buf_printf(&out, "%.*s]", (int)(number - at), at);
            at = number + strcspn(number, "\"");
        }
    }
    sl_buf_append_text(&out, at);
    sl_buf_append_char(&out, '\n');
    sl_buf_deinit(&json);
}

static void show_run(const char *title, const char *text, const char *backend, int64_t sequences, bool in_json)
{
    struct sl_session *session = open_written_model(text);
    struct sl_verify_report *report = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_verify_request request = {
        .session = session, .backend = backend, .sequences = sequences, .threads = 1};
    sl_buf_printf(&out, "== %s\n", title);
    const seqlstm_status status = sl_verify_run(&request, &report, &err);
    if (status != SEQLSTM_OK)
        sl_buf_printf(&out, "%d: %s\n", (int)status, err.message);
    for (int32_t k = 0; report && k < sl_verify_report_get_count(report); k++) {
        enum sl_phase phase;
        const struct sl_judgement *j = sl_verify_report_get(report, k, &phase);
        sl_buf_printf(&out, "%s of %s in phase %d%s: %s %.*s\n", j->node->name, sl_backend_get_id(j->backend),
                      (int)phase, j->backward ? " and back" : "", sl_verdict_name(j->verdict),
                      j->verdict == SL_VERDICT_FAIL ? (int)strcspn(j->detail, "]") + 1 : 100, j->detail);
    }
    if (report) {
        const struct sl_envelope batch = sl_verify_report_get_batch(report);
        sl_buf_printf(&out, "%d failures; %lld sequences, %lld rows\n", (int)sl_verify_report_get_failures(report),
                      (long long)batch.sequences, (long long)batch.rows);
        if (in_json)
            add_json(report);
    }
    for (int n = 1; report; n++) { /* what lacks a part is not written */
        struct sl_buf json = {0};
        oom_fail_at(n);
        const seqlstm_status written = sl_verify_report_print_json(report, &json, &err);
        const bool failed = oom_disarm();
        assert_true(failed == (written == SEQLSTM_NO_MEMORY || json.failed));
        sl_buf_deinit(&json);
        if (!failed)
            break;
    }
    sl_verify_report_destroy(report);
    sl_session_close(session);
}

static void write_kinds(void)
{
    FILE *file = fopen("kinds.csv", "w");
    assert_true(file && fputs("x,kind\n1,a\n2,b\n3,a\n4,b\n", file) >= 0);
    fclose(file);
}

static void what_backends_are_given_and_what_is_said(void **state)
{
    (void)state;
    static const char sums[] = "seqlstm: 1\nseed: 3\n"
                               "data: {type: generator, name: adding_problem, length: [3, 6], train: {size: 40}, "
                               "batch_size: 4, batching: {bucketing: off}}\n"
                               "model:\n  - {type: lstm, units: 2, layers: 2, dropout: 0.5, return_sequences: true}\n"
                               "  - {type: gru, units: 3, direction: bidirectional}\n"
                               "  - {type: dense, units: from_target}\n"
                               "train: {loss: mse, optimizer: sgd, epochs: 1}\nbackends: [reference]\n",
                      pairs[] = "seqlstm: 1\nseed: 1\ndata:\n"
                                "  train: {type: generator, name: addition, digits: 1, size: 20}\n  batch_size: 3\n"
                                "model:\n  encoder:\n    - {type: embedding, dim: 2}\n"
                                "    - {type: lstm, name: reader, units: 3, return_sequences: true}\n  decoder:\n"
                                "    - {type: embedding, dim: 2}\n"
                                "    - {type: lstm, units: 3, return_sequences: true, initial_state: reader}\n"
                                "    - {type: attention, input_feeding: true}\n"
                                "    - {type: output, activation: softmax}\n"
                                "train: {loss: cross_entropy, epochs: 1}\nbackends: [reference]\n";
    static const char classes[] =
        "seqlstm: 1\nseed: 2\n"
        "data: {type: csv, inputs: [x], label: kind, train: {file: kinds.csv}, batch_size: 4}\n"
        "model:\n  - {type: dense, units: from_target, activation: softmax}\n"
        "train: {loss: cross_entropy, class_weight: {a: 3, b: 0.5}, epochs: 1}\n"
        "backends: [reference]\n";
    assert_int_equal(chdir(scratch_folder), 0);
    write_kinds();
    builtin_count = 3;
    show_run("weights of classes", classes, "honest", 3, false);
    show_run("sums", sums, NULL, 4, true);
    show_run("only the offender, with more sequences than a batch has", sums, "offender", 0, false);
    show_run("only the reference", sums, "reference", 2, false);
    show_run("pairs", pairs, "honest", 3, false);
    show_run("one that is not there", sums, "absent", 3, false);
    builtin_count = 1;
    show_run("nothing but the reference", sums, NULL, 3, false);
    golden_expect("reports/verify_runs.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

static const char small[] = "seqlstm: 1\nseed: 3\n"
                            "data: {type: generator, name: adding_problem, length: [3, 4], train: {size: 8}, "
                            "batch_size: 2}\n"
                            "model: [{type: lstm, units: 2}, {type: dense, units: from_target}]\n"
                            "train: {loss: mse, optimizer: sgd, epochs: 1}\nbackends: [reference]\n";

/* Whenever it comes, and before anything is compared further. */
static void an_interrupt_ends_it(void **state)
{
    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    builtin_count = 3;
    last = 0;
    for (int all = 1, n = 0; n < all; n++) {
        struct sl_session *session = open_written_model(small);
        struct sl_verify_report *report = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const struct sl_verify_request request = {
            .session = session, .sequences = 2, .threads = 1, .interrupt = &interrupt};
        last = n;
        runners = 0;
        const seqlstm_status status = sl_verify_run(&request, &report, &err);
        all = n == 0 ? runners : all;
        if (status != (n == 0 ? SEQLSTM_OK : SEQLSTM_CANCELLED) || (n > 0 && runners > n + 1))
            fail_msg("stopped with runner %d of %d: status %d after %d", n, all, (int)status, runners);
        atomic_store(&interrupt.stop, 0);
        sl_verify_report_destroy(report);
        sl_session_close(session);
    }
    assert_in_range(runners, 10, 100);
    last = 0;
    sl_buf_deinit(&out);
}

/* Wherever memory runs out, no backend is called wrong that is not, and what a backend lacks is said with its name. */
static void memory_that_runs_out_is_no_mistake(void **state)
{
    (void)state;
    struct sl_session *session = open_written_model(small);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_verify_request request = {.session = session, .sequences = 2, .threads = 1};
    struct sl_verify_report *report = NULL;
    builtin_count = 3;
    ok(sl_verify_run(&request, &report, &err), &err);
    const int32_t failures = sl_verify_report_get_failures(report);
    assert_in_range(failures, 1, 4);
    sl_verify_report_destroy(report);
    int named = 0;
    for (bool failed = true; failed;) {
        report = NULL;
        oom_fail_anew(8);
        const seqlstm_status status = sl_verify_run(&request, &report, &err);
        failed = oom_disarm();
        const int32_t found = report ? sl_verify_report_get_failures(report) : failures;
        if (status != (report ? SEQLSTM_OK : SEQLSTM_NO_MEMORY) || found != failures)
            fail_msg("status %d, '%s', %d failures", (int)status, err.message, (int)found);
        named += status != SEQLSTM_OK && strncmp(err.message, "no memory to judge `", 20) == 0 &&
                 (strstr(err.message, "` on honest: ") || strstr(err.message, "` on offender: "));
        sl_verify_report_destroy(report);
    }
    assert_true(named > 10);
    sl_session_close(session);
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_backends_are_given_and_what_is_said),
                                       cmocka_unit_test(an_interrupt_ends_it),
                                       cmocka_unit_test(memory_that_runs_out_is_no_mistake)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
