/* SPDX-License-Identifier: Apache-2.0 */
/* The passes about state: ranges of steps, repetition, modes, memory and threads. */
#include <pthread.h>
#include <string.h>

#include "base/value/text.h"
#include "conformance/checks/checks.h"

#define ALL_PARTS (SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES | SEQLSTM_BIT_BACKWARD_WEIGHTS)

static void skip(struct sl_check *check, const char *reason)
{
    check->result->verdict = SL_VERDICT_SKIP;
    sl_text_snprintf(check->result->detail, sizeof check->result->detail, "%s", reason);
}

static bool can_go_backward(const struct sl_check *check)
{
    return sl_op_has_backward(check->data->c.desc.head.op) && check->data->c.desc.head.mode == SEQLSTM_MODE_TRAINING;
}

/* Forward, and backward if the operation has one. */
static bool run_once(struct sl_check *check, struct sl_runner *runner)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (!sl_check_status(check, sl_runner_forward(runner, &err), "forward", &err))
        return false;
    return !can_go_backward(check) ||
           sl_check_status(check, sl_runner_backward(runner, ALL_PARTS, false, &err), "backward", &err);
}

static struct sl_runner *make_runner(struct sl_check *check, const struct sl_subject *subject, struct sl_cuts *cuts)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_runner *runner = NULL;
    const char *variant = subject->table == check->bench->subject.table ? check->variant : NULL;
    sl_check_status(check, sl_runner_create(subject, check->data, variant, cuts, &runner, &err),
                    "creating the operation", &err);
    return runner;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static bool is_cut_by_states(const union seqlstm_any_desc *desc)
{
    const uint32_t states = SEQLSTM_BIT_RECURRENT_INITIAL_STATE | SEQLSTM_BIT_RECURRENT_FINAL_STATE;
    return desc->head.op == SEQLSTM_OP_RECURRENT && (desc->recurrent.options & states) == states &&
           desc->recurrent.direction == SEQLSTM_DIRECTION_FORWARD;
}

/* Each row is independent, so a range of steps is a range of rows. */
static bool is_cut_by_rows(const struct sl_data *d)
{
    bool on_rows = d->c.desc.head.op != SEQLSTM_OP_RECURRENT && !d->c.on_sequences;
    for (int32_t k = 0; on_rows && k < d->count; k++)
        on_rows = d->slots[k].role == SL_SLOT_ABSENT || d->slots[k].axis == SL_SLOT_ON_ROWS;
    return on_rows;
}

/* Bindings that had all steps before must give the bits of those that were made for their segments; also after they
 * have run, with the addresses of other segments. */
static void check_rebound(struct sl_check *check, struct sl_cuts cuts, uint64_t digest)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    cuts.rebinds = check->bench->host;
    struct sl_runner *rebound = make_runner(check, &check->bench->subject, &cuts);
    if (rebound && cuts.rebound > 0 && run_once(check, rebound)) {
        if (sl_runner_digest(rebound) != digest)
            sl_check_fail(check, "three segments gave other bits on bindings that rebind had changed than on new ones");
        else if (sl_check_status(check, sl_runner_exchange_bindings(rebound, &cuts, &err), "rebind after a call",
                                 &err) &&
                 run_once(check, rebound) && sl_runner_digest(rebound) != digest)
            sl_check_fail(check, "three segments gave other bits after bindings had run and rebind had changed them "
                                 "again");
    }
    sl_runner_destroy(rebound);
}

void sl_check_ranges(struct sl_check *check)
{
    const struct sl_data *d = check->data;
    if (d->axis.steps < 3 || !(is_cut_by_states(&d->c.desc) || is_cut_by_rows(d))) {
        skip(check, "ranges need three steps, and rows on them or a forward recurrent layer with initial and final "
                    "states");
        return;
    }
    struct sl_cuts cuts = {.count = 3, .at = {0, 1, 1 + (d->axis.steps - 1) / 2, d->axis.steps}};
    struct sl_runner *segments = make_runner(check, &check->bench->subject, &cuts);
    struct sl_runner *whole = make_runner(check, &check->bench->reference, NULL);
    if (segments && whole && run_once(check, segments) && run_once(check, whole))
        sl_check_compare(check, segments, whole, can_go_backward(check), ALL_PARTS, "three segments against the whole");
    if (segments && check->result->verdict == SL_VERDICT_PASS)
        check_rebound(check, cuts, sl_runner_digest(segments));
    sl_runner_destroy(segments);
    sl_runner_destroy(whole);
}

/* ---- repeat ---------------------------------------------------------------------------------- */

