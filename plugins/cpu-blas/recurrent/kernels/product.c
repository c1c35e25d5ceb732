/* SPDX-License-Identifier: Apache-2.0 */
/* Rows times a packed panel, in register tiles. A long sum is cut into slices, so that the slice of the panel stays
 * in the first-level cache while all row tiles pass over it. */
#include <stddef.h>

#include "cpu-blas/recurrent/kernels/register_tiles.h"
#include "cpu-blas/recurrent/kernels/unit.h"

enum {
    BLOCK_ROWS = 66,    /* rows that go through all slices before the next rows do */
    SLICE_K = 128,      /* k of a slice of a panel: 128 x 64 floats = 32 KiB */
    STRIP_SLICE_K = 256 /* k of a slice in strips: 256 x 16 floats = 16 KiB */
};

INLINE int64_t slice_k(const struct blas_product *p)
{
    return p->b_strip ? STRIP_SLICE_K : SLICE_K;
}

/* What the sums of a tile start from. */
enum tile_start { START_ZERO, START_INIT, START_C };

/* One slice of the sum: k_blocks blocks of k_inner at a and b, after `blocks_done` blocks. Each iteration of a row
 * tile prefetches `fetch` lines: of the next slice at `ahead` or, if that is NULL, of one of the places in p->ahead
 * for each block, from the point that `place_k` of k have reached. `fetch` may be 0, since two threads on one core
 * compete for its loads. */
struct slice {
    const float *a, *b, *ahead;
    int64_t place_k, blocks_done;
    int64_t fetch_tiles; /* the first row tiles, which prefetch */
    int32_t fetch;
    int32_t k_blocks, k_inner;
    enum tile_start start;
    bool warm; /* C is in the first-level cache, from the slice before */
};

/* Prefetches the lines of a tile of C, which are written soon. The pointer is hidden from the compiler, which
 * otherwise computes all addresses before the sum and spills them. */
INLINE void tile_prefetch(const int m, const int nv, float *c, int64_t c_row)
{
    UNROLL_FOR (int r = 0; r < m; r++, c += c_row) {
        __asm__("" : "+r"(c));
        UNROLL_FOR (int v = 0; v < nv; v += LINE)
            __builtin_prefetch(c + v * VW, 1);
    }
}

/* C = or += the sums of a tile. */
INLINE void tile_store(const int m, const int nv, vf (*acc)[NN_VECTORS], bool add, float *c, int64_t c_row)
{
    if (add) {
        float *from = c;
        UNROLL_FOR (int r = 0; r < m; r++, from += c_row) {
            UNROLL_FOR (int v = 0; v < nv; v++)
                acc[r][v] = v_add(v_load(from + v * VW), acc[r][v]);
        }
    }
    UNROLL_FOR (int r = 0; r < m; r++, c += c_row) {
        UNROLL_FOR (int v = 0; v < nv; v++)
            v_store(c + v * VW, acc[r][v]);
    }
}

/* Multiplies TURN_K of k, and prefetches `fetch` lines of `ahead`. */
INLINE void product_turn(const int m, const int nv, const int fetch, const float *ak, int64_t a_row, const float *b,
                         int64_t b_row, const float *ahead, vf (*acc)[NN_VECTORS])
{
#if VW == 8
    UNROLL_FOR (int i = 0; i < fetch; i++)
        __builtin_prefetch(ahead + i * GROUP, 0, 2);
    turn_add(m, nv, false, ak, a_row, b, b_row, acc);
#else
    UNROLL_FOR (int turn = 0; turn < TURN_K; turn++, ak++, b += b_row) {
        vf bv[NN_VECTORS];
        if (fetch_now(fetch, turn))
            __builtin_prefetch(ahead + turn * fetch / TURN_K * GROUP, 0, 2);
        UNROLL_FOR (int v = 0; v < nv; v++)
            bv[v] = m > 1 ? v_load_once(b + v * VW) : v_load(b + v * VW);
        UNROLL_FOR (int r = 0; r < m; r++) {
            vf av = v_set(ak[r * a_row]);
            UNROLL_FOR (int v = 0; v < nv; v++)
                acc[r][v] = v_fma(av, bv[v], acc[r][v]);
        }
    }
#endif
}

