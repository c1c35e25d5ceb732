/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence of register tiles for AVX2, in one block of assembly: the sums of a tile are stored while those of the
 * next tile begin.
 *
 * Twelve consecutive stores delay the multiply-adds after them by about 25 cycles (Zen 3), as long as four k of a 6
 * by 16 tile take. So the first two k of the next tile are interleaved with the stores, row by row: the sums of a
 * row are stored, then restarted. Compilers do not keep twelve sums in registers from tile to tile. */
#ifndef BLAS_RECURRENT_WALK_AVX2_H
#define BLAS_RECURRENT_WALK_AVX2_H

#include <stddef.h>

#include "cpu-blas/recurrent/kernels/turn_avx2.h"

/* Walks down the tiles of a column, then the next column. Steps are in bytes. All counts except `rest` are at least
 * one. All members have eight bytes, as WALK expects. */
struct turn_walk {
    const float *a, *b;       /* of the current tile */
    int64_t a_row, b_row;     /* from one row to the next */
    int64_t a_tile, b_column; /* to the tile below; to the next column */
    int64_t turns, blocks;    /* number of blocks, and of iterations of four k in each */
    int64_t a_skip, b_skip;   /* from the end of one block to the next */
    int64_t rest;             /* across: the k after the last whole iteration */
    int64_t tiles, columns;   /* tiles in each column; columns */
    const void *c;            /* along: the first row of C; across: a table of where rows begin */
    int64_t c_tile;           /* to the tile below */
    int64_t c_row;            /* along: from one row to the next; across: from where a row begins to the column */
    const float *init;        /* along: the initial sums of this column */
    int64_t column;           /* to the next column of init and of C (across: of c_row) */
    const float *top;         /* set by the walk: A of the uppermost tile */
    int64_t left,
        c_column; /* set by the walk: tiles left in the column; from c of its last tile to the next column's first */
};
/* One instruction, or a row of them, on each line. */
/* clang-format off */
#define WALK(member) "8*" WALK_##member "(%[w])"
#define WALK_a        "0"
#define WALK_b        "1"
#define WALK_a_tile   "4"
#define WALK_b_column "5"
#define WALK_turns    "6"
#define WALK_blocks   "7"
#define WALK_a_skip   "8"
#define WALK_b_skip   "9"
#define WALK_rest     "10"
#define WALK_tiles    "11"
#define WALK_columns  "12"
#define WALK_c_tile   "14"
#define WALK_c_row    "15"
#define WALK_init     "16"
#define WALK_column   "17"
#define WALK_top      "18"
#define WALK_left     "19"
#define WALK_c_column "20"
_Static_assert(offsetof(struct turn_walk, a_tile) == 8 * 4 && offsetof(struct turn_walk, turns) == 8 * 6 &&
                   offsetof(struct turn_walk, a_skip) == 8 * 8 && offsetof(struct turn_walk, rest) == 8 * 10 &&
                   offsetof(struct turn_walk, columns) == 8 * 12 && offsetof(struct turn_walk, c_tile) == 8 * 14 &&
                   offsetof(struct turn_walk, init) == 8 * 16 && offsetof(struct turn_walk, c_column) == 8 * 20,
               "WALK says where members are");

/* WALK_TO_… is the address of row r of C; WALK_FIND_… must come first. */
#define WALK_FIND_along(r)  ""
#define WALK_FIND_across(r) "movq 8*" #r "(%[c]), %[to]\n\t"
#define WALK_TO_along(r)    TURN_ROW_##r(c)
#define WALK_TO_across(r)   "(%[to],%[cs])"

/* How a sum is stored (PUT, ADD), and how the next one begins (ZERO, INIT) with ymm15 times b. */
#define WALK_PUT(way, r, v) "vmovups %[c" #r #v "], 32*" #v WALK_TO_##way(r) "\n\t"
#define WALK_ADD(way, r, v)                                                                                            \
    "vaddps 32*" #v WALK_TO_##way(r) ", %[c" #r #v "], %[c" #r #v "]\n\t" WALK_PUT(way, r, v)
#define WALK_ZERO(r, v, b) "vmulps " b ", %%ymm15, %[c" #r #v "]\n\t"
#define WALK_INIT(r, v, b) "vmovups 32*" #v "(%[to]), %[c" #r #v "]\n\tvfmadd231ps " b ", %%ymm15, %[c" #r #v "]\n\t"

