/* SPDX-License-Identifier: Apache-2.0 */
/* How a layer is divided among the blocks of a device. See resident.h. */
#include <math.h>
#include <string.h>

#include "cuda-generic/recurrent/cluster/cluster.h"
#include "cuda-generic/recurrent/resident/resident_shape.h"

/* Rates of one multiprocessor of an H200 per clock (docs/cuda.md): bytes from L2 while all read, bytes from shared
 * memory, and clocks of a product of 16 x 8 x 16 numbers. A barrier of a group takes WAIT + WAIT_BLOCK x blocks. */
#ifndef L2_BYTES /* tests set it */
#define L2_BYTES 21.0f
#endif
#define SHARED_BYTES 128.0f
#define MMA_CLOCKS   1.53f
#define WAIT         1300.0f
#define WAIT_BLOCK   6.0f
#define CELL_CLOCKS  400.0f /* of a round of cells, one per thread */

#define GATHER       600.0f /* latency of adding what all blocks have sent */
#define MEMORY_BYTES 10.0f  /* from device memory, per clock, where L2_ROOM bytes of L2 are exceeded */
#define L2_ROOM      30e6f

enum { SLICE_BYTES = 16384, SCATTER_COLUMNS = 64 };

static int32_t round_up(int32_t x, int32_t unit)
{
    return (x + unit - 1) / unit * unit;
}

static int32_t get_power(int32_t most)
{
    int32_t power = 1;
    while (2 * power <= most)
        power *= 2;
    return power;
}

/* To read the weights once for which a block has no room. They exceed L2, or stay there. */
static float find_spill_clocks(const struct cg_resident *r)
{
    const float bytes = 4.0f * (float)cg_resident_spill_words(r);
    return bytes / (bytes * (float)(r->blocks * r->groups * r->together) < L2_ROOM ? L2_BYTES : MEMORY_BYTES);
}

/* For the barriers within a step, after which a block reads two numbers of each block for each sequence. */
static float find_link_clocks(const struct cg_resident *r, int32_t columns)
{
    const float numbers = (float)(8 * columns * r->blocks);
    return (float)r->linked * (numbers / L2_BYTES + WAIT + WAIT_BLOCK * (float)r->blocks);
}

/* The expected clocks of a step with so many sequences in a group. */
static float estimate(const struct cg_resident *r, int32_t columns)
{
    const float passes = (float)((columns + r->columns - 1) / r->columns), all = (float)round_up(columns, 8);
    const float published = (float)columns * (float)(4 * r->words * r->parts);
    const float weights = passes * (float)(4 * r->rows * r->words * r->parts);
    const float idle = (float)CG_RESIDENT_WARPS / (float)(r->row_warps * r->column_warps * r->splits);
    const float shared = (weights * (float)r->column_warps + published * (float)r->row_warps) / SHARED_BYTES;
    const float products =
        (float)(r->rows / 16) * all / 8 * (float)r->words / 8 * (r->parts == 2 ? 3.0f : 1.0f) * MMA_CLOCKS * idle;
    const float sums = 8.0f * (float)(r->splits * r->rows) * all / SHARED_BYTES;
    const float cells = CELL_CLOCKS * (float)((columns * r->units + CG_RESIDENT_THREADS - 1) / CG_RESIDENT_THREADS);
    const float copy = published / L2_BYTES + passes * find_spill_clocks(r),
                busy = shared > products ? shared : products;
    return (copy > busy ? copy : busy) + sums + cells + WAIT + WAIT_BLOCK * (float)r->blocks +
           find_link_clocks(r, columns);
}

/* Takes as much of the depth as fits into shared memory, all of it if not `spills`. */
static bool fit_slices(struct cg_resident *r, bool spills, int64_t room)
{
    r->kept = spills ? 0 : cg_resident_depth(r);
    r->pitch = r->kept + 4;
    const int64_t of_word = 4 * (int64_t)r->parts * r->rows, left = room - cg_resident_count_bytes(r);
    if (left < 0)
        return false;
    if (spills && left / of_word < cg_resident_depth(r) - r->chunk)
        r->kept = (int32_t)(left / of_word) / r->chunk * r->chunk;
    else if (spills)
        r->kept = cg_resident_depth(r) - r->chunk;
    r->pitch = r->kept + 4;
    r->shared_bytes = (int32_t)cg_resident_count_bytes(r);
    return true;
}

