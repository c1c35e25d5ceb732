/* SPDX-License-Identifier: Apache-2.0 */
/* Creates an operation: its plans, its sizes, and its trial run. */
#include <seqlstm/desc_check.h>

#include "common/answer.h"
#include "common/host_memory.h"
#include "plugin.h"

/* Upper bounds over both plans. The packed weights of the second plan follow those of the first, unless both are
 * equal. */
static void measure(struct seqlstm_op *op)
{
    const struct seqlstm_desc *head = &op->desc.head;
    for (int32_t p = 0; p < op->plan_count; p++) {
        struct cdn_plan *plan = &op->plans[p];
        struct cdn_places places;
        cdn_places_make(&places, &op->desc, plan, op->shape.rows > head->max_rows ? op->shape.rows : head->max_rows,
                        head->max_sequences, NULL);
        if (places.workspace_bytes > op->workspace_bytes)
            op->workspace_bytes = places.workspace_bytes;
        if (places.reserve_bytes > op->reserve_bytes)
            op->reserve_bytes = places.reserve_bytes;
        if (p > 0 && cdn_plan_equals(&op->plans[0], plan))
            continue;
        for (int32_t k = 0; k < plan->count; k++)
            plan->nets[k].packed_offset += op->packed_bytes;
        op->packed_bytes += plan->weight_bytes;
    }
}

static seqlstm_status open_plans(struct seqlstm_op *op, const struct cdn_variant *v, struct seqlstm_error *err)
{
    const cudnnRNNAlgo_t algorithms[CDN_PLANS] = {v->forward, CUDNN_RNN_ALGO_STANDARD};
    const int32_t count = v->forward == CUDNN_RNN_ALGO_STANDARD ? 1 : 2;
    struct cdn_handle *handle = NULL;
    SEQLSTM_TRY(cdn_handles_acquire(&op->instance->handles, op->ordinal, NULL, &handle, err));
    seqlstm_status status = SEQLSTM_OK;
    for (int32_t p = 0; p < count && status == SEQLSTM_OK; p++) {
        status = cdn_plan_open(op, &op->plans[p], algorithms[p], v->layers, handle, err);
        op->plan_count = p + 1;
    }
    cdn_handles_release(&op->instance->handles, handle);
    return status;
}

static seqlstm_status open_op(struct seqlstm_op *op, const char *variant, struct seqlstm_error *err)
{
    const struct seqlstm_host *host = &op->instance->domain.host;
    const struct seqlstm_desc *head = &op->desc.head;
    struct cdn_variant v;
    if (!cdn_variant_find(variant, &v))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "cuda-cudnn has no variant `%s`", variant);
    op->shape.lengths = host->allocate(host->context, (uint64_t)head->max_sequences * sizeof(int32_t));
    if (op->shape.lengths == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the lengths of a batch");
    cdn_shape_fill(&op->shape, head->max_steps, head->max_sequences, head->max_rows);
    op->mixed = v.backward != v.forward; /* then backward is the standard one, the second plan (supports.c) */
    SEQLSTM_TRY(open_plans(op, &v, err));
    measure(op);
    if (cdn_kept_has_passed(&op->instance->kept, &op->desc, variant, op->ordinal))
        return SEQLSTM_OK;
    SEQLSTM_TRY(cdn_trial_run(op, err));
    cdn_kept_add_passed(&op->instance->kept, &op->desc, variant, op->ordinal);
    return SEQLSTM_OK;
}

seqlstm_status cdn_op_create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *desc,
                             const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    struct seqlstm_device_info info = {.struct_size = sizeof info};
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    union seqlstm_any_desc copy;
    SEQLSTM_TRY(gpu_domain_device_info(instance, device, &info, err));
    SEQLSTM_TRY(cdn_supports(info.device_class, desc, &answer, err));
    uint32_t index = 0;
    SEQLSTM_TRY(answer_choose(&answer, CDN_ID, variant, &index, err));
    struct seqlstm_op *op = host_allocate(&instance->domain.host, sizeof *op);
    if (op == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an operation of cuda-cudnn");
    seqlstm_desc_copy(desc, &copy);
    op->instance = instance;
    op->ordinal = instance->domain.devices[device].ordinal;
    op->desc = copy.recurrent;
    const seqlstm_status status = open_op(op, answer.variants[index], err);
    if (status != SEQLSTM_OK) {
        cdn_op_destroy(op);
        return status;
    }
    *out_op = op;
    return SEQLSTM_OK;
}

void cdn_op_destroy(struct seqlstm_op *op)
{
    if (op == NULL)
        return;
    const struct seqlstm_host *host = &op->instance->domain.host;
    for (int32_t p = 0; p < op->plan_count; p++)
        cdn_plan_close(op, &op->plans[p]);
    host_release(host, op->shape.lengths);
    host_release(host, op);
}
