/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of workspace and reserve under one plan: for one shape or, as an upper bound, for the largest.
 *
 *   workspace   edges that cuDNN cannot use in place (alignment, number type) | states of one network
 *               | gradients between networks | gradients of weights | cuDNN's own workspace
 *   reserve     the input, in 16 bits | outputs of networks that no slot receives, in 16 bits all of them | cuDNN's own
 *               reserves, one after another */
#ifndef CDN_PLACES_H
#define CDN_PLACES_H

#include <stdint.h>

#include "network.h"

/* Tensor kernels read 16 bytes at once. The host's buffers are aligned, but rows inside them need not be. */
enum { CDN_POINTER_ALIGNMENT = 16 };

/* States of one network, contiguous as cuDNN requires. */
enum { CDN_STATE_H, CDN_STATE_C, CDN_STATE_HN, CDN_STATE_CN, CDN_STATE_DH, CDN_STATE_DC, CDN_STATE_COUNT };

struct cdn_places {
    /* offsets into the workspace */
    uint64_t x, y, dx, dy;
    uint64_t states[CDN_STATE_COUNT];
    uint64_t between[2]; /* outputs (inference) or their gradients (backward), used alternately */
    uint64_t gradients;
    uint64_t library;
    uint64_t input; /* offset into the reserve, with cdn_keeps_edges */
    /* offsets into the reserve, by network */
    uint64_t outputs[CDN_LAYERS_MAX];
    uint64_t reserves[CDN_LAYERS_MAX];
    uint64_t workspace_bytes, reserve_bytes;
};

/* `sessions` NULL: the upper bounds of the plan. */
void cdn_places_make(struct cdn_places *places, const struct seqlstm_recurrent_desc *desc, const struct cdn_plan *plan,
                     int64_t rows, int64_t sequences, const struct cdn_session *sessions);

/* Does training keep the input and the last output in the reserve? In 16 bits, so that backward need not convert them
 * again. */
static inline bool cdn_keeps_edges(const struct seqlstm_recurrent_desc *desc)
{
    return desc->head.mode == SEQLSTM_MODE_TRAINING && cdn_is_narrow(desc);
}

/* Does the output of this network go to the reserve (inference: the workspace), rather than to slot Y? */
static inline bool cdn_keeps_output(const struct seqlstm_recurrent_desc *desc, const struct cdn_plan *plan, int32_t net)
{
    return net + 1 < plan->count || !(desc->options & SEQLSTM_BIT_RECURRENT_OUTPUT) || cdn_keeps_edges(desc);
}

#endif
