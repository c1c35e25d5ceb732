/* SPDX-License-Identifier: Apache-2.0 */
/* A blocked matrix product. It copies 16 columns of op(B) at a time into a panel, and then sums tiles of 4 x 16
 * elements of C in registers.
 *
 *        16 columns
 *      +-----------+    the panel [depth, 16] is on the stack and at most 256 deep, so it stays in the L1 cache;
 *   4  |  tile     |    it is used for all rows of C
 *      +-----------+
 *
 * The members of the queue divide the columns of C among them, so the order of every sum is fixed.
 */
#include "gemm.h"

#include <string.h>

enum { TILE_ROWS = 4, TILE_COLUMNS = 16, DEPTH = 256 };

/* Compiled once for each of these instruction sets; the dynamic linker chooses one. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Copies columns [j, j + columns) of op(B), rows [p, p + depth), and fills the panel with zeros. */
static void copy_panel(const struct seqlstm_prim_gemm *g, int64_t p, int64_t depth, int64_t j, int64_t columns,
                       float panel[DEPTH][TILE_COLUMNS])
{
    for (int64_t q = 0; q < depth; q++)
        for (int64_t k = 0; k < TILE_COLUMNS; k++)
            panel[q][k] = k >= columns     ? 0
                          : g->transpose_b ? g->b[(j + k) * g->ldb + p + q]
                                           : g->b[(p + q) * g->ldb + j + k];
}

/* sums [rows, 16] = rows [i, i + rows) and columns [p, p + depth) of op(A), times the panel. */
FOR_EACH_PROCESSOR
static void sum_tile(const struct seqlstm_prim_gemm *g, int64_t i, int64_t rows, int64_t p, int64_t depth,
                     float panel[DEPTH][TILE_COLUMNS], float sums[TILE_ROWS][TILE_COLUMNS])
{
    const int64_t step = g->transpose_a ? g->lda : 1; /* from one element of a row of op(A) to the next */
    const float *a[TILE_ROWS];
    float s0[TILE_COLUMNS] = {0}, s1[TILE_COLUMNS] = {0}, s2[TILE_COLUMNS] = {0}, s3[TILE_COLUMNS] = {0};
    for (int64_t r = 0; r < TILE_ROWS; r++) { /* missing rows repeat the last one; they are not stored */
        const int64_t row = i + (r < rows ? r : rows - 1);
        a[r] = g->transpose_a ? g->a + p * g->lda + row : g->a + row * g->lda + p;
    }
    for (int64_t q = 0; q < depth; q++) {
        const float x0 = a[0][q * step], x1 = a[1][q * step], x2 = a[2][q * step], x3 = a[3][q * step];
        const float *b = panel[q];
        for (int64_t k = 0; k < TILE_COLUMNS; k++) {
            s0[k] += x0 * b[k];
            s1[k] += x1 * b[k];
            s2[k] += x2 * b[k];
            s3[k] += x3 * b[k];
        }
    }
    memcpy(sums[0], s0, sizeof s0);
    memcpy(sums[1], s1, sizeof s1);
    memcpy(sums[2], s2, sizeof s2);
    memcpy(sums[3], s3, sizeof s3);
}

/* Computes blocks [begin, end) of 16 columns of C. */
static void run_blocks(void *argument, int64_t begin, int64_t end)
{
    const struct seqlstm_prim_gemm *g = argument;
    float panel[DEPTH][TILE_COLUMNS], sums[TILE_ROWS][TILE_COLUMNS];
    for (int64_t block = begin; block < end; block++) {
        const int64_t j = block * TILE_COLUMNS, columns = smaller(TILE_COLUMNS, g->n - j);
        for (int64_t p = 0; p < g->k; p += DEPTH) {
            const int64_t depth = smaller(DEPTH, g->k - p);
            const int32_t add = g->accumulate || p > 0;
            copy_panel(g, p, depth, j, columns, panel);
            for (int64_t i = 0; i < g->m; i += TILE_ROWS) {
                const int64_t rows = smaller(TILE_ROWS, g->m - i);
                sum_tile(g, i, rows, p, depth, panel, sums);
                for (int64_t r = 0; r < rows; r++) {
                    float *c = g->c + (i + r) * g->ldc + j;
                    for (int64_t k = 0; k < columns; k++)
                        c[k] = (add ? c[k] : 0) + sums[r][k];
                }
            }
        }
    }
}

void gemm_run(struct seqlstm_queue *queue, const struct seqlstm_prim_gemm *gemm)
{
    const int64_t blocks = (gemm->n + TILE_COLUMNS - 1) / TILE_COLUMNS;
    queue->services->parallel_for(queue, blocks, 1, run_blocks, (void *)gemm);
}
