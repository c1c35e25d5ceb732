/* SPDX-License-Identifier: Apache-2.0 */
/* Layers as networks of cuDNN. A *plan* divides the descriptor's stack into networks (one for all layers, or one for
 * each) with one algorithm; a *session* is one network at one shape.
 *
 * Weight spaces are opaque. When the operation is created, cuDNN is asked once for the position of each parameter.
 * These positions are kept as a list of *copies*: runs of elements that are contiguous on both sides. All networks have
 * two bias vectors, since some algorithms require it. The second is zero, except for the bias that GRU has between
 * product and reset gate. */
#ifndef CDN_NETWORK_H
#define CDN_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "elements.h"
#include "kept.h"
#include "library.h"

struct seqlstm_op;
struct cdn_handle;

enum { CDN_LAYERS_MAX = SEQLSTM_MAX_LAYERS };

/* A segment of an axis, over which a network runs. */
struct cdn_shape {
    int32_t steps, sequences;
    int64_t rows;
    bool uniform;     /* are all lengths equal? */
    int32_t *lengths; /* [sequences], never increasing */
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
    uint64_t packed_offset;                  /* of its weight space within the packed weights */
    uint64_t gradient_offset;                /* within the plan's gradients */
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
    struct cdn_kept *kept; /* where `rnn` is left if cuDNN has compiled it; NULL: it has not */
    struct cdn_network_key key;
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

/* The width of a layer's output: both directions, concatenated. */
static inline int64_t cdn_width(const struct seqlstm_recurrent_desc *d)
{
    return cdn_directions(d) * cdn_output(d);
}

/* Makes a shape of `sequences` sequences with `rows` steps in total: the first has `steps`, the others are as even as
 * possible. */
void cdn_shape_fill(struct cdn_shape *shape, int64_t steps, int64_t sequences, int64_t rows);

/* Divides the stack, and asks cuDNN for sizes and positions. UNSUPPORTED if cuDNN refuses. The device must be current.
 * [control] */
seqlstm_status cdn_plan_open(struct seqlstm_op *op, struct cdn_plan *plan, cudnnRNNAlgo_t algorithm, bool layers,
                             struct cdn_handle *handle, struct seqlstm_error *err);
void cdn_plan_close(const struct seqlstm_op *op, struct cdn_plan *plan);
/* Do both plans have every parameter at the same position? */
bool cdn_plan_equals(const struct cdn_plan *a, const struct cdn_plan *b);

/* Descriptors and sizes of a network at a shape. After a failure nothing is left open. */
seqlstm_status cdn_session_open(struct cdn_session *session, const struct seqlstm_op *op, const struct cdn_plan *plan,
                                const struct cdn_net *net, const struct cdn_shape *shape, struct cdn_handle *handle,
                                struct seqlstm_error *err);
/* Gives an open session another shape; nothing is created. UNSUPPORTED: cuDNN refuses the shape, or would have to
 * compile the network. After an error the session can only be closed. */
seqlstm_status cdn_session_renew(struct cdn_session *session, const struct seqlstm_op *op, const struct cdn_plan *plan,
                                 const struct cdn_net *net, const struct cdn_shape *shape, struct cdn_handle *handle,
                                 struct seqlstm_error *err);
void cdn_session_close(struct cdn_session *session); /* may be zeroed */

#endif
