/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan has chosen, as it is stored and replayed. */
#ifndef SL_DISPATCH_PLAN_CHOICE_H
#define SL_DISPATCH_PLAN_CHOICE_H

#include "graph/graph.h"

/* A stored choice: "lstm_1" -> cpu-blas:packed. Where there are choices of the graph's phase they are binding; those of
 * another phase are followed where the backend accepts. */
struct sl_plan_choice {
    const char *node;
    const char *backend;
    const char *variant;
    enum sl_phase phase;
};

#endif
