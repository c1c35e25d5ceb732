/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables against what is made of them: docs/model-file.md holds the tables that they print
 * (SEQLSTM_UPDATE writes them), the JSON Schema is JSON and refers to what exists, synonyms and defaults
 * name what exists. */
#include "oom.h"
#include "model_fixture.h"

#include <stdio.h>

#include <jansson.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/value/text.h"
#include "model/read/reader.h"
#include "model/schema/schema.h"
#include "model/schema/schema_table.h"

static const char marker[] = "\n## Keys\n\n";

static char *get_doc_path(void)
{
    const char *source = getenv("SEQLSTM_SOURCE");
    char *path = NULL;
    assert_non_null(source);
    assert_true(asprintf(&path, "%s/docs/model-file.md", source) > 0);
    return path;
}

/* docs/model.schema.json, which the first line of each file in configs names. */
static void test_docs_hold_the_schema(void **state)
{
    (void)state;
    struct sl_buf schema;
    char *path = NULL, *stored;
    assert_non_null(getenv("SEQLSTM_SOURCE"));
    assert_true(asprintf(&path, "%s/docs/model.schema.json", getenv("SEQLSTM_SOURCE")) > 0);
    sl_buf_init(&schema);
    assert_int_equal(sl_schema_write_json(&schema, NULL), SEQLSTM_OK);
    if (getenv("SEQLSTM_UPDATE") != NULL)
        assert_int_equal(sl_file_write(path, schema.data, schema.length_bytes, NULL), SEQLSTM_OK);
    assert_int_equal(sl_file_read(path, 1 << 22, &stored, NULL, NULL), SEQLSTM_OK);
    if (strcmp(stored, sl_buf_text(&schema)) != 0)
        fail_msg(
            "docs/model.schema.json is not what `seqlstm schema` prints: run this test once with SEQLSTM_UPDATE=1");
    free(stored);
    free(path);
    sl_buf_deinit(&schema);
}

static void test_docs_hold_every_key(void **state)
{
    (void)state;
    char *path = get_doc_path(), *doc;
    struct sl_buf tables;
    sl_buf_init(&tables);
    assert_int_equal(sl_schema_write_markdown(&tables, NULL), SEQLSTM_OK);
    assert_int_equal(sl_file_read(path, 1 << 20, &doc, NULL, NULL), SEQLSTM_OK);
    char *begin = strstr(doc, marker);
    assert_non_null(begin);
    begin += strlen(marker);
    if (getenv("SEQLSTM_UPDATE") != NULL) {
        struct sl_buf whole;
        sl_buf_init(&whole);
        sl_buf_append(&whole, doc, (size_t)(begin - doc));
        sl_buf_append(&whole, tables.data, tables.length_bytes - 1);
        assert_int_equal(sl_file_write(path, whole.data, whole.length_bytes, NULL), SEQLSTM_OK);
        sl_buf_deinit(&whole);
    } else if (strncmp(begin, tables.data, tables.length_bytes - 1) != 0 || strlen(begin) != tables.length_bytes - 1) {
        fail_msg("docs/model-file.md is not what the option tables say: run this test once with "
                 "SEQLSTM_UPDATE=1");
    }
    for (const struct sl_section *const *s = sl_schema_sections; *s != NULL; s++)
        for (const struct sl_option *o = (*s)->options; o->key != NULL; o++) {
            char row[128];
            snprintf(row, sizeof row, "\n| `%s` |", o->key);
            assert_non_null(strstr(doc, row));
        }
    free(doc);
    free(path);
    sl_buf_deinit(&tables);
}

/* Every "$ref" leads somewhere. */
static void check_references(const json_t *node, const json_t *definitions)
{
    const char *key;
    json_t *value;
    size_t index;
    if (json_is_object(node)) {
        const char *reference = json_string_value(json_object_get(node, "$ref"));
        if (reference != NULL &&
            (strncmp(reference, "#/$defs/", 8) != 0 || json_object_get(definitions, reference + 8) == NULL))
            fail_msg("%s leads nowhere", reference);
        json_object_foreach((json_t *)node, key, value) check_references(value, definitions);
    } else if (json_is_array(node)) {
        json_array_foreach((json_t *)node, index, value) check_references(value, definitions);
    }
}

