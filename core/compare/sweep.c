/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep.h. */
#include "compare/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "base/system/clock.h"
#include "base/system/cpu.h"
#include "measure/batch_rows.h"
#include "measure/flops.h"
#include "measure/interval.h"
#include "measure/peak.h"
#include "compare/local_side.h"
#include "compare/phase_graph.h"

enum { ROUNDS_MOST = 25, ROUNDS_LEAST = 3, STEPS_MOST = 256 };
static const double turn_ns_least = 5e6, tie = 1.03;

struct sweep {
    const struct sl_sweep_request *request;
    struct sl_sweep_report *report;
    struct sl_backend_spec backends[SL_SWEEP_BACKENDS_MOST];
    int32_t backend_count;
    int32_t threads[SL_SWEEP_THREADS_MOST];
    int32_t thread_count;
    struct sl_pool *pools[SL_SWEEP_THREADS_MOST];
    int64_t begin_ns;
    struct seqlstm_error *err;
};

/* One batch size under way. */
struct batch_run {
    struct sl_sample sample;
    struct sl_graph *graph;
    struct sl_compare_side **sides; /* [candidate_count]; NULL: excluded */
    double *turn;                   /* [1 + calls] */
    double *times;                  /* [candidate_count][ROUNDS_MOST] */
    int32_t *steps;                 /* [candidate_count] of a turn; 0: not known yet */
};

/* ---- candidates ----------------------------------------------------------------------------------------- */

static seqlstm_status no_memory(struct sweep *s)
{
    SEQLSTM_FAIL(s->err, SEQLSTM_NO_MEMORY, "no memory for the sweep");
}

static seqlstm_status list_backends(struct sweep *s)
{
    const struct sl_sweep_request *r = s->request;
    struct sl_registry *registry = NULL;
    for (; s->backend_count < r->backend_count; s->backend_count++)
        SEQLSTM_TRY(sl_backend_spec_parse(&s->report->arena, r->backends[s->backend_count],
                                          &s->backends[s->backend_count], s->err));
    if (s->backend_count > 0)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_session_open_registry(r->session, NULL, 0, true, &registry, s->err));
    seqlstm_status status = sl_registry_check_required(registry, s->err);
    for (uint32_t b = 0; status == SEQLSTM_OK && b < sl_registry_get_backend_count(registry); b++) {
        const struct sl_backend_record *record = sl_backend_get_record(sl_registry_get_backend(registry, b));
        struct sl_backend_spec *spec = &s->backends[s->backend_count];
        if (strcmp(record->id, "reference") == 0 || s->backend_count == SL_SWEEP_BACKENDS_MOST)
            continue;
        *spec = (struct sl_backend_spec){.text = sl_arena_strdup(&s->report->arena, record->id)};
        spec->name = spec->text;
        if (!spec->text)
            status = no_memory(s);
        s->backend_count++;
    }
    sl_registry_destroy(registry);
    return status;
}

static seqlstm_status list_candidates(struct sweep *s)
{
    const struct sl_sweep_request *r = s->request;
    struct sl_sweep_report *report = s->report;
    int32_t cores = sl_cpu_count();
    s->thread_count = r->thread_count;
    memcpy(s->threads, r->threads, sizeof s->threads);
    if (s->thread_count == 0) {
        s->threads[s->thread_count++] = 1;
        if (cores > 1)
            s->threads[s->thread_count++] = cores;
    }
    double peaks[SL_SWEEP_THREADS_MOST];
    for (int32_t t = 0; t < s->thread_count; t++) {
        SEQLSTM_TRY(sl_pool_create(s->threads[t], &s->pools[t], s->err));
        peaks[t] = sl_peak_measure(s->pools[t]);
    }
    report->candidate_count = s->backend_count * s->thread_count;
    report->candidates = SL_ARENA_ARRAY(&report->arena, struct sl_sweep_candidate, (size_t)report->candidate_count + 1);
    if (!report->candidates)
        return no_memory(s);
    for (int32_t c = 0; c < report->candidate_count; c++)
        report->candidates[c] = (struct sl_sweep_candidate){.name = s->backends[c / s->thread_count].text,
                                                            .device = "",
                                                            .threads = s->threads[c % s->thread_count],
                                                            .peak_gflops = peaks[c % s->thread_count]};
    return SEQLSTM_OK;
}