/* Multiplies k of one row, two at a time. A single row with few vectors would otherwise wait for its previous sum. */
INLINE void product_pairs(const int nv, const float *a, const float *b, int32_t count, vf *acc)
{
    vf odd[NN_VECTORS];
    UNROLL_FOR (int v = 0; v < nv; v++)
        odd[v] = v_zero();
    for (int32_t k = 0; k < count; k += 2, a += 2, b += 2 * PANEL) {
        vf even_a = v_set(a[0]), odd_a = v_set(a[1]);
        UNROLL_FOR (int v = 0; v < nv; v++) {
            acc[v] = v_fma(even_a, v_load(b + v * VW), acc[v]);
            odd[v] = v_fma(odd_a, v_load(b + PANEL + v * VW), odd[v]);
        }
    }
    UNROLL_FOR (int v = 0; v < nv; v++)
        acc[v] = v_add(acc[v], odd[v]);
}

/* One tile of m rows and nv vectors. It prefetches from `ahead` or, if `places` is not NULL, from one place for each
 * block. */
INLINE void product_tile(const int m, const int nv, const int fetch, const struct blas_product *p,
                         const struct slice *s, const float *ahead, const float *const *places, const float *init,
                         const float *a, const float *b, float *c)
{
    const enum tile_start start = s->start;
    const int64_t a_row = p->a_row, b_row = p->b_row, c_row = p->c_row;
    vf acc[NN_ROWS][NN_VECTORS];
    if (!s->warm)
        tile_prefetch(m, nv, c, c_row);
    UNROLL_FOR (int v = 0; v < nv; v++) {
        vf first = start == START_INIT ? v_load(init + v * VW) : v_zero();
        UNROLL_FOR (int r = 0; r < m; r++)
            acc[r][v] = first;
    }
    for (int32_t block = 0; block < s->k_blocks; block++, a += p->a_block, b += p->b_skip) {
        if (m == 1 && nv <= 4 && b_row == PANEL) {
            product_pairs(nv, a, b, s->k_inner, acc[0]);
            b += s->k_inner * PANEL;
            continue;
        }
        const float *ak = a;
        if (fetch && places)
            ahead = places[block] + s->place_k / TURN_K * fetch * GROUP;
        for (int32_t k = 0; k < s->k_inner; k += TURN_K, ak += TURN_K, b += TURN_K * b_row, ahead += fetch * GROUP)
            product_turn(m, nv, fetch, ak, a_row, b, b_row, ahead, acc);
    }
    tile_store(m, nv, acc, start == START_C, c, c_row);
}

#if VW == 8
/* `tiles` tiles of m rows from `row` on, in each of `columns` columns of nv vectors from `column` on. */
INLINE void product_walk(const int m, const int nv, const struct blas_product *p, const struct slice *s, int64_t tiles,
                         int64_t row, int64_t column, int64_t columns)
{
    const int64_t wide = 4 * nv * VW;
    struct turn_walk w = {.a = s->a + row * p->a_row,
                          .b = s->b + (p->b_strip ? column / GROUP * p->b_strip : column),
                          .a_row = 4 * p->a_row,
                          .b_row = 4 * p->b_row,
                          .a_tile = 4 * m * p->a_row,
                          .b_column = p->b_strip ? 4 * p->b_strip : wide,
                          .turns = s->k_inner / TURN_K,
                          .blocks = s->k_blocks,
                          .a_skip = 4 * (p->a_block - s->k_inner),
                          .b_skip = 4 * p->b_skip,
                          .tiles = tiles,
                          .columns = columns,
                          .c = p->c + row * p->c_row + column,
                          .c_tile = 4 * m * p->c_row,
                          .c_row = 4 * p->c_row,
                          .init = s->start == START_INIT ? p->init + column : NULL,
                          .column = wide};
    turn_walk(m, nv, false, s->start == START_C, &w);
}
#endif

