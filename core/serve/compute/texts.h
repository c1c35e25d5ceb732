/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a runner whose model has an encoder and a decoder. They join those that are being written, whenever they
 * come, and leave at their ends. */
#ifndef SL_SERVE_COMPUTE_TEXTS_H
#define SL_SERVE_COMPUTE_TEXTS_H

#include "serve/compute/runner.h"

/* Takes in those that wait, and writes some more tokens of all. Sets `steps` of those that have ended, `failure` of
 * those that were refused. Errors of backends: all that were being written have failed. */
seqlstm_status sl_runner_write_texts(struct sl_runner *runner, struct seqlstm_error *err);
/* In place of it: all from their beginnings to their ends, each by itself. */
seqlstm_status sl_runner_write_each_text(struct sl_runner *runner, struct seqlstm_error *err);
/* The text is not wanted any more. */
void sl_runner_drop_text(struct sl_runner *runner, struct sl_running *running);

#endif