/* Stores the sums of a row and begins the next ones with two k. B of the first k is in registers, except for a
 * fourth vector; so is one vector of the second k where there is room. */
#define WALK_B_2 TURN_GET_B(0, 0, 12) TURN_GET_B(0, 1, 13) TURN_GET_B(1, 0, 14)
#define WALK_B_3 TURN_GET_B(0, 0, 12) TURN_GET_B(0, 1, 13) TURN_GET_B(0, 2, 14)
#define WALK_B_4 WALK_B_3
#define WALK_ROW_2(end, begin, way, r)                                                                                 \
    WALK_FIND_##way(r) end(way, r, 0) end(way, r, 1) TURN_GET_A(way, r, 0, 15) begin(r, 0, "%%ymm12")                  \
        begin(r, 1, "%%ymm13") TURN_GET_A(way, r, 1, 15) TURN_ADD(r, 0, 14, 15) TURN_ADD_B(r, 1, 1, 15)
#define WALK_ROW_3(end, begin, way, r)                                                                                 \
    WALK_FIND_##way(r) end(way, r, 0) end(way, r, 1) end(way, r, 2) TURN_GET_A(way, r, 0, 15) begin(r, 0, "%%ymm12")   \
        begin(r, 1, "%%ymm13") begin(r, 2, "%%ymm14") TURN_GET_A(way, r, 1, 15) TURN_ADD_B(r, 0, 1, 15)                \
            TURN_ADD_B(r, 1, 1, 15) TURN_ADD_B(r, 2, 1, 15)
#define WALK_ROW_4(end, begin, way, r)                                                                                 \
    WALK_FIND_##way(r) end(way, r, 0) end(way, r, 1) end(way, r, 2) end(way, r, 3) TURN_GET_A(way, r, 0, 15)           \
        begin(r, 0, "%%ymm12") begin(r, 1, "%%ymm13") begin(r, 2, "%%ymm14") begin(r, 3, "32*3" TURN_ROW_0(b))         \
            TURN_GET_A(way, r, 1, 15) TURN_ADD_B(r, 0, 1, 15) TURN_ADD_B(r, 1, 1, 15) TURN_ADD_B(r, 2, 1, 15)          \
                TURN_ADD_B(r, 3, 1, 15)

/* Applies a macro to each row, or to each vector of a row. */
#define WALK_3(row, x, y, z)  row(x, y, z, 0) row(x, y, z, 1) row(x, y, z, 2)
#define WALK_4(row, x, y, z)  WALK_3(row, x, y, z) row(x, y, z, 3)
#define WALK_5(row, x, y, z)  WALK_4(row, x, y, z) row(x, y, z, 4)
#define WALK_6(row, x, y, z)  WALK_5(row, x, y, z) row(x, y, z, 5)
#define WALK_EACH_2(x, y, r)  x(y, r, 0) x(y, r, 1)
#define WALK_EACH_3(x, y, r)  WALK_EACH_2(x, y, r) x(y, r, 2)
#define WALK_EACH_4(x, y, r)  WALK_EACH_3(x, y, r) x(y, r, 3)

/* Sets the sums of a row before the first multiplication (CLEAR, LOAD), stores them at the end (END), and prefetches
 * its lines of C, which are written soon (FETCH). */
#define WALK_CLEAR(way, r, v)         "vxorps %[c" #r #v "], %[c" #r #v "], %[c" #r #v "]\n\t"
#define WALK_LOAD(way, r, v)          "vmovups 32*" #v "(%[to]), %[c" #r #v "]\n\t"
#define WALK_START(start, way, nv, r) WALK_EACH_##nv(start, way, r)
#define WALK_END(end, way, nv, r)     WALK_FIND_##way(r) WALK_EACH_##nv(end, way, r)
#define WALK_LINES_2(row)             "prefetcht0 " row "\n\t"
#define WALK_LINES_3(row)             WALK_LINES_2(row) "prefetcht0 64" row "\n\t"
#define WALK_LINES_4(row)             WALK_LINES_3(row)
#define WALK_FETCH(way, nv, z, r)     WALK_FIND_##way(r) WALK_LINES_##nv(WALK_TO_##way(r))

