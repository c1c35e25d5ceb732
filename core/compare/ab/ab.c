/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison. See ab.h. */
#include "compare/ab/ab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/ab/ab_time.h"
#include "measure/batch_rows.h"
#include "measure/flops.h"
#include "compare/ab/match.h"
#include "measure/peak.h"
#include "compare/side/remote_side.h"
#include "compare/side/local_side.h"
#include "compare/sample/phase_graph.h"

/* A comparison while it runs. */
struct comparison {
    const struct sl_ab_request *request;
    struct sl_backend_spec a, b;
    struct sl_sample sample;
    struct sl_pool *pool;
    struct sl_compare_side *sides[2];
    struct sl_match *matches;
    int32_t match_count;
    struct sl_ab_report *report;
    struct seqlstm_error *err;
};

/* ---- setting up --------------------------------------------------------------------------------------------- */

static seqlstm_status prepare(struct comparison *s)
{
    const struct sl_ab_request *r = s->request;
    struct sl_arena *arena = &s->report->arena;
    SEQLSTM_TRY(sl_backend_spec_parse(arena, r->a, &s->a, s->err));
    SEQLSTM_TRY(sl_backend_spec_parse(arena, r->b, &s->b, s->err));
    SEQLSTM_TRY(sl_session_read_data(r->session, s->err));
    SEQLSTM_TRY(sl_sample_create(sl_session_find_train_data(r->session), sl_session_get_model(r->session)->seed,
                                 r->batch_size, SL_SAMPLE_MOST, &s->sample, s->err));
    SEQLSTM_TRY(sl_phase_graph_create(r->session, r->phase, &s->sample.envelope, &s->report->graph, s->err));
    return sl_pool_create(r->threads, &s->pool, s->err);
}

static struct sl_local_side_request describe_side(const struct comparison *s, bool is_b, bool alone)
{
    return (struct sl_local_side_request){.session = s->request->session,
                                          .own = is_b ? &s->b : &s->a,
                                          .other = is_b ? &s->a : &s->b,
                                          .graph = s->report->graph,
                                          .sample = &s->sample,
                                          .pool = s->pool,
                                          .alone = alone,
                                          .interrupt = s->request->interrupt};
}

static seqlstm_status open_sides(struct comparison *s)
{
    const struct sl_ab_request *r = s->request;
    if (r->worker && (r->separate || strcmp(s->a.name, s->b.name) != 0))
        SEQLSTM_TRY(sl_remote_find_reason(r->worker, r->separate, &s->report->arena, &s->report->separate, s->err));
    for (int i = 0; i < 2; i++) {
        struct sl_local_side_request side = describe_side(s, i == 1, false);
        if (s->report->separate)
            SEQLSTM_TRY(sl_remote_side_open(r->worker, i == 1, sl_unit_count(s->report->graph), &s->sides[i], s->err));
        else
            SEQLSTM_TRY(sl_local_side_open(&side, &s->sides[i], s->err));
    }
    return SEQLSTM_OK;
}

/* "cpu-blas:packed" */
static const char *name_choice(struct comparison *s, const struct sl_compare_side_choice *choice)
{
    return sl_arena_printf(&s->report->arena, "%s%s%s", choice->id, choice->variant[0] ? ":" : "", choice->variant);
}

/* Why a layer is not compared. */
static seqlstm_status explain_layer(struct comparison *s, const struct sl_match *match, struct sl_ab_layer *layer)
{
    const struct sl_compare_side_unit *a = &s->report->a.units[match->unit], *b = &s->report->b.units[match->unit];
    const char *pinned = "it is pinned in the model file";
    if (!a->accepted && !b->accepted)
        layer->refused = sl_arena_printf(&s->report->arena, "A: %s; B: %s", a->reason, b->reason);
    else if (a->accepted && b->accepted)
        layer->refused = pinned;
    else
        layer->refused =
            sl_arena_printf(&s->report->arena, "%s: %s", a->accepted ? "B" : "A", a->accepted ? b->reason : a->reason);
    if (!layer->refused)
        SEQLSTM_FAIL(s->err, SEQLSTM_NO_MEMORY, "no memory for the report");
    return SEQLSTM_OK;
}

