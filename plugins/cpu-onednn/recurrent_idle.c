/* SPDX-License-Identifier: Apache-2.0 */
/* What the library never touches of the buffers that it asks for, so that memory is predicted without it.
 *
 * Its workspace (rnn_utils.cpp, set_offsets, 2.6 to 3.7) has parts for a stack of layers with copies of what they read
 * and write; a layer alone that runs from the first step to the last works on the caller's tensors instead:
 *
 *   gates · projected h · states of layers · states of steps, twice · c · their gradients by layer · by step · of c
 *
 * Touched are the gates, the upper half of c (of layer 1 of 2), the gradients by layer, and the lower halves of the
 * others (layer 0). Scratch (ref_rnn.hpp, init_scratchpad) begins with a space that training does not use and inference
 * uses as workspace, and asks for the gates in bytes where elements are counted: four times too much.
 */
#include "recurrent.h"

enum { PAGE = 4096, LINE_BYTES = 64 };
static const uint64_t huge_page = 2u << 20;

/* A run of bytes: the huge pages that lie in it wherever it begins. */
static uint64_t whole(uint64_t begin, uint64_t end)
{
    return end > begin + huge_page ? end - begin - huge_page : 0;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Elements from row to row (get_good_ld). */
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

/* Bytes of the library's parts. */
struct parts {
    uint64_t gates, projected, states, c, layer_grads, step_grads, c_grads, grid;
};

static struct parts parts_of(const struct odn_recurrent *r, const struct odn_need *need)
{
    const uint64_t n = (uint64_t)need->n, steps = (uint64_t)need->steps, elem = r->elem.bytes;
    const uint64_t input = (uint64_t)r->kind[need->kind].input, output = (uint64_t)r->output;
    const uint64_t hidden = (uint64_t)r->hidden, two = 2 * (steps + 1) * n; /* layers */
    const uint64_t grads = two * pitch(most(most(input, output), hidden), sizeof(float)) * sizeof(float);
    struct parts parts = {
        .gates = steps * n * pitch(hidden * (uint64_t)r->gates, elem) * elem,
        .projected = steps * n * pitch(hidden, elem) * elem,
        .states = two * pitch(most(input, output), elem) * elem,
        .c = r->lstm ? two * hidden * sizeof(float) : 0,
        .layer_grads = grads,
        .step_grads = grads,
        .c_grads = r->lstm ? two * hidden * sizeof(float) : 0,
        .grid = r->cell == ODN_GRU_RESET_AFTER ? steps * n * hidden * sizeof(float) * sizeof(float) : 0,
    };
    return parts;
}

static uint64_t find_ws(const struct odn_recurrent *r, const struct odn_need *need, const struct parts *parts)
{
    uint64_t end = 0;
    place(&end, parts->gates);
    const uint64_t projected = place(&end, parts->projected), states = place(&end, parts->states);
    const uint64_t unused = place(&end, parts->states);
    place(&end, parts->states);
    const uint64_t c = place(&end, parts->c);
    place(&end, parts->layer_grads);
    const uint64_t step_grads = place(&end, parts->step_grads), c_grads = place(&end, parts->c_grads);
    place(&end, parts->grid);
    if (end != need->ws_bytes)
        return 0;
    const uint64_t begin = need->way ? unused : r->projection ? states : projected;
    return whole(begin, c + parts->c / 2) + whole(step_grads + parts->step_grads / 2, c_grads) +
           whole(c_grads + parts->c_grads / 2, c_grads + parts->c_grads);
}

static uint64_t find_scratch(const struct odn_recurrent *r, const struct odn_need *need, const struct parts *parts)
{
    const uint64_t states = parts->states * 3 + parts->c;
    if (r->training) {
        const uint64_t gates = parts->gates; /* of all steps: backward makes one product of them */
        const bool known = r->elem.type == dnnl_f32 && need->scratch_bytes >= 5 * gates &&
                           need->scratch_bytes < 5 * gates + states;
        return known ? whole(0, gates) + whole(2 * gates, 5 * gates) : 0;
    }
    return need->scratch_bytes >= states && !need->way ? whole(0, states - parts->c / 2) : 0;
}

void odn_idle_find(const struct odn_recurrent *r, const struct odn_need *need, uint64_t *out_ws, uint64_t *out_scratch)
{
    const struct parts parts = parts_of(r, need);
    *out_ws = r->training ? find_ws(r, need, &parts) : 0;
    *out_scratch = find_scratch(r, need, &parts);
}
