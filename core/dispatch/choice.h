/* SPDX-License-Identifier: Apache-2.0 */
/* Which backend takes one operation, and what the others said. Private to core/dispatch. */
#ifndef SL_DISPATCH_CHOICE_H
#define SL_DISPATCH_CHOICE_H

#include "base/arena.h"
#include "base/buf.h"
#include "dispatch/plan.h"

/* Who may take an operation, in the order in which they are asked. */
struct sl_candidates {
    struct sl_backend *const *backends;
    uint32_t count;
    const char *variant; /* only this variant; NULL: any */
    bool pinned;         /* a refusal is an error, never a substitution */
};

struct sl_choice {
    bool found;
    uint32_t rank;      /* position of the backend among the candidates */
    struct sl_backend *backend;
    uint32_t device;
    const char *variant; /* in the arena */
    struct seqlstm_op *op;
    struct sl_refusal *refusals; /* in the arena */
    int32_t refusal_count;
};

/* Asks the candidates in order and creates the op with the first that accepts. `out->found` false: nobody
 * does; the refusals say why. Errors: NO_MEMORY; INTERNAL when a backend failed to answer. */
seqlstm_status sl_choice_make(struct sl_arena *arena, const struct sl_graph *graph,
                              const struct sl_node *node, const union seqlstm_any_desc *desc,
                              const struct sl_candidates *candidates, struct sl_choice *out,
                              struct seqlstm_error *err);

/* Position of the first candidate whose static rules accept the descriptor; `count` if none does. */
seqlstm_status sl_choice_rank(const union seqlstm_any_desc *desc,
                              const struct sl_candidates *candidates, uint32_t *out_rank,
                              struct seqlstm_error *err);

/* Index of the backend's first device in the host's memory, otherwise of its first; false: it has none. */
bool sl_choice_find_device(const struct sl_backend *backend, uint32_t *out_device);

/* "cpu-onednn: recurrent_dropout 0.25 (m.yaml:22:18): reason; …" */
void sl_choice_write_refusals(struct sl_buf *buf, const struct sl_refusal *refusals, int32_t count);

#endif
