/* SPDX-License-Identifier: Apache-2.0 */
/* See infer_parameters.h. */
#include "serve/body/infer_parameters.h"

#include <stdio.h>
#include <string.h>

enum { ID_BYTES_MOST = 256 };

static seqlstm_status read_id(struct sl_job *job, json_t *value, struct seqlstm_error *err)
{
    char digits[24];
    const char *id = json_string_value(value);
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(value));
        id = strcmp(digits, "0") == 0 ? "" : digits;
    }
    if (id == NULL || strlen(id) > ID_BYTES_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "`sequence_id` is neither a number of at least 0 nor a text of at most %d bytes", ID_BYTES_MOST);
    if (id[0] && (job->stream_id = strdup(id)) == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the request");
    return SEQLSTM_OK;
}

static seqlstm_status read_flag(const char *key, json_t *value, bool *out, struct seqlstm_error *err)
{
    if (!json_is_boolean(value))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`%s` is neither true nor false", key);
    *out = json_is_true(value);
    return SEQLSTM_OK;
}

seqlstm_status sl_infer_read_parameters(struct sl_job *job, json_t *root, struct seqlstm_error *err)
{
    json_t *all = json_object_get(root, "parameters"), *value;
    bool unused;
    const char *key;
    if (all && !json_is_object(all))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`parameters` is no object");
    json_object_foreach(all, key, value)
    {
        if (strcmp(key, "sequence_id") == 0)
            SEQLSTM_TRY(read_id(job, value, err));
        else if (strcmp(key, "sequence_start") == 0)
            SEQLSTM_TRY(read_flag(key, value, &job->starts, err));
        else if (strcmp(key, "sequence_end") == 0)
            SEQLSTM_TRY(read_flag(key, value, &job->ends, err));
        else if (strcmp(key, "binary_data_output") == 0)
            SEQLSTM_TRY(read_flag(key, value, &unused, err));
        else
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "there is no parameter `%.60s`: use sequence_id, sequence_start, sequence_end or "
                         "binary_data_output",
                         key);
    }
    if (job->stream_id == NULL && (job->starts || job->ends))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`sequence_start` and `sequence_end` need a `sequence_id`");
    return SEQLSTM_OK;
}

seqlstm_status sl_infer_check_stream(const struct sl_job *job, struct seqlstm_error *err)
{
    if (job->stream_id && (job->count != 1 || job->rows < 1))
        SEQLSTM_FAIL(
            err, SEQLSTM_INVALID_ARGUMENT,
            "a request with a `sequence_id` is one sequence of at least one step, and this has %lld sequence%s "
            "and %lld step%s",
            (long long)job->count, job->count == 1 ? "" : "s", (long long)job->rows, job->rows == 1 ? "" : "s");
    return SEQLSTM_OK;
}
