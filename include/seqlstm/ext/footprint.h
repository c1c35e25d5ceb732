/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "footprint/1": answers that predict how much memory a backend really takes.
 *
 * get_extension(instance, SEQLSTM_FOOTPRINT_EXTENSION) gives this table. The host reads it for `seqlstm plan` alone:
 * nothing is allocated or computed by it. op_sizes gives upper bounds over all batches that the descriptor allows, so
 * that most batches leave parts of the buffers untouched, and untouched pages take no memory. A library may also take
 * memory that lies in no buffer of the host. Without this extension the host predicts that calls touch all of their
 * buffers and that the backend takes nothing besides.
 */
#ifndef SEQLSTM_EXT_FOOTPRINT_H
#define SEQLSTM_EXT_FOOTPRINT_H

#include <seqlstm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEQLSTM_FOOTPRINT_EXTENSION "footprint/1"

/* Bytes [begin, end) of a buffer. */
struct seqlstm_span {
    uint64_t begin, end;
};

/* Spans of one buffer, in ascending order and without overlap. */
struct seqlstm_spans {
    struct seqlstm_span *at; /* the host's, [room] */
    uint32_t room;           /* the host's */
    uint32_t count; /* the backend's, at most `room`: spans beyond that are left out. The host has set it to 0 */
};

/* What calls leave untouched. */
struct seqlstm_idle {
    uint32_t struct_size;
    uint32_t reserved0;
    struct seqlstm_spans workspace, reserve;
};

struct seqlstm_footprint {
    uint32_t struct_size;
    uint32_t reserved0;
    /* (optional: calls touch all of their buffers) Bytes of workspace and reserve that no call on a batch of this shape
     * reads or writes. `sizes`: what op_sizes has answered, for the same number of members. `axis`: the steps of a
     * batch; NULL: of the largest that the descriptor allows. NO_MEMORY. [any] */
    seqlstm_status (*idle_spans)(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                 const struct seqlstm_axis *axis, struct seqlstm_idle *idle, struct seqlstm_error *err);
    /* (optional: none) Estimate of the bytes that the backend takes outside the buffers of the host, such as code and
     * arguments that it keeps for each shape, once batches of these shapes have come in this order, `bound_count` of
     * them bound at a time. batches [batch_count]. NO_MEMORY. [any] */
    seqlstm_status (*own_bytes)(const struct seqlstm_op *op, const struct seqlstm_axis *const *batches,
                                uint32_t batch_count, uint32_t bound_count, uint64_t *out_bytes,
                                struct seqlstm_error *err);
};

#ifdef __cplusplus
}
#endif

#endif
