/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu-onednn/recurrent/parts.h"

enum { PAGE = 4096, LINE_BYTES = 64, SLACK = 16 * PAGE }; /* SLACK: parts start on pages */

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Elements from one row to the next (get_good_ld). */
static uint64_t pitch(uint64_t width, uint64_t elem)
{
    const uint64_t line = LINE_BYTES / elem, rows = (width + line - 1) / line * line;
    return rows % 256 == 0 ? rows + line : rows;
}

static uint64_t place(uint64_t *end, uint64_t bytes)
{
    const uint64_t begin = (*end + PAGE - 1) / PAGE * PAGE;
    *end = begin + bytes;
    return begin;
}

static uint64_t gates_of(const struct odn_recurrent *r, const struct odn_need *need, uint64_t elem)
{
    return (uint64_t)(need->steps * need->n) * pitch((uint64_t)(r->hidden * r->gates), elem) * elem;
}

struct odn_parts odn_parts_of(const struct odn_recurrent *r, const struct odn_need *need)
{
    const uint64_t n = (uint64_t)need->n, steps = (uint64_t)need->steps, elem = r->elem.bytes;
    const uint64_t input = (uint64_t)r->kind[need->kind].input, output = (uint64_t)r->output;
    const uint64_t hidden = (uint64_t)r->hidden, two = 2 * (steps + 1) * n; /* 2: layers */
    const uint64_t grads = two * pitch(most(most(input, output), hidden), sizeof(float)) * sizeof(float);
    return (struct odn_parts){
        .gates = gates_of(r, need, elem),
        .projected = steps * n * pitch(hidden, elem) * elem,
        .states = two * pitch(most(input, output), elem) * elem,
        .c = r->lstm ? two * hidden * sizeof(float) : 0,
        .layer_grads = grads,
        .step_grads = grads,
        .c_grads = r->lstm ? two * hidden * sizeof(float) : 0,
        .grid = r->cell == ODN_GRU_RESET_AFTER ? steps * n * hidden * sizeof(float) * sizeof(float) : 0,
    };
}

struct odn_places odn_places_of(const struct odn_parts *parts)
{
    struct odn_places p = {0};
    place(&p.end, parts->gates);
    p.projected = place(&p.end, parts->projected);
    p.states = place(&p.end, parts->states);
    p.unused = place(&p.end, parts->states);
    place(&p.end, parts->states);
    p.c = place(&p.end, parts->c);
    place(&p.end, parts->layer_grads);
    p.step_grads = place(&p.end, parts->step_grads);
    p.c_grads = place(&p.end, parts->c_grads);
    place(&p.end, parts->grid);
    return p;
}

/* The library requests each of them twice, too: its bytes in the space, then as many elements. */
static uint64_t small_parts(const struct odn_recurrent *r, const struct odn_need *need, uint64_t gates_elem)
{
    const uint64_t n = (uint64_t)need->n, elem = r->elem.bytes, sum = sizeof(float);
    uint64_t bytes = n * pitch((uint64_t)r->hidden, elem) * elem * (1 + elem);
    if (r->training)
        bytes += n * pitch((uint64_t)r->output, sum) * sum * (1 + sum);
    if (r->cell == ODN_GRU_RESET_AFTER)
        bytes += n * pitch((uint64_t)(r->hidden * r->gates), gates_elem) * sum * (1 + gates_elem);
    else if (r->cell == ODN_GRU)
        bytes +=
            n * pitch(most((uint64_t)r->output, (uint64_t)r->kind[need->kind].input), elem) * sum * (1 + gates_elem);
    return bytes;
}

struct odn_scratch odn_scratch_of(const struct odn_recurrent *r, const struct odn_need *need, int32_t pass)
{
    /* forward accumulates in 4 bytes, as wide as float32, for int8 too */
    const uint64_t elem = pass == ODN_FORWARD ? sizeof(float) : r->elem.bytes;
    const struct odn_parts parts = odn_parts_of(r, need);
    struct odn_scratch s = {.before = r->training ? 0 : parts.states * 3 + parts.c,
                            .gates = gates_of(r, need, elem),
                            .small = small_parts(r, need, elem) + SLACK};
    s.end = s.before + (1 + elem) * s.gates;
    return s;
}

bool odn_scratch_is_clear(const struct odn_scratch *scratch, const struct odn_need *need)
{
    return (scratch->end - scratch->before) / (uint64_t)need->steps * (uint64_t)(need->steps - 1) > SLACK;
}

bool odn_scratch_is(const struct odn_recurrent *r, const struct odn_need *need, int32_t pass)
{
    const struct odn_scratch s = odn_scratch_of(r, need, pass);
    return odn_scratch_is_clear(&s, need) && need->scratch[pass] >= s.end + s.small - SLACK &&
           need->scratch[pass] <= s.end + s.small;
}