/* Row tiles [tile, tile + count) of m rows each, from `row` on, by nv vectors from `column` on. */
INLINE void product_rows(const int m, const int nv, const int fetch, const struct blas_product *p,
                         const struct slice *s, int64_t tile, int64_t count, int64_t row, int64_t column)
{
    const int64_t b_column = p->b_strip ? column / GROUP * p->b_strip : column;
    const float *a = s->a + row * p->a_row, *b = s->b + b_column, *ahead = NULL, *const *places = NULL;
    const int64_t ahead_step = (int64_t)s->k_blocks * s->k_inner / TURN_K * fetch * GROUP;
    const float *init = p->init ? p->init + column : NULL;
    float *c = p->c + row * p->c_row + column;
    if (fetch && s->ahead)
        ahead = s->ahead + (p->b_strip ? b_column : 0) + tile * ahead_step;
    else if (fetch)
        places = p->ahead + tile * p->k_blocks + s->blocks_done;
    for (; count > 0; count--) {
        product_tile(m, nv, fetch, p, s, ahead, places, init, a, b, c);
        a += m * p->a_row;
        c += m * p->c_row;
        ahead = ahead ? ahead + ahead_step : NULL;
        places = places ? places + p->k_blocks : NULL;
    }
}

/* The same in each of `columns` neighbouring columns. */
INLINE void product_tiles(const int m, const int nv, const int fetch, const struct blas_product *p,
                          const struct slice *s, int64_t tile, int64_t count, int64_t row, int64_t column,
                          int64_t columns)
{
#if VW == 8
    if (fetch == 0 && m > 2) {
        product_walk(m, nv, p, s, count, row, column, columns);
        return;
    }
#endif
    for (int64_t i = 0; i < columns; i++)
        product_rows(m, nv, fetch, p, s, tile, count, row, column + i * nv * VW);
}

typedef void product_tiles_fn(const struct blas_product *p, const struct slice *s, int64_t tile, int64_t count,
                              int64_t row, int64_t column, int64_t columns);

/* A function for each tile and rate of prefetching: with more than one loop over k in a function, compilers keep
 * sums in memory. */
#define PRODUCT_TILES(fetch, m, nv)                                                                                    \
    NOINLINE void product_tiles_##fetch##_##m##_##nv(const struct blas_product *p, const struct slice *s,              \
                                                     int64_t tile, int64_t count, int64_t row, int64_t column,         \
                                                     int64_t columns)                                                  \
    {                                                                                                                  \
        product_tiles(m, nv, fetch, p, s, tile, count, row, column, columns);                                          \
    }
TILES(PRODUCT_TILES, 0)
TILES(PRODUCT_TILES, 2)
TILES(PRODUCT_TILES, 4)

#if VW == 8
TILES(PRODUCT_TILES, 1) /* the rate of strips */
#endif

/* Indexed by rate, rows and vectors. */
static product_tiles_fn *const product_kinds[5][NN_ROWS][NN_VECTORS] = {
#if VW == 8
    [1] = TILE_TABLE(product_tiles_1),
#endif
    [0] = TILE_TABLE(product_tiles_0),
    [2] = TILE_TABLE(product_tiles_2),
    [4] = TILE_TABLE(product_tiles_4)};

