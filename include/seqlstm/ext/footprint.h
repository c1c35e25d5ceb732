/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "footprint/1": predicts how much memory a backend really uses.
 *
 * get_extension(instance, SEQLSTM_FOOTPRINT_EXTENSION) returns this table. The host uses it only for the predictions of
 * `seqlstm plan`: it affects neither allocations nor results. op_sizes gives upper bounds for all batches that the
 * descriptor allows. Most batches therefore leave parts of the buffers untouched, and untouched pages use no memory. A
 * library may also use memory outside the host's buffers. Without this extension the host predicts that calls touch all
 * of their buffers, and that the backend uses no other memory.
 */
#ifndef SEQLSTM_EXT_FOOTPRINT_H
#define SEQLSTM_EXT_FOOTPRINT_H

#include <seqlstm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEQLSTM_FOOTPRINT_EXTENSION "footprint/1"

/* Bytes [begin, end) of a buffer. */
struct seqlstm_range {
    uint64_t begin, end;
};

/* Ranges of one buffer, in ascending order and without overlap. */
struct seqlstm_ranges {
    struct seqlstm_range *at; /* set by the host, [room] */
    uint32_t room;            /* set by the host */
    uint32_t count;           /* filled by the backend, at most `room`: further ranges are left out. Initially 0 */
};

/* Bytes that calls leave untouched. */
struct seqlstm_idle {
    uint32_t struct_size;
    uint32_t reserved0;
    struct seqlstm_ranges workspace, reserve;
};

struct seqlstm_footprint {
    uint32_t struct_size;
    uint32_t reserved0;
    /* (optional; without it: calls touch all of their buffers) Bytes of workspace and reserve that no call on a batch
     * of this shape reads or writes. `sizes`: the answer of op_sizes for the same number of members. `axis`: the steps
     * of the batch; NULL: the largest batch that the descriptor allows. NO_MEMORY. [any] */
    seqlstm_status (*idle_ranges)(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                  const struct seqlstm_axis *axis, struct seqlstm_idle *idle,
                                  struct seqlstm_error *err);
    /* (optional; without it: none) Estimate of the bytes that the backend uses outside the host's buffers, such as code
     * and arguments that it keeps for each shape, after batches of these shapes have come in this order, with
     * `bound_count` of them bound at a time. batches [batch_count]. NO_MEMORY. [any] */
    seqlstm_status (*own_bytes)(const struct seqlstm_op *op, const struct seqlstm_axis *const *batches,
                                uint32_t batch_count, uint32_t bound_count, uint64_t *out_bytes,
                                struct seqlstm_error *err);
};

#ifdef __cplusplus
}
#endif

#endif
