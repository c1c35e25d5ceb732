/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/sweep/sweep.h"

#include <math.h>
#include <stdlib.h>

#include "base/system/clock.h"
#include "compare/sweep/sweep_batch.h"

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
    SEQLSTM_TRY(sl_sweep_list_candidates(s));
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
