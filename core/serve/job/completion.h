/* SPDX-License-Identifier: Apache-2.0 */
/* A request to continue texts, in the form of OpenAI's /v1/completions. */
#ifndef SL_SERVE_JOB_COMPLETION_H
#define SL_SERVE_JOB_COMPLETION_H

#include "base/value/buf.h"
#include "predict/next_token.h"
#include "serve/job/job.h"

enum { SL_STOPS_MOST = 4, SL_CHOICES_MOST = 128 };

struct sl_prompt {
    int32_t *ids; /* [count] */
    int64_t count;
};

/* One text that is written. */
struct sl_choice {
    const struct sl_prompt *prompt;
    uint64_t key;  /* of its random numbers */
    int32_t token; /* the last one */
    int64_t drawn; /* tokens */
    struct sl_buf text;
    size_t fixed;       /* bytes of the text that no stop changes any more */
    size_t sent;        /* bytes that the client has */
    const char *finish; /* "stop" or "length"; NULL: not yet */
};

struct sl_completion {
    struct sl_next_token_rule rule; /* without the key */
    int64_t most;                   /* tokens of a choice */
    char *stops[SL_STOPS_MOST];
    int stop_count;
    bool echo, ignores_end; /* texts begin with their prompts; and go on after an end token */
    bool in_parts;          /* server-sent events */
    bool adds_usage;        /* the last of them counts tokens */
    bool begun;             /* the first event is sent */
    int64_t created_s;
    struct sl_prompt *prompts;
    int64_t prompt_count, each; /* choices of each prompt */
    struct sl_choice *choices;  /* [prompt_count * each] */
    int32_t end;                /* the end token; -1: none */
};

/* NULL is fine. */
void sl_completion_destroy(struct sl_completion *completion);

/* Draws the next token of a choice and adds it to the text. NUMERIC: the probabilities are no numbers; NO_MEMORY. */
seqlstm_status sl_choice_take(const struct sl_job *job, struct sl_choice *choice, const float *probabilities,
                              struct sl_sample_candidate *candidates, struct seqlstm_error *err);

#endif
