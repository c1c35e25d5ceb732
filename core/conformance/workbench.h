/* SPDX-License-Identifier: Apache-2.0 */
/* The tested backend and the reference, both opened, with queues of 1, 2 and 3 members. */
#ifndef SL_CONFORMANCE_WORKBENCH_H
#define SL_CONFORMANCE_WORKBENCH_H

#include "base/memory/arena.h"
#include "conformance/request.h"

enum { SL_WORKBENCH_QUEUES = 3 };

struct sl_workbench {
    struct sl_arena arena;
    struct sl_backend_record record, reference_record;
    struct seqlstm_backend table, reference_table;
    struct sl_host host, reference_host;
    struct seqlstm_instance *instance, *reference_instance;
    struct sl_pool *pools[SL_WORKBENCH_QUEUES];
    struct sl_queue queues[SL_WORKBENCH_QUEUES];   /* 1, 2 and 3 members; most cases use the last */
    struct sl_domain domains[SL_WORKBENCH_QUEUES]; /* of a device, with as many streams */
    struct sl_queue reference_queue;
    struct sl_outlet outlet;
    char said[160];                 /* text that the plugin wrote while it was loaded and opened; "": none */
    struct sl_log misdeeds;         /* where the watch reports what the plugin did to the process */
    char misdeed[SL_MISDEED_BYTES]; /* the first report of the running check; "": none */
    struct sl_bench bench;
};

/* Loads the table of request->file into the workbench. The record says what happened. Errors: NO_MEMORY. */
seqlstm_status sl_workbench_load(struct sl_workbench *w, const struct sl_conformance_request *request,
                                 struct seqlstm_error *err);

/* Loads and opens. Errors: as sl_conformance_run. The workbench must not be moved. */
seqlstm_status sl_workbench_init(struct sl_workbench *w, const struct sl_conformance_request *request,
                                 struct seqlstm_error *err);
void sl_workbench_deinit(struct sl_workbench *w);

#endif
