/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the library's own buffers for a layer alone: what of them calls touch is found by these.
 *
 * Workspace (rnn_utils.cpp, set_offsets, 2.6 to 3.7), each part from a page on:
 *   gates · projected h · states of layers · states of steps, twice · c · gradients by layer, by step, of c
 * Scratch (ref_rnn.hpp, init_scratchpad): a space with, in inference, the states and c of a workspace, then room for
 * the gates and small parts; behind it the gates and small parts again, asked for in bytes where elements are counted,
 * so that there is room for more of them than one. Gates are of all steps where the library multiplies x by its weights
 * for all at once.
 */
#ifndef ODN_RECURRENT_PARTS_H
#define ODN_RECURRENT_PARTS_H

#include "cpu-onednn/recurrent/recurrent.h"

/* Bytes of the parts of a workspace. */
struct odn_parts {
    uint64_t gates, projected, states, c, layer_grads, step_grads, c_grads, grid;
};

/* Where some of them begin, and where all end. */
struct odn_places {
    uint64_t projected, states, unused, c, step_grads, c_grads, end;
};

/* The scratch of one pass with the gates of all steps, in bytes. */
struct odn_scratch {
    uint64_t before; /* states and c in the space */
    uint64_t gates;  /* they begin at `before` + `gates`, or by so much later as there are small parts */
    uint64_t end;    /* where their room ends and other small parts begin, at the earliest */
    uint64_t small;  /* all small parts, at most */
};

/* Of `need`, its kind, sequences and steps are read. */
struct odn_parts odn_parts_of(const struct odn_recurrent *r, const struct odn_need *need);
struct odn_places odn_places_of(const struct odn_parts *parts);
struct odn_scratch odn_scratch_of(const struct odn_recurrent *r, const struct odn_need *need, int32_t pass);
/* So much smaller would the scratch be with the gates of one step that they cannot be mixed up. */
bool odn_scratch_is_clear(const struct odn_scratch *scratch, const struct odn_need *need);
/* That is clear, and it is so that the library asked for it. */
bool odn_scratch_is(const struct odn_recurrent *r, const struct odn_need *need, int32_t pass);

#endif
