/* SPDX-License-Identifier: Apache-2.0 */
/* Small blocks of device memory that outlive the bindings which use them. Where every batch has a new shape, bindings
 * come and go with every update, and the device's own release waits until it has nothing to do.
 *
 * A block that is given back may be taken at once, but only by a binding of the same stream: what that queues runs
 * later than what was queued before. */
#ifndef CG_BLOCKS_H
#define CG_BLOCKS_H

#include "common/cuda_domain.h"

struct cg_blocks;

/* Errors: NO_MEMORY. */
seqlstm_status cg_blocks_create(const struct seqlstm_host *host, struct cg_blocks **out_blocks,
                                struct seqlstm_error *err);
void cg_blocks_destroy(const struct seqlstm_host *host, struct cg_blocks *blocks);
/* At least `bytes` on the device, with any contents, for work on the stream. Errors: NO_MEMORY, DEVICE. [any] */
seqlstm_status cg_blocks_take(struct cg_blocks *blocks, int32_t ordinal, void *stream, uint64_t bytes, void **out_block,
                              struct seqlstm_error *err);
/* The counter of a stream, which is 0 before and after each launch that counts with it. It is made when the first
 * operation is bound to the stream: not within a capture. Each call needs one of cg_blocks_leave_counter. Errors:
 * NO_MEMORY, DEVICE. [queue] */
seqlstm_status cg_blocks_find_counter(const struct seqlstm_host *host, struct cg_blocks *blocks, int32_t ordinal,
                                      void *stream, unsigned **out_counter, struct seqlstm_error *err);
/* A binding needs its counter no longer. It is kept for the stream; of many without users, whose streams may be gone,
 * the oldest is released. NULL is allowed. [any] */
void cg_blocks_leave_counter(const struct seqlstm_host *host, struct cg_blocks *blocks, unsigned *counter);
/* `stream`, `bytes`: as it was taken. NULL is allowed. [any] */
void cg_blocks_give(struct cg_blocks *blocks, int32_t ordinal, void *stream, uint64_t bytes, void *block);

#endif
