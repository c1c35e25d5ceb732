/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/verify/verify.h"

#include <stdlib.h>
#include <string.h>

#include "compare/sample/phase_graph.h"
#include "session/finding/missing.h"
#include "session/prepare/training.h"

enum { WALKS = 2, SEQUENCES_MOST = 8 };

static const enum sl_phase phases[WALKS] = {SL_PHASE_TRAIN, SL_PHASE_PREDICT};

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
    const float *class_weights = NULL;
    if (phase == SL_PHASE_TRAIN)
        SEQLSTM_TRY(sl_session_weigh_classes(request->session, &class_weights, err));
    SEQLSTM_TRY(sl_phase_graph_create(request->session, phase, &report->sample.envelope, &walk->graph, err));
    SEQLSTM_TRY(sl_params_create(walk->graph, false, 0, NULL, &walk->params, err));
    SEQLSTM_TRY(sl_params_init(walk->params, walk->graph, seed, report->pool, err));
    struct sl_oracle_request oracle = {.graph = walk->graph,
                                       .batch = report->sample.batches[0],
                                       .params = walk->params,
                                       .class_weights = class_weights,
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
        SEQLSTM_TRY(sl_sample_create_small(request->session, SEQUENCES_MOST, &report->sample, err));
    SEQLSTM_TRY(sl_session_open_registry(request->session, NULL, 0, true, &report->registry, err));
    SEQLSTM_TRY(sl_session_find_missing_backends(request->session, report->registry, err));
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
