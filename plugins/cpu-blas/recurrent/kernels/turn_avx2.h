/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost loop of register tiles for AVX2, in assembly. Twelve sums and their factors fill the 16 registers. With
 * intrinsics, compilers keep some of them in memory, except in very small functions.
 *
 * A tile has m rows and nv vectors. If it has more vectors than rows, the elements of A of all rows stay in
 * registers and the vectors of B are loaded one by one; otherwise the vectors of B stay. This needs the fewest loads
 * for each multiply-add. */
#ifndef BLAS_RECURRENT_TURN_AVX2_H
#define BLAS_RECURRENT_TURN_AVX2_H

#include "cpu-blas/isa/simd_avx2.h"

/* Addresses of row i < 6 of an operand whose rows are %[xs] bytes apart. */
#define TURN_ROW_0(x) "(%[" #x "])"
#define TURN_ROW_1(x) "(%[" #x "],%[" #x "s])"
#define TURN_ROW_2(x) "(%[" #x "],%[" #x "s],2)"
#define TURN_ROW_3(x) "(%[" #x "3])"
#define TURN_ROW_4(x) "(%[" #x "3],%[" #x "s])"
#define TURN_ROW_5(x) "(%[" #x "3],%[" #x "s],2)"

/* Element (r, k) of A: in row r (along) or in row k (across). */
#define TURN_A_along(r, k)  "4*" #k TURN_ROW_##r(a)
#define TURN_A_across(r, k) "4*" #r TURN_ROW_##k(a)

#define TURN_GET_A(way, r, k, to) "vbroadcastss " TURN_A_##way(r, k) ", %%ymm" #to "\n\t"
#define TURN_GET_B(k, v, to)      "vmovups 32*" #v TURN_ROW_##k(b) ", %%ymm" #to "\n\t"
#define TURN_ADD(r, v, x, y)      "vfmadd231ps %%ymm" #x ", %%ymm" #y ", %[c" #r #v "]\n\t"
#define TURN_ADD_B(r, v, k, y)    "vfmadd231ps 32*" #v TURN_ROW_##k(b) ", %%ymm" #y ", %[c" #r #v "]\n\t"

/* One k of a tile, row by row: nv vectors of B in ymm12 and up, the element of A in `to`. */
#define TURN_ROW_BY_1(way, r, k, to) TURN_GET_A(way, r, k, to) TURN_ADD(r, 0, 12, to)
#define TURN_ROW_BY_2(way, r, k, to) TURN_ROW_BY_1(way, r, k, to) TURN_ADD(r, 1, 13, to)
#define TURN_ROW_BY_3(way, r, k, to) TURN_ROW_BY_2(way, r, k, to) TURN_ADD(r, 2, 14, to)
#define TURN_K_2_2(way, k)                                                                                             \
    TURN_GET_B(k, 0, 12) TURN_GET_B(k, 1, 13) TURN_ROW_BY_2(way, 0, k, 14) TURN_ROW_BY_2(way, 1, k, 15)
#define TURN_K_3_2(way, k) TURN_K_2_2(way, k) TURN_ROW_BY_2(way, 2, k, 14)
#define TURN_K_4_2(way, k) TURN_K_3_2(way, k) TURN_ROW_BY_2(way, 3, k, 15)
#define TURN_K_5_2(way, k) TURN_K_4_2(way, k) TURN_ROW_BY_2(way, 4, k, 14)
#define TURN_K_6_2(way, k) TURN_K_5_2(way, k) TURN_ROW_BY_2(way, 5, k, 15)
#define TURN_K_4_3(way, k)                                                                                             \
    TURN_GET_B(k, 0, 12)                                                                                               \
    TURN_GET_B(k, 1, 13)                                                                                               \
    TURN_GET_B(k, 2, 14)                                                                                               \
    TURN_ROW_BY_3(way, 0, k, 15) TURN_ROW_BY_3(way, 1, k, 15) TURN_ROW_BY_3(way, 2, k, 15) TURN_ROW_BY_3(way, 3, k, 15)
/* Column by column: m elements of A in ymm12 and up, the vector of B in ymm15. */
#define TURN_COLUMN_2(k, v) TURN_GET_B(k, v, 15) TURN_ADD(0, v, 15, 12) TURN_ADD(1, v, 15, 13)
#define TURN_COLUMN_3(k, v) TURN_COLUMN_2(k, v) TURN_ADD(2, v, 15, 14)
#define TURN_K_2_4(way, k)                                                                                             \
    TURN_GET_A(way, 0, k, 12)                                                                                          \
    TURN_GET_A(way, 1, k, 13) TURN_COLUMN_2(k, 0) TURN_COLUMN_2(k, 1) TURN_COLUMN_2(k, 2) TURN_COLUMN_2(k, 3)
