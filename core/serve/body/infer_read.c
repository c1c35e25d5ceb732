/* SPDX-License-Identifier: Apache-2.0 */
/* See infer_read.h. */
#include "serve/body/infer_read.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/json_tree.h"
#include "serve/body/infer_parameters.h"

enum { DEPTH_MOST = 8 };

enum datatype { FP32, FP64, INT32, INT64, BYTES, DATATYPES };

static const struct {
    const char *name;
    size_t bytes; /* of an element; 0: its own length comes before it */
} datatypes[DATATYPES] = {{"FP32", 4}, {"FP64", 8}, {"INT32", 4}, {"INT64", 8}, {"BYTES", 0}};

/* One input of a request: its elements are in `data` or in `binary`. */
struct tensor {
    const char *name;
    enum datatype type;
    int64_t elems, first; /* of the shape, and of its first dimension */
    json_t *data;
    const unsigned char *binary;
    size_t binary_bytes;
};

/* ---- the form of a request --------------------------------------------------------------------------------- */

/* `most`: bytes of the body, each element of which takes at least one: a shape alone allocates no memory. */
static seqlstm_status read_shape(json_t *input, int64_t most, struct tensor *out, struct seqlstm_error *err)
{
    json_t *shape = json_object_get(input, "shape"), *size;
    size_t d;
    out->elems = 1;
    if (!json_is_array(shape) || json_array_size(shape) == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "input `%.60s` has no `shape`", out->name);
    json_array_foreach(shape, d, size)
    {
        const int64_t n = json_is_integer(size) ? (int64_t)json_integer_value(size) : -1;
        if (n < 0 || n > most || (n > 0 && out->elems > most / n))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "the shape of input `%.60s` is no list of sizes, or more than the body holds", out->name);
        out->elems *= n;
        if (d == 0)
            out->first = n;
    }
    return SEQLSTM_OK;
}

static seqlstm_status read_type(json_t *input, struct tensor *out, struct seqlstm_error *err)
{
    const char *name = json_string_value(json_object_get(input, "datatype"));
    int type = 0;
    while (name && type < DATATYPES && strcmp(datatypes[type].name, name) != 0)
        type++;
    if (name == NULL || type == DATATYPES)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "the datatype of input `%.60s` is `%.20s`: use FP32, FP64, INT32, INT64 or BYTES", out->name,
                     name ? name : "missing");
    out->type = (enum datatype)type;
    return SEQLSTM_OK;
}

/* Binary tensors stand in the order of the inputs behind the JSON. */
struct binary {
    const unsigned char *data;
    size_t bytes;
    int64_t body_bytes; /* of all */
};

static seqlstm_status read_tensor(json_t *input, struct binary *binary, struct tensor *out, struct seqlstm_error *err)
{
    json_t *size = json_object_get(json_object_get(input, "parameters"), "binary_data_size");
    *out = (struct tensor){.name = json_string_value(json_object_get(input, "name"))};
    if (out->name == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "an input has no `name`");
    SEQLSTM_TRY(read_shape(input, binary->body_bytes, out, err));
    SEQLSTM_TRY(read_type(input, out, err));
    out->data = json_object_get(input, "data");
    if (size == NULL) {
        if (!json_is_array(out->data))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "input `%.60s` has no `data`", out->name);
        return SEQLSTM_OK;
    }
    const int64_t bytes = json_is_integer(size) ? (int64_t)json_integer_value(size) : -1;
    const int64_t each = (int64_t)datatypes[out->type].bytes;
    if (bytes < 0 || (uint64_t)bytes > binary->bytes || (each > 0 && bytes != out->elems * each))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "input `%.60s` has the wrong `binary_data_size`", out->name);
    out->binary = binary->data;
    out->binary_bytes = (size_t)bytes;
    binary->data += bytes;
    binary->bytes -= (size_t)bytes;
    return SEQLSTM_OK;
}

/* ---- numbers ----------------------------------------------------------------------------------------------- */

/* Where numbers go: floats, or integers within [0, limit). `beyond`: the next number does not fit into a float.
 */
struct sink {
    float *floats;
    int32_t *ids;
    int64_t *integers;
    int64_t limit, count, most;
    bool beyond;
};

static bool put(struct sink *sink, double value)
{
    if (sink->count == sink->most)
        return false;
    if (sink->floats) {
        sink->beyond = isfinite(value) && fabs(value) > FLT_MAX;
        if (!sink->beyond)
            sink->floats[sink->count++] = (float)value;
        return !sink->beyond;
    }
    if (!(value >= 0) || value >= (double)sink->limit || value != floor(value))
        return false;
    if (sink->ids)
        sink->ids[sink->count++] = (int32_t)value;
    else
        sink->integers[sink->count++] = (int64_t)value;
    return true;
}

