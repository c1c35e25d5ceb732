/* SPDX-License-Identifier: Apache-2.0 */
/* Reads requests to /v1/completions. See completion.h. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <seqlstm/philox.h>

#include "base/system/clock.h"
#include "base/value/json_tree.h"
#include "serve/body/completion_read.h"

enum { TOKENS_BY_DEFAULT = 16 };

static seqlstm_status fail_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the request");
}

/* ---- prompts ----------------------------------------------------------------------------------------------- */

static seqlstm_status check_prompt(const struct sl_job *job, const struct sl_prompt *prompt, struct seqlstm_error *err)
{
    const int64_t most = job->model->text_steps;
    if (prompt->count > most || job->completion->most > most - prompt->count)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "a prompt of %lld token%s and `max_tokens` %lld are more than %lld, the limit --max-steps",
                     (long long)prompt->count, prompt->count == 1 ? "" : "s", (long long)job->completion->most,
                     (long long)most);
    return SEQLSTM_OK;
}

static seqlstm_status read_text(struct sl_job *job, json_t *value, struct sl_prompt *out, struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = sl_next_token_read_prompt(job->model->state, json_string_value(value),
                                                            json_string_length(value), &out->ids, &out->count, &why);
    if (status == SEQLSTM_NO_MEMORY)
        return fail_memory(err);
    if (status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "prompt: %s", why.message);
    return SEQLSTM_OK;
}

static seqlstm_status read_ids(struct sl_job *job, json_t *value, struct sl_prompt *out, struct seqlstm_error *err)
{
    const size_t count = json_array_size(value);
    const int64_t classes = job->model->input_classes;
    out->ids = malloc((count + 1) * sizeof *out->ids);
    if (out->ids == NULL)
        return fail_memory(err);
    for (size_t k = 0; k < count; k++) {
        json_t *item = json_array_get(value, k);
        const int64_t id = json_is_integer(item) ? (int64_t)json_integer_value(item) : -1;
        if (id < 0 || id >= classes)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "`prompt` is neither a text, nor token ids of at least 0 and below %lld, nor a list of such",
                         (long long)classes);
        out->ids[k] = (int32_t)id;
    }
    out->count = (int64_t)count;
    if (count == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`prompt` is an empty list");
    return SEQLSTM_OK;
}

static seqlstm_status read_prompts(struct sl_job *job, json_t *value, struct seqlstm_error *err)
{
    struct sl_completion *completion = job->completion;
    json_t *first = json_array_get(value, 0);
    const bool several = json_is_string(first) || json_is_array(first);
    const size_t count = several ? json_array_size(value) : 1;
    if (!json_is_string(value) && !json_is_array(value))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`prompt` is missing: a text, token ids, or a list of such");
    if ((int64_t)count > SL_CHOICES_MOST / completion->each)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%zu prompt%s with n %lld are more than %d choices", count,
                     count == 1 ? "" : "s", (long long)completion->each, SL_CHOICES_MOST);
    completion->prompts = calloc(count, sizeof *completion->prompts);
    if (completion->prompts == NULL)
        return fail_memory(err);
    completion->prompt_count = (int64_t)count;
    for (size_t p = 0; p < count; p++) {
        json_t *one = several ? json_array_get(value, p) : value;
        struct sl_prompt *prompt = &completion->prompts[p];
        SEQLSTM_TRY(json_is_string(one) ? read_text(job, one, prompt, err) : read_ids(job, one, prompt, err));
        SEQLSTM_TRY(check_prompt(job, prompt, err));
        job->rows += prompt->count * completion->each;
    }
    return SEQLSTM_OK;
}

