/* SPDX-License-Identifier: Apache-2.0 */
/* See next_token.h. u = Philox(key = mix64(seed, GENERATE_STREAM, index), element 0, step = position). */
#include "predict/next_token.h"

#include <seqlstm/philox.h>

#define GENERATE_STREAM UINT64_C(0x67656e6572617465) /* "generate" */

uint64_t sl_next_token_get_key(uint64_t seed, uint64_t index)
{
    return seqlstm_mix64(seed, GENERATE_STREAM, index);
}

int32_t sl_next_token_draw(const struct sl_next_token_rule *rule, const float *probabilities, int64_t classes,
                           uint32_t position, struct sl_sample_candidate *candidates)
{
    const struct sl_sample_rule drawn = {rule->temperature, rule->top_k, rule->top_p, rule->never};
    if (!(rule->temperature > 0))
        return sl_sample_find_best(&rule->never, probabilities, classes);
    const double u = (double)seqlstm_uniform(rule->key, 0, position, 0);
    return sl_sample_draw(&drawn, probabilities, classes, u, candidates);
}

seqlstm_status sl_next_token_read_prompt(const struct sl_data_state *state, const char *text, size_t bytes,
                                         int32_t **out_ids, int64_t *out_count, struct seqlstm_error *err)
{
    const struct sl_vocabulary *vocabulary = sl_data_state_find_vocabulary(state);
    SEQLSTM_TRY(sl_data_state_encode(state, text, bytes, false, out_ids, out_count, err));
    if (*out_count > 0)
        return SEQLSTM_OK;
    const int32_t eos = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_EOS);
    const int32_t newline = sl_vocabulary_find(vocabulary, "\n", 1);
    (*out_ids)[0] = eos >= 0 ? eos : newline >= 0 ? newline : 0;
    *out_count = 1;
    return SEQLSTM_OK;
}

void sl_next_token_append(const struct sl_data_state *state, int32_t before, int32_t token, struct sl_buf *out)
{
    const int32_t pair[2] = {before, token};
    struct sl_buf one = {0}, two = {0};
    sl_data_state_decode(state, pair, 1, &one);
    sl_data_state_decode(state, pair, 2, &two);
    if (two.length_bytes > one.length_bytes)
        sl_buf_append(out, two.data + one.length_bytes, two.length_bytes - one.length_bytes);
    out->failed = out->failed || one.failed || two.failed;
    sl_buf_deinit(&one);
    sl_buf_deinit(&two);
}
