/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/sweep/sweep_candidates.h"

#include <string.h>

#include "base/system/cpu.h"
#include "measure/peak.h"
#include "session/finding/missing.h"

static seqlstm_status list_backends(struct sl_sweep *s)
{
    const struct sl_sweep_request *r = s->request;
    struct sl_registry *registry = NULL;
    for (; s->backend_count < r->backend_count; s->backend_count++)
        SEQLSTM_TRY(sl_backend_spec_parse(&s->report->arena, r->backends[s->backend_count],
                                          &s->backends[s->backend_count], s->err));
    if (s->backend_count > 0)
        return sl_session_check_backends(r->session, s->err);
    SEQLSTM_TRY(sl_session_open_registry(r->session, NULL, 0, true, &registry, s->err));
    seqlstm_status status = sl_session_find_missing_backends(r->session, registry, s->err);
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

seqlstm_status sl_sweep_list_candidates(struct sl_sweep *s)
{
    const struct sl_sweep_request *r = s->request;
    struct sl_sweep_report *report = s->report;
    SEQLSTM_TRY(list_backends(s));
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
