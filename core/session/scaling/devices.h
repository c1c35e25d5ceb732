/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that compute on devices of their own, as far as `plan --ranks` must know of them. */
#ifndef SL_SESSION_SCALING_DEVICES_H
#define SL_SESSION_SCALING_DEVICES_H

#include <stdint.h>

#include <seqlstm/collectives.h>
#include <seqlstm/status.h>

struct sl_connection;
struct sl_params;
struct sl_session;

/* For a session alone: plans its training, and counts the devices on which its ranks could compute, one each. 0: all
 * calls run on processors. Errors: those of planning. */
seqlstm_status sl_session_count_rank_devices(struct sl_session *session, int32_t *out_devices,
                                             struct seqlstm_error *err);

/* Called by all ranks of a prepared training: on how many different devices they compute. UNSUPPORTED: two of them
 * share one. */
seqlstm_status sl_scaling_count_devices(struct sl_session *session, int32_t *out_devices, struct seqlstm_error *err);

/* Waits for the work of all devices. */
seqlstm_status sl_scaling_finish_devices(struct sl_params *params, struct seqlstm_error *err);

/* Makes the gradients valid on the devices. */
seqlstm_status sl_scaling_upload_grads(struct sl_params *params, struct seqlstm_error *err);

/* Of the first elements of the gradients on the only device, which changes them. */
seqlstm_status sl_scaling_exchange_on_device(struct sl_params *params, struct sl_connection *connection,
                                             struct seqlstm_exchange exchange, struct seqlstm_error *err);

#endif
