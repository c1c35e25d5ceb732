/* SPDX-License-Identifier: Apache-2.0 */
/* What a command does, as a library: a model file or a finished run, opened once, on which things are done.
 *
 *   open_model (a YAML file) ─ plan ─ run (makes a run folder) ─ evaluate ─ predict …
 *   open_run   (a run folder) ─ resume, evaluate, predict, generate, inspect
 *
 * A session owns everything between the model file and the backends: data, graphs, plans, executors, parameters, thread
 * pool. It prints nothing: progress goes to observers, notes to the log, errors to the caller. One thread at a time per
 * session; several sessions may live at once. What can be done with a session is declared in the headers included
 * here, one for each trade; each does what it needs of the others, once.
 */
#ifndef SL_SESSION_SESSION_H
#define SL_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/operation/cost.h"
#include "data/dataset/dataset.h"
#include "dispatch/plan/plan.h"
#include "interop/names.h"
#include "model/yaml/diagnostics.h"
#include "registry/registry.h"
#include "session/data/check_data.h"
#include "session/data/read_data.h"
#include "session/evaluate/evaluate.h"
#include "session/evaluate/quantize.h"
#include "session/finding/missing.h"
#include "session/predict/generate.h"
#include "session/predict/lines.h"
#include "session/predict/predict.h"
#include "session/predict/values.h"
#include "session/prepare/backends.h"
#include "session/prepare/batching.h"
#include "session/prepare/evaluation.h"
#include "session/prepare/stage.h"
#include "session/prepare/training.h"
#include "session/record/options.h"
#include "session/run/run.h"
#include "session/run_folder/plan_json.h"
#include "session/weights/exchange.h"
#include "session/weights/trained.h"
#include "train/evaluate.h"
#include "train/trainer/trainer.h"

struct sl_session;

/* Loads a model file. Findings go to `diagnostics`, which is kept for those of later phases. Touches no data and no
 * plugin. */
seqlstm_status sl_session_open_model(const struct sl_session_options *options, struct sl_diagnostics *diagnostics,
                                     struct sl_session **out_session, struct seqlstm_error *err);

/* Opens a run: a folder, or a name, which means the latest run of that name in `runs/`. Loads the saved configuration
 * and data state, and the weights when they are first needed. NOT_FOUND, CORRUPT_DATA. */
seqlstm_status sl_session_open_run(const char *run, const struct sl_session_options *options,
                                   struct sl_diagnostics *diagnostics, struct sl_session **out_session,
                                   struct seqlstm_error *err);
void sl_session_close(struct sl_session *session);

const struct sl_model *sl_session_get_model(const struct sl_session *session);
/* The folder of the run; NULL before one is made. */
const char *sl_session_get_folder(const struct sl_session *session);

/* The following are NULL before they are made. */
const struct sl_dataset *sl_session_find_train_data(const struct sl_session *session);
const struct sl_data_state *sl_session_find_data_state(const struct sl_session *session);

#endif
