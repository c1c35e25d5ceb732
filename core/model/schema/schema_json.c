/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON Schema of the model file, from the option tables. A section with variants becomes a choice of objects, each
 * with the keys of its variant. */
#include <string.h>

#include "base/value/buf.h"
#include "base/value/json_write.h"
#include "base/value/text.h"
#include "model/doc_limits.h"
#include "model/schema/schema.h"
#include "model/schema/schema_table.h"

static void append_words(struct sl_buf *out, const struct sl_word *words)
{
    bool first = true;
    sl_buf_append_text(out, "{\"enum\": [");
    for (; words->word != NULL; words++) {
        if (words->later)
            continue;
        sl_buf_append_text(out, first ? "" : ", ");
        sl_json_append_string(out, words->word);
        first = false;
    }
    sl_buf_append_text(out, "]}");
}

static void append_limit(struct sl_buf *out, const char *key, double value)
{
    char text[SL_TEXT_NUMBER_BYTES];
    sl_text_print_float64(text, value);
    sl_buf_printf(out, ", \"%s\": %s", key, text);
}

static void append_number(struct sl_buf *out, const struct sl_option *option, const char *type)
{
    sl_buf_printf(out, "{\"type\": \"%s\"", type);
    if (option->min != 0 || option->max != 0) {
        append_limit(out, option->flags & SL_OPTION_ABOVE ? "exclusiveMinimum" : "minimum", option->min);
        if (option->max != SL_NO_LIMIT)
            append_limit(out, option->flags & SL_OPTION_BELOW ? "exclusiveMaximum" : "maximum", option->max);
    }
    sl_buf_append_char(out, '}');
}

static void append_value(struct sl_buf *out, const struct sl_option *option)
{
    switch (option->kind) {
    case SL_VALUE_BOOL:
        sl_buf_append_text(out, option->flags & SL_OPTION_FIXED ? "{\"const\": false}" : "{\"type\": \"boolean\"}");
        break;
    case SL_VALUE_INT:
    case SL_VALUE_SEED:
        append_number(out, option, "integer");
        break;
    case SL_VALUE_FLOAT:
        append_number(out, option, "number");
        break;
    case SL_VALUE_TEXT:
        sl_buf_append_text(out, "{\"type\": [\"string\", \"integer\"]}");
        break;
    case SL_VALUE_NAME:
        sl_buf_printf(out, "{\"type\": \"string\", \"maxLength\": %d, \"pattern\": \"^[A-Za-z_][A-Za-z0-9_.-]*$\"}",
                      SL_NAME_MOST);
        break;
    case SL_VALUE_PATH:
        sl_buf_append_text(out, "{\"type\": \"string\", \"minLength\": 1}");
        break;
    case SL_VALUE_TEXTS:
        sl_buf_append_text(out, "{\"type\": \"array\", \"items\": {\"type\": [\"string\", \"number\"]}}");
        break;
    case SL_VALUE_WORD:
        append_words(out, option->words);
        break;
    case SL_VALUE_PERIOD:
        sl_buf_append_text(out, "{\"type\": \"string\", \"pattern\": "
                                "\"^[0-9.]+[kMG]?[uetsmhd]$\"}");
        break;
    case SL_VALUE_SECTION:
        sl_buf_printf(out, "{\"$ref\": \"#/$defs/%s\"}", option->section->path);
        break;
    case SL_VALUE_CUSTOM:
        sl_buf_append_text(out, option->custom->json);
        break;
    case SL_VALUE_LATER:
        sl_buf_append_text(out, "false");
        break;
    }
}

/* `"key": {…}`, described by the option. Options of later versions are left out, so that editors do not offer them. */
static void append_property(struct sl_buf *out, const struct sl_option *option, bool *first)
{
    if (option->kind == SL_VALUE_LATER)
        return;
    sl_buf_append_text(out, *first ? "\n      " : ",\n      ");
    *first = false;
    sl_json_append_string(out, option->key);
    sl_buf_append_text(out, ": {\"allOf\": [");
    append_value(out, option);
    sl_buf_append_text(out, "], \"description\": ");
    sl_json_append_string(out, option->doc);
    if (option->default_text != NULL && strcmp(option->default_text, "{}") != 0) {
        sl_buf_append_text(out, ", \"default\": ");
        double number;
        bool literal = option->kind == SL_VALUE_BOOL;
        if (option->kind == SL_VALUE_INT || option->kind == SL_VALUE_FLOAT)
            literal = sl_text_parse_float64(option->default_text, strlen(option->default_text), &number);
        if (literal)
            sl_buf_append_text(out, option->default_text);
        else
            sl_json_append_string(out, option->default_text);
    }
    sl_buf_append_char(out, '}');
}