/* Lists inside lists, row by row, or one flat list. */
static bool put_json(struct sink *sink, json_t *data, int depth)
{
    size_t i;
    json_t *item;
    if (depth == 0)
        return false;
    json_array_foreach(data, i, item)
    {
        const bool fine = json_is_array(item)    ? put_json(sink, item, depth - 1)
                          : json_is_number(item) ? put(sink, json_number_value(item))
                                                 : false;
        if (!fine)
            return false;
    }
    return true;
}

static bool put_binary(struct sink *sink, const struct tensor *tensor)
{
    for (int64_t i = 0; i < tensor->elems; i++) {
        const unsigned char *from = tensor->binary + (size_t)i * datatypes[tensor->type].bytes;
        double value = 0;
        float f;
        int32_t small;
        int64_t large;
        if (tensor->type == FP32)
            value = (memcpy(&f, from, sizeof f), f);
        else if (tensor->type == FP64)
            memcpy(&value, from, sizeof value);
        else if (tensor->type == INT32)
            value = (memcpy(&small, from, sizeof small), small);
        else
            value = (double)(memcpy(&large, from, sizeof large), large);
        if (!put(sink, value))
            return false;
    }
    return true;
}

static seqlstm_status read_numbers(const struct tensor *tensor, struct sink *sink, struct seqlstm_error *err)
{
    const bool fine =
        tensor->type != BYTES &&
        (tensor->binary || tensor->data == NULL ? put_binary(sink, tensor) : put_json(sink, tensor->data, DEPTH_MOST));
    if (fine && sink->count == sink->most)
        return SEQLSTM_OK;
    if (sink->beyond)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "number %lld of `%.60s` does not fit into float32",
                     (long long)sink->count + 1, tensor->name);
    if (sink->floats)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the data of `%.60s` are not %lld number%s, as its shape says",
                     tensor->name, (long long)sink->most, sink->most == 1 ? "" : "s");
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                 "the data of `%.60s` are not %lld whole number%s of at least 0 and below %lld", tensor->name,
                 (long long)sink->most, sink->most == 1 ? "" : "s", (long long)sink->limit);
}

/* ---- inputs ------------------------------------------------------------------------------------------------ */

static seqlstm_status fail_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the request");
}

static seqlstm_status read_x(struct sl_job *job, const struct tensor *tensor, struct seqlstm_error *err)
{
    const struct sl_served_model *model = job->model;
    const int64_t features = model->input_features;
    if (tensor->elems % features != 0 || (features > 1 && tensor->first * features != tensor->elems))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the shape of `x` is not [rows, %lld]", (long long)features);
    if (model->reads_ids && tensor->type != INT32 && tensor->type != INT64)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`x` holds ids: its datatype is INT32 or INT64");
    job->rows = tensor->elems / features;
    job->x = malloc((size_t)tensor->elems * sizeof(float) + 1);
    if (job->x == NULL)
        return fail_memory(err);
    struct sink sink = {.floats = model->reads_ids ? NULL : job->x,
                        .ids = model->reads_ids ? job->x : NULL,
                        .limit = model->input_classes,
                        .most = tensor->elems};
    return read_numbers(tensor, &sink, err);
}

