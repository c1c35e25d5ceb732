/* SPDX-License-Identifier: Apache-2.0 */
/* A new operation with memory to run it once. Private to trial.c and pair.c.
 *
 * One block of device memory holds the inputs (input, initial states, gradients of the outputs, parameters) | the
 * gradients of these | the outputs | workspace, reserve, packed weights. Parameters have a place only if pair.c needs
 * their values; otherwise they are zero. */
#ifndef CDN_TRIAL_H
#define CDN_TRIAL_H

#include "plugin.h"

struct cdn_trial {
    struct cdn_call call;
    const struct seqlstm_axis *axis;
    size_t slot_count;
    void **slots, **grads; /* [slot_count]; NULL: no place */
    int64_t *elems;        /* [slot_count] */
    unsigned char *base;   /* of the block */
    uint64_t read_bytes;   /* from the base */
    uint64_t made_bytes;   /* behind it: gradients */
    uint64_t reserve_bytes;
    unsigned char *packed;
};

/* Are both algorithms of a mixed variant compatible? If not, UNSUPPORTED with the difference. The binding runs under
 * the first plan. [control] */
seqlstm_status cdn_pair_check_gradients(struct cdn_trial *trial, struct seqlstm_error *err);

#endif