static bool wants_input_grad(const struct sl_graph *graph, const struct sl_node *node)
{
    int32_t t = node->slots[0];
    return t >= 0 && graph->tensors[t].needs_grad;
}

static seqlstm_status make_layers(struct comparison *s)
{
    struct sl_ab_report *report = s->report;
    bool training = report->graph->phase == SL_PHASE_TRAIN;
    report->layers = SL_ARENA_ARRAY(&report->arena, struct sl_ab_layer, (size_t)s->match_count);
    if (!report->layers)
        SEQLSTM_FAIL(s->err, SEQLSTM_NO_MEMORY, "no memory for the report");
    report->layer_count = s->match_count;
    for (int32_t p = 0; p < s->match_count; p++) {
        struct sl_ab_layer *layer = &report->layers[p];
        layer->node = sl_unit_get(report->graph, s->matches[p].unit);
        layer->compared = s->matches[p].compared;
        layer->a = name_choice(s, &s->matches[p].a);
        layer->b = name_choice(s, &s->matches[p].b);
        if (!layer->a || !layer->b)
            SEQLSTM_FAIL(s->err, SEQLSTM_NO_MEMORY, "no memory for the report");
        if (!layer->compared)
            SEQLSTM_TRY(explain_layer(s, &s->matches[p], layer));
        report->compared += layer->compared;
        double rows = 0; /* of the mean batch, since the times are medians over all batches */
        for (int32_t b = 0; b < s->sample.count; b++)
            rows += (double)sl_batch_count_node_rows(s->sample.batches[b], report->graph, layer->node);
        bool back = training && layer->node->needs_backward;
        layer->gflop = 1e-9 * rows / s->sample.count *
                       sl_flops_count(layer->node, 1, back, wants_input_grad(report->graph, layer->node));
        report->gflop += layer->gflop;
    }
    return SEQLSTM_OK;
}

static seqlstm_status plan_sides(struct comparison *s)
{
    struct sl_ab_report *report = s->report;
    for (int i = 0; i < 2; i++)
        SEQLSTM_TRY(s->sides[i]->table->get_facts(s->sides[i], &report->arena, i ? &report->b : &report->a, s->err));
    bool same = sl_backend_spec_is_same(&s->a, &s->b);
    bool sides_help = same || (!report->separate && strcmp(report->a.id, report->b.id) != 0);
    SEQLSTM_TRY(sl_matches_create(&report->arena, report->graph, &report->a, &report->b, sides_help, &s->matches,
                                  &s->match_count, s->err));
    struct sl_compare_side_choice *choices =
        SL_ARENA_ARRAY(&report->arena, struct sl_compare_side_choice, (size_t)s->match_count);
    if (!choices)
        SEQLSTM_FAIL(s->err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    for (int i = 0; i < 2; i++) {
        for (int32_t p = 0; p < s->match_count; p++)
            choices[p] = i ? s->matches[p].b : s->matches[p].a;
        SEQLSTM_TRY(s->sides[i]->table->plan(s->sides[i], choices, s->match_count, s->err));
    }
    return make_layers(s);
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

static seqlstm_status judge_sides(struct comparison *s)
{
    struct sl_ab_report *report = s->report;
    int32_t units = sl_unit_count(report->graph);
    struct sl_compare_side_verdict *verdicts =
        SL_ARENA_ARRAY(&report->arena, struct sl_compare_side_verdict, (size_t)units);
    if (!verdicts)
        SEQLSTM_FAIL(s->err, SEQLSTM_NO_MEMORY, "no memory for the verdicts");
    report->numeric_ok = true;
    for (int i = 0; i < 2; i++) {
        SEQLSTM_TRY(s->sides[i]->table->judge(s->sides[i], verdicts, s->err));
        for (int32_t p = 0; p < s->match_count; p++) {
            if (!s->matches[p].compared)
                continue;
            *(i ? &report->layers[p].verdict_b : &report->layers[p].verdict_a) = verdicts[s->matches[p].unit];
            report->numeric_ok = report->numeric_ok && !verdicts[s->matches[p].unit].failed;
        }
    }
    return SEQLSTM_OK;
}

/* ‖a - b‖ / ‖b‖; NaN if a or b contains one. */
static double distance(const float *a, const float *b, int64_t elems)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < elems; i++) {
        double d = (double)a[i] - (double)b[i];
        apart += d * d;
        size += (double)b[i] * (double)b[i];
    }
    return apart == 0 ? 0 : sqrt(apart / size);
}

