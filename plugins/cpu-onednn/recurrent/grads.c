/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of weights: zeroes them before the library adds to them, and converts them from its layout to ours.
 *
 * The library's layout is [inputs, gates, outputs], ours is [gates, outputs, inputs]. For a line of 16 outputs, the
 * conversion follows the inputs and collects them in a block on the stack, whose rows are rows of ours; these are then
 * written from end to end. Memory bandwidth is best that way. The library's lines are a row apart, so they are
 * prefetched. */
#include "cpu-onednn/recurrent/recurrent.h"
#include "cpu-onednn/recurrent/turn.h"

/* The pitch of the block is not a multiple of 4096 bytes, so that its rows do not evict each other from the cache. */
enum { AHEAD = 16, BLOCK_INPUTS = 1024, PITCH = BLOCK_INPUTS + ODN_LINE };

/* The library adds to the contents. */
void odn_zero_grads(struct odn_run *run, int32_t m, int32_t layer, int64_t begin, int64_t end)
{
    const struct odn_recurrent *r = run->b->r;
    const uint64_t floats = r->kind[odn_kind_of(r, layer)].grad_bytes / sizeof(float);
    const uint64_t from = floats * (uint64_t)begin / ODN_SHARES, to = floats * (uint64_t)end / ODN_SHARES;
    memset(odn_at(run->workspace, run->b->slices[m].grads + from * sizeof(float)), 0,
           (size_t)(to - from) * sizeof(float));
}

/* Some outputs of one gate of a matrix. */
struct turn {
    const struct odn_run *run;
    uint64_t place; /* of the first output of the first input, within a slice's gradients */
    int64_t outputs, inputs, stride;
    float *ours; /* address of the first input of the first output */
    bool accumulate;
    bool streams;
};

static inline const float *theirs(const struct turn *t, int32_t m)
{
    return odn_at(t->run->workspace, t->run->b->slices[m].grads + t->place);
}

/* Adds up four inputs by four outputs at theirs[at] over the slices. */
static inline __attribute__((always_inline)) void turn_square(const struct turn *t, const float *first, int64_t at,
                                                              int32_t slices, float *out)
{
    struct odn_square sum = odn_square_load(first + at, t->stride);
    for (int32_t m = 1; m < slices; m++) {
        const struct odn_square other = odn_square_load(theirs(t, m) + at, t->stride);
        sum.row[0] += other.row[0];
        sum.row[1] += other.row[1];
        sum.row[2] += other.row[2];
        sum.row[3] += other.row[3];
    }
    odn_square_store(odn_square_turn(sum), out, PITCH);
}

static inline float sum_element(const struct turn *t, int64_t at, int32_t slices)
{
    float sum = 0.0f;
    for (int32_t m = 0; m < slices; m++)
        sum += theirs(t, m)[at];
    return sum;
}

/* Writes inputs [i0, i1) into rows of the block; compiled separately for one slice. */
static inline __attribute__((always_inline)) void turn_inputs(const struct turn *t, int32_t slices, int64_t i0,
                                                              int64_t i1, float *block)
{
    const float *first = theirs(t, 0);
    const int64_t whole_o = t->outputs / ODN_LANES * ODN_LANES, whole_i = i0 + (i1 - i0) / ODN_LANES * ODN_LANES;
    for (int64_t i = i0; i < whole_i; i += ODN_LANES) {
        for (int64_t next = i + AHEAD; next < i + AHEAD + ODN_LANES && next < i1; next++)
            __builtin_prefetch(first + next * t->stride);
        for (int64_t o = 0; o < whole_o; o += ODN_LANES)
            turn_square(t, first, i * t->stride + o, slices, block + o * PITCH + i - i0);
    }
    for (int64_t o = 0; o < t->outputs; o++)
        for (int64_t i = o < whole_o ? whole_i : i0; i < i1; i++)
            block[o * PITCH + i - i0] = sum_element(t, i * t->stride + o, slices);
}

static void write_row(const struct turn *t, const float *from, int64_t count, float *restrict to)
{
    if (t->accumulate)
        for (int64_t i = 0; i < count; i++)
            to[i] += from[i];
    else
        odn_row_copy(from, count, t->streams, to);
}

