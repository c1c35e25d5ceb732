/* SPDX-License-Identifier: Apache-2.0 */
/* Copies rows between the batch and its slices, and converts between float32 and bfloat16 or 8-bit integers
 * (rounding to nearest, ties to even). */
#include <string.h>

#include "cpu-onednn/recurrent/recurrent.h"

const struct odn_elem odn_float32 = {.type = dnnl_f32, .bytes = 4};

static uint16_t to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)((bits >> 16) | 0x40u);
    return (uint16_t)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

static float from_bfloat16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 8-bit integers are converted in groups of a constant length, so that the compiler vectorises the loop even at -O2. */
enum { GROUP = 32 };

/* Rounds to nearest, ties to even: above 3 x 2^22 a float32 has no bits left for fractions, and its lowest byte is
 * the result. NaN becomes 0, since an integer cannot represent it. */
static inline uint8_t to_byte(float scale, float shift, float value)
{
    float v = scale * value + shift;
    v = v > 0.0f ? v : 0.0f;
    v = (v < 255.0f ? v : 255.0f) + 12582912.0f;
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (uint8_t)bits;
}

static void to_bytes(const struct odn_elem *elem, int64_t count, const float *restrict from, uint8_t *restrict out)
{
    const float scale = elem->scale, shift = elem->shift;
    int64_t i = 0;
    for (; i + GROUP <= count; i += GROUP)
        for (int k = 0; k < GROUP; k++)
            out[i + k] = to_byte(scale, shift, from[i + k]);
    for (; i < count; i++)
        out[i] = to_byte(scale, shift, from[i]);
}

static void from_bytes(const struct odn_elem *elem, int64_t count, const uint8_t *restrict from, float *restrict out)
{
    const float unit = 1.0f / elem->scale, shift = elem->shift;
    int64_t i = 0;
    for (; i + GROUP <= count; i += GROUP)
        for (int k = 0; k < GROUP; k++)
            out[i + k] = ((float)from[i + k] - shift) * unit;
    for (; i < count; i++)
        out[i] = ((float)from[i] - shift) * unit;
}

void odn_convert_in(const struct odn_elem *elem, int64_t count, const float *from, void *out)
{
    if (elem->type == dnnl_f32) {
        memcpy(out, from, (size_t)count * sizeof *from);
        return;
    }
    if (elem->type == dnnl_u8) {
        to_bytes(elem, count, from, out);
        return;
    }
    uint16_t *to = out;
    for (int64_t i = 0; i < count; i++)
        to[i] = to_bfloat16(from[i]);
}

void odn_convert_out(const struct odn_elem *elem, int64_t count, const void *from, float *out)
{
    if (elem->type == dnnl_f32) {
        memcpy(out, from, (size_t)count * sizeof *out);
        return;
    }
    if (elem->type == dnnl_u8) {
        from_bytes(elem, count, from, out);
        return;
    }
    const uint16_t *in = from;
    for (int64_t i = 0; i < count; i++)
        out[i] = from_bfloat16(in[i]);
}

void odn_add(dnnl_data_type_t type, int64_t count, float scale, const void *a, const void *b, void *out)
{
    if (type == dnnl_f32) {
        const float *x = a, *y = b;
        float *to = out;
        for (int64_t i = 0; i < count; i++)
            to[i] = scale * (x[i] + y[i]);
        return;
    }
    const uint16_t *x = a, *y = b;
    uint16_t *to = out;
    for (int64_t i = 0; i < count; i++)
        to[i] = to_bfloat16(scale * (from_bfloat16(x[i]) + from_bfloat16(y[i])));
}

/* The rows of slice m at a step are M apart in the batch, starting with row m. */
struct walk {
    const struct odn_recurrent_binding *b;
    int32_t m;
    int64_t t, j, row; /* `row`: within the segment of the batch */
};

static bool next_row(struct walk *w)
{
    const struct odn_recurrent_binding *b = w->b;
    w->j += b->slices_count;
    if (w->j >= b->axis->batch_sizes[w->t]) {
        w->t++;
        w->j = w->m;
        if (w->t >= b->t1 || w->j >= b->axis->batch_sizes[w->t])
            return false;
    }
    w->row = b->axis->row_offsets[w->t] - b->axis->row_offsets[b->t0] + w->j;
    return true;
}

static struct walk begin_rows(const struct odn_recurrent_binding *b, int32_t m)
{
    return (struct walk){b, m, b->t0, (int64_t)m - b->slices_count, 0};
}

void odn_rows_in(const struct odn_recurrent_binding *b, int32_t m, int64_t width, const float *rows,
                 const struct odn_elem *elem, void *out_slice)
{
    const uint64_t bytes = (uint64_t)width * elem->bytes;
    if (b->slices_count == 1) {
        odn_convert_in(elem, b->rows * width, rows, out_slice);
        return;
    }
    struct walk w = begin_rows(b, m);
    for (uint64_t offset = 0; next_row(&w); offset += bytes)
        odn_convert_in(elem, width, rows + w.row * width, odn_at(out_slice, offset));
}

void odn_rows_out(const struct odn_recurrent_binding *b, int32_t m, int64_t width, const struct odn_elem *elem,
                  const void *slice, float *out_rows)
{
    const uint64_t bytes = (uint64_t)width * elem->bytes;
    if (b->slices_count == 1) {
        odn_convert_out(elem, b->rows * width, slice, out_rows);
        return;
    }
    struct walk w = begin_rows(b, m);
    for (uint64_t offset = 0; next_row(&w); offset += bytes)
        odn_convert_out(elem, width, odn_at(slice, offset), out_rows + w.row * width);
}