/* Runs one step of the whole model on each side, with equal weights, batch and masks. */
static seqlstm_status compare_steps(struct comparison *s)
{
    struct sl_compare_side_result a, b;
    int64_t ns;
    SEQLSTM_TRY(s->sides[0]->table->start(s->sides[0], 0, &a, &ns, s->err));
    float *kept = malloc((size_t)(a.elems > 0 ? a.elems : 1) * sizeof *kept);
    if (!kept)
        SEQLSTM_FAIL(s->err, SEQLSTM_NO_MEMORY, "no memory for the results of a step");
    memcpy(kept, a.values, (size_t)a.elems * sizeof *kept);
    seqlstm_status status = s->sides[0]->table->stop(s->sides[0], s->err);
    if (status == SEQLSTM_OK)
        status = s->sides[1]->table->start(s->sides[1], 0, &b, &ns, s->err);
    if (status == SEQLSTM_OK && a.elems != b.elems)
        status = seqlstm_error_set(s->err, SEQLSTM_INTERNAL, __FILE__, __LINE__, "the sides differ in size");
    if (status == SEQLSTM_OK) {
        s->report->difference = distance(kept, b.values, a.elems);
        s->report->loss_a = a.loss;
        s->report->loss_b = b.loss;
        s->report->numeric_ok = s->report->numeric_ok && isfinite(s->report->difference);
        status = s->sides[1]->table->stop(s->sides[1], s->err);
    }
    free(kept);
    return status;
}

/* ---- all of it ---------------------------------------------------------------------------------------------- */

static seqlstm_status time_sides(struct comparison *s)
{
    struct sl_ab_report *report = s->report;
    const struct sl_ab_request *r = s->request;
    struct sl_ab_time_request request = {.sides = {s->sides[0], s->sides[1]},
                                         .calls = s->match_count,
                                         .batches = s->sample.count,
                                         .rounds = r->rounds,
                                         .seconds = r->seconds,
                                         .confidence = r->confidence,
                                         .within = r->within,
                                         .seed = sl_session_get_model(r->session)->seed,
                                         .interrupt = r->interrupt,
                                         .on_progress = r->on_progress,
                                         .context = r->context};
    struct sl_ab_time *times = SL_ARENA_ARRAY(&report->arena, struct sl_ab_time, (size_t)s->match_count + 1);
    if (!times)
        SEQLSTM_FAIL(s->err, SEQLSTM_NO_MEMORY, "no memory for the times");
    report->peak_gflops = sl_peak_measure(s->pool);
    SEQLSTM_TRY(sl_ab_time_run(&request, times, s->err));
    report->peak_gflops = fmax(report->peak_gflops, sl_peak_measure(s->pool));
    report->timed = true;
    report->a_ns = times[0].a_ns;
    report->b_ns = times[0].b_ns;
    report->step = times[0].interval;
    bool on_device =
        report->a.on_device || report->b.on_device; /* the host sees when calls on a device begin, not when they end */
    for (int32_t p = 0; p < s->match_count; p++) {
        if (on_device && report->layers[p].compared)
            continue;
        report->layers[p].a_ns = times[1 + p].a_ns;
        report->layers[p].b_ns = times[1 + p].b_ns;
        report->layers[p].interval = times[1 + p].interval;
    }
    return SEQLSTM_OK;
}

