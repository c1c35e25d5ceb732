/* SPDX-License-Identifier: Apache-2.0 */
/* Removes run folders. */
#ifndef SL_RUNS_REMOVAL_H
#define SL_RUNS_REMOVAL_H

#include <stdint.h>

#include <seqlstm/status.h>

struct sl_run_facts;

/* Bytes of all files in the run's folder; links are not followed. */
int64_t sl_run_count_bytes(const struct sl_run_facts *run);

/* Removes the folder with all that is in it, and the folder above it if that is then empty. The run is locked
 * meanwhile; links are removed, not followed. Errors: IO (native_code EAGAIN: a process writes into the run, and
 * nothing was removed), NOT_FOUND, NO_MEMORY. */
seqlstm_status sl_run_remove(const struct sl_run_facts *run, struct seqlstm_error *err);

#endif
