/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of outer products for weight gradients, in register tiles. A long sum is cut into slices whose rows of
 * both operands stay in the second-level cache while all row tiles pass over them. Each slice reads and writes C
 * once. With vectors of 16 floats, a slice is a chunk of a large layer, 192 KiB of each operand. Otherwise slices
 * are so short that a strip of 16 columns of b, 16 KiB, stays in the first-level cache. */
#include <stddef.h>

#include "cpu-blas/recurrent/kernels/register_tiles.h"
#include "cpu-blas/recurrent/kernels/unit.h"

enum {
    SLICE_ROWS = VW == 16 ? 768 : 256, /* rows of a slice */
    SPREAD_ROWS = 64                   /* a sum of at least so many rows prefetches C in its course */
};

/* Rows [first, first + rows) of the sum. If `next` is not NULL, the rows there, at the stride of b, are prefetched,
 * `fetch` lines in each iteration. `c`: where each row of C begins; rows that are not wanted point elsewhere. This
 * table is made once for all tiles, since finding the rows takes a tile as long as a sum over a few rows. */
struct outer_slice {
    float *const *c;
    int64_t first, rows;
    const float *next;
    int fetch;
    bool from_c;
};

/* Returns true if the rows of b are contiguous. Their lines are then prefetched in that order, which is what
 * hardware prefetchers expect. */
INLINE bool outer_in_one(const struct blas_outer *o)
{
    return !o->b_strip && o->b_row == PANEL;
}

/* Adds outer products of `count` rows from a and b on, and prefetches `fetch` lines from `ahead` on, `step` floats
 * apart. */
INLINE void outer_rows_add(const int m, const int nv, const int fetch, const int count, const float *a, int64_t a_row,
                           const float *b, int64_t b_row, const float *ahead, int64_t step, vf (*acc)[NN_VECTORS])
{
#if VW == 8
    if (count == TURN_K) {
        UNROLL_FOR (int i = 0; i < fetch; i++, ahead += step)
            __builtin_prefetch(ahead, 0, 2);
        turn_add(m, nv, true, a, a_row, b, b_row, acc);
        return;
    }
#endif
    UNROLL_FOR (int q = 0; q < count; q++, a += a_row, b += b_row) {
        vf bv[NN_VECTORS];
        if (fetch_now(fetch, q)) {
            __builtin_prefetch(ahead, 0, 2);
            ahead += step;
        }
        UNROLL_FOR (int v = 0; v < nv; v++)
            bv[v] = m > 1 ? v_load_once(b + v * VW) : v_load(b + v * VW);
        UNROLL_FOR (int r = 0; r < m; r++) {
            vf av = v_set(a[r]);
            UNROLL_FOR (int v = 0; v < nv; v++)
                acc[r][v] = v_fma(av, bv[v], acc[r][v]);
        }
    }
}

/* Finds where the rows of C begin. `unwanted` has room for one row. */
static void outer_rows_find(const struct blas_outer *o, float *unwanted, float *out_c[PANEL])
{
    const int64_t group = o->c_group ? o->c_group : GROUP * o->c_row;
    for (int64_t m = 0; m < o->m_count; m++) {
        const int64_t i = m % GROUP;
        out_c[m] = i < GROUP - o->m_skip ? o->c + m / GROUP * group + i * o->c_row : unwanted;
    }
}

/* Prefetches one row of a tile of C. A long sum prefetches one in each iteration: all lines at once would keep those
 * of b out of the cache. */
INLINE void outer_row_fetch(const int nv, const float *c)
{
    UNROLL_FOR (int v = 0; v < nv; v += LINE)
        __builtin_prefetch(c + v * VW, 1);
}

/* C = or += one row of a tile, of which `left` columns are wanted. */
INLINE void outer_row_store(const int nv, const vf *acc, bool add, int64_t left, float *c)
{
    for (int v = 0; v < nv && left > v * VW; v++) {
        const int n = left - v * VW < VW ? (int)left - v * VW : VW;
        v_store_first(c + v * VW, add ? v_add(v_load_first(c + v * VW, n), acc[v]) : acc[v], n);
    }
}

