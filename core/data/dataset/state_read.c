/* SPDX-License-Identifier: Apache-2.0 */
/* A data state out of its JSON. */
#include "data/dataset/state_private.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/value/base64.h"
#include "base/value/hash.h"
#include "base/value/json_tree.h"
#include "base/value/text.h"
#include "data/read/raw.h"

/* `bad` is the first key that does not hold what it must. */
struct reader {
    const char *bad;
    bool no_memory;
};

static json_int_t get_integer(struct reader *r, const json_t *object, const char *key, json_int_t low, json_int_t high)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high) {
        r->bad = r->bad ? r->bad : key;
        return low;
    }
    return json_integer_value(value);
}

static bool get_bool(struct reader *r, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value))
        r->bad = r->bad ? r->bad : key;
    return json_is_true(value);
}

static double *get_numbers(struct reader *r, const json_t *object, const char *key, int64_t count)
{
    const json_t *array = json_object_get(object, key);
    if (json_is_null(array))
        return NULL;
    if (!json_is_array(array) || (int64_t)json_array_size(array) != count) {
        r->bad = r->bad ? r->bad : key;
        return NULL;
    }
    double *values = calloc((size_t)count + 1, sizeof *values);
    r->no_memory = r->no_memory || !values;
    for (size_t i = 0; values && i < (size_t)count; i++) {
        if (!json_is_number(json_array_get(array, i)))
            r->bad = r->bad ? r->bad : key;
        values[i] = json_number_value(json_array_get(array, i));
    }
    return values;
}

static char **get_names(struct reader *r, const json_t *object, const char *key, int64_t count)
{
    const json_t *array = json_object_get(object, key);
    if (json_is_null(array))
        return NULL;
    if (!json_is_array(array) || (int64_t)json_array_size(array) != count) {
        r->bad = r->bad ? r->bad : key;
        return NULL;
    }
    char **names = calloc((size_t)count + 1, sizeof *names);
    r->no_memory = r->no_memory || !names;
    for (size_t i = 0; names && i < (size_t)count; i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (!text)
            r->bad = r->bad ? r->bad : key;
        names[i] = strdup(text ? text : "");
        r->no_memory = r->no_memory || !names[i];
    }
    return names;
}

static struct sl_field_facts get_field(struct reader *r, const json_t *facts, const char *key)
{
    const json_t *object = json_object_get(facts, key);
    struct sl_field_facts f = {0};
    f.kind = (enum sl_field_kind)get_integer(r, object, "kind", SL_FIELD_NONE, SL_FIELD_VALUES);
    f.on_steps = get_bool(r, object, "on_steps");
    f.features = get_integer(r, object, "features", 0, INT32_MAX);
    f.classes = get_integer(r, object, "classes", 0, INT32_MAX);
    return f;
}

static struct sl_data_facts get_facts(struct reader *r, const json_t *root)
{
    const json_t *object = json_object_get(root, "facts"), *envelope = json_object_get(object, "envelope");
    struct sl_data_facts f = {0};
    f.input = get_field(r, object, "input");
    f.target = get_field(r, object, "target");
    f.has_weight = get_bool(r, object, "has_weight");
    f.has_steps = get_bool(r, object, "has_steps");
    f.records = get_integer(r, object, "records", 0, INT64_MAX);
    f.rows = get_integer(r, object, "rows", 0, INT64_MAX);
    f.longest = get_integer(r, object, "longest", 0, INT64_MAX);
    f.envelope.sequences = get_integer(r, envelope, "sequences", 0, INT64_MAX);
    f.envelope.steps = get_integer(r, envelope, "steps", 0, INT64_MAX);
    f.envelope.rows = get_integer(r, envelope, "rows", 0, INT64_MAX);
    f.envelope.uniform = get_bool(r, envelope, "uniform");
    f.envelope.stream = get_bool(r, envelope, "stream");
    const json_t *source = json_object_get(object, "source");
    if (!source) /* a model without an encoder */
        return f;
    f.source = get_field(r, source, "field");
    f.source_rows = get_integer(r, source, "rows", 0, INT64_MAX);
    f.source_longest = get_integer(r, source, "longest", 0, INT64_MAX);
    f.envelope.source_steps = get_integer(r, source, "most_steps", 0, INT64_MAX);
    f.envelope.source_rows = get_integer(r, source, "most_rows", 0, INT64_MAX);
    return f;
}

