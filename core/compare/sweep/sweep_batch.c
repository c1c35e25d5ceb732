/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/sweep/sweep_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "base/system/clock.h"
#include "base/value/median.h"
#include "compare/side/local_side.h"
#include "compare/sample/phase_graph.h"
#include "measure/batch_rows.h"
#include "measure/flops.h"

enum { ROUNDS_MOST = 25, ROUNDS_LEAST = 3, STEPS_MOST = 256 };
static const double turn_ns_least = 5e6, tie = 1.03;

/* One batch size while it runs. */
struct batch_run {
    struct sl_sample sample;
    struct sl_graph *graph;
    struct sl_compare_side **sides; /* [candidate_count]; NULL if excluded */
    double *turn;                   /* [1 + calls] */
    double *times;                  /* [candidate_count][ROUNDS_MOST] */
    int32_t *steps;                 /* [candidate_count] steps in a turn; 0: not known yet */
};

/* The coarsest unit that the backend accepts at node n; -1 if there is none. */
static int32_t find_own(const struct sl_graph *graph, const struct sl_compare_side_facts *facts, int32_t n,
                        int32_t *out_covered)
{
    int32_t found = facts->units[n].accepted ? n : -1;
    *out_covered = 1;
    for (int32_t k = 0; k < graph->alternative_count; k++) {
        const struct sl_alternative *alternative = &graph->alternatives[k];
        if (alternative->first != n || alternative->count <= *out_covered ||
            !facts->units[graph->node_count + k].accepted)
            continue;
        found = graph->node_count + k;
        *out_covered = alternative->count;
    }
    return found;
}

/* Chooses what runs where. *out_flops counts what runs on the candidate's own backend. Returns false if no backend
 * runs some unit. */
static bool choose(const struct sl_graph *graph, const struct sl_compare_side_facts *facts,
                   struct sl_compare_side_choice *choices, int32_t *out_count, double *out_flops)
{
    *out_count = 0;
    *out_flops = 0;
    for (int32_t n = 0; n < graph->node_count;) {
        int32_t covered, own = find_own(graph, facts, n, &covered);
        struct sl_compare_side_choice *choice = &choices[(*out_count)++];
        const struct sl_compare_side_unit *unit = &facts->units[own >= 0 ? own : n];
        *choice = (struct sl_compare_side_choice){.unit = own >= 0 ? own : n};
        if (own < 0 && unit->other_count == 0)
            return false;
        memcpy(choice->id, own >= 0 ? facts->id : unit->others[0].id, sizeof choice->id);
        memcpy(choice->variant, own >= 0 ? unit->variant : unit->others[0].variant, sizeof choice->variant);
        if (own >= 0)
            *out_flops += sl_flops_count(sl_unit_get(graph, own), 1, false, false);
        n += own >= 0 ? covered : 1;
    }
    return true;
}

static seqlstm_status exclude(struct sl_sweep *s, struct sl_sweep_candidate *candidate, bool failed, const char *reason)
{
    candidate->excluded = sl_arena_strdup(&s->report->arena, reason);
    candidate->failed = failed;
    s->report->failures += failed;
    return candidate->excluded ? SEQLSTM_OK : sl_sweep_fail_no_memory(s);
}

/* Records the layers with products that other backends run. */
static seqlstm_status note_loans(struct sl_sweep *s, const struct sl_graph *graph,
                                 const struct sl_compare_side_facts *facts,
                                 const struct sl_compare_side_choice *choices, int32_t count,
                                 struct sl_sweep_candidate *candidate)
{
    struct sl_arena *arena = &s->report->arena;
    struct sl_sweep_loan *loans = SL_ARENA_ARRAY(arena, struct sl_sweep_loan, (size_t)count + 1);
    if (!loans)
        return sl_sweep_fail_no_memory(s);
    candidate->loans = loans;
    for (int32_t k = 0; k < count; k++) {
        const struct sl_compare_side_unit *unit = &facts->units[choices[k].unit];
        const struct sl_node *node = sl_unit_get(graph, choices[k].unit);
        if (unit->accepted || sl_flops_count(node, 1, false, false) == 0)
            continue;
        struct sl_sweep_loan *loan = &loans[candidate->loan_count++];
        *loan = (struct sl_sweep_loan){.layer = sl_arena_strdup(arena, node->name),
                                       .id = sl_arena_strdup(arena, choices[k].id),
                                       .variant = sl_arena_strdup(arena, choices[k].variant),
                                       .reason = sl_arena_strdup(arena, unit->reason)};
        if (!loan->layer || !loan->id || !loan->variant || !loan->reason)
            return sl_sweep_fail_no_memory(s);
    }
    return SEQLSTM_OK;
}

