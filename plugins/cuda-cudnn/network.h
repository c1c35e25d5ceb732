/* SPDX-License-Identifier: Apache-2.0 */
/* Layers as networks of cuDNN: a *plan* cuts the descriptor's stack into networks (all layers in one, or each alone)
 * under one algorithm; a *session* is one network at one shape.
 *
 * Weight spaces are opaque: where a parameter lies in one is asked once, when the operation is made, and kept as a list
 * of *copies*, runs of elements that are consecutive on both sides. All networks have two bias vectors, since some
 * algorithms know nothing else; the second is zero, but for the one that GRU has between product and reset gate.
 */
#ifndef CDN_NETWORK_H
#define CDN_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "elements.h"
#include "library.h"

struct seqlstm_op;
struct cdn_handle;

enum { CDN_LAYERS_MAX = 64 };

/* A range of an axis: what a network runs over. */
struct cdn_shape {
    int32_t steps, sequences;
    int64_t rows;
    bool uniform;     /* all lengths are equal */
    int32_t *lengths; /* [sequences], not increasing */
};

/* `elems` elements at `from` of parameter `which` of layer and direction n, and at `to` of the weight space. */
struct cdn_copy {
    int32_t n, which;
    int64_t from, elems;
    uint64_t to_bytes;
};

struct cdn_net {
    int32_t first, layers; /* of the stack */
    int64_t input;         /* width of what the first layer reads */
    uint64_t weight_bytes;
    uint64_t packed_offset;                  /* of its weight space among the packed weights */
    uint64_t gradient_offset;                /* among the plan's gradients */
    uint64_t workspace_bytes, reserve_bytes; /* cuDNN's, for the largest batch */
    int32_t copy_count;
    struct cdn_copy *copies;
};

struct cdn_plan {
    cudnnRNNAlgo_t algorithm;
    int32_t count;
    struct cdn_net *nets;
    uint64_t weight_bytes; /* of all networks */
};

struct cdn_session {
    cudnnRNNDescriptor_t rnn;
    cudnnRNNDataDescriptor_t x, y;
    cudnnTensorDescriptor_t h, c;
    size_t workspace_bytes, reserve_bytes;
};

static inline uint64_t cdn_align(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static inline int64_t cdn_directions(const struct seqlstm_recurrent_desc *d)
{
    return d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
}

static inline int64_t cdn_output(const struct seqlstm_recurrent_desc *d)
{
    return d->projection > 0 ? d->projection : d->hidden;
}

/* What a layer hands on: both directions side by side. */
static inline int64_t cdn_width(const struct seqlstm_recurrent_desc *d)
{
    return cdn_directions(d) * cdn_output(d);
}

/* `sequences` of them with `rows` steps in all, the first of `steps`, the others as even as it goes. */
void cdn_shape_fill(struct cdn_shape *shape, int64_t steps, int64_t sequences, int64_t rows);

/* Cuts the stack, and asks cuDNN for sizes and places. UNSUPPORTED: cuDNN refuses. The device is current. [control] */
seqlstm_status cdn_plan_open(struct seqlstm_op *op, struct cdn_plan *plan, cudnnRNNAlgo_t algorithm, bool layers,
                             struct cdn_handle *handle, struct seqlstm_error *err);
void cdn_plan_close(const struct seqlstm_op *op, struct cdn_plan *plan);
/* Do both keep every parameter at the same place? */
bool cdn_plan_equals(const struct cdn_plan *a, const struct cdn_plan *b);

/* Descriptors and sizes of a network at a shape. On failure nothing is left open. */
seqlstm_status cdn_session_open(struct cdn_session *session, const struct seqlstm_op *op, const struct cdn_plan *plan,
                                const struct cdn_net *net, const struct cdn_shape *shape, struct cdn_handle *handle,
                                struct seqlstm_error *err);
void cdn_session_close(struct cdn_session *session); /* a zeroed one is fine */

#endif