static seqlstm_status get_vocabulary(struct reader *r, const json_t *root, const char *key, struct sl_vocabulary **out,
                                     struct seqlstm_error *err)
{
    const json_t *object = json_object_get(root, key);
    if (json_is_null(object))
        return SEQLSTM_OK;
    const json_t *texts = json_object_get(object, "texts"), *counts = json_object_get(object, "counts");
    const json_t *specials = json_object_get(object, "specials");
    size_t count = json_array_size(texts);
    int32_t special_ids[SL_SPECIAL_COUNT];
    if (!json_is_array(texts) || json_array_size(counts) != count || !json_is_object(specials)) {
        r->bad = r->bad ? r->bad : key;
        return SEQLSTM_OK;
    }
    for (int s = 0; s < SL_SPECIAL_COUNT; s++) {
        const json_t *id = json_object_get(specials, sl_special_get_name((enum sl_special)s));
        special_ids[s] = id ? (int32_t)json_integer_value(id) : -1;
        if (id && (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= (json_int_t)count))
            r->bad = r->bad ? r->bad : key;
    }
    struct sl_vocabulary_entry *entries = calloc(count + 1, sizeof *entries);
    if (!entries)
        return SL_DATA_NO_MEMORY(err);
    for (size_t i = 0; i < count; i++) {
        const json_t *text = json_array_get(texts, i);
        if (!json_is_string(text) || !json_is_integer(json_array_get(counts, i)))
            r->bad = r->bad ? r->bad : key;
        entries[i].text = json_is_string(text) ? json_string_value(text) : "";
        entries[i].bytes = json_string_length(text);
        entries[i].count = json_integer_value(json_array_get(counts, i));
    }
    seqlstm_status status = r->bad ? SEQLSTM_OK : sl_vocabulary_create(entries, (int64_t)count, special_ids, out, err);
    free(entries);
    return status;
}

/* Only the tokenizer sentencepiece has them. */
static seqlstm_status get_pieces(struct reader *r, const json_t *root, const char *key, bool expected,
                                 struct sl_pieces **out, struct seqlstm_error *err)
{
    const json_t *object = json_object_get(root, key), *text = json_object_get(object, "model");
    const char *crc = json_string_value(json_object_get(object, "crc64"));
    struct sl_buf model = {0};
    char found[SL_HASH_TEXT_BYTES] = "";
    seqlstm_status status = SEQLSTM_OK;
    if ((object != NULL) != expected) {
        r->bad = r->bad ? r->bad : key;
        return SEQLSTM_OK;
    }
    if (!object)
        return SEQLSTM_OK;
    bool fine = json_is_string(text) && sl_base64_read(json_string_value(text), json_string_length(text), &model);
    if (fine && !model.failed)
        sl_hash_write(sl_crc64(0, model.data, model.length_bytes), found);
    if (model.failed)
        status = SL_DATA_NO_MEMORY(err);
    else if (!fine || !crc || strcmp(crc, found) != 0)
        r->bad = r->bad ? r->bad : key;
    else
        status = sl_pieces_open(model.data, model.length_bytes, out, err);
    sl_buf_deinit(&model);
    return status;
}

/* Checks that the parts fit together, as later readers assume. */
static void check_whole(struct reader *r, const struct sl_data_state *s)
{
    const struct sl_field_facts *target = &s->facts.target;
    const struct sl_vocabulary *classes = s->classes_are_tokens ? s->tokens : s->classes;
    int64_t ahead = s->ahead > 0 ? s->ahead : 1;
    if (!s->input_offset != !s->input_factor || !s->target_offset != !s->target_factor)
        r->bad = "input_offset";
    else if (target->kind == SL_FIELD_VALUES && target->features != s->target_columns * ahead)
        r->bad = "target_columns";
    else if (s->tokens && sl_vocabulary_get_size(s->tokens) != s->facts.input.classes)
        r->bad = "tokens";
    else if (target->kind == SL_FIELD_IDS && classes && sl_vocabulary_get_size(classes) != target->classes)
        r->bad = "classes";
    else if (s->facts.source.kind != SL_FIELD_NONE &&
             (!s->tokens ||
              s->facts.source.classes != sl_vocabulary_get_size(s->source_tokens ? s->source_tokens : s->tokens)))
        r->bad = "source_tokens";
    else if (s->input_columns != s->facts.input.features)
        r->bad = "input_columns";
}

