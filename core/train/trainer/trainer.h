/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop. The caller builds model, data, plans, executors and parameters; the trainer runs them and informs
 * observers. It prints nothing.
 *
 * One update: fetch `accumulate` batches (with bptt in unit: sequence all segments of a batch belong together), compute
 * their weights, run each with the same normaliser, the last one with the update, and update the averages. Then, in
 * this order, where due: report, end of epoch, validation, checkpoint, request to stop.
 *
 * Invariants:
 *  1. The weights after update n are a function of (model, data, plan, n): not of time, nor of interruptions. (Except
 *     with periods in seconds.)
 *  2. A checkpoint is only written between updates, after everything that was due at its update, except a validation
 *     that a request to stop interrupted; that one comes first after resume.
 *  3. After a run that ended by itself (epochs, updates, early stopping) params hold the weights to be saved: the best
 *     ones (restore_best), else the averaged ones if averaging is active, else the last. After any other end they hold
 *     the last weights, or the averaged ones.
 *  4. If a run ended by itself, the loss of its last epoch (unless best weights are restored) and of its last
 * validation is finite; otherwise it has diverged.
 */
#ifndef SL_TRAIN_TRAINER_TRAINER_H
#define SL_TRAIN_TRAINER_TRAINER_H

#include "train/trainer/request.h"
#include "train/trainer/result.h"

struct sl_trainer;

/* Sets the initial states of the optimizer (adagrad). INVALID_CONFIG for what data or options do not allow; other
 * errors as below. */
seqlstm_status sl_trainer_create(const struct sl_trainer_request *request, struct sl_trainer **out_trainer,
                                 struct seqlstm_error *err);
void sl_trainer_destroy(struct sl_trainer *trainer);

/* Sets trainer, params and carried states to those of the checkpoint (sl_checkpoint_open_latest). Before run.
 * INVALID_CONFIG when it does not fit the model. */
seqlstm_status sl_trainer_restore(struct sl_trainer *trainer, const struct sl_safetensors *checkpoint,
                                  struct seqlstm_error *err);

/* Runs to one of the ends. Returns at once when the run has already ended. Errors: of data, executor and files; earlier
 * checkpoints stay. A checkpoint is written at every end but DIVERGED (with a folder). */
seqlstm_status sl_trainer_run(struct sl_trainer *trainer, struct sl_train_result *out_result,
                              struct seqlstm_error *err);

#endif
