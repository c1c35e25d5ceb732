/* SPDX-License-Identifier: Apache-2.0 */
/* What cuda-generic accepts: rules over descriptors, without a device. */
#include <stdio.h>

#include <seqlstm/desc_check.h>

#include "cluster.h"
#include "one_block.h"
#include "plugin.h"

/* Operands of products may be rounded to a narrower type; what crosses the boundary of an operation is float32. */
static int32_t accept_dtypes(const struct seqlstm_desc *d, struct seqlstm_answer *answer)
{
    const uint32_t roles[5] = {d->dtype_activation, d->dtype_activation_grad, d->dtype_state, d->dtype_weight,
                               d->dtype_weight_grad};
    const bool products = d->op == SEQLSTM_OP_RECURRENT || d->op == SEQLSTM_OP_DENSE || d->op == SEQLSTM_OP_DENSE_LOSS;
    bool fine = d->dtype_compute <= (products ? SEQLSTM_FLOAT16 : SEQLSTM_FLOAT32);
    for (int k = 0; k < 5; k++)
        fine = fine && roles[k] == SEQLSTM_FLOAT32;
    if (fine)
        return 1;
    seqlstm_answer_no(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, NULL,
                      products ? "cuda-generic multiplies in float32, tf32, bfloat16 or float16; all else is float32"
                               : "cuda-generic computes this operation in float32");
    snprintf(answer->hint, sizeof answer->hint, "precision: float32");
    return 0;
}

static int32_t accept_cast(const struct seqlstm_cast_desc *d, struct seqlstm_answer *answer)
{
    const uint32_t ends[2] = {d->from, d->to};
    for (int k = 0; k < 2; k++)
        if (ends[k] == SEQLSTM_TF32 || ends[k] > SEQLSTM_FLOAT64)
            return seqlstm_answer_no(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, NULL,
                                     "cast knows float32, float64, float16 and bfloat16");
    return 1;
}

static int32_t accept_body(const union seqlstm_any_desc *d, struct seqlstm_answer *answer)
{
    const bool flat = d->head.op >= SEQLSTM_OP_FINITE_CHECK;
    if (!flat && d->head.max_rows > INT32_MAX)
        return seqlstm_answer_no(answer, SEQLSTM_REFUSED_SHAPE, SEQLSTM_OPTION_SHAPE, NULL,
                                 "cuda-generic takes up to 2^31 - 1 rows a batch");
    return d->head.op == SEQLSTM_OP_CAST ? accept_cast(&d->cast, answer) : 1;
}

static const char *const variant_names[] = {
    [CG_STEP_GRAPH] = "step_graph", [CG_ONE_BLOCK] = "one_block", [CG_GRID] = "grid", [CG_CLUSTER] = "cluster"};

bool cg_find_variant(const char *name, enum cg_variant *out_variant)
{
    for (size_t v = 0; v < sizeof variant_names / sizeof *variant_names; v++)
        if (strcmp(name, variant_names[v]) == 0) {
            *out_variant = (enum cg_variant)v;
            return true;
        }
    return false;
}

/* Units that meet through W_h alone: all other options are a unit's own. */
static bool has_lone_units(const struct seqlstm_recurrent_desc *d)
{
    const bool late = d->cell == SEQLSTM_CELL_GRU && !(d->options & SEQLSTM_RECURRENT_RESET_AFTER);
    return d->projection == 0 && !late && !(d->options & SEQLSTM_RECURRENT_LAYER_NORM);
}

bool cg_fits_grid(const struct seqlstm_recurrent_desc *d)
{
    return has_lone_units(d) && d->hidden <= CG_GRID_HIDDEN_MOST && d->head.max_sequences <= CG_GRID_SEQUENCES_MOST;
}

static void offer(struct seqlstm_answer *answer, const char *name)
{
    snprintf(answer->variants[answer->variant_count++], sizeof answer->variants[0], "%s", name);
}

/* Clusters of sixteen blocks with 227 KiB each: Hopper and the Blackwell of data centres. */
static bool has_clusters(int32_t capability)
{
    return capability >= 90 && capability < 120;
}

static void offer_recurrent(const struct seqlstm_recurrent_desc *d, int32_t capability, struct seqlstm_answer *answer)
{
    const int64_t gates = d->cell == SEQLSTM_CELL_LSTM ? 4 : d->cell == SEQLSTM_CELL_GRU ? 3 : 1;
    struct cg_grid grid;
    if (has_lone_units(d) && d->hidden <= CG_ONE_BLOCK_MOST)
        offer(answer, variant_names[CG_ONE_BLOCK]);
    offer(answer, variant_names[CG_STEP_GRAPH]);
    if (cg_fits_grid(d))
        offer(answer, variant_names[CG_GRID]);
    if (has_lone_units(d) && has_clusters(capability) &&
        cg_cluster_make(d->hidden, gates, 0, d->head.dtype_compute, &grid) &&
        (d->head.mode != SEQLSTM_MODE_TRAINING || cg_cluster_make(d->hidden, gates, 1, d->head.dtype_compute, &grid)))
        offer(answer, variant_names[CG_CLUSTER]);
}

seqlstm_status cg_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                           struct seqlstm_error *err)
{
    (void)err;
    const int32_t capability = gpu_parse_class(device_class);
    if (capability < GPU_CAPABILITY_MIN) {
        seqlstm_answer_no(answer, SEQLSTM_REFUSED_DEVICE, SEQLSTM_OPTION_NONE, device_class,
                          capability == 0 ? "cuda-generic runs on CUDA devices only"
                                          : "the device is older than this backend was built for");
        return SEQLSTM_OK;
    }
    const union seqlstm_any_desc *d = (const union seqlstm_any_desc *)(const void *)desc;
    if (!seqlstm_desc_check(desc, answer) || !accept_dtypes(desc, answer) || !accept_body(d, answer))
        return SEQLSTM_OK;
    answer->accepted = 1;
    if (desc->op == SEQLSTM_OP_RECURRENT)
        offer_recurrent(&d->recurrent, capability, answer);
    else
        offer(answer, "kernels");
    return SEQLSTM_OK;
}