/* Finds a size of slices. Returns false if none fits. */
static bool find_chunk(struct cg_resident *r, bool spills, int64_t room)
{
    const int32_t lines = r->columns + (spills ? r->rows : 0);
    r->chunk = 8 * r->splits;
    while (r->chunk < r->words && 2 * r->chunk * lines * 4 * r->parts <= SLICE_BYTES)
        r->chunk *= 2;
    while (!fit_slices(r, spills, room) && r->chunk > 8 * r->splits)
        r->chunk /= 2;
    return fit_slices(r, spills, room);
}

/* Divides a product among the warps. Returns false if a block lacks shared memory. */
static bool lay_out(struct cg_resident *r, int32_t columns, int64_t room)
{
    const int32_t rows = 16 * r->row_tiles * r->row_warps, tile = cg_resident_columns(r);
    const int32_t left = get_power(CG_RESIDENT_WARPS / r->row_warps);
    if (r->column_warps > left)
        return false;
    r->rows = rows;
    r->splits = left / r->column_warps;
    const int32_t most = tile * r->column_warps, wanted = round_up(columns, 16);
    r->columns = wanted < most ? wanted : most;
    return find_chunk(r, false, room) || find_chunk(r, true, room);
}

/* Tries every division of the warps for so many units per block. Backward, where all sums have scales, a warp has no
 * registers for two tiles of rows by 64 columns. */
static void try_units(const struct cg_resident *base, bool back, int32_t rows, int32_t sequences, int64_t room,
                      struct cg_resident *best)
{
    const int32_t columns = cg_resident_count_columns(sequences, base->groups);
    for (int32_t tiles = 1; tiles <= (back && base->parts == 1 ? 1 : 2); tiles++)
        for (int32_t warps = 1; warps <= CG_RESIDENT_WARPS; warps *= 2) {
            struct cg_resident r = *base;
            r.row_tiles = tiles;
            r.row_warps = (rows + 16 * tiles - 1) / (16 * tiles);
            r.column_warps = warps;
            if (r.row_warps > CG_RESIDENT_WARPS || !lay_out(&r, columns, room))
                continue;
            r.clocks = estimate(&r, columns);
            if (best->blocks == 0 || r.clocks < best->clocks)
                *best = r;
        }
}

/* The expected clocks of a step in which blocks send parts of the gradient: it is written and read once. */
static float estimate_scatter(const struct cg_resident *r, int32_t columns)
{
    const float parts = (float)columns * (float)(4 * r->blocks * r->units), tiles = (float)(r->rows / 16);
    const float device = 2.0f * parts * (float)(r->blocks * r->groups * r->together); /* both halves */
    const float rate = device < L2_ROOM ? L2_BYTES : MEMORY_BYTES, sixteens = (float)((columns + 15) / 16);
    const float depth = tiles * (float)(r->segment / 16) * sixteens;
    const float products = depth * 2.0f * (r->parts == 2 ? 3.0f : 1.0f) * MMA_CLOCKS;
    const float shared = depth * (float)(512 * r->parts) / SHARED_BYTES;
    const float cells = CELL_CLOCKS * (float)((columns * r->units + CG_RESIDENT_THREADS - 1) / CG_RESIDENT_THREADS);
    const float read = shared + sixteens * find_spill_clocks(r), sent = parts / rate;
    const float busy = read > products ? read : products;
    return (sent > busy ? sent : busy) + sent + cells + GATHER + WAIT + WAIT_BLOCK * (float)r->blocks +
           find_link_clocks(r, columns);
}

