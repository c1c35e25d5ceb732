/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a run as an event file of TensorBoard, in its run folder.
 *
 * A metric has a tag for each split, "loss/train" and "loss/valid", which TensorBoard groups; means of whole epochs are
 * "loss/train_epoch". Beside them: epoch, learning_rate, gradient_norm, teacher_forcing, rows_per_second.
 */
#ifndef SL_TRAIN_TENSORBOARD_LOG_H
#define SL_TRAIN_TENSORBOARD_LOG_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "exec/params/params.h"
#include "train/metrics_log.h"

struct sl_tensorboard_log;

/* Makes a file events.out.tfevents.… that does not exist yet. `last_update` > 0: the run is resumed after that update,
 * and TensorBoard forgets what earlier files hold of later ones. Errors: IO, NO_MEMORY. */
seqlstm_status sl_tensorboard_log_open(const char *folder, int64_t last_update, struct sl_tensorboard_log **out_log,
                                       struct seqlstm_error *err);

/* Writes every finite number of a row. */
seqlstm_status sl_tensorboard_log_append(struct sl_tensorboard_log *log, const struct sl_metrics_row *row,
                                         struct seqlstm_error *err);

/* Writes a histogram of each parameter, whose newest values are on the host. */
seqlstm_status sl_tensorboard_log_append_params(struct sl_tensorboard_log *log, int64_t update,
                                                const struct sl_params *params, struct seqlstm_error *err);

/* NULL is fine. */
void sl_tensorboard_log_close(struct sl_tensorboard_log *log);

#endif