static seqlstm_status make_choices(struct sl_job *job, uint64_t seed, struct seqlstm_error *err)
{
    struct sl_completion *completion = job->completion;
    job->count = completion->prompt_count * completion->each;
    job->goes_on = completion->most > 1;
    completion->choices = calloc((size_t)job->count, sizeof *completion->choices);
    if (completion->choices == NULL)
        return fail_memory(err);
    for (int64_t k = 0; k < job->count; k++) {
        struct sl_choice *choice = &completion->choices[k];
        choice->prompt = &completion->prompts[k / completion->each];
        choice->key = sl_next_token_get_key(seed, (uint64_t)k);
        if (completion->echo)
            sl_data_state_decode(job->model->state, choice->prompt->ids, choice->prompt->count, &choice->text);
        if (choice->text.failed)
            return fail_memory(err);
        choice->fixed = choice->text.length_bytes;
    }
    return SEQLSTM_OK;
}

/* ---- settings ---------------------------------------------------------------------------------------------- */

static seqlstm_status read_stop(struct sl_completion *completion, json_t *value, struct seqlstm_error *err)
{
    const size_t count = json_is_string(value) ? 1 : json_array_size(value);
    if ((!json_is_string(value) && !json_is_array(value)) || count > SL_STOPS_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`stop` is neither a text nor a list of at most %d texts",
                     SL_STOPS_MOST);
    for (size_t k = 0; k < count; k++) {
        const char *text = json_string_value(json_is_string(value) ? value : json_array_get(value, k));
        if (text == NULL || text[0] == '\0')
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a `stop` is no text, or an empty one");
        completion->stops[completion->stop_count] = strdup(text);
        if (completion->stops[completion->stop_count++] == NULL)
            return fail_memory(err);
    }
    return SEQLSTM_OK;
}

static seqlstm_status read_number(const char *key, json_t *value, double low, double high, double *out,
                                  struct seqlstm_error *err)
{
    *out = json_number_value(value);
    if (!json_is_number(value) || !(*out >= low && *out <= high))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`%s` is no number from %g to %g", key, low, high);
    return SEQLSTM_OK;
}

static seqlstm_status read_integer(const char *key, json_t *value, int64_t low, int64_t high, int64_t *out,
                                   struct seqlstm_error *err)
{
    *out = (int64_t)json_integer_value(value);
    if (!json_is_integer(value) || *out < low || *out > high)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`%s` is no whole number from %lld to %lld", key, (long long)low,
                     (long long)high);
    return SEQLSTM_OK;
}

static seqlstm_status read_flag(const char *key, json_t *value, bool *out, struct seqlstm_error *err)
{
    *out = json_is_true(value);
    if (!json_is_boolean(value))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`%s` is neither true nor false", key);
    return SEQLSTM_OK;
}

static seqlstm_status read_stream_options(struct sl_completion *completion, json_t *value, struct seqlstm_error *err)
{
    const char *key;
    json_t *item;
    if (!json_is_object(value))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`stream_options` is no object");
    json_object_foreach(value, key, item)
    {
        if (strcmp(key, "include_usage") != 0)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`stream_options` has no `%.60s`: use include_usage", key);
        SEQLSTM_TRY(read_flag(key, item, &completion->adds_usage, err));
    }
    return SEQLSTM_OK;
}

/* Keys of the interface that have no effect here may have the value that asks for none. */
static bool asks_for_nothing(const char *key, json_t *value)
{
    if (strcmp(key, "presence_penalty") == 0 || strcmp(key, "frequency_penalty") == 0)
        return json_is_number(value) && json_number_value(value) == 0;
    if (strcmp(key, "best_of") == 0)
        return json_is_integer(value) && json_integer_value(value) == 1;
    return strcmp(key, "logit_bias") == 0 && json_is_object(value) && json_object_size(value) == 0;
}

