/* SPDX-License-Identifier: Apache-2.0 */
/* The backend @NAME@: LSTM layers on the CPU.
 *
 * The time loop, the cell and the table come from the kit (<seqlstm/prim_loop_backend.h> and what it includes); the
 * matrix product is ours (gemm.c). To replace the cell too, write two functions after the pattern of
 * seqlstm_prim_cell_forward and _backward in <seqlstm/prim_loop_cell.h> and put them where NULL stands below.
 */
#include <seqlstm/prim_loop_backend.h>

#include "gemm.h"

/* Each is a variant of the backend; the host takes the first unless it measures or is told otherwise
 * (`pin: {layer: @NAME@:plain}`), and the conformance kit proves each. */
static const struct seqlstm_prim prims[] = {
    /* name, product, cell forward, cell backward, further refusals */
    {"blocked", gemm_run, NULL, NULL, NULL},
    {"plain", NULL, NULL, NULL, NULL},
};

SEQLSTM_PRIM_BACKEND("@NAME@", "0.1.0", "unknown", "Apache-2.0", "plain C", prims)