/* BELOW: three rows below A and B. BEHIND: moves on to the next iteration. */
#define WALK_BELOW                                                                                                     \
    "leaq (%[as],%[as],2), %[a3]\n\tleaq (%[bs],%[bs],2), %[b3]\n\taddq %[a], %[a3]\n\taddq %[b], %[b3]\n\t"
#define WALK_BEHIND_along  "addq $16, %[a]\n\tleaq (%[b],%[bs],4), %[b]\n\t"
#define WALK_BEHIND_across "leaq (%[a],%[as],4), %[a]\n\tleaq (%[b],%[bs],4), %[b]\n\t"
/* At the end of a block: the next block (along), or the k after the last whole iteration (across). */
#define WALK_MORE_along(k)                                                                                             \
    "decq %[blocks]\n\tjz 3f\n\taddq " WALK(a_skip) ", %[a]\n\taddq " WALK(b_skip) ", %[b]\n\t"                        \
    "movq " WALK(turns) ", %[n]\n\tjmp 1b\n"
#define WALK_MORE_across(k)                                                                                            \
    "movq " WALK(rest) ", %[n]\n\ttestq %[n], %[n]\n\tjz 3f\n"                                                         \
    "9:\n\t" k "addq %[as], %[a]\n\taddq %[bs], %[b]\n\tdecq %[n]\n\tjnz 9b\n"
/* Moves on to A, B and init of the next tile; n becomes the distance to its c. */
#define WALK_NEXT(member)                                                                                              \
    "decq " WALK(left) "\n\tjz 4f\n\t"                                                                                 \
    "movq " WALK(a) ", %[a]\n\taddq " WALK(a_tile) ", %[a]\n\tmovq " WALK(c_tile) ", %[n]\n\tjmp 5f\n"                 \
    "4:\n\tdecq " WALK(columns) "\n\tjz 6f\n\tmovq " WALK(tiles) ", %[n]\n\tmovq %[n], " WALK(left) "\n\t"             \
    "movq " WALK(b_column) ", %[n]\n\taddq %[n], " WALK(b) "\n\tmovq " WALK(column) ", %[n]\n\taddq %[n], "            \
    WALK(member) "\n\tmovq " WALK(top) ", %[a]\n\tmovq " WALK(c_column) ", %[n]\n"                                     \
    "5:\n\tmovq %[a], " WALK(a) "\n\tmovq " WALK(b) ", %[b]\n\tmovq " WALK(init) ", %[to]\n\t"
#define WALK_NEXT_along  WALK_NEXT(init)
#define WALK_NEXT_across WALK_NEXT(c_row)
#define WALK_THERE_along  "addq %[n], %[c]\n\taddq %[n], %[c3]\n\t"
#define WALK_THERE_across "addq %[n], %[c]\n\tmovq " WALK(c_row) ", %[cs]\n\t"

/* The walk. Labels: 1: an iteration; 2: end of a block; 3: end of a tile; 4: the next tile is in the next column, or
 * below; 5: it begins; 6: there is none. Registers: a, b: A and B of the current k; a3, b3: three rows below; c, c3:
 * the tile of C, and three rows below; n: iterations left; blocks: blocks left; to: temporary. */
#define WALK_TILES(m, nv, start, begin, end, way)                                                                      \
    __asm__ volatile("movq " WALK(init) ", %[to]\n\t" WALK_##m(WALK_START, start, way, nv)                             \
                     "leaq (%[cs],%[cs],2), %[c3]\n\taddq %[c], %[c3]\n\t" WALK_##m(WALK_FETCH, way, nv, )             \
                     "movq " WALK(blocks) ", %[blocks]\n\tmovq " WALK(turns) ", %[n]\n\t"                              \
                     ".p2align 5\n1:\n\t" WALK_BELOW TURN_K_##m##_##nv(way, 0) TURN_K_##m##_##nv(way, 1)               \
                     TURN_K_##m##_##nv(way, 2) TURN_K_##m##_##nv(way, 3) WALK_BEHIND_##way                             \
                     "decq %[n]\n\tjnz 1b\n2:\n\t" WALK_MORE_##way(TURN_K_##m##_##nv(way, 0))                          \
                     "3:\n\t" WALK_NEXT_##way WALK_BELOW WALK_B_##nv WALK_##m(WALK_ROW_##nv, end, begin, way)          \
                     WALK_THERE_##way TURN_K_##m##_##nv(way, 2) TURN_K_##m##_##nv(way, 3)                              \
                     WALK_##m(WALK_FETCH, way, nv, ) WALK_BEHIND_##way "movq " WALK(blocks) ", %[blocks]\n\t"          \
                     "movq " WALK(turns) ", %[n]\n\tdecq %[n]\n\tjnz 1b\n\tjmp 2b\n"                                   \
                     "6:\n\t" WALK_##m(WALK_END, end, way, nv)                                                         \
                     : WALK_SUMS_##m##_##nv, [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c), [cs] "+&r"(cs), [a3] "=&r"(a3), \
                       [b3] "=&r"(b3), [c3] "=&r"(c3), [n] "=&r"(n), [blocks] "=&r"(blocks), [to] "=&r"(to)            \
                     : [w] "r"(w), [as] "r"(w->a_row), [bs] "r"(w->b_row)                                              \
                     : "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc")

