/* SPDX-License-Identifier: Apache-2.0 */
/* Products of few rows that do not pack the other matrix (compiled once for each instruction set).
 *
 * A library packs both operands before it multiplies, which pays off from about 64 rows on. For fewer rows, these
 * functions read the weights in place, once for every tile of rows:
 *
 *   C = A B'   dot products: vectors along k, ROWS x 4 sums in registers, which are added up at the end, four at a time
 *   C = A B    vectors along n, ROWS x 4 vectors of C in registers, one element of A is broadcast at a time */
#include "cpu-blas/rowmath/unit.h"

enum {
    ROWS = BLAS_LANES == 16 ? 6 : 2,
    DOT_SLICE = 768, /* k in a slice: ROWS rows of A and 4 of B stay in the first-level cache */
    ROW_SLICE = 128, /* k in a slice: 128 x 64 floats of B */
    ROW_BLOCK = 240  /* rows of C that stay in the second-level cache from slice to slice */
};

/* The sums of four vectors. */
INLINE void fold4(vf a, vf b, vf c, vf d, float out[4])
{
#if BLAS_LANES == 16 && defined(__AVX512F__)
    __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps((__m512)a, (__m512)b), _mm512_unpackhi_ps((__m512)a, (__m512)b));
    __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps((__m512)c, (__m512)d), _mm512_unpackhi_ps((__m512)c, (__m512)d));
    __m512 all = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xEE));
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
#elif BLAS_LANES == 8 && defined(__AVX2__)
    __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps((__m256)a, (__m256)b), _mm256_unpackhi_ps((__m256)a, (__m256)b));
    __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps((__m256)c, (__m256)d), _mm256_unpackhi_ps((__m256)c, (__m256)d));
    __m256 all = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xEE));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
#else
    out[0] = v_sum(a);
    out[1] = v_sum(b);
    out[2] = v_sum(c);
    out[3] = v_sum(d);
#endif
}

/* m rows of A times 4 rows of B, of which the first `columns` count. The caller repeats pointers beyond the last
 * row. */
INLINE void dot_tile(const int m, int64_t k, const float *a, int64_t lda, const float *const b[4], bool add, float *c,
                     int64_t ldc, int columns)
{
    vf acc[ROWS][4];
    UNROLL_FOR (int r = 0; r < m; r++)
        acc[r][0] = acc[r][1] = acc[r][2] = acc[r][3] = (vf){0};
    const float *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
    int64_t i = 0;
    for (; i + BLAS_LANES <= k; i += BLAS_LANES) {
        const vf v0 = v_load(b0 + i), v1 = v_load(b1 + i), v2 = v_load(b2 + i), v3 = v_load(b3 + i);
        UNROLL_FOR (int r = 0; r < m; r++) {
            const vf x = v_load(a + r * lda + i);
            acc[r][0] += x * v0;
            acc[r][1] += x * v1;
            acc[r][2] += x * v2;
            acc[r][3] += x * v3;
        }
    }
    if (i < k) {
        const int n = (int)(k - i);
        const vf v0 = v_load_tail(b0 + i, n, 0.0f), v1 = v_load_tail(b1 + i, n, 0.0f);
        const vf v2 = v_load_tail(b2 + i, n, 0.0f), v3 = v_load_tail(b3 + i, n, 0.0f);
        UNROLL_FOR (int r = 0; r < m; r++) {
            const vf x = v_load_tail(a + r * lda + i, n, 0.0f);
            acc[r][0] += x * v0;
            acc[r][1] += x * v1;
            acc[r][2] += x * v2;
            acc[r][3] += x * v3;
        }
    }
    UNROLL_FOR (int r = 0; r < m; r++) {
        float sums[4];
        fold4(acc[r][0], acc[r][1], acc[r][2], acc[r][3], sums);
        for (int j = 0; j < columns; j++)
            c[r * ldc + j] = add ? c[r * ldc + j] + sums[j] : sums[j];
    }
}

#define DOT_TILE(m)                                                                                                    \
    NOINLINE void dot_tile_##m(int64_t k, const float *a, int64_t lda, const float *const b[4], bool add, float *c,    \
                               int64_t ldc, int columns)                                                               \
    {                                                                                                                  \
        dot_tile(m, k, a, lda, b, add, c, ldc, columns);                                                               \
    }

/* Vector v of nv. The last one has `last` elements unless `whole` is set. */
#define LOAD(p, v)                                                                                                     \
    (whole || (v) < nv - 1 ? v_load((p) + (v)*BLAS_LANES) : v_load_tail((p) + (v)*BLAS_LANES, last, 0.0f))

/* m rows of C, nv vectors wide, over k rows of B. */
INLINE void row_tile(const int m, const int nv, const bool whole, int64_t k, const float *a, int64_t a_row, int64_t a_k,
                     const float *b, int64_t ldb, bool add, float *c, int64_t ldc, int last)
{
    vf acc[ROWS][4];
    UNROLL_FOR (int r = 0; r < m; r++) {
        UNROLL_FOR (int v = 0; v < nv; v++)
            acc[r][v] = add ? LOAD(c + r * ldc, v) : (vf){0};
    }
    for (int64_t i = 0; i < k; i++) {
        vf w[4];
        UNROLL_FOR (int v = 0; v < nv; v++)
            w[v] = LOAD(b + i * ldb, v);
        UNROLL_FOR (int r = 0; r < m; r++) {
            const vf x = v_set(a[r * a_row + i * a_k]);
            UNROLL_FOR (int v = 0; v < nv; v++)
                acc[r][v] += x * w[v];
        }
    }
    UNROLL_FOR (int r = 0; r < m; r++) {
        UNROLL_FOR (int v = 0; v < nv; v++) {
            if (whole || v < nv - 1)
                v_store(c + r * ldc + v * BLAS_LANES, acc[r][v]);
            else
                v_store_tail(c + r * ldc + v * BLAS_LANES, last, acc[r][v]);
        }
    }
}

