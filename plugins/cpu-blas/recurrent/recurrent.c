/* SPDX-License-Identifier: Apache-2.0 */
/* See recurrent.h: what the operation accepts, its creation, and the sizes of its buffers. */
#include "cpu-blas/recurrent/recurrent.h"

#include <stdio.h>
#include <string.h>

#include "common/answer.h"
#include "common/idle.h"
#include "cpu-blas/recurrent/bind.h"
#include "cpu-blas/recurrent/int8.h"
#include "cpu-blas/recurrent/run.h"

/* In float32, tiles support neither a projection nor a GRU whose reset comes before. The answer does not depend on
 * the size of batches, since a plan is also used with other batches. */
static bool tiles_serve(const struct seqlstm_recurrent_desc *desc)
{
    return desc->head.dtype_compute == SEQLSTM_DTYPE_FLOAT32 && desc->projection == 0 &&
           (desc->cell != SEQLSTM_CELL_GRU || (desc->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER));
}

static bool narrow_supports(const struct seqlstm_recurrent_desc *desc, struct seqlstm_answer *answer)
{
    const uint32_t type = desc->head.dtype_compute;
    const char *dtype = type == SEQLSTM_DTYPE_INT8 ? "int8" : type == SEQLSTM_DTYPE_TF32 ? "tf32" : "bfloat16";
    if (desc->projection > 0)
        return answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                         "cpu-blas has a projection in float32 alone.", "precision: float32", "%s", dtype);
    if (desc->cell == SEQLSTM_CELL_GRU && !(desc->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER))
        return answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                         "cpu-blas has a GRU whose reset comes before the product in float32 alone.",
                         "precision: float32, or reset_after: true", "%s", dtype);
    if (desc->head.dtype_compute == SEQLSTM_DTYPE_INT8 && desc->input + desc->hidden > BLAS_INT8_SUM)
        return answer_no(answer, SEQLSTM_BIT_REFUSED_SHAPE, SEQLSTM_OPTION_SHAPE,
                         "cpu-blas sums products of int8 over up to 65536 inputs and units.", "precision: float32",
                         "%lld", (long long)(desc->input + desc->hidden));
    return true;
}

void blas_recurrent_supports(const struct seqlstm_recurrent_desc *desc, bool tiles, struct seqlstm_answer *answer)
{
    static const char *const on_vectors[] = {"packed", "generic", NULL}, *const narrow[] = {"packed", NULL};
    static const char *const on_tiles[] = {"packed", BLAS_TILES, "generic", NULL};
    const int64_t widths[] = {desc->input, desc->hidden, desc->projection}, most = INT64_C(1) << 20;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i] > most) {
            answer_no(answer, SEQLSTM_BIT_REFUSED_SHAPE, SEQLSTM_OPTION_SHAPE,
                      "cpu-blas runs recurrent layers up to 1048576 wide.", "", "%lld", (long long)widths[i]);
            return;
        }
    const bool is_narrow = desc->head.dtype_compute != SEQLSTM_DTYPE_FLOAT32;
    if (is_narrow && !narrow_supports(desc, answer))
        return;
    answer_yes(answer, is_narrow ? narrow : tiles && tiles_serve(desc) ? on_tiles : on_vectors);
}

/* ---- creation ------------------------------------------------------------------------------------ */

const struct blas_recurrent_kernels *blas_recurrent_get_kernels(enum blas_isa isa)
{
#ifdef BLAS_HAVE_X86_KERNELS
    if (isa == BLAS_ISA_AVX512)
        return &blas_recurrent_kernels_avx512;
    if (isa == BLAS_ISA_AVX2)
        return &blas_recurrent_kernels_avx2;
#else
    (void)isa;
#endif
    return &blas_recurrent_kernels_portable;
}

/* Returns true if v_derivative can be computed from the value alone, which is then passed as the argument, too. */
static bool value_suffices(const struct seqlstm_activation *act)
{
    switch (act->kind) {
    case SEQLSTM_ACT_SIGMOID:
    case SEQLSTM_ACT_TANH:
    case SEQLSTM_ACT_RELU:
    case SEQLSTM_ACT_HARD_SIGMOID:
    case SEQLSTM_ACT_SOFTSIGN:
        return true;
    case SEQLSTM_ACT_LEAKY_RELU:
        return act->alpha > 0.0f; /* its sign is that of the argument */
    default:
        return false;
    }
}

