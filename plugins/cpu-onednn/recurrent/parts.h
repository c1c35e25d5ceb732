/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the library's own buffers for one layer, which predict what calls touch of them.
 *
 * Workspace (rnn_utils.cpp, set_offsets, 2.6 to 3.7). Each part starts on a page:
 *   gates · projected h · states of layers · states of steps, twice · c · gradients by layer, by step, of c
 *
 * Scratch (ref_rnn.hpp, init_scratchpad): a space, which in inference contains the states and c of a workspace, then
 * room for the gates and small parts. Behind the space, the library requests the gates and small parts again, and
 * passes bytes where the number of elements is meant, so this room is larger than needed. The gates are those of all
 * steps if the library multiplies x by its weights for all steps at once. */
#ifndef ODN_RECURRENT_PARTS_H
#define ODN_RECURRENT_PARTS_H

#include "cpu-onednn/recurrent/recurrent.h"

/* Bytes of the parts of a workspace. */
struct odn_parts {
    uint64_t gates, projected, states, c, layer_grads, step_grads, c_grads, grid;
};

/* Offsets of some parts, and the end of all. */
struct odn_places {
    uint64_t projected, states, unused, c, step_grads, c_grads, end;
};

/* The scratch of one pass with the gates of all steps, in bytes. */
struct odn_scratch {
    uint64_t before; /* states and c within the space */
    uint64_t gates;  /* they begin at `before` + `gates`, or later by up to the bytes of the small parts */
    uint64_t end;    /* where their room ends, at the earliest, and other small parts begin */
    uint64_t small;  /* the most bytes of all small parts */
};

/* Reads only kind, sequences and steps of `need`. */
struct odn_parts odn_parts_of(const struct odn_recurrent *r, const struct odn_need *need);
struct odn_places odn_places_of(const struct odn_parts *parts);
struct odn_scratch odn_scratch_of(const struct odn_recurrent *r, const struct odn_need *need, int32_t pass);
/* Would the scratch be so much smaller with the gates of one step that the two cases can be told apart? */
bool odn_scratch_is_clear(const struct odn_scratch *scratch, const struct odn_need *need);
/* Can they be told apart, and does the library's request show the gates of all steps? */
bool odn_scratch_is(const struct odn_recurrent *r, const struct odn_need *need, int32_t pass);

#endif