#define WALK_SUM(r, v) [c##r##v] "=&x"(acc[r][v])
#define WALK_SUMS_3_2  WALK_SUM(0, 0), WALK_SUM(0, 1), WALK_SUM(1, 0), WALK_SUM(1, 1), WALK_SUM(2, 0), WALK_SUM(2, 1)
#define WALK_SUMS_3_4                                                                                                  \
    WALK_SUMS_3_2, WALK_SUM(0, 2), WALK_SUM(0, 3), WALK_SUM(1, 2), WALK_SUM(1, 3), WALK_SUM(2, 2), WALK_SUM(2, 3)
#define WALK_SUMS_4_2 WALK_SUMS_3_2, WALK_SUM(3, 0), WALK_SUM(3, 1)
#define WALK_SUMS_4_3 WALK_SUMS_4_2, WALK_SUM(0, 2), WALK_SUM(1, 2), WALK_SUM(2, 2), WALK_SUM(3, 2)
#define WALK_SUMS_5_2 WALK_SUMS_4_2, WALK_SUM(4, 0), WALK_SUM(4, 1)
#define WALK_SUMS_6_2 WALK_SUMS_5_2, WALK_SUM(5, 0), WALK_SUM(5, 1)

#define WALK_ALONG(m, nv)                                                                                              \
    case 8 * m + nv:                                                                                                   \
        if (add)                                                                                                       \
            WALK_TILES(m, nv, WALK_CLEAR, WALK_ZERO, WALK_ADD, along);                                                 \
        else if (w->init)                                                                                              \
            WALK_TILES(m, nv, WALK_LOAD, WALK_INIT, WALK_PUT, along);                                                  \
        else                                                                                                           \
            WALK_TILES(m, nv, WALK_CLEAR, WALK_ZERO, WALK_PUT, along);                                                 \
        break;
#define WALK_ACROSS(m, nv)                                                                                             \
    case 8 * m + nv:                                                                                                   \
        if (add)                                                                                                       \
            WALK_TILES(m, nv, WALK_CLEAR, WALK_ZERO, WALK_ADD, across);                                                \
        else                                                                                                           \
            WALK_TILES(m, nv, WALK_CLEAR, WALK_ZERO, WALK_PUT, across);                                                \
        break;
#define WALK_KINDS(kind) kind(3, 2) kind(3, 4) kind(4, 2) kind(4, 3) kind(5, 2) kind(6, 2)
/* clang-format on */

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored                                                                                       \
    "-Woverlength-strings" /* the standard limits strings to 4095 characters; compilers accept more */
#endif

/* C = or += the sums of w's tiles of m rows, at least three, and nv vectors. `across`: see turn_add. */
static inline __attribute__((always_inline)) void turn_walk(const int m, const int nv, const bool across, bool add,
                                                            struct turn_walk *w)
{
    const float *a = w->a, *b = w->b, *a3, *b3;
    const void *c = w->c, *c3, *to;
    int64_t cs = w->c_row, n, blocks;
    vf acc[NN_ROWS][NN_VECTORS];
    w->top = w->a;
    w->left = w->tiles;
    w->c_column = (across ? 0 : w->column) - (w->tiles - 1) * w->c_tile;
    if (across) {
        switch (8 * m + nv) {
            WALK_KINDS(WALK_ACROSS)
        }
    } else {
        switch (8 * m + nv) {
            WALK_KINDS(WALK_ALONG)
        }
    }
    (void)a3, (void)b3, (void)c3, (void)to, (void)n, (void)blocks;
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif
