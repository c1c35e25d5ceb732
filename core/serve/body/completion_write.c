/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to /v1/completions. See completion.h. */
#include <inttypes.h>

#include "base/value/json_write.h"
#include "serve/body/completion_write.h"

static void append_head(const struct sl_job *job, struct sl_buf *out)
{
    const struct sl_completion *completion = job->completion;
    sl_buf_printf(out,
                  "{\"id\":\"cmpl-%016" PRIx64 "\",\"object\":\"text_completion\",\"created\":%" PRId64 ",\"model\":",
                  completion->choices[0].key, completion->created_s);
    sl_json_append_string(out, job->model->name);
    sl_buf_append_text(out, ",\"choices\":[");
}

static void append_choice(int64_t k, const char *text, size_t bytes, const char *finish, struct sl_buf *out)
{
    sl_buf_printf(out, "{\"index\":%" PRId64 ",\"text\":", k);
    sl_json_append_text(out, text ? text : "", bytes);
    sl_buf_append_text(out, ",\"logprobs\":null,\"finish_reason\":");
    sl_json_append_string(out, finish);
    sl_buf_append_char(out, '}');
}

static void append_usage(const struct sl_completion *completion, struct sl_buf *out)
{
    int64_t prompts = 0, drawn = 0;
    for (int64_t p = 0; p < completion->prompt_count; p++)
        prompts += completion->prompts[p].count;
    for (int64_t k = 0; k < completion->prompt_count * completion->each; k++)
        drawn += completion->choices[k].drawn;
    sl_buf_printf(out,
                  ",\"usage\":{\"prompt_tokens\":%" PRId64 ",\"completion_tokens\":%" PRId64
                  ",\"total_tokens\":%" PRId64 "}",
                  prompts, drawn, prompts + drawn);
}

void sl_completion_write(const struct sl_job *job, struct sl_buf *out)
{
    append_head(job, out);
    for (int64_t k = 0; k < job->count; k++) {
        const struct sl_choice *choice = &job->completion->choices[k];
        if (k > 0)
            sl_buf_append_char(out, ',');
        append_choice(k, choice->text.data, choice->text.length_bytes, choice->finish, out);
    }
    sl_buf_append_char(out, ']');
    append_usage(job->completion, out);
    sl_buf_append_text(out, "}\n");
}

void sl_completion_write_event(const struct sl_job *job, int64_t k, struct sl_buf *out)
{
    struct sl_choice *choice = &job->completion->choices[k];
    if (choice->fixed <= choice->sent && choice->finish == NULL)
        return;
    sl_buf_append_text(out, "data: ");
    append_head(job, out);
    append_choice(k, choice->text.data ? choice->text.data + choice->sent : NULL, choice->fixed - choice->sent,
                  choice->finish, out);
    sl_buf_append_text(out, "]}\n\n");
    choice->sent = choice->fixed;
}

void sl_completion_write_end(const struct sl_job *job, struct sl_buf *out)
{
    if (job->completion->adds_usage) {
        sl_buf_append_text(out, "data: ");
        append_head(job, out);
        sl_buf_append_char(out, ']');
        append_usage(job->completion, out);
        sl_buf_append_text(out, "}\n\n");
    }
    sl_buf_append_text(out, "data: [DONE]\n\n");
}