/* Checks the results before anything is timed, once for each candidate. */
static seqlstm_status judge(struct sl_sweep *s, struct batch_run *run, int32_t c,
                            const struct sl_compare_side_choice *choices, int32_t count)
{
    size_t units = (size_t)sl_unit_count(run->graph);
    struct sl_compare_side_verdict *verdicts = calloc(units, sizeof *verdicts);
    if (!verdicts)
        return sl_sweep_fail_no_memory(s);
    struct sl_compare_side *side = run->sides[c];
    seqlstm_status status = side->table->judge(side, verdicts, s->err);
    for (int32_t k = 0; status == SEQLSTM_OK && k < count; k++) {
        const struct sl_compare_side_verdict *verdict = &verdicts[choices[k].unit];
        if (!verdict->failed || s->report->candidates[c].excluded)
            continue;
        struct sl_buf text = {0};
        sl_buf_printf(&text, "%s: %s", sl_unit_get(run->graph, choices[k].unit)->name, verdict->detail);
        status = exclude(s, &s->report->candidates[c], true, sl_buf_text(&text));
        sl_buf_deinit(&text);
    }
    free(verdicts);
    return status;
}

static seqlstm_status open_candidate(struct sl_sweep *s, struct batch_run *run, int32_t c, bool first)
{
    struct sl_sweep_candidate *candidate = &s->report->candidates[c];
    const struct sl_backend_spec *backend = &s->backends[c / s->thread_count];
    struct sl_local_side_request request = {.session = s->request->session,
                                            .own = backend,
                                            .other = backend,
                                            .graph = run->graph,
                                            .sample = &run->sample,
                                            .pool = s->pools[c % s->thread_count],
                                            .interrupt = s->request->interrupt};
    struct sl_compare_side_facts facts;
    struct sl_arena arena;
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    double flops;
    int32_t count;
    seqlstm_status status = sl_local_side_open(&request, &run->sides[c], &why);
    if (status == SEQLSTM_UNAVAILABLE || status == SEQLSTM_NOT_FOUND)
        return exclude(s, candidate, false, why.message);
    if (status != SEQLSTM_OK) {
        if (s->err)
            *s->err = why;
        return status;
    }
    struct sl_compare_side *side = run->sides[c];
    sl_arena_init(&arena);
    struct sl_compare_side_choice *choices =
        SL_ARENA_ARRAY(&arena, struct sl_compare_side_choice, (size_t)run->graph->node_count);
    status = choices ? side->table->get_facts(side, &arena, &facts, s->err) : sl_sweep_fail_no_memory(s);
    if (status == SEQLSTM_OK && !choose(run->graph, &facts, choices, &count, &flops))
        status = exclude(s, candidate, false, "a layer of the model runs neither on it nor on any other backend");
    else if (status == SEQLSTM_OK && flops == 0 && run->graph->node_count > 0)
        status = exclude(s, candidate, false, "it takes no layer of the model that has products");
    else if (status == SEQLSTM_OK) {
        candidate->device = sl_arena_strdup(&s->report->arena, facts.device);
        status = candidate->device ? side->table->plan(side, choices, count, s->err) : sl_sweep_fail_no_memory(s);
        if (status == SEQLSTM_OK && first)
            status = note_loans(s, run->graph, &facts, choices, count, candidate);
        if (status == SEQLSTM_OK && first)
            status = judge(s, run, c, choices, count);
    }
    sl_arena_deinit(&arena);
    return status;
}

static seqlstm_status open_run(struct sl_sweep *s, struct batch_run *run, int64_t batch, struct sl_sweep_batch *out)
{
    const struct sl_sweep_request *r = s->request;
    int32_t candidates = s->report->candidate_count;
    bool training = r->phase == SL_PHASE_TRAIN;
    SEQLSTM_TRY(sl_sample_create(sl_session_find_train_data(r->session), s->report->model->seed, batch, 1, &run->sample,
                                 s->err));
    SEQLSTM_TRY(sl_phase_graph_create(r->session, r->phase, &run->sample.envelope, &run->graph, s->err));
    run->sides = calloc((size_t)candidates, sizeof *run->sides);
    run->steps = calloc((size_t)candidates, sizeof *run->steps);
    run->times = calloc((size_t)candidates * ROUNDS_MOST, sizeof *run->times);
    run->turn = calloc((size_t)run->graph->node_count + 1, sizeof *run->turn);
    *out =
        (struct sl_sweep_batch){.batch = batch,
                                .rows = sl_batch_get_rows(run->sample.batches[0]),
                                .winner = -1,
                                .cells = SL_ARENA_ARRAY(&s->report->arena, struct sl_sweep_cell, (size_t)candidates)};
    if (!run->sides || !run->steps || !run->times || !run->turn || !out->cells)
        return sl_sweep_fail_no_memory(s);
    for (int32_t n = 0; n < run->graph->node_count; n++) {
        const struct sl_node *node = &run->graph->nodes[n];
        bool input_grad = node->slots[0] >= 0 && run->graph->tensors[node->slots[0]].needs_grad;
        int64_t rows = sl_batch_count_node_rows(run->sample.batches[0], run->graph, node);
        out->gflop += 1e-9 * sl_flops_count(node, rows, training && node->needs_backward, input_grad);
    }
    for (int32_t c = 0; c < candidates; c++)
        if (!s->report->candidates[c].excluded)
            SEQLSTM_TRY(open_candidate(s, run, c, s->report->batch_count == 0));
    return SEQLSTM_OK;
}

