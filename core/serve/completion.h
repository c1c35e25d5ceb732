/* SPDX-License-Identifier: Apache-2.0 */
/* A request to continue texts, in the form of OpenAI's /v1/completions, and its answer. */
#ifndef SL_SERVE_COMPLETION_H
#define SL_SERVE_COMPLETION_H

#include "base/value/buf.h"
#include "predict/next_token.h"
#include "serve/job.h"

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

/* Finds a model by its name. */
typedef const struct sl_served_model *sl_find_model_fn(void *context, const char *name);

/* Fills job->model and job->completion from the body of a request. NOT_FOUND: no such model; INVALID_ARGUMENT: the
 * message says what is wrong; NO_MEMORY. [any thread] */
seqlstm_status sl_completion_read(struct sl_job *job, const char *body, uint64_t bytes, sl_find_model_fn *find,
                                  void *context, struct seqlstm_error *err);

/* Draws the next token of a choice and adds it to the text. NUMERIC: the probabilities are no numbers; NO_MEMORY. */
seqlstm_status sl_choice_take(const struct sl_job *job, struct sl_choice *choice, const float *probabilities,
                              struct sl_sample_candidate *candidates, struct seqlstm_error *err);

/* Appends the whole answer. */
void sl_completion_write(const struct sl_job *job, struct sl_buf *out);
/* Appends an event with what choice k has more than the client, if it has more or has ended. */
void sl_completion_write_event(const struct sl_job *job, int64_t k, struct sl_buf *out);
/* The last events: the use of tokens, if it is wanted, and the end. */
void sl_completion_write_end(const struct sl_job *job, struct sl_buf *out);

#endif
