/* SPDX-License-Identifier: Apache-2.0 */
/* See verify.h. */
#include "compare/verify.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "measure/batch_rows.h"
#include "measure/flops.h"

enum { WALKS = 2, SEQUENCES_MOST = 8 };

static const enum sl_phase phases[WALKS] = {SL_PHASE_TRAIN, SL_PHASE_PREDICT};

/* What the reference may spend on one walk: a few seconds at a GFLOP/s. */
static const double flops_most = 4e9;

struct walk {
    struct sl_graph *graph;
    struct sl_params *params;
    struct sl_judgement *judgements;
    int32_t count;
};

struct sl_verify_report {
    struct sl_arena arena;
    struct sl_registry *registry;
    struct sl_pool *pool;
    struct sl_sample sample;
    struct walk walks[WALKS];
    int32_t failures;
};

/* ---- shared ------------------------------------------------------------------------------------------------ */

seqlstm_status sl_lab_graph_create(const struct sl_session *session, enum sl_phase phase,
                                   const struct sl_envelope *envelope, struct sl_graph **out_graph,
                                   struct seqlstm_error *err)
{
    struct sl_data_facts facts = *sl_data_state_get_facts(sl_session_find_data_state(session));
    facts.envelope = *envelope;
    facts.has_weight = facts.has_weight && phase != SL_PHASE_PREDICT;
    struct sl_graph_request request = {.model = sl_session_get_model(session),
                                       .facts = &facts,
                                       .phase = phase,
                                       .need_output = phase == SL_PHASE_PREDICT};
    return sl_graph_create(&request, out_graph, err);
}

/* Of a walk of the reference: forward twice, backward once. */
static seqlstm_status count_flops(const struct sl_session *session, const struct sl_sample *sample, double *out_flops,
                                  struct seqlstm_error *err)
{
    struct sl_graph *graph = NULL;
    double flops = 0;
    SEQLSTM_TRY(sl_lab_graph_create(session, SL_PHASE_TRAIN, &sample->envelope, &graph, err));
    for (int32_t n = 0; n < graph->node_count; n++) {
        const struct sl_node *node = &graph->nodes[n];
        int64_t rows = sl_batch_count_node_rows(sample->batches[0], graph, node);
        bool loops = n >= graph->loop.first && n < graph->loop.first + graph->loop.count;
        double walks = loops ? (double)sample->envelope.steps : 1;
        flops += walks * sl_flops_count(node, rows, false, true) + sl_flops_count(node, rows, true, true);
    }
    sl_graph_destroy(graph);
    *out_flops = flops;
    return SEQLSTM_OK;
}

seqlstm_status sl_lab_sample_small(const struct sl_session *session, int64_t most, struct sl_sample *out_sample,
                                   struct seqlstm_error *err)
{
    const struct sl_dataset *data = sl_session_find_train_data(session);
    uint64_t seed = sl_session_get_model(session)->seed;
    double flops = 0;
    SEQLSTM_TRY(sl_sample_create(data, seed, most, 1, out_sample, err));
    seqlstm_status status = count_flops(session, out_sample, &flops, err);
    if (status == SEQLSTM_OK && flops <= flops_most)
        return SEQLSTM_OK;
    sl_sample_deinit(out_sample);
    SEQLSTM_TRY(status);
    int64_t fewer = (int64_t)((double)most * flops_most / flops);
    return sl_sample_create(data, seed, fewer > 0 ? fewer : 1, 1, out_sample, err);
}

/* ---- running ----------------------------------------------------------------------------------------------- */

static seqlstm_status list_subjects(struct sl_verify_report *report, const char *only,
                                    struct sl_oracle_subject **out_subjects, int32_t *out_count,
                                    struct seqlstm_error *err)
{
    uint32_t backends = sl_registry_get_backend_count(report->registry);
    struct sl_oracle_subject *subjects = SL_ARENA_ARRAY(&report->arena, struct sl_oracle_subject, backends + 1);
    int32_t count = 0;
    if (!subjects)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the list of backends");
    for (uint32_t b = 0; b < backends; b++) {
        const struct sl_backend *backend = sl_registry_get_backend(report->registry, b);
        const char *id = sl_backend_get_id(backend);
        if (only ? strcmp(id, only) == 0 : strcmp(id, "reference") != 0)
            subjects[count++].backend = backend;
    }
    if (count == 0 && only)
        return sl_registry_fail_unloaded(report->registry, only, err);
    if (count == 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "no backend is loaded but the reference itself; `seqlstm backends -v` says why");
    *out_subjects = subjects;
    *out_count = count;
    return SEQLSTM_OK;
}

static seqlstm_status run_walk(struct sl_verify_report *report, const struct sl_verify_request *request,
                               enum sl_phase phase, const struct sl_oracle_subject *subjects, int32_t subject_count,
                               struct walk *walk, struct seqlstm_error *err)
{
    uint64_t seed = sl_session_get_model(request->session)->seed;
    SEQLSTM_TRY(sl_lab_graph_create(request->session, phase, &report->sample.envelope, &walk->graph, err));
    SEQLSTM_TRY(sl_params_create(walk->graph, false, 0, NULL, &walk->params, err));
    SEQLSTM_TRY(sl_params_init(walk->params, walk->graph, seed, report->pool, err));
    struct sl_oracle_request oracle = {.graph = walk->graph,
                                       .batch = report->sample.batches[0],
                                       .params = walk->params,
                                       .reference = sl_registry_find_backend(report->registry, "reference"),
                                       .pool = report->pool,
                                       .seed = seed,
                                       .subjects = subjects,
                                       .subject_count = subject_count,
                                       .interrupt = request->interrupt};
    if (!oracle.reference)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "the backend `reference` is not loaded");
    SEQLSTM_TRY(sl_oracle_run(&oracle, &report->arena, &walk->judgements, &walk->count, err));
    for (int32_t j = 0; j < walk->count; j++)
        report->failures += walk->judgements[j].verdict == SL_VERDICT_FAIL;
    return SEQLSTM_OK;
}

