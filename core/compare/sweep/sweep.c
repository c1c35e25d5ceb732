/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/sweep/sweep_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/system/cpu.h"
#include "measure/peak.h"

/* ---- candidates ----------------------------------------------------------------------------------------- */

static seqlstm_status list_backends(struct sl_sweep *s)
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
            status = sl_sweep_fail_no_memory(s);
        s->backend_count++;
    }
    sl_registry_destroy(registry);
    return status;
}

static seqlstm_status list_candidates(struct sl_sweep *s)
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
        return sl_sweep_fail_no_memory(s);
    for (int32_t c = 0; c < report->candidate_count; c++)
        report->candidates[c] = (struct sl_sweep_candidate){.name = s->backends[c / s->thread_count].text,
                                                            .device = "",
                                                            .threads = s->threads[c % s->thread_count],
                                                            .peak_gflops = peaks[c % s->thread_count]};
    return SEQLSTM_OK;
}

/* ---- all of them -------------------------------------------------------------------------------------------- */

/* The least number of seconds for a round of the newest batch size: each candidate runs two steps to warm up, and
 * one timed. */
static double shortest_round(const struct sl_sweep_report *report)
{
    double ns = 0;
    for (int32_t c = 0; report->batch_count > 0 && c < report->candidate_count; c++)
        ns += 3 * report->batches[report->batch_count - 1].cells[c].step_ns;
    return 1e-9 * ns;
}

static seqlstm_status run_batches(struct sl_sweep *s, const int64_t *batches, int32_t count)
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
        SEQLSTM_TRY(sl_sweep_run_batch(s, batches[b], fmax(left, 0.1 * share) / (count - b)));
    }
    return SEQLSTM_OK;
}

static seqlstm_status check_left(struct sl_sweep *s)
{
    for (int32_t c = 0; c < s->report->candidate_count; c++)
        if (!s->report->candidates[c].excluded)
            return SEQLSTM_OK;
    if (s->report->failures > 0)
        return SEQLSTM_OK; /* this is a finding, not an error */
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

static seqlstm_status run(struct sl_sweep *s)
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
    struct sl_sweep sweep = {.request = request, .report = calloc(1, sizeof *sweep.report), .err = err};
    if (!sweep.report)
        return sl_sweep_fail_no_memory(&sweep);
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