static seqlstm_status run(struct comparison *s)
{
    struct sl_ab_report *report = s->report;
    SEQLSTM_TRY(prepare(s));
    SEQLSTM_TRY(sl_session_check_backends(s->request->session, s->err));
    report->a_text = s->a.text;
    report->b_text = s->b.text;
    report->confidence = s->request->confidence;
    report->threads = sl_pool_get_members(s->pool);
    report->sequences = s->sample.envelope.sequences;
    report->rows = s->sample.envelope.rows > 0 ? s->sample.envelope.rows + s->sample.envelope.source_rows
                                               : s->sample.envelope.sequences;
    report->batches = s->sample.count;
    SEQLSTM_TRY(open_sides(s));
    SEQLSTM_TRY(plan_sides(s));
    SEQLSTM_TRY(judge_sides(s));
    if (!report->numeric_ok)
        return SEQLSTM_OK; /* a side that computes something else is not timed */
    SEQLSTM_TRY(compare_steps(s));
    return report->numeric_ok ? time_sides(s) : SEQLSTM_OK;
}

static void release(struct comparison *s)
{
    for (int i = 0; i < 2; i++)
        if (s->sides[i])
            s->sides[i]->table->close(s->sides[i]);
    sl_sample_deinit(&s->sample);
    sl_pool_destroy(s->pool);
}

seqlstm_status sl_ab_run(const struct sl_ab_request *request, struct sl_ab_report **out_report,
                         struct seqlstm_error *err)
{
    struct comparison comparison = {.request = request, .report = calloc(1, sizeof *comparison.report), .err = err};
    if (!comparison.report)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report");
    seqlstm_status status = run(&comparison);
    release(&comparison);
    if (status != SEQLSTM_OK) {
        sl_ab_report_destroy(comparison.report);
        return status;
    }
    *out_report = comparison.report;
    return SEQLSTM_OK;
}

void sl_ab_report_destroy(struct sl_ab_report *report)
{
    if (!report)
        return;
    sl_graph_destroy(report->graph);
    sl_arena_deinit(&report->arena);
    free(report);
}

seqlstm_status sl_ab_serve(const struct sl_ab_request *request, bool is_b, struct seqlstm_error *err)
{
    struct comparison comparison = {.request = request, .report = calloc(1, sizeof *comparison.report), .err = err};
    if (!comparison.report)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a side of the comparison");
    seqlstm_status status = prepare(&comparison);
    struct sl_local_side_request side = describe_side(&comparison, is_b, true);
    if (status == SEQLSTM_OK)
        status = sl_local_side_open(&side, &comparison.sides[0], err);
    status = sl_remote_serve(comparison.sides[0], sl_unit_count(comparison.report->graph), status, err);
    release(&comparison);
    sl_ab_report_destroy(comparison.report);
    return status;
}

seqlstm_status sl_ab_probe(const struct sl_ab_request *request, bool is_b, struct seqlstm_error *err)
{
    struct sl_arena arena;
    struct sl_backend_spec spec;
    struct sl_registry *registry = NULL;
    struct sl_backend *backend = NULL;
    sl_arena_init(&arena);
    seqlstm_status status = sl_backend_spec_parse(&arena, is_b ? request->b : request->a, &spec, err);
    if (status == SEQLSTM_OK) {
        struct sl_registry_entry entry = sl_backend_spec_get_entry(&spec);
        status = sl_session_open_registry(request->session, &entry, 1, true, &registry, err);
    }
    if (status == SEQLSTM_OK)
        status = sl_backend_spec_find(&spec, registry, &backend, err);
    status = sl_remote_answer_probe(backend, status, err);
    sl_registry_destroy(registry);
    sl_arena_deinit(&arena);
    return status;
}
