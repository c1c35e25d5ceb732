/* SPDX-License-Identifier: Apache-2.0 */
/* SEQLSTM_OP_RECURRENT of the cpu-blas backend: LSTM, GRU and simple RNN with every option, on packed weights. The
 * plugin's table of operations (backend.c) calls these functions. Their arguments are those of <seqlstm/backend.h>.
 *
 * Variants
 *   packed   the kernels of the instruction set given to create
 *   tiles    the same, with products on tiles for batches that are large enough
 *   generic  the same code, compiled as portable C */
#ifndef BLAS_RECURRENT_H
#define BLAS_RECURRENT_H

#include <seqlstm/backend.h>
#include <seqlstm/ext/footprint.h>

#include "cpu-blas/isa/isa.h"
#include "cpu-blas/tiles/tiles_gemm.h"

struct blas_recurrent_kernels; /* recurrent/kernels/kernels.h */
struct blas_recurrent;         /* an operation, immutable */
struct blas_recurrent_binding; /* an operation at one shape */

/* The kernels of an instruction set. [any] */
const struct blas_recurrent_kernels *blas_recurrent_get_kernels(enum blas_isa isa);

/* Checks what seqlstm_desc_check and the general rules (supports.c) have accepted. [any] */
void blas_recurrent_supports(const struct seqlstm_recurrent_desc *desc, bool tiles, struct seqlstm_answer *answer);

/* `desc` and `variant` must be accepted ones. `tiled`: for bfloat16 or the variant "tiles"; otherwise its kernels
 * are NULL. `host` must outlive the operation. `members_max`: the most members of a queue that share one call. It
 * bounds the workspace; further members stay idle. NO_MEMORY. [control] */
seqlstm_status blas_recurrent_create(const struct seqlstm_host *host, enum blas_isa isa, const struct blas_tiled *tiled,
                                     int32_t members_max, const struct seqlstm_recurrent_desc *desc,
                                     const char *variant, struct blas_recurrent **out_op, struct seqlstm_error *err);

/* Fills workspace_bytes, reserve_bytes and packed_bytes. `members`: the most members of a queue; 0: any number.
 * [any] */
void blas_recurrent_sizes(const struct blas_recurrent *op, int32_t members, struct seqlstm_sizes *sizes);
/* What calls on a batch leave untouched; see ext/footprint.h. [any] */
void blas_recurrent_find_idle(const struct blas_recurrent *op, const struct seqlstm_sizes *sizes,
                              const struct seqlstm_axis *axis, struct seqlstm_idle *idle);

/* NO_MEMORY, INVALID_ARGUMENT (a shape outside the bounds of the descriptor). [queue] */
seqlstm_status blas_recurrent_bind(const struct blas_recurrent *op, struct seqlstm_queue *queue,
                                   const struct seqlstm_bind *bind, struct blas_recurrent_binding **out_binding,
                                   struct seqlstm_error *err);

/* As struct seqlstm_rebind: UNSUPPORTED if the binding has no room for the shape. [queue] */
seqlstm_status blas_recurrent_rebind(struct blas_recurrent_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *bind, struct seqlstm_error *err);
seqlstm_status blas_recurrent_forward(struct blas_recurrent_binding *binding, struct seqlstm_queue *queue,
                                      const struct seqlstm_forward *args, struct seqlstm_error *err);
seqlstm_status blas_recurrent_backward(struct blas_recurrent_binding *binding, struct seqlstm_queue *queue,
                                       const struct seqlstm_backward *args, struct seqlstm_error *err);
seqlstm_status blas_recurrent_weights_pack(const struct blas_recurrent *op, struct seqlstm_queue *queue,
                                           void *const *slots, void *packed, const struct seqlstm_step *step,
                                           struct seqlstm_error *err);

void blas_recurrent_unbind(struct blas_recurrent_binding *binding); /* NULL is fine. [queue] */
void blas_recurrent_destroy(struct blas_recurrent *op);             /* NULL is fine. [control] */

#endif