/* For so many groups, keeps the division in `best` if it is faster. */
static void try_scatter(const struct cg_resident *base, int32_t sequences, int64_t room, struct cg_resident *best)
{
    const int32_t columns = cg_resident_count_columns(sequences, base->groups), wanted = round_up(columns, 16);
    struct cg_resident r = *base;
    r.rows = round_up(r.blocks * r.units, 16);
    r.columns = wanted < SCATTER_COLUMNS ? wanted : SCATTER_COLUMNS;
    r.pitch = r.segment / 2;
    r.kept = r.rows / 16;
    while (r.kept > 0 && cg_resident_count_bytes(&r) > room)
        r.kept--;
    if (cg_resident_count_bytes(&r) > room)
        return;
    r.shared_bytes = (int32_t)cg_resident_count_bytes(&r);
    r.clocks = estimate_scatter(&r, columns);
    if (best->blocks == 0 || r.clocks < best->clocks)
        *best = r;
}

static int32_t find_segment(enum cg_resident_pass pass, int32_t gates, int32_t units)
{
    const int32_t all = gates * units;
    if (pass == CG_RESIDENT_SCATTER)
        return all <= 32 ? 32 : all <= 64 ? 64 : 128;
    return pass == CG_RESIDENT_BACKWARD ? round_up(all, 16) : units;
}

/* LAYER_NORM of an LSTM has two barriers more per step, that of others one, and so does a late GRU. */
static int32_t count_links(const struct seqlstm_recurrent_desc *d)
{
    return !cg_cluster_is_linked(d) ? 0 : d->cell == SEQLSTM_CELL_LSTM ? 2 : 1;
}

bool cg_resident_divide(const struct seqlstm_recurrent_desc *d, enum cg_resident_pass pass, int32_t units,
                        int32_t together, int32_t multiprocessors, int64_t room, struct cg_resident *out)
{
    const int32_t gates = d->cell == SEQLSTM_CELL_LSTM ? 4 : d->cell == SEQLSTM_CELL_GRU ? 3 : 1;
    const int32_t sequences = (int32_t)d->head.max_sequences, blocks = ((int32_t)d->hidden + units - 1) / units;
    struct cg_resident r = {.blocks = blocks,
                            .units = units,
                            .scatter = pass == CG_RESIDENT_SCATTER,
                            .segment = find_segment(pass, gates, units),
                            .parts = d->head.dtype_compute == SEQLSTM_DTYPE_FLOAT32 ? 2 : 1,
                            .wild = cg_cluster_is_wild(d),
                            .linked = count_links(d),
                            .together = together};
    const bool back = pass != CG_RESIDENT_FORWARD;
    memset(out, 0, sizeof *out);
    r.words = blocks * r.segment / 2;
    for (r.groups = 1; r.groups * blocks * together <= multiprocessors && r.groups <= sequences; r.groups++)
        if (r.scatter)
            try_scatter(&r, sequences, room, out);
        else
            try_units(&r, back, back ? units : gates * units, sequences, room, out);
    return out->blocks > 0;
}

bool cg_resident_make(const struct seqlstm_recurrent_desc *d, bool back, int32_t multiprocessors, int64_t room,
                      struct cg_resident *out)
{
    const int32_t directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    const enum cg_resident_pass first = back ? CG_RESIDENT_BACKWARD : CG_RESIDENT_FORWARD,
                                last = back ? CG_RESIDENT_SCATTER : CG_RESIDENT_FORWARD;
    float least = INFINITY;
    for (int32_t together = 1; together <= directions; together++)
        for (int32_t units = 8; units <= CG_RESIDENT_UNITS_MOST; units *= 2)
            for (enum cg_resident_pass pass = first; pass <= last; pass++) {
                struct cg_resident r;
                const bool fits = cg_resident_divide(d, pass, units, together, multiprocessors, room, &r);
                const float clocks = r.clocks * (float)(directions / together);
                if (!fits || clocks >= least)
                    continue;
                least = clocks;
                *out = r;
            }
    return least < INFINITY;
}
