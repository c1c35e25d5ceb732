/* SPDX-License-Identifier: Apache-2.0 */
/* Writes texts token by token. See completion.h. */
#include "serve/job/completion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"

void sl_completion_destroy(struct sl_completion *completion)
{
    if (completion == NULL)
        return;
    for (int64_t k = 0; completion->choices && k < completion->prompt_count * completion->each; k++)
        sl_buf_deinit(&completion->choices[k].text);
    for (int64_t p = 0; completion->prompts && p < completion->prompt_count; p++)
        free(completion->prompts[p].ids);
    for (int s = 0; s < completion->stop_count; s++)
        free(completion->stops[s]);
    free(completion->choices);
    free(completion->prompts);
    free(completion);
}

/* The first place in the text, from byte `from` on, where a stop begins; its length: there is none. */
static size_t find_stop(const struct sl_completion *completion, const struct sl_buf *text, size_t from)
{
    size_t first = text->length_bytes;
    for (int s = 0; s < completion->stop_count; s++) {
        const size_t bytes = strlen(completion->stops[s]);
        for (size_t at = from; at + bytes <= text->length_bytes && at < first; at++)
            if (memcmp(text->data + at, completion->stops[s], bytes) == 0)
                first = at;
    }
    return first;
}

/* Could a stop begin at byte `at`, and end in what is still to come? */
static bool may_stop(const struct sl_completion *completion, const struct sl_buf *text, size_t at)
{
    for (int s = 0; s < completion->stop_count; s++) {
        const size_t rest = text->length_bytes - at;
        if (rest < strlen(completion->stops[s]) && memcmp(text->data + at, completion->stops[s], rest) == 0)
            return true;
    }
    return false;
}

/* The text up to the first byte where a stop may begin, without the first bytes of a character. */
static size_t find_fixed(const struct sl_completion *completion, const struct sl_buf *text, size_t from)
{
    size_t fixed = from, bad = 0;
    while (fixed < text->length_bytes && !may_stop(completion, text, fixed))
        fixed++;
    while (fixed > from && ((unsigned char)text->data[fixed - 1] & 0xc0) == 0x80 && fixed + 3 > text->length_bytes &&
           !sl_text_is_utf8(text->data + from, fixed - from, &bad))
        fixed--;
    if (fixed > from && (unsigned char)text->data[fixed - 1] >= 0xc0)
        fixed--;
    return fixed;
}

seqlstm_status sl_choice_take(const struct sl_job *job, struct sl_choice *choice, const float *probabilities,
                              struct sl_sample_candidate *candidates, struct seqlstm_error *err)
{
    const struct sl_completion *completion = job->completion;
    struct sl_next_token_rule rule = completion->rule;
    const uint32_t position = (uint32_t)(choice->prompt->count + choice->drawn);
    if (!isfinite(probabilities[0])) /* of a softmax: none of the row is a number */
        SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "the model's probabilities after %u token%s are not numbers", position,
                     position == 1 ? "" : "s");
    const int32_t before = choice->drawn ? choice->token : choice->prompt->ids[choice->prompt->count - 1];
    rule.key = choice->key;
    choice->token = sl_next_token_draw(&rule, probabilities, job->model->output_features, position, candidates);
    choice->drawn++;
    if (choice->token == completion->end && !completion->ignores_end) {
        choice->finish = "stop";
        choice->fixed = choice->text.length_bytes;
        return SEQLSTM_OK;
    }
    sl_next_token_append(job->model->state, before, choice->token, &choice->text);
    if (choice->text.failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a text");
    const size_t stop = find_stop(completion, &choice->text, choice->fixed);
    if (stop < choice->text.length_bytes) {
        sl_buf_truncate(&choice->text, stop);
        choice->finish = "stop";
    } else if (choice->drawn >= completion->most)
        choice->finish = "length";
    choice->fixed = choice->finish ? choice->text.length_bytes : find_fixed(completion, &choice->text, choice->fixed);
    return SEQLSTM_OK;
}
