/* SPDX-License-Identifier: Apache-2.0 */
/* One batch of a runner: which steps of its sequences are computed, and how. */
#ifndef SL_SERVE_COMPUTE_BATCH_H
#define SL_SERVE_COMPUTE_BATCH_H

#include "serve/compute/runner.h"

/* Sets `steps` of each sequence and computes them. Errors of backends; NO_MEMORY; those of single texts are noted with
 * their sequences. */
seqlstm_status sl_runner_compute(struct sl_runner *runner, struct seqlstm_error *err);

#endif