#define TURN_K_3_4(way, k)                                                                                             \
    TURN_GET_A(way, 0, k, 12)                                                                                          \
    TURN_GET_A(way, 1, k, 13)                                                                                          \
    TURN_GET_A(way, 2, k, 14) TURN_COLUMN_3(k, 0) TURN_COLUMN_3(k, 1) TURN_COLUMN_3(k, 2) TURN_COLUMN_3(k, 3)
/* One row: B is read from memory. */
#define TURN_K_1_2(way, k) TURN_GET_A(way, 0, k, 12) TURN_ADD_B(0, 0, k, 12) TURN_ADD_B(0, 1, k, 12)
#define TURN_K_1_4(way, k) TURN_K_1_2(way, k) TURN_ADD_B(0, 2, k, 12) TURN_ADD_B(0, 3, k, 12)
#define TURN_K_1_8(way, k)                                                                                             \
    TURN_K_1_4(way, k) TURN_ADD_B(0, 4, k, 12) TURN_ADD_B(0, 5, k, 12) TURN_ADD_B(0, 6, k, 12) TURN_ADD_B(0, 7, k, 12)

#define TURN_SUM(r, v) [c##r##v] "+x"(acc[r][v])
#define TURN_SUMS_1_2  TURN_SUM(0, 0), TURN_SUM(0, 1)
#define TURN_SUMS_1_4  TURN_SUMS_1_2, TURN_SUM(0, 2), TURN_SUM(0, 3)
#define TURN_SUMS_1_8  TURN_SUMS_1_4, TURN_SUM(0, 4), TURN_SUM(0, 5), TURN_SUM(0, 6), TURN_SUM(0, 7)
#define TURN_SUMS_2_2  TURN_SUMS_1_2, TURN_SUM(1, 0), TURN_SUM(1, 1)
#define TURN_SUMS_2_4  TURN_SUMS_1_4, TURN_SUM(1, 0), TURN_SUM(1, 1), TURN_SUM(1, 2), TURN_SUM(1, 3)
#define TURN_SUMS_3_2  TURN_SUMS_2_2, TURN_SUM(2, 0), TURN_SUM(2, 1)
#define TURN_SUMS_3_4  TURN_SUMS_2_4, TURN_SUM(2, 0), TURN_SUM(2, 1), TURN_SUM(2, 2), TURN_SUM(2, 3)
#define TURN_SUMS_4_2  TURN_SUMS_3_2, TURN_SUM(3, 0), TURN_SUM(3, 1)
#define TURN_SUMS_4_3  TURN_SUMS_4_2, TURN_SUM(0, 2), TURN_SUM(1, 2), TURN_SUM(2, 2), TURN_SUM(3, 2)
#define TURN_SUMS_5_2  TURN_SUMS_4_2, TURN_SUM(4, 0), TURN_SUM(4, 1)
#define TURN_SUMS_6_2  TURN_SUMS_5_2, TURN_SUM(5, 0), TURN_SUM(5, 1)

#define TURN(m, nv, way)                                                                                               \
    __asm__ volatile(TURN_K_##m##_##nv(way, 0) TURN_K_##m##_##nv(way, 1) TURN_K_##m##_##nv(way, 2)                     \
                         TURN_K_##m##_##nv(way, 3)                                                                     \
                     : TURN_SUMS_##m##_##nv                                                                            \
                     : [a] "r"(a), [a3] "r"(a + 3 * a_row), [as] "r"(a_row * 4), [b] "r"(b), [b3] "r"(b + 3 * b_row),  \
                       [bs] "r"(b_row * 4)                                                                             \
                     : "xmm12", "xmm13", "xmm14", "xmm15", "memory")
#define TURN_CASE(m, nv)                                                                                               \
    case 8 * m + nv:                                                                                                   \
        if (across)                                                                                                    \
            TURN(m, nv, across);                                                                                       \
        else                                                                                                           \
            TURN(m, nv, along);                                                                                        \
        break;

/* acc[r][v] += sum over four k of element (r, k) of A times vector v of row k of B. The element is at a[r a_row + k]
 * or, with `across`, at a[k a_row + r]. */
static inline __attribute__((always_inline)) void turn_add(const int m, const int nv, const bool across, const float *a,
                                                           int64_t a_row, const float *b, int64_t b_row,
                                                           vf (*acc)[NN_VECTORS])
{
    switch (8 * m + nv) {
        TURN_CASE(1, 2)
        TURN_CASE(1, 4)
        TURN_CASE(1, 8)
        TURN_CASE(2, 2)
        TURN_CASE(2, 4)
        TURN_CASE(3, 2)
        TURN_CASE(3, 4)
        TURN_CASE(4, 2)
        TURN_CASE(4, 3)
        TURN_CASE(5, 2)
        TURN_CASE(6, 2)
    }
}

#endif
