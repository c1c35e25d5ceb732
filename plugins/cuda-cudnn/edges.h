/* SPDX-License-Identifier: Apache-2.0 */
/* The host's buffers as cuDNN takes them: slots that are aligned and of cuDNN's number type are used where they are,
 * others through a copy in the workspace; states, which are slots of their own each, are put side by side.
 */
#ifndef CDN_EDGES_H
#define CDN_EDGES_H

#include "plugin.h"

/* Which slot of a state: of the call's slots, or of its gradients. */
struct cdn_states {
    void *const *slots;
    int32_t which; /* SEQLSTM_STATE_… */
    int64_t width;
    int32_t place; /* CDN_STATE_… */
};

/* Where cuDNN reads `elems` elements of the slot: itself, or its copy at `place` of the workspace. */
seqlstm_status cdn_edge_read(const struct cdn_call *call, void *slot, uint64_t place, int64_t elems,
                             const void **out_pointer, struct seqlstm_error *err);
/* Where cuDNN writes them; cdn_edge_written brings them to the slot afterwards. A NULL slot: `place`. */
void *cdn_edge_write(const struct cdn_call *call, void *slot, uint64_t place);
seqlstm_status cdn_edge_written(const struct cdn_call *call, void *slot, uint64_t place, int64_t elems,
                                struct seqlstm_error *err);

/* The same for the states of a network. NULL: none of the slots is given. One missing beside others reads as 0. */
seqlstm_status cdn_states_read(const struct cdn_call *call, const struct cdn_net *net, const struct cdn_states *states,
                               const void **out_pointer, struct seqlstm_error *err);
void *cdn_states_write(const struct cdn_call *call, const struct cdn_net *net, const struct cdn_states *states);
seqlstm_status cdn_states_written(const struct cdn_call *call, const struct cdn_net *net,
                                  const struct cdn_states *states, struct seqlstm_error *err);

#endif