static seqlstm_status run(struct sl_verify_report *report, const struct sl_verify_request *request,
                          struct seqlstm_error *err)
{
    struct sl_oracle_subject *subjects = NULL;
    int32_t count = 0;
    SEQLSTM_TRY(sl_session_read_data(request->session, err));
    if (request->sequences > 0)
        SEQLSTM_TRY(sl_sample_create(sl_session_find_train_data(request->session),
                                     sl_session_get_model(request->session)->seed, request->sequences, 1,
                                     &report->sample, err));
    else
        SEQLSTM_TRY(sl_lab_sample_small(request->session, SEQUENCES_MOST, &report->sample, err));
    SEQLSTM_TRY(sl_session_open_registry(request->session, NULL, 0, true, &report->registry, err));
    SEQLSTM_TRY(sl_registry_check_required(report->registry, err));
    SEQLSTM_TRY(sl_pool_create(request->threads, &report->pool, err));
    SEQLSTM_TRY(list_subjects(report, request->backend, &subjects, &count, err));
    for (int i = 0; i < WALKS; i++)
        SEQLSTM_TRY(run_walk(report, request, phases[i], subjects, count, &report->walks[i], err));
    return SEQLSTM_OK;
}

seqlstm_status sl_verify_run(const struct sl_verify_request *request, struct sl_verify_report **out_report,
                             struct seqlstm_error *err)
{
    struct sl_verify_report *report = calloc(1, sizeof *report);
    if (!report)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report");
    seqlstm_status status = run(report, request, err);
    if (status != SEQLSTM_OK) {
        sl_verify_report_destroy(report);
        return status;
    }
    *out_report = report;
    return SEQLSTM_OK;
}

void sl_verify_report_destroy(struct sl_verify_report *report)
{
    if (!report)
        return;
    for (int i = 0; i < WALKS; i++) {
        sl_params_destroy(report->walks[i].params);
        sl_graph_destroy(report->walks[i].graph);
    }
    sl_sample_deinit(&report->sample);
    sl_registry_destroy(report->registry);
    sl_pool_destroy(report->pool);
    sl_arena_deinit(&report->arena);
    free(report);
}

/* ---- reading ----------------------------------------------------------------------------------------------- */

int32_t sl_verify_report_get_count(const struct sl_verify_report *report)
{
    return report->walks[0].count + report->walks[1].count;
}

const struct sl_judgement *sl_verify_report_get(const struct sl_verify_report *report, int32_t index,
                                                enum sl_phase *out_phase)
{
    int walk = index >= report->walks[0].count;
    *out_phase = phases[walk];
    return &report->walks[walk].judgements[walk ? index - report->walks[0].count : index];
}

int32_t sl_verify_report_get_failures(const struct sl_verify_report *report)
{
    return report->failures;
}

struct sl_envelope sl_verify_report_get_batch(const struct sl_verify_report *report)
{
    return report->sample.envelope;
}

static json_t *write_judgement(const struct sl_judgement *j, enum sl_phase phase)
{
    const struct sl_offer *offer = &j->offer;
    json_t *object =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:b,s:o,s:s}", "phase", phase == SL_PHASE_TRAIN ? "train" : "infer", "name",
                  j->node->name, "op", sl_op_name(j->node->desc.head.op), "backend", sl_backend_get_id(j->backend),
                  "variant", offer->variant, "verdict", sl_verdict_name(j->verdict), "gradients", j->backward,
                  "error_over_tolerance", isfinite(j->worst) ? json_real(j->worst) : json_null(), "reason", j->detail);
    if (object && !offer->accepted) {
        json_object_set_new(object, "option", json_string(offer->option));
        json_object_set_new(object, "value", json_string(offer->value));
        json_object_set_new(object, "line", json_integer(offer->place.line));
        json_object_set_new(object, "column", json_integer(offer->place.column));
    }
    return object;
}

seqlstm_status sl_verify_report_print_json(const struct sl_verify_report *report, struct sl_buf *out,
                                           struct seqlstm_error *err)
{
    json_t *layers = json_array();
    int32_t totals[SL_VERDICT_COUNT] = {0};
    for (int32_t i = 0; i < sl_verify_report_get_count(report); i++) {
        enum sl_phase phase;
        const struct sl_judgement *j = sl_verify_report_get(report, i, &phase);
        totals[j->verdict]++;
        json_array_append_new(layers, write_judgement(j, phase));
    }
    const struct sl_envelope *batch = &report->sample.envelope;
    json_t *root = json_pack("{s:s,s:b,s:{s:I,s:I,s:I},s:o,s:{s:i,s:i,s:i,s:i}}", "schema", "seqlstm.verify/1", "ok",
                             report->failures == 0, "batch", "sequences", (json_int_t)batch->sequences, "steps",
                             (json_int_t)batch->steps, "rows", (json_int_t)batch->rows, "layers", layers, "totals",
                             "pass", totals[SL_VERDICT_PASS], "fail", totals[SL_VERDICT_FAIL], "skip",
                             totals[SL_VERDICT_SKIP], "unsupported", totals[SL_VERDICT_UNSUPPORTED]);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    if (!text)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report's JSON");
    sl_buf_append_text(out, text);
    sl_buf_append_char(out, '\n');
    free(text);
    return SEQLSTM_OK;
}