/* With AVX-512, masked loads cost nothing, so that a panel may have any width up to four vectors. Otherwise a panel
 * is four whole vectors, one whole vector, or part of one. */
static int panel_width(int64_t left)
{
    if (left >= 4 * BLAS_LANES)
        return 4 * BLAS_LANES;
    return BLAS_LANES < 16 && left >= BLAS_LANES ? BLAS_LANES : (int)left;
}

/* m rows of C, `width` columns wide. */
INLINE void row_panel(const int m, int width, int64_t k, const float *a, int64_t a_row, int64_t a_k, const float *b,
                      int64_t ldb, bool add, float *c, int64_t ldc)
{
    if (width == 4 * BLAS_LANES)
        row_tile(m, 4, true, k, a, a_row, a_k, b, ldb, add, c, ldc, 0);
#if BLAS_LANES == 16
    else if (width > 48)
        row_tile(m, 4, false, k, a, a_row, a_k, b, ldb, add, c, ldc, width - 48);
    else if (width > 32)
        row_tile(m, 3, false, k, a, a_row, a_k, b, ldb, add, c, ldc, width - 32);
    else if (width > 16)
        row_tile(m, 2, false, k, a, a_row, a_k, b, ldb, add, c, ldc, width - 16);
#else
    else if (width == BLAS_LANES)
        row_tile(m, 1, true, k, a, a_row, a_k, b, ldb, add, c, ldc, 0);
#endif
    else
        row_tile(m, 1, false, k, a, a_row, a_k, b, ldb, add, c, ldc, width);
}

#define ROW_TILE(m)                                                                                                    \
    NOINLINE void row_tile_##m(int width, int64_t k, const float *a, int64_t a_row, int64_t a_k, const float *b,       \
                               int64_t ldb, bool add, float *c, int64_t ldc)                                           \
    {                                                                                                                  \
        row_panel(m, width, k, a, a_row, a_k, b, ldb, add, c, ldc);                                                    \
    }

DOT_TILE(1)
DOT_TILE(2)
ROW_TILE(1)
ROW_TILE(2)
#if BLAS_LANES == 16
DOT_TILE(3)
DOT_TILE(4)
DOT_TILE(5)
DOT_TILE(6)
ROW_TILE(3)
ROW_TILE(4)
ROW_TILE(5)
ROW_TILE(6)
#define EACH_TILE(name) name##_1, name##_2, name##_3, name##_4, name##_5, name##_6
#else
#define EACH_TILE(name) name##_1, name##_2
#endif

typedef void dot_tile_fn(int64_t k, const float *a, int64_t lda, const float *const b[4], bool add, float *c,
                         int64_t ldc, int columns);
typedef void row_tile_fn(int width, int64_t k, const float *a, int64_t a_row, int64_t a_k, const float *b, int64_t ldb,
                         bool add, float *c, int64_t ldc);

static dot_tile_fn *const dot_tiles[ROWS] = {EACH_TILE(dot_tile)};
static row_tile_fn *const row_tiles[ROWS] = {EACH_TILE(row_tile)};

/* The rows of the next tile. Rows are shared evenly, so that the last tile is not nearly empty. */
static int64_t tile_rows(int64_t left)
{
    const int64_t tiles = (left + ROWS - 1) / ROWS;
    return (left + tiles - 1) / tiles;
}

void BLAS_NAME(product_dots)(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,
                             bool add, float *c, int64_t ldc)
{
    for (int64_t k0 = 0; k0 < k; k0 += DOT_SLICE, add = true) {
        const int64_t depth = k - k0 < DOT_SLICE ? k - k0 : DOT_SLICE;
        for (int64_t j = 0; j < n; j += 4) {
            const int columns = n - j < 4 ? (int)(n - j) : 4;
            const float *rows[4];
            for (int i = 0; i < 4; i++)
                rows[i] = b + (j + (i < columns ? i : columns - 1)) * ldb + k0;
            for (int64_t r = 0, count; r < m; r += count) {
                count = tile_rows(m - r);
                dot_tiles[count - 1](depth, a + r * lda + k0, lda, rows, add, c + r * ldc + j, ldc, columns);
            }
        }
    }
}

void BLAS_NAME(product_rows)(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_k,
                             const float *b, int64_t ldb, bool add, float *c, int64_t ldc)
{
    while (k > ROW_SLICE && m > ROW_BLOCK + ROW_BLOCK / 2) {
        BLAS_NAME(product_rows)(ROW_BLOCK, n, k, a, a_row, a_k, b, ldb, add, c, ldc);
        a += ROW_BLOCK * a_row;
        c += ROW_BLOCK * ldc;
        m -= ROW_BLOCK;
    }
    for (int64_t k0 = 0; k0 < k; k0 += ROW_SLICE, add = true) {
        const int64_t depth = k - k0 < ROW_SLICE ? k - k0 : ROW_SLICE;
        for (int64_t j = 0; j < n;) {
            const int width = panel_width(n - j);
            for (int64_t r = 0, count; r < m; r += count) {
                count = tile_rows(m - r);
                row_tiles[count - 1](width, depth, a + r * a_row + k0 * a_k, a_row, a_k, b + k0 * ldb + j, ldb, add,
                                     c + r * ldc + j, ldc);
            }
            j += width;
        }
    }
}
