/* SPDX-License-Identifier: Apache-2.0 */
/* See replay.h. */
#include "dispatch/cost/replay.h"

seqlstm_status sl_replay_record(struct sl_domain *domain, sl_replay_calls_fn *calls, void *context, void **out_capture,
                                struct seqlstm_error *err)
{
    void *capture = NULL;
    seqlstm_status status = SEQLSTM_OK;
    SEQLSTM_TRY(sl_domain_finish(domain, err));
    SEQLSTM_TRY(sl_domain_begin_capture(domain, err));
    for (int k = 0; k < SL_REPLAYS && status == SEQLSTM_OK; k++)
        status = calls(context, err);
    const seqlstm_status ended = sl_domain_end_capture(domain, &capture, status == SEQLSTM_OK ? err : NULL);
    if (status == SEQLSTM_OK)
        status = ended;
    if (status != SEQLSTM_OK) {
        sl_domain_drop_capture(domain, capture);
        return status;
    }
    *out_capture = capture;
    return SEQLSTM_OK;
}

static seqlstm_status time_between(struct sl_domain *domain, void *capture, void *begin, void *end, double *out_ns,
                                   struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_domain_launch(domain, capture, err));
    SEQLSTM_TRY(sl_event_record(domain, begin, err));
    SEQLSTM_TRY(sl_domain_launch(domain, capture, err));
    SEQLSTM_TRY(sl_event_record(domain, end, err));
    SEQLSTM_TRY(sl_domain_finish(domain, err));
    SEQLSTM_TRY(sl_event_elapsed(domain, begin, end, out_ns, err));
    *out_ns /= SL_REPLAYS;
    return SEQLSTM_OK;
}

seqlstm_status sl_replay_time(struct sl_domain *domain, void *capture, double *out_ns, struct seqlstm_error *err)
{
    void *begin = NULL, *end = NULL;
    seqlstm_status status = sl_event_create(domain, &begin, err);
    if (status == SEQLSTM_OK)
        status = sl_event_create(domain, &end, err);
    if (status == SEQLSTM_OK)
        status = time_between(domain, capture, begin, end, out_ns, err);
    sl_event_destroy(domain, begin);
    sl_event_destroy(domain, end);
    return status;
}