static void cell_fill(const struct seqlstm_recurrent_desc *desc, bool training, int d, struct blas_cell *cell)
{
    cell->kind = desc->cell;
    cell->training = training;
    cell->coupled = (desc->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES) != 0;
    cell->peephole = (desc->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE) != 0;
    cell->norm = (desc->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM) != 0;
    cell->reset_after = (desc->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER) != 0;
    cell->gate = desc->activations[SEQLSTM_PLACE_GATE][d];
    cell->candidate = desc->activations[SEQLSTM_PLACE_CANDIDATE][d];
    cell->output = desc->activations[SEQLSTM_PLACE_OUTPUT][d];
    cell->gate_clip = desc->gate_clip;
    cell->cell_clip = desc->cell_clip;
    cell->zoneout_cell = seqlstm_mask_rate(desc->zoneout_cell);
    /* With a projection, zoneout is applied to the projected h, outside the cell. */
    cell->zoneout_hidden = desc->projection > 0 ? 0.0f : seqlstm_mask_rate(desc->zoneout_hidden);
    cell->keeps_gates =
        desc->cell == SEQLSTM_CELL_LSTM && value_suffices(&cell->gate) && value_suffices(&cell->candidate);
    cell->usual = cell->gate.kind == SEQLSTM_ACT_SIGMOID && cell->candidate.kind == SEQLSTM_ACT_TANH &&
                  cell->output.kind == SEQLSTM_ACT_TANH;
    cell->plain = desc->cell == SEQLSTM_CELL_LSTM && cell->usual && !cell->coupled && !cell->peephole && !cell->norm &&
                  cell->gate_clip == 0.0f && cell->cell_clip == 0.0f && cell->zoneout_cell == 0.0f &&
                  cell->zoneout_hidden == 0.0f;
}

/* The canonical row of column `c` of panel `p` in W_x (part 0) or W_h (part 1), or -1 if it has none. */
static int64_t canonical_row(const struct blas_recurrent *op, int32_t p, int32_t c, int part)
{
    int64_t unit = op->panel_units == PANEL ? (int64_t)p * PANEL + c : (int64_t)p * GROUP + c % GROUP;
    if (unit >= op->units)
        return -1;
    if (op->panel_units == PANEL)
        return unit;
    int gate = c / GROUP;
    if (op->lstm)
        return gate == 1 && op->coupled ? -1 : gate * op->units + unit;
    if (gate == 1 || gate == 2) /* r, z */
        return (gate - 1) * op->units + unit;
    /* In a GRU, the candidate's products with x and with h are in separate groups. */
    if (gate == 0)
        return part == 0 ? 2 * op->units + unit : -1;
    return part == 1 && !op->gru_before ? 2 * op->units + unit : -1;
}

/* The same for the bias: like part 0, but the GRU has a second bias of the candidate. */
static int64_t bias_row(const struct blas_recurrent *op, int32_t p, int32_t c)
{
    int64_t row = canonical_row(op, p, c, 0);
    if (row >= 0 || op->desc.cell != SEQLSTM_CELL_GRU || op->gru_before || c / GROUP != 3)
        return row;
    row = canonical_row(op, p, c, 1);
    return row < 0 ? row : row + op->units;
}

static void rows_fill(struct blas_recurrent *op)
{
    op->groups_x = op->groups_h = (struct blas_groups){0, PANEL / GROUP};
    if (op->desc.cell == SEQLSTM_CELL_GRU && !op->norm && !op->tile_kernels) {
        op->groups_x.end = 3;
        op->groups_h = (struct blas_groups){1, op->gru_before ? 3 : 4};
    }
    for (int32_t i = 0; i < op->panels * PANEL; i++) {
        op->rows_x[i] = (int32_t)canonical_row(op, i / PANEL, i % PANEL, 0);
        op->rows_h[i] = (int32_t)canonical_row(op, i / PANEL, i % PANEL, 1);
        op->rows_bias[i] = (int32_t)bias_row(op, i / PANEL, i % PANEL);
    }
}

/* Returns true if the steps of the largest batch have more than eight rows, and more than sweeps take when all
 * members share them. */
static bool many_rows(const struct blas_recurrent *op)
{
    return op->desc.head.max_sequences > (op->members_max < 2 ? 2 : op->members_max) * SWEEP_ROWS;
}

