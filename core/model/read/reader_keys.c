/* SPDX-License-Identifier: Apache-2.0 */
/* Reports unknown keys, with what their author may have meant. */
#include <string.h>

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "base/value/text.h"
#include "model/read/reader_private.h"

enum { MOST_KEYS = 128 };

/* "momentum, nesterov and rmsprop": the variants that have the key. */
static const char *list_variants(struct sl_reader *reader, const struct sl_section *section, const char *key)
{
    const char *names[32];
    size_t count = 0;
    for (const struct sl_word *w = section->variants; w->word != NULL && count < 32; w++)
        if (!w->later && sl_option_find(section, key, w->value) != NULL)
            names[count++] = w->word;
    struct sl_buf text;
    sl_buf_init(&text);
    for (size_t i = 0; i < count; i++)
        sl_buf_printf(&text, "%s%s", i == 0 ? "" : i + 1 == count ? " and " : ", ", names[i]);
    const char *kept = sl_reader_printf(reader, "%s", sl_buf_text(&text));
    if (text.failed)
        reader->no_memory = true;
    sl_buf_deinit(&text);
    return kept;
}

static const char *closest_key(const struct sl_section *section, int variant, const char *key)
{
    const char *names[MOST_KEYS];
    size_t count = 0;
    if (section->variants != NULL)
        names[count++] = "type";
    for (const struct sl_option *o = section->options; o->key != NULL && count < MOST_KEYS; o++)
        if (sl_option_belongs(o, variant))
            names[count++] = o->key;
    return sl_text_closest(key, names, count);
}

/* The section that has this key, if there is exactly one. */
static const struct sl_section *find_home(const char *key)
{
    const struct sl_section *home = NULL;
    for (const struct sl_section *const *s = sl_schema_sections; *s != NULL; s++) {
        if (sl_option_find(*s, key, -1) == NULL)
            continue;
        if (home != NULL)
            return NULL;
        home = *s;
    }
    return home;
}

/* A key of another section whose name is close, and that section in *home; NULL if there is none, or several sections
 * have it. */
static const char *closest_elsewhere(const char *key, const struct sl_section **home)
{
    const char *names[MOST_KEYS * 4] = {NULL};
    size_t count = 0;
    for (const struct sl_section *const *s = sl_schema_sections; *s != NULL; s++) {
        for (const struct sl_option *o = (*s)->options; o->key != NULL && count < sizeof names / sizeof *names; o++)
            names[count++] = o->key;
    }
    const char *close = sl_text_closest(key, names, count);
    *home = close == NULL ? NULL : find_home(close);
    return *home == NULL ? NULL : close;
}

/* Where the keys of a section stand in a model file. */
static const char *get_path(const struct sl_section *section)
{
    return section == &sl_section_sides ? "model" : section->path;
}

/* "use `units: 650`". */
static const char *help_of_synonym(struct sl_reader *reader, const struct sl_synonym *synonym,
                                   const struct sl_node *value)
{
    if (synonym->help != NULL)
        return synonym->help;
    if (value->kind == SL_NODE_SCALAR && value->text[0] != 0 && strlen(value->text) < 40)
        return sl_reader_printf(reader, "use `%s: %s`", synonym->key, value->text);
    return sl_reader_printf(reader, "use `%s`", synonym->key);
}

static void report_unknown(struct sl_reader *reader, const struct sl_section *section, const struct sl_pair *pair,
                           int variant)
{
    const struct sl_synonym *synonym = sl_synonym_find(pair->key, section);
    const struct sl_section *home = find_home(pair->key);
    const char *close = closest_key(section, variant, pair->key);
    struct sl_diagnostic finding = {.code = "E0203", .place = pair->place};
    finding.message =
        sl_reader_printf(reader, "unknown key `%.80s` in %s", pair->key, sl_reader_describe(reader, section, variant));
    if (synonym != NULL) {
        finding.label = synonym->owner;
        finding.help = help_of_synonym(reader, synonym, pair->value);
    } else if (close != NULL) {
        finding.help = sl_reader_printf(reader, "did you mean `%s`?", close);
    } else if (home != NULL && home != section) {
        finding.help = home == &sl_section_top ? "it belongs to the top of the file"
                                               : sl_reader_printf(reader, "it belongs to `%s`", get_path(home));
    } else if ((close = closest_elsewhere(pair->key, &home)) != NULL) {
        finding.help = home == &sl_section_top
                           ? sl_reader_printf(reader, "did you mean `%s` at the top of the file?", close)
                           : sl_reader_printf(reader, "did you mean `%s` of `%s`?", close, get_path(home));
    }
    sl_diagnostics_add(reader->diagnostics, &finding);
    reader->errors++;
}

void sl_reader_check_keys(struct sl_reader *reader, const struct sl_section *section, const struct sl_node *map,
                          int variant)
{
    for (size_t i = 0; i < map->count; i++) {
        const struct sl_pair *pair = &map->pairs[i];
        if (section->variants != NULL && strcmp(pair->key, "type") == 0)
            continue;
        if (sl_option_find(section, pair->key, variant) != NULL)
            continue;
        const struct sl_synonym *synonym = sl_synonym_find(pair->key, section);
        if (synonym == NULL && section->variants != NULL && sl_option_find(section, pair->key, -1) != NULL) {
            const char *owners = list_variants(reader, section, pair->key);
            sl_reader_report(reader, "E0202", pair->place,
                             owners[0] ? sl_reader_printf(reader, "it belongs to %s", owners) : NULL, NULL,
                             "`%s` is not a key of %s", pair->key, sl_reader_describe(reader, section, variant));
            continue;
        }
        report_unknown(reader, section, pair, variant);
    }
}
