/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the parameter buffers in other memory domains, and which copy of each view is the newest.
 *
 *   place 0   the host: params->values, grads, states
 *   place p   the p-th domain that a plan on these parameters uses, each buffer laid out as on the host
 *
 * A view is copied where it is read, and only if it is stale there. So parameters, gradients and optimizer states stay
 * in the domain of the operations that use them, and a model that runs in one domain copies nothing.
 *
 * Invariants:
 *  1. Every view of every part is valid in at least one place.
 *  2. Padding between views is zero in every place.
 *  3. Executors on the same parameters share the domains of the mirrors, streams included: so their work is ordered.
 */
#ifndef SL_EXEC_PARAMS_MIRROR_H
#define SL_EXEC_PARAMS_MIRROR_H

#include "registry/domain.h"
#include "exec/params/params.h"

enum { SL_PLACES_MAX = 5, SL_PLACE_HOST = 0 };

enum sl_param_part { SL_PART_VALUES, SL_PART_GRADS, SL_PART_STATE_1, SL_PART_STATE_2, SL_PART_STATE_3, SL_PART_COUNT };

struct sl_mirror {
    struct sl_domain domain;
    void *parts[SL_PART_COUNT]; /* made when first needed */
};

struct sl_mirrors {
    int32_t count;
    struct sl_mirror mirrors[SL_PLACES_MAX - 1]; /* of places 1 … */
    int32_t peers[SL_PLACES_MAX - 1]
                 [SL_PLACES_MAX - 1]; /* [to][from] the device, if one copies from the other; or -1 */
    int32_t *order;                   /* [view_count] views by offset */
    uint8_t *valid[SL_PART_COUNT];    /* [view_count] bit p: valid in place p */
};

void sl_mirrors_destroy(struct sl_mirrors *mirrors); /* NULL is fine */

/* The place of a backend's device; opens its domain when it is the first one there. Errors: UNSUPPORTED when there are
 * more domains than places; NO_MEMORY; errors of the plugin. */
seqlstm_status sl_params_find_place(struct sl_params *params, const struct sl_backend *backend, uint32_t device,
                                    int32_t *out_place, struct seqlstm_error *err);

/* The domain of a place other than the host. */
struct sl_domain *sl_params_get_domain(struct sl_params *params, int32_t place);

/* Copies bytes between two places: from device to device where the backend can, or else through the host's buffer. */
seqlstm_status sl_params_move(struct sl_params *params, int32_t from, int32_t to, const void *base_from,
                              void *base_host, void *base_to, int64_t bytes, struct seqlstm_error *err);
/* The places in which the bytes are valid afterwards, besides `from`: bit p for place p. */
uint8_t sl_params_get_moved(const struct sl_params *params, int32_t from, int32_t to);

/* Elements [begin, begin + elems) of a part in a place, to be written. Allocates when first needed. */
seqlstm_status sl_params_locate(struct sl_params *params, int32_t place, enum sl_param_part part, int64_t begin,
                                float **out_elems, struct seqlstm_error *err);

/* The same, to be read: all views that the range touches are made valid there. */
seqlstm_status sl_params_provide(struct sl_params *params, int32_t place, enum sl_param_part part, int64_t begin,
                                 int64_t elems, float **out_elems, struct seqlstm_error *err);

/* Notes that the range has been written in `place`: its views are valid nowhere else. */
void sl_params_note_written(struct sl_params *params, int32_t place, enum sl_param_part part, int64_t begin,
                            int64_t elems);

/* Which part a host pointer lies in, and at which element; false: in none. */
bool sl_params_find_part(const struct sl_params *params, const float *pointer, enum sl_param_part *out_part,
                         int64_t *out_begin);

#endif