/* What the descriptor says, as flags. */
static void fill_options(struct blas_recurrent *op, const struct seqlstm_recurrent_desc *desc)
{
    op->directions = desc->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    op->layer_count = (int32_t)desc->layers;
    op->training = desc->head.mode == SEQLSTM_MODE_TRAINING;
    op->stepwise = op->training && (desc->options & SEQLSTM_BIT_RECURRENT_STEPWISE);
    op->lstm = desc->cell == SEQLSTM_CELL_LSTM;
    op->coupled = (desc->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES) != 0;
    op->peephole = (desc->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE) != 0;
    op->norm = (desc->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM) != 0;
    op->projection = desc->projection > 0;
    op->gru_before = desc->cell == SEQLSTM_CELL_GRU && !(desc->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER);
    op->int8 = desc->head.dtype_compute == SEQLSTM_DTYPE_INT8;
    op->merge_apart = op->directions == 2 && desc->merge != SEQLSTM_KIND_MERGE_CONCAT;
    op->has_carry = desc->cell == SEQLSTM_CELL_GRU || desc->zoneout_hidden > 0.0f;
}

/* Widths, with their padding. */
static void fill_sizes(struct blas_recurrent *op, const struct seqlstm_recurrent_desc *desc)
{
    op->units = desc->hidden;
    op->panel_units = desc->cell == SEQLSTM_CELL_RNN ? PANEL : GROUP;
    op->panels = (int32_t)((op->units + op->panel_units - 1) / op->panel_units);
    op->units_pad = (int64_t)op->panels * op->panel_units;
    op->out = op->projection ? desc->projection : desc->hidden;
    op->out_pad = blas_round(op->out, GROUP);
    op->h_row = blas_stride(op->out_pad);
    op->y_width = op->directions == 2 && !op->merge_apart ? 2 * op->out : op->out;
    op->gate_rows = op->units * (op->lstm ? 4 : desc->cell == SEQLSTM_CELL_GRU ? 3 : 1);
    op->norm_count = op->coupled ? 3 * op->units : op->gate_rows;
    for (int32_t l = 0; l < op->layer_count; l++) {
        struct blas_recurrent_layer *layer = &op->layers[l];
        layer->input = l == 0 ? desc->input : op->y_width;
        layer->input_pad = blas_round(layer->input, GROUP);
        layer->xh_row = blas_stride(layer->input_pad + op->out_pad);
    }
}

static void fill_cells(struct blas_recurrent *op, const struct seqlstm_recurrent_desc *desc)
{
    for (int d = 0; d < 2; d++)
        cell_fill(desc, op->training, d, &op->cell[d]);
    const bool recalls = op->training && op->cell[0].keeps_gates && op->cell[op->directions - 1].keeps_gates;
    for (int d = 0; op->norm && d < 2; d++) /* both directions, or none */
        op->cell[d].keeps_gates = recalls;
    /* Computing gates again is faster than reading them from memory, since the products from which they are computed
     * must be read as well. With few sequences, sweeps need the gates. */
    op->norm_keeps =
        op->norm && recalls && (desc->head.max_sequences < 64 || !blas_gates_leave(op, desc->head.max_rows));
}

/* How weights are packed and read. */
static void choose_layout(struct blas_recurrent *op, const struct seqlstm_recurrent_desc *desc)
{
    op->direct = op->lstm && !op->coupled && !op->tile_kernels;
    int64_t weight_floats = (int64_t)op->panels * PANEL * (op->layers[0].input_pad + op->out_pad);
    op->weights_large = weight_floats * 4 > 700 * 1024;
    op->strips = op->kernels->strips && !op->tile_kernels && (op->weights_large || many_rows(op));
    /* With one sequence, each weight is used once in each step, so that packing would cost as much as some steps. */
    op->h_in_place = op->training && blas_sweep_rows(op) > 0 && !op->weights_large && desc->head.max_sequences == 1 &&
                     op->units % GROUP == 0 && !blas_may_share_units(op);
    op->x_in_time = op->h_in_place && !op->tile_kernels && !op->stepwise;
    op->block_rows_max = blas_min(desc->head.max_sequences, op->weights_large ? 256 : 64);
}

/* Returns true if vectors multiply x faster than tiles would, which multiply by whole blocks of columns, six times. */
static bool is_thin(const struct seqlstm_recurrent_desc *desc)
{
    enum { THIN_INPUT = 12 };
    return desc->head.mode == SEQLSTM_MODE_INFERENCE && desc->layers == 1 && desc->input < THIN_INPUT;
}

