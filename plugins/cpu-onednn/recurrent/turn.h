/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition of matrices, for conversions to and from the library's layouts. */
#ifndef ODN_RECURRENT_TURN_H
#define ODN_RECURRENT_TURN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A line is a cache line. */
enum { ODN_LANES = 4, ODN_LINE = 16 };
typedef float odn_lanes __attribute__((vector_size(ODN_LANES * sizeof(float))));

/* Should this many bytes bypass the caches? They would not fit anyway, and lines that are written whole are not read
 * first. */
static inline bool odn_streams(uint64_t bytes)
{
    return bytes > (uint64_t)4 << 20;
}

static inline odn_lanes odn_lanes_load(const float *from)
{
    odn_lanes value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void odn_lanes_store(float *to, odn_lanes value)
{
    memcpy(to, &value, sizeof value);
}

/* Four rows. They are separate members, and loops over them are written out, because compilers do not otherwise unroll
 * such loops and keep the rows in registers. */
struct odn_square {
    odn_lanes row[ODN_LANES];
};

static inline struct odn_square odn_square_load(const float *from, int64_t pitch)
{
    return (struct odn_square){{odn_lanes_load(from), odn_lanes_load(from + pitch), odn_lanes_load(from + 2 * pitch),
                                odn_lanes_load(from + 3 * pitch)}};
}

static inline void odn_square_store(struct odn_square s, float *to, int64_t pitch)
{
    odn_lanes_store(to, s.row[0]);
    odn_lanes_store(to + pitch, s.row[1]);
    odn_lanes_store(to + 2 * pitch, s.row[2]);
    odn_lanes_store(to + 3 * pitch, s.row[3]);
}

/* Transposes: rows become columns. */
static inline struct odn_square odn_square_turn(struct odn_square s)
{
    const odn_lanes low01 = __builtin_shufflevector(s.row[0], s.row[1], 0, 4, 1, 5);
    const odn_lanes high01 = __builtin_shufflevector(s.row[0], s.row[1], 2, 6, 3, 7);
    const odn_lanes low23 = __builtin_shufflevector(s.row[2], s.row[3], 0, 4, 1, 5);
    const odn_lanes high23 = __builtin_shufflevector(s.row[2], s.row[3], 2, 6, 3, 7);
    return (struct odn_square){
        {__builtin_shufflevector(low01, low23, 0, 1, 4, 5), __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
         __builtin_shufflevector(high01, high23, 0, 1, 4, 5), __builtin_shufflevector(high01, high23, 2, 3, 6, 7)}};
}

/* Copies a row of a matrix. */
void odn_row_copy(const float *from, int64_t count, bool streams, float *to);

/* Turns `count` rows, at most ODN_LINE, into columns: element i of row r goes to out[i * pitch + r]. */
void odn_rows_turn(const float *rows, int64_t row_pitch, int64_t count, int64_t width, bool streams, float *out,
                   int64_t pitch);

/* Makes streamed writes visible to threads that wait for this one. */
void odn_streams_end(void);

#endif
