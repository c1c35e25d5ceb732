/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product of the backend. */
#ifndef SL_SCAFFOLD_TEMPLATES_BACKEND_GEMM_H
#define SL_SCAFFOLD_TEMPLATES_BACKEND_GEMM_H

#include <seqlstm/prim_loop_cell.h>

/* C = op(A) op(B) or C +=, as struct seqlstm_prim_gemm says, on all members of the queue. Allocates nothing; the same
 * bits whatever the number of members is. */
void gemm_run(struct seqlstm_queue *queue, const struct seqlstm_prim_gemm *gemm);

#endif