/* Row tiles [tile, tile + count) of m rows each, from `row` on, by all columns. The first of them prefetch. */
static void product_columns(const struct blas_product *p, const struct slice *s, int64_t m, int64_t tile, int64_t count,
                            int64_t row)
{
    const int all = p->groups * LINE;
    for (int at = 0, end, nv; at < all; at = end) {
        nv = tile_vectors(m, p->b_strip ? LINE : all - at);
        end = at + nv;
        int64_t fetching = s->fetch_tiles - tile < count ? s->fetch_tiles - tile : count;
        if (fetching < 0 || (at && !s->ahead)) /* each place is used once */
            fetching = 0;
        while (!fetching && end < all && tile_vectors(m, p->b_strip ? LINE : all - end) == nv)
            end += nv;
        if (fetching)
            product_kinds[s->fetch][m - 1][nv - 1](p, s, tile, fetching, row, (int64_t)at * VW, 1);
        if (count > fetching)
            product_kinds[0][m - 1][nv - 1](p, s, 0, count - fetching, row + fetching * m, (int64_t)at * VW,
                                            (end - at) / nv);
    }
}

#if VW == 16
/* The m rows from `row` on, times the only group of columns. */
INLINE void product_tall(const int m, const struct blas_product *p, const struct slice *s, int64_t row)
{
    const float *a = s->a + row * p->a_row, *b = s->b;
    const vf first = s->start == START_INIT ? v_load(p->init) : v_zero();
    float *c = p->c + row * p->c_row;
    vf acc[TALL_ROWS];
    UNROLL_TALL_FOR (int r = 0; r < m; r++) {
        __builtin_prefetch(c + r * p->c_row, 1);
        acc[r] = first;
    }
    for (int32_t block = 0; block < s->k_blocks; block++) {
        tall_add(m, false, a, p->a_row, b, p->b_row, s->k_inner, NULL, acc);
        a += p->a_block;
        b += s->k_inner * p->b_row + p->b_skip;
    }
    UNROLL_TALL_FOR (int r = 0; r < m; r++, c += p->c_row)
        v_store(c, s->start == START_C ? v_add(v_load(c), acc[r]) : acc[r]);
}

typedef void product_tall_fn(const struct blas_product *p, const struct slice *s, int64_t row);

#define PRODUCT_TALL(m)                                                                                                \
    NOINLINE void product_tall_##m(const struct blas_product *p, const struct slice *s, int64_t row)                   \
    {                                                                                                                  \
        product_tall(m, p, s, row);                                                                                    \
    }
PRODUCT_TALL(7)
PRODUCT_TALL(8)
PRODUCT_TALL(9)
PRODUCT_TALL(10)
PRODUCT_TALL(11)
PRODUCT_TALL(12)
PRODUCT_TALL(13)
PRODUCT_TALL(14)
PRODUCT_TALL(15)
PRODUCT_TALL(16)

static product_tall_fn *const product_tall_kinds[TALL_ROWS + 1] = {
    [7] = product_tall_7,   [8] = product_tall_8,   [9] = product_tall_9,   [10] = product_tall_10,
    [11] = product_tall_11, [12] = product_tall_12, [13] = product_tall_13, [14] = product_tall_14,
    [15] = product_tall_15, [16] = product_tall_16};

/* More than NN_ROWS rows by one group of columns, over one slice. Nothing is prefetched: slices of one group are one
 * stream, which the hardware prefetches, and the next panel was used just before. */
static void product_group(const struct blas_product *p, const struct slice *s)
{
    const int64_t tiles = (p->rows + TALL_ROWS - 1) / TALL_ROWS, least = p->rows / tiles, more = p->rows % tiles;
    for (int64_t tile = 0, row = 0, m; tile < tiles; tile++, row += m) {
        m = least + (tile < more);
        product_tall_kinds[m](p, s, row);
    }
}
#endif

/* All rows, over one slice. Rows are divided evenly between tiles, so that no tile is nearly empty. */
static void product_slice(const struct blas_product *p, struct slice *s)
{
    const int64_t tiles = (p->rows + NN_ROWS - 1) / NN_ROWS, least = p->rows / tiles, more = p->rows % tiles;
    const int64_t places =
        p->ahead_count - s->blocks_done - s->k_blocks; /* places that remain after those of the first tile */
    s->fetch = !s->ahead ? p->ahead_rate : p->b_strip ? strip_fetch_rate(tiles) : fetch_rate(tiles);
    s->fetch_tiles = s->ahead                  ? (p->b_strip ? 4 : 16) / s->fetch
                     : p->ahead && places >= 0 ? places / p->k_blocks + 1
                                               : 0;
#if VW == 16
    if (p->groups == 1 && p->rows > NN_ROWS && (int64_t)p->k_blocks * p->k_inner > SLICE_K &&
        (s->ahead || s->fetch_tiles == 0)) {
        product_group(p, s);
        return;
    }
#endif
    if (more)
        product_columns(p, s, least + 1, 0, more, 0);
    product_columns(p, s, least, more, tiles - more, more * (least + 1));
}