seqlstm_status sl_data_state_read(const char *name, const char *text, size_t bytes, struct sl_data_state **out_state,
                                  struct seqlstm_error *err)
{
    json_error_t problem;
    struct reader r = {0};
    seqlstm_status status = SEQLSTM_OK;
    json_t *root = sl_json_load(text, bytes, JSON_REJECT_DUPLICATES, &problem, &r.no_memory);
    if (r.no_memory)
        return SL_DATA_NO_MEMORY(err);
    if (!root)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%d:%d: not JSON: %s", name, problem.line, problem.column,
                     problem.text);
    const char *schema = json_string_value(json_object_get(root, "schema"));
    struct sl_data_state *s = calloc(1, sizeof *s);
    if (!s) {
        status = SL_DATA_NO_MEMORY(err);
        goto out;
    }
    if (!schema || strcmp(schema, SL_DATA_SCHEMA) != 0) {
        status =
            seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                              "%s: the schema is \"%s\", expected \"%s\"; use the version of seqlstm that wrote it",
                              name, schema ? schema : "", SL_DATA_SCHEMA);
        goto out;
    }
    s->source = (enum sl_source_type)get_integer(&r, root, "source", 0, SL_SOURCE_GENERATOR);
    s->tokenizer = (enum sl_tokenizer_type)get_integer(&r, root, "tokenizer", 0, SL_TOKENIZER_SENTENCEPIECE);
    s->lowercase = get_bool(&r, root, "lowercase");
    s->form = (enum sl_target_form)get_integer(&r, root, "form", 0, SL_TARGET_AHEAD);
    s->ahead = get_integer(&r, root, "ahead", 0, INT32_MAX);
    s->facts = get_facts(&r, root);
    s->ignore_id = (int32_t)get_integer(&r, root, "ignore_id", -1, INT32_MAX);
    const char *ignore = json_string_value(json_object_get(root, "ignore"));
    if (ignore && !(s->ignore_label = strdup(ignore)))
        r.no_memory = true;
    s->classes_are_tokens = get_bool(&r, root, "classes_are_tokens");
    s->binary_values = get_bool(&r, root, "binary_values");
    s->scale = (enum sl_scale_type)get_integer(&r, root, "scale", 0, SL_SCALE_MINMAX);
    s->input_columns = get_integer(&r, root, "input_columns", 0, INT32_MAX);
    s->target_columns = get_integer(&r, root, "target_columns", 0, INT32_MAX);
    s->input_names = get_names(&r, root, "input_names", s->input_columns);
    s->target_names = get_names(&r, root, "target_names", s->target_columns);
    s->input_offset = get_numbers(&r, root, "input_offset", s->input_columns);
    s->input_factor = get_numbers(&r, root, "input_factor", s->input_columns);
    s->target_offset = get_numbers(&r, root, "target_offset", s->target_columns);
    s->target_factor = get_numbers(&r, root, "target_factor", s->target_columns);
    s->input_fill = get_numbers(&r, root, "input_fill", s->input_columns);
    s->target_fill = get_numbers(&r, root, "target_fill", s->target_columns);
    if (json_object_get(root, "target_naive"))
        s->target_naive = get_numbers(&r, root, "target_naive", s->target_columns);
    status = get_vocabulary(&r, root, "tokens", &s->tokens, err);
    if (status == SEQLSTM_OK)
        status = get_vocabulary(&r, root, "classes", &s->classes, err);
    if (status == SEQLSTM_OK && s->facts.source.kind != SL_FIELD_NONE) {
        status = get_vocabulary(&r, root, "source_tokens", &s->source_tokens, err);
        s->source_tokenizer =
            (enum sl_tokenizer_type)get_integer(&r, root, "source_tokenizer", 0, SL_TOKENIZER_SENTENCEPIECE);
        s->source_lowercase = get_bool(&r, root, "source_lowercase");
    }
    bool pieces = s->tokenizer == SL_TOKENIZER_SENTENCEPIECE;
    bool source_pieces = s->source_tokens && s->source_tokenizer == SL_TOKENIZER_SENTENCEPIECE;
    if (status == SEQLSTM_OK)
        status = get_pieces(&r, root, "pieces", pieces, &s->pieces, err);
    if (status == SEQLSTM_OK)
        status = get_pieces(&r, root, "source_pieces", source_pieces, &s->source_pieces, err);
    if (status == SEQLSTM_OK && r.no_memory)
        status = SL_DATA_NO_MEMORY(err);
    if (status == SEQLSTM_OK && !r.bad)
        check_whole(&r, s);
    if (status == SEQLSTM_OK && r.bad)
        status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                   "%s: the key \"%s\" is missing or does not hold what it must", name, r.bad);
    if (status == SEQLSTM_OK) {
        sl_data_state_set_views(s);
        *out_state = s;
        s = NULL;
    }
out:
    sl_data_state_destroy(s);
    json_decref(root);
    return status;
}
