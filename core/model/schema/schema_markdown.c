/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of docs/model-file.md, from the option tables. */
#include <string.h>

#include "base/value/buf.h"
#include "base/value/text.h"
#include "model/schema/schema.h"
#include "model/schema/schema_table.h"

static void append_words(struct sl_buf *out, const struct sl_word *words)
{
    const char *separator = "";
    for (; words->word != NULL; words++) {
        if (words->later)
            continue;
        sl_buf_printf(out, "%s`%s`", separator, words->word);
        separator = ", ";
    }
}

static void append_limits(struct sl_buf *out, const struct sl_option *option)
{
    char low[SL_TEXT_NUMBER_BYTES], high[SL_TEXT_NUMBER_BYTES];
    sl_text_print_float64(low, option->min);
    sl_text_print_float64(high, option->max);
    if (option->min == 0 && option->max == 0)
        return;
    sl_buf_printf(out, " %s %s", option->flags & SL_OPTION_ABOVE ? ">" : "≥", low);
    if (option->max < 2147483647.0)
        sl_buf_printf(out, " and %s %s", option->flags & SL_OPTION_BELOW ? "<" : "≤", high);
    if (option->flags & SL_OPTION_MASK)
        sl_buf_append_text(out, ", rounded to a multiple of 1/65536");
}

/* A link to the heading of a section; headings lose their dots in an anchor. */
static void append_link(struct sl_buf *out, const char *path)
{
    sl_buf_printf(out, "[%s](#", path);
    for (; *path != 0; path++)
        if (*path != '.')
            sl_buf_append_char(out, *path);
    sl_buf_append_char(out, ')');
}

static void append_form(struct sl_buf *out, const struct sl_option *option)
{
    switch (option->kind) {
    case SL_VALUE_BOOL:
        sl_buf_append_text(out, option->flags & SL_OPTION_FIXED ? "`false`; `true` is not available in this version"
                                                                : "`true`, `false`");
        break;
    case SL_VALUE_INT:
    case SL_VALUE_SEED:
        sl_buf_append_text(out, "integer");
        append_limits(out, option);
        break;
    case SL_VALUE_FLOAT:
        sl_buf_append_text(out, "number");
        append_limits(out, option);
        break;
    case SL_VALUE_TEXT:
        sl_buf_append_text(out, "string");
        break;
    case SL_VALUE_NAME:
        sl_buf_append_text(out, "name");
        break;
    case SL_VALUE_PATH:
        sl_buf_append_text(out, "path");
        break;
    case SL_VALUE_TEXTS:
        sl_buf_append_text(out, "list of strings");
        break;
    case SL_VALUE_WORD:
        append_words(out, option->words);
        break;
    case SL_VALUE_PERIOD:
        sl_buf_append_text(out, option->period_units && strcmp(option->period_units, "s") == 0 ? "time" : "period");
        break;
    case SL_VALUE_SECTION:
        append_link(out, option->section->path);
        break;
    case SL_VALUE_CUSTOM:
        sl_buf_append_text(out, option->custom->form);
        break;
    case SL_VALUE_LATER:
        sl_buf_append_text(out, "not available in this version");
        break;
    }
}

static size_t count_variants(const struct sl_section *section, const struct sl_option *option, bool having)
{
    size_t count = 0;
    for (const struct sl_word *w = section->variants; w->word != NULL; w++)
        count += !w->later && sl_option_belongs(option, w->value) == having;
    return count;
}

/* The variants that have the option, or those that do not, whichever list is shorter. */
static void append_owners(struct sl_buf *out, const struct sl_section *section, const struct sl_option *option)
{
    if (option->variants == SL_ALL_VARIANTS) {
        sl_buf_append_text(out, "all");
        return;
    }
    bool complement = count_variants(section, option, false) < 3 && count_variants(section, option, true) > 3;
    const char *separator = complement ? "all but " : "";
    for (const struct sl_word *w = section->variants; w->word != NULL; w++) {
        if (w->later || sl_option_belongs(option, w->value) == complement)
            continue;
        sl_buf_printf(out, "%s%s", separator, w->word);
        separator = ", ";
    }
}

static void append_default(struct sl_buf *out, const struct sl_option *option)
{
    if (option->flags & SL_OPTION_REQUIRED)
        sl_buf_append_text(out, "required");
    else if (option->default_text != NULL && strcmp(option->default_text, "\t") == 0)
        sl_buf_append_text(out, "a tab");
    else if (option->default_text != NULL && strcmp(option->default_text, " ") == 0)
        sl_buf_append_text(out, "a space");
    else if (option->default_text != NULL && strcmp(option->default_text, "{}") != 0)
        sl_buf_printf(out, "`%s`", option->default_text);
}

/* What each word of the value means. */
static void append_meanings(struct sl_buf *out, const struct sl_option *option)
{
    const char *separator = ". ";
    for (const struct sl_word *w = option->words; w->word != NULL; w++) {
        if (w->later || w->doc[0] == 0)
            continue;
        sl_buf_printf(out, "%s`%s`: %s", separator, w->word, w->doc);
        separator = "; ";
    }
}

static void append_options(struct sl_buf *out, const struct sl_section *section)
{
    bool variants = section->variants != NULL;
    sl_buf_printf(out, "| key |%s value | default | meaning |\n| --- |%s --- | --- | --- |\n", variants ? " for |" : "",
                  variants ? " --- |" : "");
    for (const struct sl_option *o = section->options; o->key != NULL; o++) {
        sl_buf_printf(out, "| `%s` |", o->key);
        if (variants) {
            sl_buf_append_char(out, ' ');
            append_owners(out, section, o);
            sl_buf_append_text(out, " |");
        }
        sl_buf_append_char(out, ' ');
        append_form(out, o);
        sl_buf_append_text(out, " | ");
        append_default(out, o);
        sl_buf_printf(out, " | %s", o->doc);
        if (o->kind == SL_VALUE_WORD)
            append_meanings(out, o);
        sl_buf_append_text(out, " |\n");
    }
}

seqlstm_status sl_schema_write_markdown(struct sl_buf *out, struct seqlstm_error *err)
{
    for (const struct sl_section *const *s = sl_schema_sections; *s != NULL; s++) {
        char first = (*s)->doc[0];
        bool lower = first >= 'a' && first <= 'z';
        sl_buf_printf(out, "### %s\n\n%c%s.\n\n", (*s)->path, lower ? first - 'a' + 'A' : first, (*s)->doc + 1);
        for (const struct sl_word *w = (*s)->variants; w != NULL && w->word != NULL; w++)
            sl_buf_printf(out, "* `%s`: %s\n", w->word, w->later ? "not available in this version" : w->doc);
        if ((*s)->variants != NULL)
            sl_buf_append_char(out, '\n');
        if ((*s)->options[0].key != NULL) {
            append_options(out, *s);
            sl_buf_append_char(out, '\n');
        }
    }
    if (out->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the schema");
    return SEQLSTM_OK;
}
