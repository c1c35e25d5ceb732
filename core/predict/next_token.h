/* SPDX-License-Identifier: Apache-2.0 */
/* How a language model goes on: its prompt, the next token, and what that adds to the text. */
#ifndef SL_PREDICT_NEXT_TOKEN_H
#define SL_PREDICT_NEXT_TOKEN_H

#include <stddef.h>

#include "base/value/buf.h"
#include "data/dataset/state.h"
#include "decode/sample.h"

struct sl_next_token_rule {
    double temperature; /* 0: the likeliest token */
    int64_t top_k;      /* 0: all */
    double top_p;       /* 1: all */
    struct sl_never never;
    uint64_t key; /* of the random numbers: sl_next_token_get_key */
};

/* The same seed and index give the same tokens on every backend, up to ties in the last bits. */
uint64_t sl_next_token_get_key(uint64_t seed, uint64_t index);

/* The token after `position` tokens. `candidates` has room for all classes. [any thread] */
int32_t sl_next_token_draw(const struct sl_next_token_rule *rule, const float *probabilities, int64_t classes,
                           uint32_t position, struct sl_sample_candidate *candidates);

/* The ids of a prompt, at least one: of an empty one the token that begins a line, or the most frequent one. *out_ids
 * is freed with free(). Errors as sl_data_state_encode. */
seqlstm_status sl_next_token_read_prompt(const struct sl_data_state *state, const char *text, size_t bytes,
                                         int32_t **out_ids, int64_t *out_count, struct seqlstm_error *err);

/* Appends what the token adds to a text that ends with the token `before`, with the space between them. */
void sl_next_token_append(const struct sl_data_state *state, int32_t before, int32_t token, struct sl_buf *out);

#endif
