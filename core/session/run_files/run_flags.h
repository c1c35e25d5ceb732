/* SPDX-License-Identifier: Apache-2.0 */
/* flags.json of a run folder: those flags of `run` that are no keys of the configuration. `resume` uses them as long as
 * there is no plan.json, which holds what they led to; the backend is loaded for that plan, too. */
#ifndef SL_SESSION_RUN_FILES_RUN_FLAGS_H
#define SL_SESSION_RUN_FILES_RUN_FLAGS_H

#include <seqlstm/status.h>

struct sl_session;

/* Writes it, if there is anything to write; with --plan also that plan, as plan.json. */
seqlstm_status sl_run_flags_write(const struct sl_session *session, struct seqlstm_error *err);

/* Sets the options of the session that the command line leaves open. Folders with code in them are used only with
 * --trust: else a warning says which flag to repeat. CORRUPT_DATA. */
seqlstm_status sl_run_flags_read(struct sl_session *session, struct seqlstm_error *err);

#endif
