/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on clusters on the host side: which kernels a layer gets. See cluster.h. */
#include "cuda-generic/recurrent/recurrent.h"

static const struct {
    cg_cluster_count_fn *count[2]; /* forward, backward */
    cg_cluster_run_fn *run[2];
} kernels[] = {
    {{cg_cluster_count_forward, cg_cluster_count_backward}, {cg_cluster_forward, cg_cluster_backward}},
    {{cg_cluster_count_linked_forward, cg_cluster_count_linked_backward},
     {cg_cluster_linked_forward, cg_cluster_linked_backward}},
};

/* Clusters that the device never runs would never end. */
seqlstm_status cg_cluster_open(struct seqlstm_op *op, const struct gpu_device *device, struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &op->desc.recurrent;
    const int32_t blocks = cg_count_blocks(op->variant);
    struct cg_cluster *cluster = &op->cluster;
    if (!cg_cluster_make(d, blocks, (int32_t)device->shared_bytes, cluster))
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "cluster_%d: W_h of %lld units does not fit %lld bytes of shared memory",
                     (int)blocks, (long long)d->hidden, (long long)device->shared_bytes);
    if (cluster->parts == 2 && !op->instance->f16x3)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "cluster_%d: the option f16x3 is false", (int)blocks);
    SEQLSTM_TRY(gpu_use(op->ordinal, err));
    for (int back = 0; back <= (d->head.mode == SEQLSTM_MODE_TRAINING); back++)
        if (kernels[cluster->linked].count[back](cluster, device->multiprocessors) != 0 || cluster->together[back] < 1)
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "cluster_%d: the device runs no clusters of %d blocks", (int)blocks,
                         (int)blocks);
    return SEQLSTM_OK;
}

seqlstm_status cg_run_clusters(const struct cg_call *call, const struct cg_stack *s, const struct cg_layer *device,
                               bool back, struct seqlstm_error *err)
{
    const struct cg_cluster *cluster = &call->op->cluster;
    CG_START(call, back ? "all backward steps" : "all steps",
             kernels[cluster->linked].run[back](call->stream, device, s->directions, cluster, call->axis->sequences));
    return SEQLSTM_OK;
}