static void close_run(struct sl_sweep *s, struct batch_run *run)
{
    for (int32_t c = 0; run->sides && c < s->report->candidate_count; c++)
        if (run->sides[c])
            run->sides[c]->table->close(run->sides[c]);
    free(run->sides);
    free(run->steps);
    free(run->times);
    free(run->turn);
    sl_graph_destroy(run->graph);
    sl_sample_deinit(&run->sample);
}

static seqlstm_status take_turn(struct sl_sweep *s, struct batch_run *run, int32_t c, struct sl_sweep_cell *cell)
{
    struct sl_compare_side *side = run->sides[c];
    struct sl_compare_side_result result;
    int64_t ns;
    SEQLSTM_TRY(side->table->start(side, 0, &result, &ns, s->err));
    if (run->steps[c] == 0) {
        double steps = ceil(turn_ns_least / fmax((double)ns, 1));
        run->steps[c] = steps > STEPS_MOST ? STEPS_MOST : (int32_t)steps;
    }
    SEQLSTM_TRY(side->table->take_turn(side, run->steps[c] > 1, run->steps[c], run->turn, s->err));
    run->times[(int64_t)c * ROUNDS_MOST + cell->rounds++] = run->turn[0];
    return side->table->stop(side, s->err);
}

/* Runs each candidate once, in a random order. */
static seqlstm_status run_round(struct sl_sweep *s, struct batch_run *run, int32_t round, struct sl_sweep_batch *batch)
{
    int32_t candidates = s->report->candidate_count;
    uint64_t key = seqlstm_mix64(s->report->model->seed, (uint64_t)batch->batch, (uint64_t)round);
    int32_t from = (int32_t)(key % (uint64_t)candidates), stride = key >> 32 & 1 ? 1 : candidates - 1;
    for (int32_t i = 0; i < candidates; i++) {
        int32_t c = (from + i * stride) % candidates;
        if (sl_interrupt_get_stop(s->request->interrupt))
            SEQLSTM_FAIL(s->err, SEQLSTM_CANCELLED, "interrupted");
        if (!s->report->candidates[c].excluded && run->sides[c])
            SEQLSTM_TRY(take_turn(s, run, c, &batch->cells[c]));
    }
    return SEQLSTM_OK;
}

static void choose_winner(struct sl_sweep_report *report, struct sl_sweep_batch *batch)
{
    int32_t before = report->batch_count > 0 ? report->batches[report->batch_count - 1].winner : -1;
    for (int32_t c = 0; c < report->candidate_count; c++)
        if (batch->cells[c].rounds > 0 &&
            (batch->winner < 0 || batch->cells[c].step_ns < batch->cells[batch->winner].step_ns))
            batch->winner = c;
    if (before >= 0 && batch->winner >= 0 && batch->cells[before].rounds > 0 &&
        batch->cells[before].step_ns < tie * batch->cells[batch->winner].step_ns)
        batch->winner = before;
}

seqlstm_status sl_sweep_run_batch(struct sl_sweep *s, int64_t batch, double seconds)
{
    struct batch_run run = {.graph = NULL};
    struct sl_sweep_batch *out = &s->report->batches[s->report->batch_count];
    seqlstm_status status = open_run(s, &run, batch, out);
    int64_t begin = sl_clock_ns();
    for (int32_t round = 0; status == SEQLSTM_OK && round < ROUNDS_MOST; round++) {
        double gone = 1e-9 * (double)(sl_clock_ns() - begin);
        if (gone > (round < ROUNDS_LEAST ? 3 * seconds : seconds))
            break;
        status = run_round(s, &run, round, out);
    }
    if (status == SEQLSTM_OK && sl_interrupt_get_stop(s->request->interrupt)) /* in the last turn */
        status = seqlstm_error_set(s->err, SEQLSTM_CANCELLED, __FILE__, __LINE__, "interrupted");
    for (int32_t c = 0; status == SEQLSTM_OK && c < s->report->candidate_count; c++) {
        struct sl_sweep_cell *cell = &out->cells[c];
        double *times = run.times + (int64_t)c * ROUNDS_MOST;
        if (cell->rounds == 0)
            continue;
        cell->step_ns = sl_median(times, cell->rounds);
        cell->low_ns = times[0];
        cell->high_ns = times[cell->rounds - 1];
    }
    close_run(s, &run);
    SEQLSTM_TRY(status);
    choose_winner(s->report, out);
    s->report->batch_count++;
    return SEQLSTM_OK;
}