static void test_json_schema(void **state)
{
    (void)state;
    struct sl_buf out;
    json_error_t error;
    sl_buf_init(&out);
    assert_int_equal(sl_schema_write_json(&out, NULL), SEQLSTM_OK);
    json_t *schema = json_loadb(out.data, out.length_bytes, JSON_REJECT_DUPLICATES, &error);
    if (schema == NULL)
        fail_msg("line %d: %s", error.line, error.text);
    json_t *definitions = json_object_get(schema, "$defs");
    check_references(schema, definitions);
    size_t sections = 0;
    while (sl_schema_sections[sections] != NULL)
        sections++;
    assert_int_equal(json_object_size(definitions), sections);
    json_t *forms = json_object_get(json_object_get(definitions, "model"), "anyOf");
    bool found = false;
    size_t index;
    json_t *form;
    json_array_foreach(forms, index, form)
    {
        json_t *properties = json_object_get(form, "properties");
        json_t *type = json_object_get(json_object_get(properties, "type"), "const");
        if (type == NULL || strcmp(json_string_value(type), "lstm") != 0)
            continue;
        found = true;
        assert_non_null(json_object_get(properties, "recurrent_dropout"));
        assert_null(json_object_get(properties, "rate"));
        assert_non_null(json_object_get(properties, "initial_state"));
        assert_null(json_object_get(properties, "return_state")); /* Keras's name */
    }
    assert_true(found);
    json_decref(schema);
    sl_buf_deinit(&out);
}

/* One variant has a key once; defaults are words that exist and lie inside the limits. */
static void test_tables_are_sound(void **state)
{
    (void)state;
    for (const struct sl_section *const *s = sl_schema_sections; *s != NULL; s++) {
        for (const struct sl_option *o = (*s)->options; o->key != NULL; o++) {
            assert_non_null(o->doc);
            for (const struct sl_option *p = (*s)->options; p < o; p++) {
                bool all = o->variants == 0 || p->variants == 0;
                if (strcmp(o->key, p->key) == 0 && (all || (o->variants & p->variants) != 0))
                    fail_msg("%s has %s twice", (*s)->path, o->key);
            }
            if (o->kind == SL_VALUE_WORD && o->default_text != NULL)
                assert_non_null(sl_word_find(o->words, o->default_text));
            if (o->kind == SL_VALUE_SECTION && o->default_text != NULL && strcmp(o->default_text, "{}") != 0)
                assert_non_null(sl_word_find(o->section->variants, o->default_text));
            double value;
            bool number = o->kind == SL_VALUE_INT || o->kind == SL_VALUE_FLOAT;
            if (number && o->default_text != NULL) {
                assert_true(sl_text_parse_float64(o->default_text, strlen(o->default_text), &value));
                if (o->min != 0 || o->max != 0)
                    assert_true(value >= o->min && value <= o->max);
            }
            assert_false((o->flags & SL_OPTION_REQUIRED) && o->default_text != NULL);
        }
    }
}

/* A name of another framework is no key here, and what it stands for is one. */
static void test_synonyms_are_sound(void **state)
{
    (void)state;
    static const char *const words[] = {"hidden_size", "num_layers", "lr",   "betas",   "bptt",
                                        "batch_first", "nb_epoch",   "clip", "patience"};
    for (const struct sl_section *const *s = sl_schema_sections; *s != NULL; s++) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            const struct sl_synonym *synonym = sl_synonym_find(words[i], *s);
            if (synonym == NULL || synonym->section == NULL)
                continue;
            assert_null(sl_option_find(*s, words[i], -1));
            if (synonym->key != NULL)
                assert_non_null(sl_option_find(*s, synonym->key, -1));
            assert_true(synonym->key != NULL || synonym->help != NULL);
        }
    }
    assert_null(sl_synonym_find("units", &sl_section_layer));
    assert_string_equal(sl_synonym_find("hidden_size", &sl_section_layer)->key, "units");
    assert_null(sl_synonym_find("hidden_size", &sl_section_train));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_docs_hold_every_key), cmocka_unit_test(test_docs_hold_the_schema),
        cmocka_unit_test(test_json_schema),         cmocka_unit_test(test_tables_are_sound),
        cmocka_unit_test(test_synonyms_are_sound),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
