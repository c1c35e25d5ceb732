/* SPDX-License-Identifier: Apache-2.0 */
/* A data state as JSON, "seqlstm.data/1". Keys stand in a fixed order and numbers have 17 digits, so equal states give
 * equal bytes, and reading gives the same bits back. */
#include "data/dataset/state_private.h"

#include <jansson.h>

#include "base/value/base64.h"
#include "base/value/hash.h"
#include "base/value/json_tree.h"
#include "base/value/text.h"
#include "data/read/raw.h"

static json_t *numbers_json(const double *values, int64_t count)
{
    json_t *array = values ? json_array() : json_null();
    for (int64_t i = 0; values && i < count; i++)
        array = sl_json_add(array, json_real(values[i]));
    return array;
}

static json_t *names_json(char **names, int64_t count)
{
    json_t *array = names ? json_array() : json_null();
    for (int64_t i = 0; names && i < count; i++)
        array = sl_json_add(array, json_string(names[i]));
    return array;
}

static json_t *vocabulary_json(const struct sl_vocabulary *v)
{
    if (!v)
        return json_null();
    json_t *texts = json_array(), *counts = json_array(), *specials = json_object();
    for (int32_t id = 0; id < sl_vocabulary_get_size(v); id++) {
        size_t bytes;
        const char *text = sl_vocabulary_get_text(v, id, &bytes);
        texts = sl_json_add(texts, json_stringn(text, bytes));
        counts = sl_json_add(counts, json_integer(sl_vocabulary_get_count(v, id)));
    }
    for (int s = 0; s < SL_SPECIAL_COUNT; s++) {
        int32_t id = sl_vocabulary_get_special(v, (enum sl_special)s);
        if (id >= 0)
            specials = sl_json_put(specials, sl_special_get_name((enum sl_special)s), json_integer(id));
    }
    return json_pack("{s:o, s:o, s:o}", "texts", texts, "counts", counts, "specials", specials);
}

static json_t *field_json(const struct sl_field_facts *f)
{
    return json_pack("{s:i, s:b, s:I, s:I}", "kind", (int)f->kind, "on_steps", (int)f->on_steps, "features",
                     (json_int_t)f->features, "classes", (json_int_t)f->classes);
}

static json_t *facts_json(const struct sl_data_facts *f)
{
    const struct sl_envelope *e = &f->envelope;
    json_t *envelope =
        json_pack("{s:I, s:I, s:I, s:b, s:b}", "sequences", (json_int_t)e->sequences, "steps", (json_int_t)e->steps,
                  "rows", (json_int_t)e->rows, "uniform", (int)e->uniform, "stream", (int)e->stream);
    json_t *facts = json_pack("{s:o, s:o, s:b, s:b, s:I, s:I, s:I, s:o}", "input", field_json(&f->input), "target",
                              field_json(&f->target), "has_weight", (int)f->has_weight, "has_steps", (int)f->has_steps,
                              "records", (json_int_t)f->records, "rows", (json_int_t)f->rows, "longest",
                              (json_int_t)f->longest, "envelope", envelope);
    if (facts && f->source.kind != SL_FIELD_NONE)
        facts =
            sl_json_put(facts, "source",
                        json_pack("{s:o, s:I, s:I, s:I, s:I}", "field", field_json(&f->source), "rows",
                                  (json_int_t)f->source_rows, "longest", (json_int_t)f->source_longest, "most_steps",
                                  (json_int_t)e->source_steps, "most_rows", (json_int_t)e->source_rows));
    return facts;
}

/* {"model": base64, "crc64": of its bytes, in hexadecimal} */
static json_t *pieces_json(const struct sl_pieces *pieces)
{
    struct sl_buf text = {0};
    char crc[SL_HASH_TEXT_BYTES];
    size_t bytes;
    const void *model = sl_pieces_get_model(pieces, &bytes);
    sl_base64_write(model, bytes, &text);
    sl_hash_write(sl_crc64(0, model, bytes), crc);
    json_t *object = text.failed
                         ? NULL
                         : json_pack("{s:s#, s:s}", "model", sl_buf_text(&text), (int)text.length_bytes, "crc64", crc);
    sl_buf_deinit(&text);
    return object;
}

static int append(const char *data, size_t bytes, void *out)
{
    sl_buf_append(out, data, bytes);
    return ((struct sl_buf *)out)->failed ? -1 : 0;
}

seqlstm_status sl_data_state_write(const struct sl_data_state *s, struct sl_buf *out, struct seqlstm_error *err)
{
    size_t before = out->length_bytes;
    int64_t I = s->input_columns, O = s->target_columns;
    json_t *root = json_pack("{s:s, s:i, s:i, s:b, s:i, s:I, s:o, s:i, s:s?, s:b, s:b, s:i, s:I, s:I}", "schema",
                             SL_DATA_SCHEMA, "source", (int)s->source, "tokenizer", (int)s->tokenizer, "lowercase",
                             (int)s->lowercase, "form", (int)s->form, "ahead", (json_int_t)s->ahead, "facts",
                             facts_json(&s->facts), "ignore_id", (int)s->ignore_id, "ignore", s->ignore_label,
                             "classes_are_tokens", (int)s->classes_are_tokens, "binary_values", (int)s->binary_values,
                             "scale", (int)s->scale, "input_columns", (json_int_t)I, "target_columns", (json_int_t)O);
    root = sl_json_put(root, "input_names", names_json(s->input_names, I));
    root = sl_json_put(root, "target_names", names_json(s->target_names, O));
    root = sl_json_put(root, "input_offset", numbers_json(s->input_offset, I));
    root = sl_json_put(root, "input_factor", numbers_json(s->input_factor, I));
    root = sl_json_put(root, "target_offset", numbers_json(s->target_offset, O));
    root = sl_json_put(root, "target_factor", numbers_json(s->target_factor, O));
    root = sl_json_put(root, "input_fill", numbers_json(s->input_fill, I));
    root = sl_json_put(root, "target_fill", numbers_json(s->target_fill, O));
    if (s->target_naive)
        root = sl_json_put(root, "target_naive", numbers_json(s->target_naive, O));
    root = sl_json_put(root, "tokens", vocabulary_json(s->tokens));
    root = sl_json_put(root, "classes", vocabulary_json(s->classes));
    if (s->facts.source.kind != SL_FIELD_NONE) {
        root = sl_json_put(root, "source_tokens", vocabulary_json(s->source_tokens));
        root = sl_json_put(root, "source_tokenizer", json_integer((int)s->source_tokenizer));
        root = sl_json_put(root, "source_lowercase", json_boolean(s->source_lowercase));
    }
    if (s->pieces)
        root = sl_json_put(root, "pieces", pieces_json(s->pieces));
    if (s->source_pieces)
        root = sl_json_put(root, "source_pieces", pieces_json(s->source_pieces));
    const bool ok = root && json_dump_callback(root, append, out, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0;
    json_decref(root);
    sl_buf_append_char(out, '\n');
    if (!ok || out->failed) {
        sl_buf_truncate(out, before);
        return SL_DATA_NO_MEMORY(err);
    }
    return SEQLSTM_OK;
}
