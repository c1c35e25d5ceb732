/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product of the backend. */
#ifndef SL_SCAFFOLD_TEMPLATES_BACKEND_GEMM_H
#define SL_SCAFFOLD_TEMPLATES_BACKEND_GEMM_H

#include <seqlstm/prim_loop_cell.h>

/* C = or += op(A) op(B), as described at struct seqlstm_prim_gemm, on all members of the queue. Allocates nothing. The
 * bits of the result do not depend on the number of members. */
void gemm_run(struct seqlstm_queue *queue, const struct seqlstm_prim_gemm *gemm);

#endif