/* C = or += a tile, all of whose columns are wanted. */
INLINE void outer_tile_store(const int m, const int nv, vf (*acc)[NN_VECTORS], bool add, float *const *c,
                             int64_t column)
{
    UNROLL_FOR (int r = 0; r < m; r++) {
        float *to = c[r] + column;
        UNROLL_FOR (int v = 0; v < nv; v++)
            v_store(to + v * VW, add ? v_add(v_load(to + v * VW), acc[r][v]) : acc[r][v]);
    }
}

INLINE void outer_tile(const int m, const int nv, const int fetch, const struct blas_outer *o,
                       const struct outer_slice *s, const float *ahead, int64_t m0, int64_t column)
{
    const int64_t a_row = o->a_tiled ? m : o->a_row, b_row = o->b_row;
    float *const *rows = s->c + m0;
    vf acc[NN_ROWS][NN_VECTORS];
    UNROLL_FOR (int r = 0; r < m; r++) {
        UNROLL_FOR (int v = 0; v < nv; v++)
            acc[r][v] = v_zero();
    }
    const float *a = o->a + (o->a_tiled ? s->first * o->m_count + m0 * s->rows : s->first * a_row + m0);
    const float *b = o->b + s->first * b_row + (o->b_strip ? column / GROUP * o->b_strip : column);
    int64_t q = 0;
    const int64_t step = outer_in_one(o) ? GROUP : b_row;
    const int64_t turns = s->rows / TURN_K * TURN_K, a_turn = TURN_K * a_row, b_turn = TURN_K * b_row;
    const int64_t spread = s->rows < SPREAD_ROWS ? 0 : m * TURN_K;
    for (int r = 0; spread == 0 && r < m; r++)
        outer_row_fetch(nv, rows[r] + column);
    for (; q < turns; q += TURN_K, a += a_turn, b += b_turn, ahead += fetch * step) {
        if (q < spread)
            outer_row_fetch(nv, rows[q / TURN_K] + column);
        outer_rows_add(m, nv, fetch, TURN_K, a, a_row, b, b_row, ahead, step, acc);
    }
    for (; q < s->rows; q++, a += a_row, b += b_row)
        outer_rows_add(m, nv, 0, 1, a, a_row, b, b_row, NULL, 0, acc);
    const int64_t left = (int64_t)o->groups * GROUP - o->n_skip - column;
    /* Hides the pointer: otherwise the compiler keeps row addresses in registers through the loop, which needs them. */
    __asm__("" : "+r"(rows));
    if (left < nv * VW) {
        UNROLL_FOR (int r = 0; r < m; r++)
            outer_row_store(nv, acc[r], s->from_c, left, rows[r] + column);
    } else if (s->from_c) {
        outer_tile_store(m, nv, acc, true, rows, column);
    } else {
        outer_tile_store(m, nv, acc, false, rows, column);
    }
}

#if VW == 8
/* Runs `count` tiles of m columns of a from m0 on, in each of `columns` columns of nv vectors from `column` on. All
 * are wanted. */
INLINE void outer_walk(const int m, const int nv, const struct blas_outer *o, const struct outer_slice *s, int64_t m0,
                       int64_t count, int64_t column, int64_t columns)
{
    const int64_t a_row = o->a_tiled ? m : o->a_row, wide = 4 * nv * VW;
    struct turn_walk w = {.a = o->a + (o->a_tiled ? s->first * o->m_count + m0 * s->rows : s->first * a_row + m0),
                          .b = o->b + s->first * o->b_row + (o->b_strip ? column / GROUP * o->b_strip : column),
                          .a_row = 4 * a_row,
                          .b_row = 4 * o->b_row,
                          .a_tile = 4 * m * (o->a_tiled ? s->rows : 1),
                          .b_column = o->b_strip ? 4 * o->b_strip : wide,
                          .turns = s->rows / TURN_K,
                          .blocks = 1,
                          .rest = s->rows % TURN_K,
                          .tiles = count,
                          .columns = columns,
                          .c = s->c + m0,
                          .c_tile = m * (int64_t)sizeof *s->c,
                          .c_row = 4 * column,
                          .column = wide};
    turn_walk(m, nv, true, s->from_c, &w);
}
#endif

/* Where tile number `tile` of the slice begins to prefetch: its share of all lines or, at the slow rate, one of the
 * four lines of each row, for half of the rows. */
