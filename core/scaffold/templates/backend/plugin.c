/* SPDX-License-Identifier: Apache-2.0 */
/* The backend @NAME@: LSTM layers on the CPU.
 *
 * The time loop, the cell and the table of functions come from <seqlstm/prim_loop_backend.h> and the headers that it
 * includes. The matrix product is our own (gemm.c). To replace the cell too, copy seqlstm_prim_cell_forward and
 * seqlstm_prim_cell_backward from <seqlstm/prim_loop_cell.h>, change them, and name them in place of NULL below.
 */
#include <seqlstm/prim_loop_backend.h>

#include "gemm.h"

/* Each element is a variant of the backend. The host uses the first one, unless it measures them or the model file pins
 * another (`pin: {layer: @NAME@:plain}`). The conformance kit tests all of them. */
static const struct seqlstm_prim prims[] = {
    /* variant, matrix product, cell forward, cell backward, further refusals; NULL: the plain version, or none */
    {"blocked", gemm_run, NULL, NULL, NULL},
    {"plain", NULL, NULL, NULL, NULL},
};

SEQLSTM_PRIM_BACKEND("@NAME@", "0.1.0", "unknown", "Apache-2.0", "plain C", prims)
