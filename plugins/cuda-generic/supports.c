/* SPDX-License-Identifier: Apache-2.0 */
/* What cuda-generic accepts: rules over descriptors, which need no device. */
#include <seqlstm/desc_check.h>

#include "common/answer.h"
#include "cuda-generic/plugin.h"

/* Operands of products may be rounded to a narrower type. */
static bool accept_compute(const struct seqlstm_desc *d, struct seqlstm_answer *answer)
{
    const bool products = d->op == SEQLSTM_OP_RECURRENT || d->op == SEQLSTM_OP_DENSE || d->op == SEQLSTM_OP_DENSE_LOSS;
    if (d->dtype_compute <= (products ? SEQLSTM_DTYPE_FLOAT16 : SEQLSTM_DTYPE_FLOAT32))
        return true;
    return answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                     products ? "cuda-generic multiplies in float32, tf32, bfloat16 or float16."
                              : "cuda-generic computes this operation in float32.",
                     "precision: float32", "%s", answer_dtype_name(d->dtype_compute));
}

static bool accept_body(const union seqlstm_any_desc *d, struct seqlstm_answer *answer)
{
    return answer_float32_edges(answer, CG_ID, &d->head) && accept_compute(&d->head, answer) &&
           answer_rows_in_32_bits(answer, CG_ID, &d->head) &&
           (d->head.op != SEQLSTM_OP_CAST || answer_cast(answer, &d->cast));
}

/* Up to so many sequences, large clusters are likely to be faster. */
enum { CLUSTER_FEW = 48 };

static const char *const variant_names[] = {
    [CG_STEP_GRAPH] = "step_graph", [CG_CLUSTER_4] = "cluster_4", [CG_CLUSTER_8] = "cluster_8",
    [CG_CLUSTER_16] = "cluster_16", [CG_SMALL] = "small",         [CG_RESIDENT] = "resident"};
enum { VARIANTS = sizeof variant_names / sizeof *variant_names, NAME_BYTES = SEQLSTM_MAX_VARIANT_BYTES };

/* A dense layer with products by three float16 products. With a plus, at the end of a recurrent variant's name: its
 * products of all rows. */
#define F16X3 "f16x3"

bool cg_find_variant(const char *name, enum cg_variant *out_variant, bool *out_f16x3)
{
    const size_t bytes = strcspn(name, "+");
    *out_f16x3 = strcmp(name, F16X3) == 0 || strcmp(name + bytes, "+" F16X3) == 0;
    for (size_t v = 0; v < VARIANTS; v++)
        if (strlen(variant_names[v]) == bytes && strncmp(name, variant_names[v], bytes) == 0) {
            *out_variant = (enum cg_variant)v;
            return true;
        }
    return false;
}

/* Can the projection be multiplied into W_h (recurrent/fold.h)? */
static bool folds(const struct seqlstm_recurrent_desc *d)
{
    const uint32_t others = SEQLSTM_BIT_RECURRENT_LAYER_NORM | SEQLSTM_BIT_RECURRENT_STEPWISE;
    const bool masked = d->head.mode == SEQLSTM_MODE_TRAINING && d->recurrent_dropout > 0;
    return d->projection > 0 && !(d->options & others) && !masked && d->zoneout_hidden == 0;
}

/* Can the step's projection be left out, because there is none or it can be a part of W_h? */
static bool is_flat(const struct seqlstm_recurrent_desc *d)
{
    return d->projection == 0 || folds(d);
}

/* Does its candidate need r first? */
static bool is_late(const struct seqlstm_recurrent_desc *d)
{
    return d->cell == SEQLSTM_CELL_GRU && !(d->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER);
}

/* Fewer units need no more than one block, if `small` has their cell. More of them fit no device known today. */
enum { RESIDENT_HIDDEN_LEAST = CG_SMALL_BLOCK_MOST + 1, RESIDENT_HIDDEN_MOST = 2048, RESIDENT_MANY = 256 };

static bool fits_resident(const struct seqlstm_recurrent_desc *d)
{
    return is_flat(d) && (d->hidden >= RESIDENT_HIDDEN_LEAST || is_late(d)) && d->hidden <= RESIDENT_HIDDEN_MOST;
}

/* Is it likely to be faster than clusters? They exchange each value with a store of its own. */
static bool is_resident_first(const struct seqlstm_recurrent_desc *d)
{
    return d->hidden > CG_CLUSTER_HIDDEN_MOST || (d->hidden > CG_SMALL_MOST && d->head.max_sequences >= RESIDENT_MANY);
}

/* With more than 64 units, two blocks exchange results through each other's shared memory. Cells with options have no
 * registers left there. */
static bool fits_small(const struct seqlstm_recurrent_desc *d, int32_t capability)
{
    const bool two = capability >= 90 && cg_small_is_plain(d);
    return is_flat(d) && !is_late(d) && d->hidden <= (two ? CG_SMALL_MOST : CG_SMALL_BLOCK_MOST);
}

/* Shared memory of a block on devices whose blocks form clusters, in bytes; 0 on others. */
static int32_t get_cluster_room(int32_t capability)
{
    return capability < 90 ? 0 : capability < 120 ? 227 * 1024 : 99 * 1024;
}

/* The variants with clusters, fastest first. With few sequences a step is short if its products are divided among many
 * blocks; more sequences need more clusters at the same time. */