void sl_check_repeat(struct sl_check *check)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_data *other;
    if (!sl_check_status(
            check,
            sl_data_create(check->arena, &check->data->c, check->bench->seed, check->bench->seed + 1, &other, &err),
            "making the data", &err))
        return;
    struct sl_runner *first = make_runner(check, &check->bench->subject, NULL);
    struct sl_runner *second = first ? make_runner(check, &check->bench->subject, NULL) : NULL;
    if (!first || !second || !run_once(check, first))
        goto out;
    uint64_t digest = sl_runner_digest(first);
    if (!run_once(check, first))
        goto out;
    if (sl_runner_digest(first) != digest)
        sl_check_fail(check, "the same call on the same binding gave other bits the second time");
    sl_runner_set_data(first, other);
    if (!run_once(check, first))
        goto out;
    sl_runner_set_data(first, check->data);
    if (!run_once(check, first))
        goto out;
    if (sl_runner_digest(first) != digest)
        sl_check_fail(check, "the same call gave other bits after a call with other data: something was kept");
    if (!run_once(check, second))
        goto out;
    if (sl_runner_digest(second) != digest)
        sl_check_fail(check, "a second operation of the same descriptor gave other bits");
out:
    sl_runner_destroy(first);
    sl_runner_destroy(second);
}

/* ---- same ------------------------------------------------------------------------------------ */

