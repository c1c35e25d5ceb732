/* SPDX-License-Identifier: Apache-2.0 */
/* What every command tells a session. */
#ifndef SL_SESSION_RECORD_OPTIONS_H
#define SL_SESSION_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "model/model.h"
#include "parallel/identity.h"

/* What a saved run is opened for. Changes of keys that this does not read are refused. */
enum sl_run_use {
    SL_RUN_USE_ALL, /* training too */
    SL_RUN_USE_BENCH,
    SL_RUN_USE_PLAN,
    SL_RUN_USE_QUANTIZE,
    SL_RUN_USE_EVALUATE,
    SL_RUN_USE_PREDICT,
    SL_RUN_USE_SERVE,
    SL_RUN_USE_EXPORT,
    SL_RUN_USE_COUNT
};

/* Zeroed: defaults. Borrowed for the life of the session. */
struct sl_session_options {
    const struct sl_model_request *model; /* open_model: the file; open_run: its path is ignored, its overrides apply */
    const char *const *backend_folders;   /* --backend-path */
    uint32_t backend_folder_count;
    const char *forced_backend; /* --backend */
    const char *used_backend;   /* that of a saved run, whose plan names it; NULL: none. Loaded, but not forced */
    const char *plan_path;      /* --plan: stored choices */
    const char *out_dir;        /* --out: the run folder; NULL: the model's output.dir */
    int32_t threads;            /* 0: auto */
    bool threads_given;         /* `threads` takes precedence over the count of a stored plan */
    bool trust;
    bool writes;         /* open_run: the session will write into the run folder, which is locked before it is read */
    enum sl_run_use use; /* open_run: what for */
    const struct sl_rank_identity *identity; /* this process among the ranks of a training; NULL: there are no others */
    const char *collectives;                 /* --collectives: id or file of the plugin; NULL: chosen */
    int64_t stall_ns;                        /* after which a rank that does not come is given up; 0: 10 minutes */
    const struct sl_parallel_config *parallel; /* in place of the model's `parallel`; copied; NULL: as the model says */
    int64_t batch_factor;                      /* batches are so many times as large as the model says; 0: as it says */
    int64_t profile_updates;                   /* --profile: record so many updates; 0: none */
    const struct sl_log *log;
    struct sl_interrupt *interrupt;
};

#endif