static int offer_clusters(const struct seqlstm_recurrent_desc *d, int32_t capability, const char **names)
{
    static const enum cg_variant few[] = {CG_CLUSTER_16, CG_CLUSTER_8, CG_CLUSTER_4},
                                 many[] = {CG_CLUSTER_4, CG_CLUSTER_8, CG_CLUSTER_16};
    struct cg_cluster cluster;
    int count = 0;
    for (int k = 0; k < 3; k++) {
        const enum cg_variant variant = d->head.max_sequences <= CLUSTER_FEW ? few[k] : many[k];
        if (cg_cluster_make(d, cg_count_blocks(variant), get_cluster_room(capability), &cluster))
            names[count++] = variant_names[variant];
    }
    return count;
}

/* Multiplications in the largest batch. Below LARGE_PRODUCTS our own kernel is likely to be faster than cuBLASLt; below
 * CG_F16X3_PRODUCTS, a value for tests, too little is to be had from f16x3. */
#define LARGE_PRODUCTS ((double)(1 << 24))
#ifndef CG_F16X3_PRODUCTS
#define CG_F16X3_PRODUCTS (1 << 26)
#endif

/* Are there float32 products for which three float16 products may be faster? */
static bool has_f16x3(const struct seqlstm_desc *head, double products)
{
    return head->dtype_compute == SEQLSTM_DTYPE_FLOAT32 && products >= (double)CG_F16X3_PRODUCTS;
}

/* Answers with these variants, and the same with f16x3. */
static void answer_variants(const struct seqlstm_recurrent_desc *d, int64_t gates, const char *const *offered,
                            struct seqlstm_answer *answer)
{
    const double rows = (double)d->head.max_rows, columns = (double)(gates * d->hidden);
    const bool f16x3 = has_f16x3(&d->head, rows * columns * (double)(d->input + d->hidden));
    const char *names[2 * VARIANTS + 1] = {NULL};
    char room[VARIANTS][NAME_BYTES];
    int count = 0;
    for (; offered[count] != NULL; count++)
        names[count] = offered[count];
    for (int k = 0; f16x3 && k < count; k++) {
        snprintf(room[k], sizeof room[k], "%s+" F16X3, offered[k]);
        names[count + k] = room[k];
    }
    answer_yes(answer, names);
}

enum { SMALL_SEQUENCES = 132 };

/* Is `small` likely to be faster than clusters of more blocks? Beyond 64 units these are ahead with many sequences, and
 * where tensor cores multiply in 16 bits (prototypes of both on an H200). */
static bool is_small_first(const struct seqlstm_recurrent_desc *d)
{
    return d->hidden <= CG_SMALL_BLOCK_MOST ||
           (d->head.max_sequences <= SMALL_SEQUENCES && d->head.dtype_compute <= SEQLSTM_DTYPE_TF32);
}

static void offer_recurrent(const struct seqlstm_recurrent_desc *d, int32_t capability, struct seqlstm_answer *answer)
{
    const int64_t gates = d->cell == SEQLSTM_CELL_LSTM ? 4 : d->cell == SEQLSTM_CELL_GRU ? 3 : 1;
    const char *names[VARIANTS + 1] = {NULL};
    int count = 0;
    const bool small = fits_small(d, capability), first = is_small_first(d);
    const bool resident = fits_resident(d), before = is_resident_first(d);
    if (resident && before)
        names[count++] = variant_names[CG_RESIDENT];
    if (small && first)
        names[count++] = variant_names[CG_SMALL];
    if (is_flat(d))
        count += offer_clusters(d, capability, names + count);
    if (small && !first)
        names[count++] = variant_names[CG_SMALL];
    if (resident && !before)
        names[count++] = variant_names[CG_RESIDENT];
    names[count++] = variant_names[CG_STEP_GRAPH];
    answer_variants(d, gates, names, answer);
}

static double count_products(const union seqlstm_any_desc *d)
{
    const bool dense = d->head.op == SEQLSTM_OP_DENSE;
    const int64_t input = dense ? d->dense.input : d->dense_loss.input;
    const int64_t output = dense ? d->dense.output : d->dense_loss.output;
    return (double)d->head.max_rows * (double)input * (double)output;
}

static void offer_dense(const union seqlstm_any_desc *d, struct seqlstm_answer *answer)
{
    const double products = count_products(d);
    const bool large = products >= LARGE_PRODUCTS;
    const char *const names[] = {large ? "cublaslt" : "kernels", large ? "kernels" : "cublaslt",
                                 has_f16x3(&d->head, products) ? F16X3 : NULL, NULL};
    answer_yes(answer, names);
}

seqlstm_status cg_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                           struct seqlstm_error *err)
{
    static const char *const kernels[] = {"kernels", NULL};
    (void)err;
    const int32_t capability = gpu_parse_class(device_class);
    if (capability < GPU_CAPABILITY_MIN) {
        answer_no(answer, SEQLSTM_BIT_REFUSED_DEVICE, SEQLSTM_OPTION_NONE,
                  capability == 0 ? "cuda-generic runs on CUDA devices only"
                                  : "this build of cuda-generic does not support a device this old",
                  "", "%s", device_class);
        return SEQLSTM_OK;
    }
    if (!seqlstm_desc_check(desc, answer))
        return SEQLSTM_OK;
    union seqlstm_any_desc d;
    seqlstm_desc_copy(desc, &d);
    if (!accept_body(&d, answer))
        return SEQLSTM_OK;
    if (d.head.op == SEQLSTM_OP_RECURRENT)
        offer_recurrent(&d.recurrent, capability, answer);
    else if (d.head.op == SEQLSTM_OP_DENSE || d.head.op == SEQLSTM_OP_DENSE_LOSS)
        offer_dense(&d, answer);
    else
        answer_yes(answer, kernels);
    return SEQLSTM_OK;
}
