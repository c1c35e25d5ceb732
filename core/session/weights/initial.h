/* SPDX-License-Identifier: Apache-2.0 */
/* Initial weights that are not drawn. */
#ifndef SL_SESSION_WEIGHTS_INITIAL_H
#define SL_SESSION_WEIGHTS_INITIAL_H

#include <seqlstm/status.h>

struct sl_session;

/* Loads pretrained word vectors, and the weights of another run (init_from), into fresh parameters. */
seqlstm_status sl_session_load_initial(struct sl_session *session, struct seqlstm_error *err);

#endif