static void append_required(struct sl_buf *out, const struct sl_section *section, int variant, bool needs_type)
{
    bool first = true;
    sl_buf_append_text(out, "}, \"required\": [");
    if (needs_type) {
        sl_buf_append_text(out, "\"type\"");
        first = false;
    }
    /* The format options of a source may also be one level up, so none is required here. */
    for (const struct sl_option *o = section->options; o->key != NULL && section != &sl_section_source; o++) {
        if (!(o->flags & SL_OPTION_REQUIRED) || !sl_option_belongs(o, variant))
            continue;
        sl_buf_append_text(out, first ? "" : ", ");
        sl_json_append_string(out, o->key);
        first = false;
    }
    sl_buf_append_text(out, "]}");
}

/* The object of one variant (or, with -1, of a section without variants). */
static void append_object(struct sl_buf *out, const struct sl_section *section, const struct sl_word *variant)
{
    bool first = true;
    sl_buf_append_text(out, "{\"type\": \"object\", \"additionalProperties\": false, "
                            "\"properties\": {");
    if (variant != NULL) {
        sl_buf_append_text(out, "\n      \"type\": {\"const\": ");
        sl_json_append_string(out, variant->word);
        sl_buf_append_char(out, '}');
        first = false;
    }
    for (const struct sl_option *o = section->options; o->key != NULL; o++)
        if (sl_option_belongs(o, variant ? variant->value : -1))
            append_property(out, o, &first);
    if (section == &sl_section_data) {
        /* Format options for all splits. */
        sl_buf_append_text(out, ",\n      \"type\": ");
        append_words(out, sl_section_source.variants);
        for (const struct sl_option *o = sl_section_source.options; o->key != NULL; o++)
            if (sl_option_find(&sl_section_source, o->key, -1) == o)
                append_property(out, o, &first);
    }
    append_required(out, section, variant ? variant->value : -1,
                    variant != NULL && section->default_variant == NULL && section != &sl_section_source);
}

static void append_section(struct sl_buf *out, const struct sl_section *section)
{
    bool first = true;
    sl_buf_append_text(out, "{\"description\": ");
    sl_json_append_string(out, section->doc);
    sl_buf_append_text(out, ", \"anyOf\": [\n    ");
    if (section->variants != NULL && section != &sl_section_source) {
        append_words(out, section->variants);
        first = false;
    }
    if (section->bare_key != NULL) {
        const struct sl_option *bare = sl_option_find(section, section->bare_key, -1);
        sl_buf_append_text(out, first ? "" : ",\n    ");
        append_value(out, bare);
        first = false;
    }
    if (section->variants == NULL) {
        sl_buf_append_text(out, first ? "" : ",\n    ");
        append_object(out, section, NULL);
    }
    for (const struct sl_word *w = section->variants; w != NULL && w->word != NULL; w++) {
        if (w->later)
            continue;
        sl_buf_append_text(out, first ? "" : ",\n    ");
        append_object(out, section, w);
        first = false;
    }
    sl_buf_append_text(out, "]}");
}

seqlstm_status sl_schema_write_json(struct sl_buf *out, struct seqlstm_error *err)
{
    sl_buf_append_text(out, "{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
                            " \"title\": \"seqlstm model file\",\n"
                            " \"$ref\": \"#/$defs/top\",\n \"$defs\": {\n");
    for (const struct sl_section *const *s = sl_schema_sections; *s != NULL; s++) {
        sl_buf_printf(out, "%s  \"%s\": ", s == sl_schema_sections ? "" : ",\n", (*s)->path);
        append_section(out, *s);
    }
    sl_buf_append_text(out, "\n}}\n");
    if (out->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the schema");
    return SEQLSTM_OK;
}
