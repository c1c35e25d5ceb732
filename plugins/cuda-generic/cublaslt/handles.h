/* SPDX-License-Identifier: Apache-2.0 */
/* The handles of cuBLASLt: one per device, created on first use. */
#ifndef CG_CUBLASLT_HANDLES_H
#define CG_CUBLASLT_HANDLES_H

#include <stdint.h>

#include <seqlstm/backend.h>

struct cg_lt_context;
struct cg_lt_handles;

/* Errors: NO_MEMORY. [control] */
seqlstm_status cg_lt_handles_create(const struct seqlstm_host *host, struct cg_lt_handles **out_handles,
                                    struct seqlstm_error *err);
void cg_lt_handles_destroy(const struct seqlstm_host *host, struct cg_lt_handles *handles); /* may be NULL */

/* Finds the handle of a device, given by the host's number and by CUDA's. UNSUPPORTED if the library does not start:
 * the plugin's own kernels then compute. [any] */
seqlstm_status cg_lt_handles_find(struct cg_lt_handles *handles, uint32_t device, int32_t ordinal,
                                  struct cg_lt_context **out_handle, struct seqlstm_error *err);

#endif