seqlstm_status blas_recurrent_create(const struct seqlstm_host *host, enum blas_isa isa, const struct blas_tiled *tiled,
                                     int32_t members_max, const struct seqlstm_recurrent_desc *desc,
                                     const char *variant, struct blas_recurrent **out_op, struct seqlstm_error *err)
{
    const bool generic = strcmp(variant, "generic") == 0;
    const int64_t columns = blas_round(desc->hidden, GROUP) * 4; /* at least those of any cell */
    struct blas_recurrent *op = host->allocate(host->context, sizeof *op + 3 * (uint64_t)columns * sizeof(int32_t));
    if (!op)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a recurrent operation");
    memset(op, 0, sizeof *op);
    memcpy(&op->desc, desc, sizeof op->desc);
    op->host = host;
    op->kernels = blas_recurrent_get_kernels(generic ? BLAS_ISA_PORTABLE : isa);
    op->members_max = members_max < 1 ? 1 : (int32_t)blas_min(members_max, CPU_MEMBERS_MOST);
    fill_options(op, desc);
    op->tile_kernels = tiled->kernels;
    op->bf16_parts = tiled->parts;
    op->tiled_steps =
        op->tile_kernels && (op->bf16_parts == 1 || desc->head.max_sequences >= op->tile_kernels->sequences_min);
    if (!op->tiled_steps && op->tile_kernels && (desc->head.max_rows < op->tile_kernels->rows_min || is_thin(desc)))
        op->tile_kernels = NULL;
    fill_sizes(op, desc);
    fill_cells(op, desc);
    op->rows_x = (int32_t *)(void *)(op + 1);
    op->rows_h = op->rows_x + columns;
    op->rows_bias = op->rows_h + columns;
    rows_fill(op);
    choose_layout(op, desc);
    *out_op = op;
    return SEQLSTM_OK;
}

void blas_recurrent_destroy(struct blas_recurrent *op)
{
    if (op)
        op->host->release(op->host->context, op);
}

/* The most members with scratch memory of their own. It is one if all members share each batch by units, on a queue
 * of the largest size and on one of two members, and therefore on all sizes between. */
static int32_t count_regions(const struct blas_recurrent *op, int32_t members)
{
    const int64_t sequences = op->desc.head.max_sequences;
    if (members == 0 || members > op->members_max) /* some members are then idle, and none share a block */
        return op->members_max;
    if (blas_shares_units(op, sequences, members) && blas_shares_units(op, sequences, 2))
        return 1;
    return (int32_t)blas_min(members, sequences);
}

/* The most blocks that `sequences` are cut into: each member's share is rounded up to whole blocks. */
static int64_t blocks_most(const struct blas_recurrent *op, int64_t sequences)
{
    return (sequences + op->members_max * (op->block_rows_max - 1)) / op->block_rows_max;
}

/* The sizes for calls on a batch with so many rows and sequences, or a smaller one. */
static void count_buffers(const struct blas_recurrent *op, int64_t rows, int64_t sequences, int32_t regions,
                          uint64_t *out_workspace, uint64_t *out_reserve)
{
    struct blas_region reserve = {0};
    struct blas_saved saved;
    struct blas_gradients gradients[BLAS_LD_MAX];
    for (int32_t n = 0; op->training && n < op->layer_count * op->directions; n++)
        blas_saved_layout(op, n / op->directions, rows, blocks_most(op, sequences), &reserve, &saved);
    if (op->stepwise)
        blas_gradients_all(op, op->members_max, &reserve, gradients);
    *out_reserve = reserve.used;
    *out_workspace = blas_forward_workspace(op, rows, regions);
    const uint64_t backward = op->training ? blas_backward_workspace(op, rows, regions) : 0;
    if (backward > *out_workspace)
        *out_workspace = backward;
}

/* Buffers are laid out again for each batch, which therefore uses them from the beginning. */
void blas_recurrent_find_idle(const struct blas_recurrent *op, const struct seqlstm_sizes *sizes,
                              const struct seqlstm_axis *axis, struct seqlstm_idle *idle)
{
    const int32_t regions = count_regions(op, SEQLSTM_HAS(sizes, members) ? sizes->members : 0);
    uint64_t workspace, reserve;
    count_buffers(op, axis->rows, axis->sequences, regions, &workspace, &reserve);
    idle_add(&idle->workspace, workspace, sizes->workspace_bytes);
    idle_add(&idle->reserve, reserve, sizes->reserve_bytes);
}

void blas_recurrent_sizes(const struct blas_recurrent *op, int32_t members, struct seqlstm_sizes *sizes)
{
    const int32_t regions = count_regions(op, members);
    struct blas_packed_all packed;
    sizes->packed_bytes = blas_packed_open(op, NULL, &packed);
    sizes->packed_bytes += (uint64_t)(blas_packed_copies(op, members) - 1) * packed.bytes;
    count_buffers(op, op->desc.head.max_rows, op->desc.head.max_sequences, regions, &sizes->workspace_bytes,
                  &sizes->reserve_bytes);
}