void sl_check_same(struct sl_check *check)
{
    struct sl_data training = *check->data, inference = *check->data;
    sl_case_clear_rates(&training.c);
    sl_case_clear_rates(&inference.c);
    training.c.desc.head.mode = SEQLSTM_MODE_TRAINING;
    inference.c.desc.head.mode = SEQLSTM_MODE_INFERENCE;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_runner *a = NULL, *b = NULL;
    const struct sl_data *given = check->data;
    check->data = &training; /* use the tolerance and sensitivity of the mode that runs */
    if (sl_check_status(check, sl_runner_create(&check->bench->subject, &training, NULL, NULL, &a, &err),
                        "creating the operation for training", &err) &&
        sl_check_status(check, sl_runner_create(&check->bench->subject, &inference, NULL, NULL, &b, &err),
                        "creating the operation for inference", &err) &&
        sl_check_status(check, sl_runner_forward(a, &err), "forward in training", &err) &&
        sl_check_status(check, sl_runner_forward(b, &err), "forward in inference", &err))
        sl_check_compare(check, a, b, false, 0, "training with all rates 0 against inference");
    check->data = given;
    sl_runner_destroy(a);
    sl_runner_destroy(b);
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { ALLOCATIONS_TRIED = 200 };

void sl_check_memory(struct sl_check *check)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_host *host = check->bench->host;
    int64_t blocks = host->memory.live_blocks, bytes = host->memory.live_bytes;
    struct sl_runner *runner = make_runner(check, &check->bench->subject, NULL);
    if (!runner)
        return;
    int64_t before = host->memory.n_allocs;
    if (run_once(check, runner) && run_once(check, runner) && host->memory.n_allocs != before)
        sl_check_fail(check, "forward and backward made %lld allocation%s, expected none",
                      (long long)(host->memory.n_allocs - before), host->memory.n_allocs - before == 1 ? "" : "s");
    sl_runner_destroy(runner);
    runner = NULL;
    if (host->memory.live_blocks != blocks || host->memory.live_bytes != bytes)
        sl_check_fail(check, "%lld block%s (%lld bytes) still held after everything was destroyed",
                      (long long)(host->memory.live_blocks - blocks),
                      host->memory.live_blocks - blocks == 1 ? " is" : "s are",
                      (long long)(host->memory.live_bytes - bytes));
    for (int64_t n = 0; n < ALLOCATIONS_TRIED && check->result->verdict == SL_VERDICT_PASS; n++) {
        err.message[0] = 0;
        host->fail_after = host->memory.n_allocs + n;
        seqlstm_status rc = sl_runner_create(&check->bench->subject, check->data, check->variant, NULL, &runner, &err);
        host->fail_after = -1;
        if (rc == SEQLSTM_OK) {
            sl_runner_destroy(runner);
            return;
        }
        if (rc != SEQLSTM_NO_MEMORY)
            sl_check_fail(check, "when allocation %lld failed it returned status %d (%.200s), expected NO_MEMORY",
                          (long long)n, (int)rc, err.message);
        else if (host->memory.live_blocks != blocks)
            sl_check_fail(check, "when allocation %lld failed it kept %lld block%s", (long long)n,
                          (long long)(host->memory.live_blocks - blocks),
                          host->memory.live_blocks - blocks == 1 ? "" : "s");
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
    struct sl_runner *runner;
    bool backward;
    uint64_t digest;
    seqlstm_status rc;
    struct seqlstm_error err;
};

enum { CONCURRENT_RUNS = 3 };

static void *work(void *argument)
{
    struct worker *w = argument;
    for (int i = 0; i < CONCURRENT_RUNS && w->rc == SEQLSTM_OK; i++) {
        w->rc = sl_runner_forward(w->runner, &w->err);
        if (w->rc == SEQLSTM_OK && w->backward)
            w->rc = sl_runner_backward(w->runner, ALL_PARTS, false, &w->err);
    }
    if (w->rc == SEQLSTM_OK)
        w->digest = sl_runner_digest(w->runner);
    return NULL;
}

/* Two queues and two bindings run at the same time. Each must give the same results as alone. */
static void check_concurrent(struct sl_check *check, struct sl_runner *const runners[2])
{
    struct worker workers[2];
    pthread_t threads[2];
    uint64_t alone[2];
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < 2; i++) {
        if (!run_once(check, runners[i]))
            return;
        alone[i] = sl_runner_digest(runners[i]);
        workers[i].runner = runners[i];
        workers[i].backward = can_go_backward(check);
        workers[i].err.struct_size = (uint32_t)sizeof workers[i].err;
    }
    int started = 0;
    while (started < 2 && pthread_create(&threads[started], NULL, work, &workers[started]) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (started < 2) {
        skip(check, "no thread could be started");
        return;
    }
    for (int i = 0; i < 2; i++)
        if (sl_check_status(check, workers[i].rc, "a call beside another queue's", &workers[i].err) &&
            workers[i].digest != alone[i])
            sl_check_fail(check, "two queues at once gave other bits than one alone: something is shared");
}

void sl_check_threads(struct sl_check *check)
{
    struct sl_bench *bench = check->bench;
    struct sl_runner *runners[8] = {NULL};
    struct sl_runner *expected = make_runner(check, &bench->reference, NULL);
    int count = bench->queue_count < 8 ? bench->queue_count : 8;
    if (!expected || !run_once(check, expected))
        goto out;
    for (int i = 0; i < count; i++) {
        struct sl_subject subject = bench->subject;
        char what[64];
        subject.queue = bench->domains ? &bench->domains[i].queue.queue : &bench->queues[i].queue;
        subject.domain = bench->domains ? &bench->domains[i] : NULL;
        runners[i] = make_runner(check, &subject, NULL);
        if (!runners[i] || !run_once(check, runners[i]))
            goto out;
        sl_text_snprintf(what, sizeof what, "%d member%s", (int)subject.queue->members,
                         subject.queue->members == 1 ? "" : "s");
        sl_check_compare(check, runners[i], expected, can_go_backward(check), ALL_PARTS, what);
    }
    if (count >= 2 && check->result->verdict == SL_VERDICT_PASS)
        check_concurrent(check, runners);
out:
    for (int i = 0; i < count; i++)
        sl_runner_destroy(runners[i]);
    sl_runner_destroy(expected);
}

/* ---- alternate ------------------------------------------------------------------------------- */

/* Two plugins of one domain share queues: the executor runs layers of one model on them in turn. */
void sl_check_alternate(struct sl_check *check)
{
    struct sl_bench *bench = check->bench;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_subject beside = bench->reference;
    struct sl_runner *runners[2] = {NULL}; /* the tested backend, and the reference in its ordinary float32 */
    uint64_t alone[2];
    beside.float64 = NULL;
    beside.queue = bench->subject.queue;
    const struct sl_subject *subjects[2] = {&bench->subject, &beside};
    for (int i = 0; i < 2; i++) {
        seqlstm_status rc =
            sl_runner_create(subjects[i], check->data, i == 0 ? check->variant : NULL, NULL, &runners[i], &err);
        if (i == 1 && rc == SEQLSTM_UNSUPPORTED) {
            skip(check, "the reference refuses it");
            goto out;
        }
        if (!sl_check_status(check, rc, "creating the operation", &err) || !run_once(check, runners[i]))
            goto out;
        alone[i] = sl_runner_digest(runners[i]);
    }
    for (int i = 0; i < 2; i++)
        if (!sl_check_status(check, sl_runner_forward(runners[i], &err), "forward beside another plugin", &err))
            goto out;
    for (int i = 0; i < 2 && can_go_backward(check); i++)
        if (!sl_check_status(check, sl_runner_backward(runners[i], ALL_PARTS, false, &err),
                             "backward beside another plugin", &err))
            goto out;
    for (int i = 0; i < 2; i++)
        if (sl_runner_digest(runners[i]) != alone[i])
            sl_check_fail(check, "%s gave other bits when both ran on one queue in turn than alone",
                          i == 0 ? "it" : "the reference beside it");
out:
    sl_runner_destroy(runners[0]);
    sl_runner_destroy(runners[1]);
}