static void turn_outputs(const struct turn *t)
{
    _Alignas(64) float block[ODN_LINE * PITCH];
    const int32_t slices = t->run->b->slices_count;
    for (int64_t i0 = 0, i1; i0 < t->inputs; i0 = i1) {
        i1 = i0 + BLOCK_INPUTS < t->inputs ? i0 + BLOCK_INPUTS : t->inputs;
        if (slices == 1)
            turn_inputs(t, 1, i0, i1, block);
        else
            turn_inputs(t, slices, i0, i1, block);
        for (int64_t o = 0; o < t->outputs; o++)
            write_row(t, block + o * PITCH, i1 - i0, t->ours + o * t->inputs + i0);
    }
}

/* Converts lines [begin, end) of a row of the library's layout, in which all gates are contiguous. A line that two
 * gates share is converted for one after the other. */
static void turn_lines(const struct odn_run *run, const struct odn_kind *kind, int w, float *ours, int64_t begin,
                       int64_t end)
{
    const struct odn_recurrent *r = run->b->r;
    const int64_t *strides = kind->grad_strides[w], inputs = kind->dims[w][2], h = r->hidden;
    for (int32_t g = 0; g < r->gates; g++) {
        const int64_t gate = g * strides[3];
        int64_t from = begin * ODN_LINE - gate, to = end * ODN_LINE - gate;
        from = from < 0 ? 0 : from;
        to = to < h ? to : h;
        for (int64_t o = from, next; o < to; o = next) {
            next = ((gate + o) / ODN_LINE + 1) * ODN_LINE - gate;
            next = next < to ? next : to;
            const struct turn t = {
                .run = run,
                .place = kind->grad_place[w] + (uint64_t)(gate + o) * sizeof(float),
                .outputs = next - o,
                .inputs = inputs,
                .stride = strides[2],
                .ours = ours + (r->gate_map[g] * h + o) * inputs,
                .accumulate = (run->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) != 0,
                .streams = odn_streams(kind->grad_bytes),
            };
            turn_outputs(&t);
        }
    }
}

static void reduce_vector(const struct odn_run *run, uint64_t place, int64_t count, float *ours)
{
    const bool accumulate = (run->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) != 0;
    for (int64_t i = 0; i < count; i++) {
        float sum = 0.0f;
        for (int32_t m = 0; m < run->b->slices_count; m++)
            sum += ((const float *)odn_at(run->workspace, run->b->slices[m].grads + place))[i];
        ours[i] = accumulate ? ours[i] + sum : sum;
    }
}

void odn_reduce_grads(struct odn_run *run, int32_t l, int32_t d, int64_t begin, int64_t end)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_kind *kind = &r->kind[odn_kind_of(r, l)];
    static const int params[2] = {SEQLSTM_PARAM_W_X, SEQLSTM_PARAM_W_H};
    const int64_t h = r->hidden;
    if (!(run->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS) || run->failed != 0)
        return;
    for (int w = 0; w < 2; w++) {
        float *ours = odn_param(r, run->grads, l, d, params[w]);
        const int64_t lines = ((r->gates - 1) * kind->grad_strides[w][3] + h + ODN_LINE - 1) / ODN_LINE;
        if (ours != NULL)
            turn_lines(run, kind, w, ours, lines * begin / ODN_SHARES, lines * end / ODN_SHARES);
    }
    odn_streams_end();
    if (begin != 0)
        return;
    float *bias = odn_param(r, run->grads, l, d, SEQLSTM_PARAM_BIAS);
    for (int32_t g = 0; bias != NULL && (r->desc->options & SEQLSTM_BIT_RECURRENT_USE_BIAS) && g < r->bias_gates; g++)
        reduce_vector(run, kind->grad_bias + (uint64_t)(g * h) * sizeof(float), h, bias + r->gate_map[g] * h);
    float *peephole = odn_param(r, run->grads, l, d, SEQLSTM_PARAM_PEEPHOLE);
    if (r->peephole && peephole != NULL)
        reduce_vector(run, kind->grad_peephole, 3 * h, peephole);
}
