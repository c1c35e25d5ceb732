/* SPDX-License-Identifier: Apache-2.0 */
/* The choices of a plan, as they are stored and replayed. */
#ifndef SL_DISPATCH_PLAN_CHOICE_H
#define SL_DISPATCH_PLAN_CHOICE_H

#include "graph/graph.h"

/* A stored choice, for example "lstm_1" -> cpu-blas:packed. Choices of the graph's own phase are binding. If there are
 * none, those of another phase are followed where the backend accepts. */
struct sl_plan_choice {
    const char *node;
    const char *backend;
    const char *variant;
    enum sl_phase phase;
};

#endif