/* Few rows: the panel is read once in any case, so the sum is not cut. `descending` begins at the end of the panel,
 * which may still be in the cache from the step before. */
static void product_narrow(const struct blas_product *p, enum tile_start start)
{
    struct slice s = {.a = p->a, .b = p->b, .k_blocks = p->k_blocks, .k_inner = p->k_inner, .start = start};
    if (!p->descending || p->k_blocks == 1) {
        product_slice(p, &s);
        return;
    }
    s.k_blocks = 1;
    for (int32_t block = p->k_blocks - 1; block >= 0; block--) {
        s.a = p->a + block * p->a_block;
        s.b = p->b + block * (p->k_inner * p->b_row + p->b_skip);
        s.blocks_done = block;
        product_slice(p, &s);
        s.start = START_C;
    }
}

/* A sum too long for one slice. Slices are whole blocks, or parts of the only block. */
static void product_long(const struct blas_product *p, enum tile_start start)
{
    const int64_t k_all = (int64_t)p->k_blocks * p->k_inner;
    const bool whole = p->k_blocks > 1;
    const int32_t unit = whole ? p->k_inner : TURN_K;
    const int64_t b_unit = unit * p->b_row + (whole ? p->b_skip : 0);
    int64_t units = k_all / unit, done = 0, slices = (k_all + slice_k(p) - 1) / slice_k(p);
    slices = slices > units ? units : slices;
    for (int64_t i = 0; i < slices; i++) {
        int64_t n = (units - done + (slices - i) - 1) / (slices - i);
        const float *b = p->b + done * b_unit;
        const float *next = i + 1 < slices ? b + n * b_unit : p->next;
        struct slice s = {.a = p->a + (whole ? done * p->a_block : done * unit),
                          .b = b,
                          .ahead = p->next ? next : NULL,
                          .place_k = whole ? 0 : done * unit,
                          .blocks_done = whole ? done : 0,
                          .k_blocks = whole ? (int32_t)n : 1,
                          .k_inner = whole ? p->k_inner : (int32_t)n * unit,
                          .start = start,
                          .warm = i > 0};
        product_slice(p, &s);
        start = START_C;
        done += n;
    }
}

void kernel_product(const struct blas_product *p)
{
    enum tile_start start = p->accumulate ? START_C : p->init ? START_INIT : START_ZERO;
    if (p->rows <= 0)
        return;
    if (p->rows <= NN_ROWS) {
        product_narrow(p, start);
        return;
    }
    if ((int64_t)p->k_blocks * p->k_inner <= slice_k(p) + slice_k(p) / 2) {
        struct slice s = {
            .a = p->a, .b = p->b, .ahead = p->next, .k_blocks = p->k_blocks, .k_inner = p->k_inner, .start = start};
        product_slice(p, &s);
        return;
    }
    /* C of these rows stays in the first-level cache from slice to slice. */
    struct blas_product part = *p;
    int64_t left = p->rows, blocks = (left + BLOCK_ROWS - 1) / BLOCK_ROWS;
    for (; blocks > 0; blocks--, part.ahead_count = 0) {
        part.rows = (left + blocks - 1) / blocks;
        part.next = blocks > 1 && p->next ? p->b : p->next;
        product_long(&part, start);
        part.a += part.rows * p->a_row;
        part.c += part.rows * p->c_row;
        left -= part.rows;
    }
}
