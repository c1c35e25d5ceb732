/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: everything that a run needs to continue bit for bit, in one safetensors file.
 *
 *   NAME                        weights under canonical names (sl_weights_load reads a checkpoint too)
 *   optimizer.1.NAME … .3.NAME  states of the optimizer
 *   average.NAME                averaged weights, once averaging is active
 *   best.NAME                   the best weights so far, with early_stopping: restore_best
 *   compress.NAME               with parallel.compress: what it has missed so far, of all ranks
 *   carried                     recurrent states between batches (unit: stream)
 *   metadata                    format "seqlstm.checkpoint", version "1", checksum, state (JSON), "averaged": "1" if
 *                               averaging is active, and texts of the caller ("plan", "config")
 *
 * Files are called update-000000001234.safetensors. A file is written under a temporary name, synced, renamed, and read
 * back (structure and checksum) before older ones are removed. Its bytes depend only on its content.
 */
#ifndef SL_TRAIN_CHECKPOINT_CHECKPOINT_H
#define SL_TRAIN_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/system/log.h"
#include "exec/params/params.h"
#include "interop/safetensors.h"
#include "train/checkpoint/train_state.h"

#define SL_CHECKPOINT_FORMAT  "seqlstm.checkpoint"
#define SL_CHECKPOINT_VERSION "1"
#define SL_CHECKPOINT_AVERAGE "average."
#define SL_CHECKPOINT_BEST    "best."
#define SL_CHECKPOINT_ERRORS  "compress."

/* What is written. Arrays with the layout of params; NULL where there are none. */
struct sl_checkpoint_content {
    const struct sl_params *params; /* values and states */
    const float *average;
    const float *best;
    const float *errors;
    const float *carried;
    int64_t carried_elems;
    const struct sl_train_state *state;
    const struct sl_safetensors_text *texts;
    int32_t text_count;
};

/* Writes and verifies folder/update-N.safetensors, N = state->updates. Makes the folder, but none above it. On failure
 * older checkpoints are unchanged. `*out_path` (may be NULL) is freed with free(). */
seqlstm_status sl_checkpoint_write(const char *folder, const struct sl_checkpoint_content *content, char **out_path,
                                   struct seqlstm_error *err);

/* Removes checkpoints except the `keep_last` newest and those in state->best_entries; also temporary files left by a
 * crash. Warns of what cannot be removed. */
void sl_checkpoint_prune(const char *folder, int64_t keep_last, const struct sl_train_state *state,
                         const struct sl_log *log);

/* Opens the newest valid checkpoint of a folder. Skips damaged ones with a warning that names file and reason.
 * `*out_file` is NULL, with status OK, when there is none at all; CORRUPT_DATA when all are damaged. `*out_path` (may
 * be NULL) is freed with free(). */
seqlstm_status sl_checkpoint_open_latest(const char *folder, const struct sl_log *log, struct sl_safetensors **out_file,
                                         char **out_path, struct seqlstm_error *err);

/* Is there a file with a checkpoint's name, whatever its contents? */
bool sl_checkpoint_folder_has_any(const char *folder);

/* Calls `visit` with the path of each file that has a checkpoint's name. IO: the folder cannot be read; NO_MEMORY: none
 * was visited. */
seqlstm_status sl_checkpoint_folder_visit(const char *folder, void (*visit)(void *context, const char *path),
                                          void *context, struct seqlstm_error *err);

/* Opens one and checks format, version and checksum. */
seqlstm_status sl_checkpoint_open(const char *path, struct sl_safetensors **out_file, struct seqlstm_error *err);

/* Where to put what is read. Arrays as in the content, required if the flag in the file says that it has them
 * (INVALID_CONFIG if NULL). */
struct sl_checkpoint_target {
    struct sl_params *params;
    float *average;
    float *best;
    float *errors; /* zero where the file has none; what it has is dropped if this is NULL */
    float *carried;
    int64_t carried_elems;
    struct sl_train_state *state;
};

/* All or nothing: checks everything before it writes anything. INVALID_CONFIG when a tensor is missing or has another
 * shape: the message and err->where name it; CORRUPT_DATA when the state of the run cannot be read. */
seqlstm_status sl_checkpoint_load(const struct sl_safetensors *file, const struct sl_checkpoint_target *target,
                                  struct seqlstm_error *err);

#endif