static seqlstm_status read_setting(struct sl_completion *completion, const char *key, json_t *value, int64_t *seed,
                                   struct seqlstm_error *err)
{
    if (strcmp(key, "max_tokens") == 0)
        return read_integer(key, value, 1, INT32_MAX, &completion->most, err);
    if (strcmp(key, "temperature") == 0)
        return read_number(key, value, 0, 100, &completion->rule.temperature, err);
    if (strcmp(key, "top_p") == 0)
        return read_number(key, value, 1e-9, 1, &completion->rule.top_p, err);
    if (strcmp(key, "top_k") == 0)
        return read_integer(key, value, 0, INT32_MAX, &completion->rule.top_k, err);
    if (strcmp(key, "n") == 0)
        return read_integer(key, value, 1, SL_CHOICES_MOST, &completion->each, err);
    if (strcmp(key, "seed") == 0)
        return read_integer(key, value, INT64_MIN, INT64_MAX, seed, err);
    if (strcmp(key, "stop") == 0)
        return read_stop(completion, value, err);
    if (strcmp(key, "stream") == 0)
        return read_flag(key, value, &completion->in_parts, err);
    if (strcmp(key, "stream_options") == 0)
        return read_stream_options(completion, value, err);
    if (strcmp(key, "echo") == 0)
        return read_flag(key, value, &completion->echo, err);
    if (strcmp(key, "ignore_eos") == 0)
        return read_flag(key, value, &completion->ignores_end, err);
    if (asks_for_nothing(key, value))
        return SEQLSTM_OK;
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                 "`%.60s` is not supported: use model, prompt, max_tokens, temperature, top_p, top_k, n, seed, stop, "
                 "stream, stream_options, echo or ignore_eos",
                 key);
}

static seqlstm_status read_settings(struct sl_job *job, json_t *root, int64_t *seed, struct seqlstm_error *err)
{
    struct sl_completion *completion = job->completion;
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        if (strcmp(key, "model") != 0 && strcmp(key, "prompt") != 0 && !json_is_null(value))
            SEQLSTM_TRY(read_setting(completion, key, value, seed, err));
    }
    if (json_is_object(json_object_get(root, "stream_options")) && !completion->in_parts)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`stream_options` needs `stream`");
    return SEQLSTM_OK;
}

static seqlstm_status read_root(struct sl_job *job, json_t *root, sl_find_model_fn *find, void *context,
                                struct seqlstm_error *err)
{
    const char *name = json_string_value(json_object_get(root, "model"));
    int64_t seed = (int64_t)seqlstm_mix64((uint64_t)sl_clock_ns(), (uint64_t)(uintptr_t)job, 0);
    if (name == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the request names no `model`: /v1/models lists them");
    job->model = find(context, name);
    if (job->model == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NOT_FOUND, "there is no model `%.60s`: /v1/models lists them", name);
    if (!job->model->continues)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`%.60s` is no language model: POST /v2/models/%.60s/infer asks it",
                     name, name);
    struct sl_completion *completion = job->completion = calloc(1, sizeof *completion);
    if (completion == NULL || !sl_job_prepare_failure(job))
        return fail_memory(err);
    completion->rule = (struct sl_next_token_rule){.temperature = 1, .top_p = 1, .never = job->model->never};
    completion->each = 1;
    completion->most = TOKENS_BY_DEFAULT;
    completion->created_s = (int64_t)time(NULL);
    completion->end = sl_vocabulary_get_special(sl_data_state_find_vocabulary(job->model->state), SL_SPECIAL_EOS);
    SEQLSTM_TRY(read_settings(job, root, &seed, err));
    SEQLSTM_TRY(read_prompts(job, json_object_get(root, "prompt"), err));
    return make_choices(job, (uint64_t)seed, err);
}

seqlstm_status sl_completion_read(struct sl_job *job, const char *body, uint64_t bytes, sl_find_model_fn *find,
                                  void *context, struct seqlstm_error *err)
{
    json_error_t why;
    bool no_memory = false;
    json_t *root = body ? sl_json_load(body, bytes, JSON_REJECT_DUPLICATES, &why, &no_memory) : NULL;
    if (no_memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the request");
    if (!json_is_object(root)) {
        json_decref(root);
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the body is no JSON object: %.160s",
                     root || body == NULL ? "expected {\"model\": ..., \"prompt\": ...}" : why.text);
    }
    const seqlstm_status status = read_root(job, root, find, context, err);
    json_decref(root);
    return status;
}
