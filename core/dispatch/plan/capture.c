/* SPDX-License-Identifier: Apache-2.0 */
/* See capture.h. */
#include "dispatch/plan/capture.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "registry/domain.h"

static SEQLSTM_PRINTF(3, 4) void refuse(struct sl_capture *capture, bool *allowed, const char *format, ...)
{
    va_list args;
    *allowed = false;
    va_start(args, format);
    vsnprintf(capture->reason, sizeof capture->reason, format, args);
    va_end(args);
}

static bool may_be_captured(const struct seqlstm_sizes *sizes)
{
    return sizes->capture == SEQLSTM_CAPTURE_PER_SHAPE || sizes->capture == SEQLSTM_CAPTURE_ANY_SHAPE;
}

static void look_at_calls(const struct sl_plan *plan, struct sl_capture *capture)
{
    bool *possible = &capture->possible;
    const struct sl_call *first = &plan->calls[0];
    const char *domain = sl_call_get_domain(first);
    for (int32_t c = 0; c < plan->call_count && capture->possible; c++) {
        const struct sl_call *call = &plan->calls[c];
        const char *own = sl_call_get_domain(call), *id = sl_backend_get_id(call->backend);
        if (strcmp(own, "host") == 0)
            refuse(capture, possible, "%s runs on the host (%s)", call->node->name, id);
        else if (strcmp(own, domain) != 0)
            refuse(capture, possible, "%s runs in %s, %s in %s", first->node->name, domain, call->node->name, own);
        else if (!may_be_captured(&call->sizes))
            refuse(capture, possible, "%s:%s does not allow %s to be captured", id, call->variant, call->node->name);
    }
    if (capture->possible && !sl_domain_has_captures(sl_backend_get_table(first->backend)))
        refuse(capture, possible, "%s cannot capture graphs", sl_backend_get_id(first->backend));
}

/* If a tensor has several readers, an operation on flat vectors adds their gradients. */
static void look_at_adding(const struct sl_plan *plan, struct sl_capture *capture)
{
    const char *domain = sl_call_get_domain(&plan->calls[0]);
    for (int32_t v = 0; v < plan->vector_count && plan->scratch_grad_offset >= 0 && capture->possible; v++) {
        const struct sl_vector_call *call = &plan->vectors[v];
        if (call->desc->head.op != SEQLSTM_OP_VECTOR || call->desc->vector.kind != SEQLSTM_KIND_VECTOR_AXPY)
            continue;
        const char *own = sl_backend_get_device(call->backend, call->device)->domain;
        if (strcmp(own, domain) != 0 || !may_be_captured(&call->sizes))
            refuse(capture, &capture->possible, "gradients are added by %s", sl_backend_get_id(call->backend));
    }
}

static void look_at_update(const struct sl_plan *plan, struct sl_capture *capture)
{
    const char *domain = sl_call_get_domain(&plan->calls[0]);
    for (int32_t v = 0; v < plan->vector_count && capture->with_update; v++) {
        const struct sl_vector_call *call = &plan->vectors[v];
        const uint32_t op = call->desc->head.op;
        const char *own = sl_backend_get_device(call->backend, call->device)->domain;
        if (strcmp(own, domain) != 0 || !may_be_captured(&call->sizes))
            refuse(capture, &capture->with_update, "the operation %s of the update runs on %s", sl_op_name(op),
                   sl_backend_get_id(call->backend));
    }
}

struct sl_capture sl_plan_find_capture(const struct sl_plan *plan)
{
    struct sl_capture capture = {.possible = plan->call_count > 0 && plan->graph->phase == SL_PHASE_TRAIN};
    for (int32_t c = 0; c < plan->call_count; c++)
        capture.on_device = capture.on_device || strcmp(sl_call_get_domain(&plan->calls[c]), "host") != 0;
    if (!capture.possible) {
        refuse(&capture, &capture.possible, "only training steps are captured");
        return capture;
    }
    look_at_calls(plan, &capture);
    if (capture.possible)
        look_at_adding(plan, &capture);
    capture.with_update = capture.possible;
    if (capture.possible)
        look_at_update(plan, &capture);
    return capture;
}