static seqlstm_status read_lengths(struct sl_job *job, const struct tensor *tensor, struct seqlstm_error *err)
{
    if (!job->model->reads_steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the model reads single rows: there are no `lengths`");
    if (tensor->type != INT32 && tensor->type != INT64)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the datatype of `lengths` is INT32 or INT64");
    job->count = tensor->elems;
    job->lengths = malloc((size_t)tensor->elems * sizeof *job->lengths + 1);
    if (job->lengths == NULL)
        return fail_memory(err);
    struct sink sink = {.integers = job->lengths, .limit = job->model->steps + 1, .most = tensor->elems};
    return read_numbers(tensor, &sink, err);
}

/* Text k of BYTES: a string in JSON; in binary its length in 4 bytes, and the bytes. */
static bool find_text(const struct tensor *tensor, int64_t k, size_t *at, const char **out, size_t *out_bytes)
{
    if (tensor->binary == NULL) {
        json_t *item = json_array_get(tensor->data, (size_t)k);
        *out = json_string_value(item);
        *out_bytes = json_string_length(item);
        return *out != NULL;
    }
    uint32_t bytes;
    if (tensor->binary_bytes - *at < sizeof bytes)
        return false;
    memcpy(&bytes, tensor->binary + *at, sizeof bytes);
    if (tensor->binary_bytes - *at - sizeof bytes < bytes)
        return false;
    *out = (const char *)tensor->binary + *at + sizeof bytes;
    *out_bytes = bytes;
    *at += sizeof bytes + bytes;
    return true;
}

/* A text that the model reads itself. */
static seqlstm_status keep_text(struct sl_job *job, int64_t k, const char *text, size_t bytes,
                                struct seqlstm_error *err)
{
    job->texts[k] = malloc(bytes + 1);
    job->text_bytes[k] = bytes;
    if (job->texts[k] == NULL)
        return fail_memory(err);
    memcpy(job->texts[k], text, bytes);
    return SEQLSTM_OK;
}

static seqlstm_status make_texts(struct sl_job *job, struct seqlstm_error *err)
{
    const size_t count = (size_t)job->count + 1;
    job->texts = calloc(count, sizeof *job->texts);
    job->text_bytes = calloc(count, sizeof *job->text_bytes);
    job->written = calloc(count, sizeof *job->written);
    const bool fine = job->texts && job->text_bytes && job->written && sl_job_prepare_failure(job);
    return fine ? SEQLSTM_OK : fail_memory(err);
}

static seqlstm_status add_text(struct sl_job *job, int64_t k, const char *text, size_t bytes, struct seqlstm_error *err)
{
    int32_t *ids = NULL;
    int64_t count = 0;
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_data_state_encode(job->model->state, text, bytes, true, &ids, &count, &why);
    if (status != SEQLSTM_OK && status != SEQLSTM_NO_MEMORY)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "text %lld: %s", (long long)k, why.message);
    int32_t *grown = status == SEQLSTM_OK && count <= job->model->steps
                         ? realloc(job->x, (size_t)(job->rows + count) * sizeof *grown + 1)
                         : NULL;
    if (grown) {
        memcpy(grown + job->rows, ids, (size_t)count * sizeof *ids);
        job->x = grown;
        job->rows += count;
        job->lengths[k] = count;
    }
    free(ids);
    if (status == SEQLSTM_OK && count > job->model->steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "text %lld has %lld tokens, the limit is %lld", (long long)k,
                     (long long)count, (long long)job->model->steps);
    return grown ? SEQLSTM_OK : fail_memory(err);
}

static seqlstm_status read_texts(struct sl_job *job, const struct tensor *tensor, struct seqlstm_error *err)
{
    size_t at = 0;
    if (!job->model->reads_text || tensor->type != BYTES)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s",
                     job->model->reads_text ? "the datatype of `text` is BYTES" : "the model reads no text");
    if (tensor->binary == NULL && (int64_t)json_array_size(tensor->data) != tensor->elems)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the data of `text` are not %lld string%s, as its shape says",
                     (long long)tensor->elems, tensor->elems == 1 ? "" : "s");
    job->count = tensor->elems;
    if (job->model->decodes)
        SEQLSTM_TRY(make_texts(job, err));
    else if ((job->lengths = calloc((size_t)tensor->elems + 1, sizeof *job->lengths)) == NULL ||
             (job->x = malloc(1)) == NULL) /* it is there, also of no text */
        return fail_memory(err);
    for (int64_t k = 0; k < tensor->elems; k++) {
        const char *text = NULL;
        size_t bytes = 0;
        if (!find_text(tensor, k, &at, &text, &bytes))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the data of `text` are not %lld string%s, as its shape says",
                         (long long)tensor->elems, tensor->elems == 1 ? "" : "s");
        SEQLSTM_TRY(job->model->decodes ? keep_text(job, k, text, bytes, err) : add_text(job, k, text, bytes, err));
    }
    if (tensor->binary && at < tensor->binary_bytes)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "the data of `text` have %zu bytes more than the strings that its shape counts",
                     tensor->binary_bytes - at);
    return SEQLSTM_OK;
}

static seqlstm_status read_input(struct sl_job *job, const struct tensor *tensor, struct seqlstm_error *err)
{
    const bool text = strcmp(tensor->name, "text") == 0, x = strcmp(tensor->name, "x") == 0;
    if ((job->x && (text || x)) || (job->lengths && !x) || job->texts)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "input `%.60s` is there twice, or beside `text`", tensor->name);
    if (text)
        return read_texts(job, tensor, err);
    if (x && !job->model->decodes)
        return read_x(job, tensor, err);
    if (strcmp(tensor->name, "lengths") == 0 && !job->model->decodes)
        return read_lengths(job, tensor, err);
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no input `%.60s`: use %s", tensor->name,
                 job->model->decodes      ? "text"
                 : job->model->reads_text ? "text, or x and lengths"
                                          : "x and lengths");
}

