/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu-onednn/recurrent/turn.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

static inline bool begins_line(const float *at)
{
    return ((uintptr_t)at & (ODN_LINE * sizeof *at - 1)) == 0;
}

/* Aligned to lanes. Four consecutive ones make a line. */
static inline void stream(float *to, odn_lanes value)
{
#ifdef __SSE__
    _mm_stream_ps(to, (__m128)value);
#else
    odn_lanes_store(to, value);
#endif
}

void odn_row_copy(const float *restrict from, int64_t count, bool streams, float *restrict to)
{
    int64_t i = 0;
    if (!streams) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    for (; i < count && !begins_line(to + i); i++)
        to[i] = from[i];
    for (; i + ODN_LINE <= count; i += ODN_LINE)
        for (int v = 0; v < ODN_LINE; v += ODN_LANES)
            stream(to + i + v, odn_lanes_load(from + i + v));
    for (; i < count; i++)
        to[i] = from[i];
}

/* Streams a line; each square holds four of its elements. */
static inline void stream_line(float *to, odn_lanes a, odn_lanes b, odn_lanes c, odn_lanes d)
{
    stream(to, a);
    stream(to + ODN_LANES, b);
    stream(to + 2 * ODN_LANES, c);
    stream(to + 3 * ODN_LANES, d);
}

static inline struct odn_square turned(const float *rows, int64_t pitch)
{
    return odn_square_turn(odn_square_load(rows, pitch));
}

/* Streams four columns of ODN_LINE rows. */
static inline void stream_columns(const float *rows, int64_t row_pitch, float *out, int64_t pitch)
{
    const int64_t next = ODN_LANES * row_pitch;
    const struct odn_square a = turned(rows, row_pitch), b = turned(rows + next, row_pitch);
    const struct odn_square c = turned(rows + 2 * next, row_pitch), d = turned(rows + 3 * next, row_pitch);
    stream_line(out, a.row[0], b.row[0], c.row[0], d.row[0]);
    stream_line(out + pitch, a.row[1], b.row[1], c.row[1], d.row[1]);
    stream_line(out + 2 * pitch, a.row[2], b.row[2], c.row[2], d.row[2]);
    stream_line(out + 3 * pitch, a.row[3], b.row[3], c.row[3], d.row[3]);
}

void odn_rows_turn(const float *rows, int64_t row_pitch, int64_t count, int64_t width, bool streams, float *out,
                   int64_t pitch)
{
    const int64_t whole = width / ODN_LANES * ODN_LANES, squares = count / ODN_LANES * ODN_LANES;
    const bool in_lines = streams && count == ODN_LINE && begins_line(out) && pitch % ODN_LINE == 0;
    for (int64_t i = 0; i < whole; i += ODN_LANES)
        if (in_lines)
            stream_columns(rows + i, row_pitch, out + i * pitch, pitch);
        else
            for (int64_t r = 0; r < squares; r += ODN_LANES)
                odn_square_store(turned(rows + r * row_pitch + i, row_pitch), out + i * pitch + r, pitch);
    for (int64_t r = 0; r < count; r++)
        for (int64_t i = r < squares ? whole : 0; i < width; i++)
            out[i * pitch + r] = rows[r * row_pitch + i];
}

void odn_streams_end(void)
{
#ifdef __SSE__
    _mm_sfence();
#endif
}
