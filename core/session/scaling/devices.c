/* SPDX-License-Identifier: Apache-2.0 */
/* See devices.h. */
#include "session/scaling/devices.h"

#include <stdlib.h>
#include <string.h>

#include "exec/params/params_mirror.h"
#include "session/prepare/backends.h"
#include "session/record/session_record.h"
#include "session/session.h"

/* ---- before the ranks start ------------------------------------------------------------------------------------- */

static bool has_devices(const struct sl_registry *registry)
{
    for (uint32_t r = 0; r < sl_registry_get_record_count(registry); r++) {
        const struct sl_backend_record *record = sl_registry_get_record(registry, r);
        if (record->status == SL_BACKEND_OK && strcmp(record->devices[0].domain, "host") != 0)
            return true;
    }
    return false;
}

/* Devices that a backend has for ranks: from that of the model file on. */
static int32_t count_from(const struct sl_session *session, const struct sl_backend *backend)
{
    const int64_t device = session->model->device;
    return (int32_t)sl_backend_get_device_count(backend) -
           (device > SL_DEVICE_CUDA ? (int32_t)(device - SL_DEVICE_CUDA) : 0);
}

seqlstm_status sl_session_count_rank_devices(struct sl_session *session, int32_t *out_devices,
                                             struct seqlstm_error *err)
{
    const struct sl_plan *plan = NULL;
    *out_devices = 0;
    SEQLSTM_TRY(sl_session_load_backends(session, err));
    if (!has_devices(session->registry))
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_session_make_plan(session, &plan, err));
    for (int32_t c = 0; c < plan->call_count; c++) {
        const struct sl_call *call = &plan->calls[c];
        const int32_t count = count_from(session, call->backend);
        if (strcmp(sl_backend_get_device(call->backend, call->device)->domain, "host") != 0 &&
            (*out_devices == 0 || count < *out_devices))
            *out_devices = count;
    }
    return SEQLSTM_OK;
}

/* ---- in the ranks ----------------------------------------------------------------------------------------------- */

enum { NAME_BYTES = sizeof((struct sl_domain *)0)->name };

/* A device is known by the name of its memory domain, which holds its UUID. */
static seqlstm_status count_names(const struct sl_ranks *ranks, const char *names, int32_t *out_devices,
                                  struct seqlstm_error *err)
{
    for (int32_t r = 0; r < ranks->ranks; r++)
        for (int32_t k = 0; k < r; k++)
            if (names[r * NAME_BYTES] && strcmp(names + r * NAME_BYTES, names + k * NAME_BYTES) == 0)
                SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED,
                             "ranks %d and %d would compute on the same device (%s), so their times would not be those "
                             "of ranks with a device each; let CUDA_VISIBLE_DEVICES name each device once",
                             k, r, names + r * NAME_BYTES);
    *out_devices = names[0] ? ranks->ranks : 0;
    return SEQLSTM_OK;
}

seqlstm_status sl_scaling_count_devices(struct sl_session *session, int32_t *out_devices, struct seqlstm_error *err)
{
    const struct sl_mirrors *mirrors = session->params->mirrors;
    const struct sl_ranks *ranks = &session->ranks;
    char own[NAME_BYTES] = "", *all = calloc((size_t)ranks->ranks, NAME_BYTES);
    if (!all)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the devices of %d ranks", ranks->ranks);
    if (mirrors && mirrors->count > 0)
        memcpy(own, mirrors->mirrors[0].domain.name, sizeof own);
    seqlstm_status status = sl_ranks_gather(ranks, own, NAME_BYTES, all, err);
    if (status == SEQLSTM_OK)
        status = count_names(ranks, all, out_devices, err);
    free(all);
    return status;
}

seqlstm_status sl_scaling_finish_devices(struct sl_params *params, struct seqlstm_error *err)
{
    for (int32_t p = 0; params->mirrors && p < params->mirrors->count; p++)
        SEQLSTM_TRY(sl_domain_finish(&params->mirrors->mirrors[p].domain, err));
    return SEQLSTM_OK;
}

seqlstm_status sl_scaling_upload_grads(struct sl_params *params, struct seqlstm_error *err)
{
    float *grads;
    for (int32_t p = 0; params->mirrors && p < params->mirrors->count; p++)
        SEQLSTM_TRY(sl_params_provide(params, p + 1, SL_PART_GRADS, 0, params->trainable_elems, &grads, err));
    return sl_scaling_finish_devices(params, err);
}

seqlstm_status sl_scaling_exchange_on_device(struct sl_params *params, struct sl_connection *connection,
                                             struct seqlstm_exchange exchange, struct seqlstm_error *err)
{
    struct sl_domain *domain = sl_params_get_domain(params, 1);
    float *grads;
    SEQLSTM_TRY(sl_params_provide(params, 1, SL_PART_GRADS, 0, exchange.elems, &grads, err));
    exchange.from = exchange.to = grads;
    SEQLSTM_TRY(sl_connection_run_on(connection, 0, &domain->queue.queue, exchange, err));
    return sl_domain_finish(domain, err);
}