/* Sequences agree with rows. */
static seqlstm_status check_inputs(struct sl_job *job, struct seqlstm_error *err)
{
    int64_t sum = 0;
    if (job->model->decodes && job->texts == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "input `text` is missing");
    if (job->model->decodes) {
        job->rows = job->count;
        return SEQLSTM_OK;
    }
    if (job->x == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "input `x` is missing");
    if (!job->model->reads_steps) {
        job->count = job->rows;
        return SEQLSTM_OK;
    }
    if (job->lengths == NULL) {
        if (job->rows > job->model->steps)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "`x` is one sequence of %lld steps, the limit is %lld; `lengths` divides it",
                         (long long)job->rows, (long long)job->model->steps);
        job->lengths = malloc(sizeof *job->lengths);
        if (job->lengths == NULL)
            return fail_memory(err);
        job->lengths[0] = job->rows;
        job->count = 1;
        return SEQLSTM_OK;
    }
    for (int64_t k = 0; k < job->count; k++)
        sum += job->lengths[k];
    if (sum != job->rows)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the sum of `lengths` is %lld, and `x` has %lld rows",
                     (long long)sum, (long long)job->rows);
    return SEQLSTM_OK;
}

/* ---- outputs ----------------------------------------------------------------------------------------------- */

static bool is_true(json_t *object, const char *key)
{
    return json_is_true(json_object_get(json_object_get(object, "parameters"), key));
}

static seqlstm_status read_outputs(struct sl_job *job, json_t *root, struct seqlstm_error *err)
{
    json_t *outputs = json_object_get(root, "outputs"), *output;
    const bool all_binary = is_true(root, "binary_data_output");
    size_t i;
    job->wants_y = outputs == NULL;
    const bool labels = job->model->classes || job->model->decodes;
    const char *first = sl_served_model_get_output(job->model), *second = sl_served_model_get_labels(job->model);
    job->wants_labels = outputs == NULL && labels;
    job->binary_y = job->binary_labels = all_binary;
    if (outputs && !json_is_array(outputs))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`outputs` is no list");
    json_array_foreach(outputs, i, output)
    {
        const char *name = json_string_value(json_object_get(output, "name"));
        const bool y = name && strcmp(name, first) == 0, label = name && strcmp(name, second) == 0;
        if (!y && (!label || !labels))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no output `%.60s`: use %s%s%s", name ? name : "",
                         first, labels ? " or " : "", labels ? second : "");
        *(y ? &job->wants_y : &job->wants_labels) = true;
        if (json_object_get(json_object_get(output, "parameters"), "binary_data"))
            *(y ? &job->binary_y : &job->binary_labels) = is_true(output, "binary_data");
    }
    return SEQLSTM_OK;
}

static seqlstm_status read_root(struct sl_job *job, json_t *root, struct binary binary, struct seqlstm_error *err)
{
    json_t *inputs = json_object_get(root, "inputs"), *input;
    const char *id = json_string_value(json_object_get(root, "id"));
    size_t i;
    if (!json_is_array(inputs))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the request has no list of `inputs`");
    if (id && (job->id = strdup(id)) == NULL)
        return fail_memory(err);
    SEQLSTM_TRY(sl_infer_read_parameters(job, root, err));
    json_array_foreach(inputs, i, input)
    {
        struct tensor tensor;
        SEQLSTM_TRY(read_tensor(input, &binary, &tensor, err));
        SEQLSTM_TRY(read_input(job, &tensor, err));
    }
    if (binary.bytes > 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%zu bytes behind the JSON belong to no input", binary.bytes);
    SEQLSTM_TRY(check_inputs(job, err));
    SEQLSTM_TRY(sl_infer_check_stream(job, err));
    return read_outputs(job, root, err);
}

seqlstm_status sl_infer_read(struct sl_job *job, const char *body, uint64_t bytes, int64_t json_bytes,
                             struct seqlstm_error *err)
{
    json_error_t why;
    if (json_bytes > 0 && (uint64_t)json_bytes > bytes)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "Inference-Header-Content-Length is larger than the body");
    const size_t text_bytes = json_bytes < 0 ? bytes : (size_t)json_bytes;
    bool no_memory = false;
    json_t *root = body ? sl_json_load(body, text_bytes, JSON_REJECT_DUPLICATES, &why, &no_memory) : NULL;
    if (no_memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the request");
    if (!json_is_object(root)) {
        json_decref(root);
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the body is no JSON object: %.160s",
                     root || body == NULL ? "expected {\"inputs\": ...}" : why.text);
    }
    const struct binary binary = {(const unsigned char *)body + text_bytes, bytes - text_bytes, (int64_t)bytes};
    seqlstm_status status = read_root(job, root, binary, err);
    json_decref(root);
    return status;
}