INLINE const float *outer_ahead(const int fetch, const struct blas_outer *o, const struct outer_slice *s, int64_t tile)
{
    if (outer_in_one(o))
        return s->next + tile * (s->rows / TURN_K * fetch * GROUP);
    return s->next + tile / 4 * (s->rows / 2) * o->b_row + tile % 4 * (o->b_strip ? o->b_strip : GROUP);
}

/* Runs `count` tiles of m columns of a from m0 on, in each of `columns` columns of nv vectors from `column` on. */
INLINE void outer_tiles(const int m, const int nv, const int fetch, const struct blas_outer *o,
                        const struct outer_slice *s, int64_t m0, int64_t count, int64_t column, int64_t columns,
                        int64_t tile)
{
#if VW == 8
    const int64_t end = column + columns * nv * VW;
    if (fetch == 0 && m > 2 && s->rows >= TURN_K && end <= (int64_t)o->groups * GROUP - o->n_skip) {
        outer_walk(m, nv, o, s, m0, count, column, columns);
        return;
    }
#endif
    for (int64_t i = 0; i < columns; i++, column += nv * VW) {
        for (int64_t k = 0; k < count; k++, tile++)
            outer_tile(m, nv, fetch, o, s, fetch ? outer_ahead(fetch, o, s, tile) : NULL, m0 + k * m, column);
    }
}

typedef void outer_tiles_fn(const struct blas_outer *o, const struct outer_slice *s, int64_t m0, int64_t count,
                            int64_t column, int64_t columns, int64_t tile);

#define OUTER_TILES(fetch, m, nv)                                                                                      \
    NOINLINE void outer_tiles_##fetch##_##m##_##nv(const struct blas_outer *o, const struct outer_slice *s,            \
                                                   int64_t m0, int64_t count, int64_t column, int64_t columns,         \
                                                   int64_t tile)                                                       \
    {                                                                                                                  \
        outer_tiles(m, nv, fetch, o, s, m0, count, column, columns, tile);                                             \
    }
TILES(OUTER_TILES, 0)
TILES(OUTER_TILES, 2)
TILES(OUTER_TILES, 4)

/* Indexed by rate, rows and vectors. */
static outer_tiles_fn *const outer_kinds[5][NN_ROWS][NN_VECTORS] = {
    [0] = TILE_TABLE(outer_tiles_0), [2] = TILE_TABLE(outer_tiles_2), [4] = TILE_TABLE(outer_tiles_4)};

/* Columns [m0, m_end) of a, m at once, over one slice of which `tile` tiles are done; returns the tiles then done. */
static int64_t outer_columns(const struct blas_outer *o, const struct outer_slice *s, int64_t m, int64_t m0,
                             int64_t m_end, int64_t tile)
{
    const int64_t count = (m_end - m0) / m;
    const int all = o->groups * LINE,
              whole = (o->groups * GROUP - o->n_skip) / VW; /* vectors, and those of which all columns are wanted */
    for (int at = 0, end, nv; count && at < all; at = end) {
        nv = tile_vectors(m, o->b_strip ? LINE : all - at);
        end = at + nv;
        int64_t fetching = s->next && tile * s->fetch < 16 ? (16 - tile * s->fetch + s->fetch - 1) / s->fetch : 0;
        fetching = fetching < count ? fetching : count;
        while (!fetching && end + nv <= whole && tile_vectors(m, o->b_strip ? LINE : all - end) == nv)
            end += nv;
        if (fetching)
            outer_kinds[s->fetch][m - 1][nv - 1](o, s, m0, fetching, (int64_t)at * VW, 1, tile);
        if (count > fetching)
            outer_kinds[0][m - 1][nv - 1](o, s, m0 + fetching * m, count - fetching, (int64_t)at * VW, (end - at) / nv,
                                          0);
        tile += count;
    }
    return tile;
}

