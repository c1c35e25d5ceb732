/* SPDX-License-Identifier: Apache-2.0 */
/* Why a backend does not run an operation, for programs and as a sentence. */
#ifndef SL_DISPATCH_PLAN_REFUSAL_H
#define SL_DISPATCH_PLAN_REFUSAL_H

#include <stdint.h>

#include "base/value/buf.h"
#include "graph/graph.h"

/* A backend that was asked and said no. */
struct sl_refusal {
    const char *backend;
    uint32_t rank;      /* place of the backend in the list */
    uint32_t code;      /* SEQLSTM_BIT_REFUSED_… */
    uint32_t option_id; /* SEQLSTM_OPTION_… */
    const char *option; /* the key in the model file: "recurrent_dropout"; "" for the whole operation */
    const char *value;
    const char *reason;
    const char *hint;
    struct sl_place place;
    const char *without; /* keys of all options without which it would accept; NULL: it would not, or was not asked */
    double speedup;      /* how many times faster than the chosen backend it is without them; 0: not known */
};

/* Appends "cpu-onednn: recurrent_dropout 0.25 (m.yaml:22:18): reason; …" */
void sl_refusals_write(struct sl_buf *buf, const struct sl_refusal *refusals, int32_t count);

#endif