/* ---- one batch size ----------------------------------------------------------------------------------------- */

/* The coarsest unit that the backend takes at node n; -1: none. */
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

/* Chooses what runs where; *out_flops counts what runs on the backend itself. False: no backend runs some unit. */
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

static seqlstm_status exclude(struct sweep *s, struct sl_sweep_candidate *candidate, bool failed, const char *reason)
{
    candidate->excluded = sl_arena_strdup(&s->report->arena, reason);
    candidate->failed = failed;
    s->report->failures += failed;
    return candidate->excluded ? SEQLSTM_OK : no_memory(s);
}

/* Notes the layers with products that other backends run. */
static seqlstm_status note_loans(struct sweep *s, const struct sl_graph *graph,
                                 const struct sl_compare_side_facts *facts,
                                 const struct sl_compare_side_choice *choices, int32_t count,
                                 struct sl_sweep_candidate *candidate)
{
    struct sl_arena *arena = &s->report->arena;
    struct sl_sweep_loan *loans = SL_ARENA_ARRAY(arena, struct sl_sweep_loan, (size_t)count + 1);
    if (!loans)
        return no_memory(s);
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
            return no_memory(s);
    }
    return SEQLSTM_OK;
}

/* Numbers before times, once for each candidate. */
static seqlstm_status judge(struct sweep *s, struct batch_run *run, int32_t c,
                            const struct sl_compare_side_choice *choices, int32_t count)
{
    size_t units = (size_t)sl_unit_count(run->graph);
    struct sl_compare_side_verdict *verdicts = calloc(units, sizeof *verdicts);
    if (!verdicts)
        return no_memory(s);
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

static seqlstm_status open_candidate(struct sweep *s, struct batch_run *run, int32_t c, bool first)
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
    status = choices ? side->table->get_facts(side, &arena, &facts, s->err) : no_memory(s);
    if (status == SEQLSTM_OK && !choose(run->graph, &facts, choices, &count, &flops))
        status = exclude(s, candidate, false, "a layer of the model runs neither on it nor on any other backend");
    else if (status == SEQLSTM_OK && flops == 0 && run->graph->node_count > 0)
        status = exclude(s, candidate, false, "it takes no layer of the model that has products");
    else if (status == SEQLSTM_OK) {
        candidate->device = sl_arena_strdup(&s->report->arena, facts.device);
        status = candidate->device ? side->table->plan(side, choices, count, s->err) : no_memory(s);
        if (status == SEQLSTM_OK && first)
            status = note_loans(s, run->graph, &facts, choices, count, candidate);
        if (status == SEQLSTM_OK && first)
            status = judge(s, run, c, choices, count);
    }
    sl_arena_deinit(&arena);
    return status;
}

static seqlstm_status open_run(struct sweep *s, struct batch_run *run, int64_t batch, struct sl_sweep_batch *out)
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
        return no_memory(s);
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

static void close_run(struct sweep *s, struct batch_run *run)
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

static seqlstm_status take_turn(struct sweep *s, struct batch_run *run, int32_t c, struct sl_sweep_cell *cell)
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

/* All candidates once, in an order of its own. */
static seqlstm_status run_round(struct sweep *s, struct batch_run *run, int32_t round, struct sl_sweep_batch *batch)
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

static seqlstm_status run_batch(struct sweep *s, int64_t batch, double seconds)
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

/* ---- all of them -------------------------------------------------------------------------------------------- */

