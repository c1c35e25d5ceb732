/* SPDX-License-Identifier: Apache-2.0 */
/* Gives cuDNN the host's buffers. Slots that are aligned and have cuDNN's number type are used in place, others through
 * a copy in the workspace. States have a slot each and are made contiguous. What is to be copied is collected: all that
 * a network reads is copied in one launch before it runs, and all that it has written in one launch after it. */
#ifndef CDN_EDGES_H
#define CDN_EDGES_H

#include "plugin.h"

/* Which slots hold a state: slots of the call, or of its gradients. */
struct cdn_states {
    void *const *slots;
    int32_t which; /* SEQLSTM_STATE_… */
    int64_t width;
    int32_t place; /* CDN_STATE_… */
};

/* What is to be copied before a network runs, and what after it (cdn_ranges_copy). */
struct cdn_moves {
    struct cdn_ranges in, out;
};
struct cdn_moves cdn_moves_make(const struct cdn_call *call);

/* Returns where cuDNN reads `elems` elements of the slot: the slot itself, or its copy at `place`. */
seqlstm_status cdn_edge_read(const struct cdn_call *call, struct cdn_moves *moves, void *slot, void *place,
                             int64_t elems, const void **out_pointer, struct seqlstm_error *err);
/* Returns where cuDNN writes them: the slot itself, or `place`; for a NULL slot: `place`. cdn_edge_written copies what
 * was written elsewhere to the slot, if there is one. */
void *cdn_edge_write(const struct cdn_call *call, void *slot, void *place);
seqlstm_status cdn_edge_written(struct cdn_moves *moves, void *slot, const void *written, int64_t elems,
                                struct seqlstm_error *err);

/* The same for the states of a network. Returns NULL if none of the slots is given; a missing one among others reads as
 * 0. */
seqlstm_status cdn_states_read(const struct cdn_call *call, struct cdn_moves *moves, const struct cdn_net *net,
                               const struct cdn_states *states, const void **out_pointer, struct seqlstm_error *err);
void *cdn_states_write(const struct cdn_call *call, const struct cdn_net *net, const struct cdn_states *states);
seqlstm_status cdn_states_written(const struct cdn_call *call, struct cdn_moves *moves, const struct cdn_net *net,
                                  const struct cdn_states *states, struct seqlstm_error *err);

#endif
