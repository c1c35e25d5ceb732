/* SPDX-License-Identifier: Apache-2.0 */
/* The handles of cuBLASLt: one per device, created on first use; and the algorithms that it has recommended so far. */
#ifndef CG_CUBLASLT_HANDLES_H
#define CG_CUBLASLT_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

struct cg_lt_algorithm;
struct cg_lt_context;
struct cg_lt_handles;

/* All that a recommendation depends on: sizes in memory (column-major), what is transposed, and so on. Compared byte by
 * byte; it has no padding. */
struct cg_lt_key {
    int64_t a_rows, a_columns, b_rows, b_columns;
    int32_t a_op, b_op, compute, epilogue;
    uint32_t alignment, device;
};
_Static_assert(sizeof(struct cg_lt_key) == 56, "a key has no padding");

/* Errors: NO_MEMORY. [control] */
seqlstm_status cg_lt_handles_create(const struct seqlstm_host *host, struct cg_lt_handles **out_handles,
                                    struct seqlstm_error *err);
void cg_lt_handles_destroy(const struct seqlstm_host *host, struct cg_lt_handles *handles); /* may be NULL */

/* Finds the handle of a device, given by the host's number and by CUDA's. UNSUPPORTED if the library does not start:
 * the plugin's own kernels then compute. [any] */
seqlstm_status cg_lt_handles_find(struct cg_lt_handles *handles, uint32_t device, int32_t ordinal,
                                  struct cg_lt_context **out_handle, struct seqlstm_error *err);

/* Finds the algorithm that was recommended for this product; false: there is none. [any] */
bool cg_lt_handles_recall(struct cg_lt_handles *handles, const struct cg_lt_key *key,
                          struct cg_lt_algorithm *out_algorithm);
/* Keeps it; the oldest one makes room. [any] */
void cg_lt_handles_remember(struct cg_lt_handles *handles, const struct cg_lt_key *key,
                            const struct cg_lt_algorithm *algorithm);

#endif