/* Seconds that one round of the newest batch size takes at least: two steps to warm up and one timed, each. */
static double shortest_round(const struct sl_sweep_report *report)
{
    double ns = 0;
    for (int32_t c = 0; report->batch_count > 0 && c < report->candidate_count; c++)
        ns += 3 * report->batches[report->batch_count - 1].cells[c].step_ns;
    return 1e-9 * ns;
}

static seqlstm_status run_batches(struct sweep *s, const int64_t *batches, int32_t count)
{
    double share = s->request->seconds / count;
    for (int32_t b = 0; b < count; b++) {
        double gone = 1e-9 * (double)(sl_clock_ns() - s->begin_ns), left = s->request->seconds - gone;
        double growth = b > 0 ? (double)batches[b] / (double)batches[b - 1] : 1;
        if (b > 0 && growth * shortest_round(s->report) > left + s->request->seconds / 2) {
            s->report->skipped_from = batches[b];
            break;
        }
        if (s->request->on_progress)
            s->request->on_progress(s->request->context, batches[b]);
        SEQLSTM_TRY(run_batch(s, batches[b], fmax(left, 0.1 * share) / (count - b)));
    }
    return SEQLSTM_OK;
}

static seqlstm_status check_left(struct sweep *s)
{
    for (int32_t c = 0; c < s->report->candidate_count; c++)
        if (!s->report->candidates[c].excluded)
            return SEQLSTM_OK;
    if (s->report->failures > 0)
        return SEQLSTM_OK; /* a finding */
    if (s->report->candidate_count == 0)
        SEQLSTM_FAIL(s->err, SEQLSTM_UNAVAILABLE,
                     "no backend is loaded but the reference; `seqlstm backends -v` says why");
    SEQLSTM_FAIL(s->err, SEQLSTM_UNAVAILABLE, "nothing is left to time; %s: %s", s->report->candidates[0].name,
                 s->report->candidates[0].excluded);
}

static void find_crossover(struct sl_sweep_report *report)
{
    int32_t last = report->batch_count - 1;
    if (last < 0 || report->batches[last].winner == report->batches[0].winner)
        return;
    int32_t b = last;
    while (b > 0 && report->batches[b - 1].winner == report->batches[last].winner)
        b--;
    report->crossover = report->batches[b].batch;
}

static seqlstm_status run(struct sweep *s)
{
    const struct sl_sweep_request *r = s->request;
    int64_t powers[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
    bool given = r->batch_count > 0;
    s->report->model = sl_session_get_model(r->session);
    s->report->phase = r->phase;
    SEQLSTM_TRY(sl_session_read_data(r->session, s->err));
    SEQLSTM_TRY(list_backends(s));
    SEQLSTM_TRY(list_candidates(s));
    if (s->report->candidate_count == 0)
        return check_left(s);
    s->begin_ns = sl_clock_ns();
    SEQLSTM_TRY(run_batches(s, given ? r->batches : powers, given ? r->batch_count : (int32_t)(sizeof powers / 8)));
    find_crossover(s->report);
    return check_left(s);
}

seqlstm_status sl_sweep_run(const struct sl_sweep_request *request, struct sl_sweep_report **out_report,
                            struct seqlstm_error *err)
{
    struct sweep sweep = {.request = request, .report = calloc(1, sizeof *sweep.report), .err = err};
    if (!sweep.report)
        return no_memory(&sweep);
    seqlstm_status status = run(&sweep);
    for (int32_t t = 0; t < sweep.thread_count; t++)
        sl_pool_destroy(sweep.pools[t]);
    if (status != SEQLSTM_OK) {
        sl_sweep_report_destroy(sweep.report);
        return status;
    }
    *out_report = sweep.report;
    return SEQLSTM_OK;
}

void sl_sweep_report_destroy(struct sl_sweep_report *report)
{
    if (!report)
        return;
    sl_arena_deinit(&report->arena);
    free(report);
}
