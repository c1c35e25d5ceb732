/* SPDX-License-Identifier: Apache-2.0 */
/* How a session shares its training with other ranks. */
#ifndef SL_SESSION_PREPARE_DIVISION_H
#define SL_SESSION_PREPARE_DIVISION_H

#include <seqlstm/status.h>

#include "train/exchanged.h"

struct sl_parallel_config;
struct sl_session;

/* Before the thread pool is made: the threads of a rank. With `shards` one, since the bits depend on it; otherwise its
 * share of the host. INVALID_CONFIG: `--threads` asks for more than one together with `shards`. */
seqlstm_status sl_session_divide_threads(struct sl_session *session, struct seqlstm_error *err);

/* When the thread pool is made: are gradients exchanged during the backward pass? Not where the threads of the ranks
 * take all cores of their only host: an exchange would take the time from them. */
void sl_session_choose_overlap(struct sl_session *session);

/* Before ranks are started: finds what each of them would refuse, so that it is said once. */
seqlstm_status sl_session_check_ranks(struct sl_session *session, struct seqlstm_error *err);

/* Meets the other ranks, if there are any. INVALID_CONFIG: their number does not fit the model; else as
 * sl_connection_open. */
seqlstm_status sl_session_join(struct sl_session *session, struct seqlstm_error *err);
/* Meets the ranks of options.identity as `config` says, in place of the model: for measurements. The config must
 * outlive the session. */
seqlstm_status sl_session_meet(struct sl_session *session, const struct sl_parallel_config *config,
                               struct seqlstm_error *err);
/* Leaves them. The others notice it if they still need this one. */
void sl_session_leave(struct sl_session *session);

/* Rank 0 makes the plan, and the others follow it: rank 0 calls `send` when it is made, the others `take` before they
 * prepare. Both do nothing without other ranks. */
seqlstm_status sl_session_send_plan(struct sl_session *session, struct seqlstm_error *err);
seqlstm_status sl_session_take_plan(struct sl_session *session, struct seqlstm_error *err);

/* UNSUPPORTED: the plan of a divided training has calls on another device than the processor. INVALID_CONFIG:
 * `compress` makes no gradient smaller. */
seqlstm_status sl_session_check_division(struct sl_session *session, struct seqlstm_error *err);

/* What of the gradients is exchanged in which form. The training batcher is open. */
struct sl_exchanged_request sl_session_request_exchange(const struct sl_session *session);

#endif
