/* SPDX-License-Identifier: Apache-2.0 */
/* Why a backend does not run an operation. */
#ifndef SL_DISPATCH_PLAN_REFUSAL_H
#define SL_DISPATCH_PLAN_REFUSAL_H

#include <stdint.h>

#include "base/value/buf.h"
#include "graph/graph.h"

/* The refusal of one backend. */
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
    const char *without; /* keys of the options without which it would accept; NULL: it would not, or is not known */
    double speedup;      /* how many times as fast as the chosen backend it would be without them; 0: not known */
};

/* Appends "cpu-onednn: recurrent_dropout 0.25 (m.yaml:22:18): reason; …" */
void sl_refusals_write(struct sl_buf *buf, const struct sl_refusal *refusals, int32_t count);

#endif