#if VW == 16
/* One group of columns of a, times the only group of b. */
static void outer_tall(const struct blas_outer *o, const struct outer_slice *s, int64_t m0)
{
    const float *a = o->a + s->first * o->a_row + m0, *b = o->b + s->first * o->b_row;
    float *const *c = s->c + m0;
    vf acc[TALL_ROWS];
    UNROLL_TALL_FOR (int r = 0; r < TALL_ROWS; r++) {
        __builtin_prefetch(c[r], 1);
        acc[r] = v_zero();
    }
    /* Four tiles share the four lines of each row. */
    const float *ahead = s->next && o->b_row == PANEL ? s->next + m0 / TALL_ROWS * s->rows * GROUP : NULL;
    tall_add(TALL_ROWS, true, a, o->a_row, b, o->b_row, s->rows, ahead, acc);
    UNROLL_TALL_FOR (int r = 0; r < TALL_ROWS; r++)
        outer_row_store(1, acc + r, s->from_c, GROUP - o->n_skip, c[r]);
}
#endif

/* `count` columns of a from m0 on, over one slice, divided evenly between tiles; returns the tiles then done. */
static int64_t outer_range(const struct blas_outer *o, const struct outer_slice *s, int64_t m0, int64_t count,
                           int64_t tile)
{
    const int64_t tiles = (count + NN_ROWS - 1) / NN_ROWS, least = count / tiles, wider = count % tiles * (least + 1);
    const int64_t done = outer_columns(o, s, least + 1, m0, m0 + wider, tile);
    return outer_columns(o, s, least, m0 + wider, m0 + count, done);
}

/* All columns of a, over one slice. */
static void outer_rows(const struct blas_outer *o, struct outer_slice *s)
{
#if VW == 16
    if (o->groups == 1 && o->m_count % TALL_ROWS == 0 && !o->a_tiled) {
        for (int64_t m0 = 0; m0 < o->m_count; m0 += TALL_ROWS)
            outer_tall(o, s, m0);
        return;
    }
#endif
    s->fetch = fetch_rate((o->m_count + NN_ROWS - 1) / NN_ROWS);
    if (o->m_skip == 0 || o->a_tiled) {
        outer_range(o, s, 0, o->m_count, 0);
        return;
    }
    for (int64_t m0 = 0, tile = 0; m0 < o->m_count; m0 += GROUP) {
        const int64_t left = o->m_count - m0, wanted = GROUP - o->m_skip;
        tile = outer_range(o, s, m0, left < wanted ? left : wanted, tile);
    }
}

/* The rows of the slice that begins with row `first`. Slices are as even as whole iterations allow. */
static int64_t outer_slice_rows(const struct blas_outer *o, int64_t first)
{
    const int64_t left = o->rows - first, slices = (left + SLICE_ROWS - 1) / SLICE_ROWS;
    const int64_t rows = ((left + slices - 1) / slices + TURN_K - 1) / TURN_K * TURN_K;
    return rows < left ? rows : left;
}

void kernel_outer(const struct blas_outer *o)
{
    float *c[PANEL], unwanted[PANEL] = {0};
    struct outer_slice s = {.c = c, .from_c = o->accumulate};
    outer_rows_find(o, unwanted, c);
    for (; s.first < o->rows; s.first += s.rows) {
        s.rows = outer_slice_rows(o, s.first);
        const int64_t end = s.first + s.rows;
        s.next = o->beside ? o->beside + s.first * o->b_row : end < o->rows ? o->b + end * o->b_row : o->next;
        outer_rows(o, &s);
        s.from_c = true;
    }
}

/* Writes the rows of a slice in the order in which its tiles read them, one tile after the other. Rows are written
 * in whole vectors, which overlap the place of the next rows, but not the end of the last tile. */
static void outer_tile_slice(const struct blas_outer *o, int64_t first, int64_t rows, float *out)
{
    const int64_t tiles = (o->m_count + NN_ROWS - 1) / NN_ROWS, least = o->m_count / tiles, more = o->m_count % tiles;
    for (int64_t q = 0; q < rows; q++) {
        const float *a = o->a + (first + q) * o->a_row;
        float *tile = out;
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t m = i < more ? least + 1 : least;
            if ((rows - q) * m >= VW)
                v_store(tile + q * m, v_load(a));
            else
                v_store_first(tile + q * m, v_load_first(a, (int)m), (int)m);
            a += m;
            tile += rows * m;
        }
    }
}

void kernel_outer_tile_a(const struct blas_outer *o, float *out)
{
    for (int64_t first = 0, rows; first < o->rows; first += rows) {
        rows = outer_slice_rows(o, first);
        outer_tile_slice(o, first, rows, out + first * o->m_count);
    }
}
