/* SPDX-License-Identifier: Apache-2.0 */
/* Reads scalars, and lists of them, of the type that the option has, by the rules of YAML 1.2, or reports an error. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "base/value/text.h"
#include "model/data_config.h"
#include "model/doc_limits.h"
#include "model/read/reader_private.h"
#include "model/train_config.h"

void sl_reader_report_type(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node,
                           const char *wanted)
{
    const char *help = NULL;
    if (node->kind != SL_NODE_SCALAR) {
        sl_reader_report(reader, "E0101", node->place, NULL, NULL, "`%s` takes %s, not %s", option->key, wanted,
                         sl_node_kind_get_name(node->kind));
        return;
    }
    if (node->quoted && node->text[0] != 0)
        help = "remove the quotes: a quoted value is a string";
    sl_reader_report(reader, "E0101", node->place, help, NULL, "`%s` takes %s, not `%.60s`", option->key, wanted,
                     node->text);
}

bool sl_reader_may_be_number(const struct sl_node *node)
{
    return node->kind == SL_NODE_SCALAR && strspn(node->text, "+-.0123456789") > 0;
}

static void read_bool(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node, bool *out)
{
    static const char *const yes[] = {"true", "True", "TRUE"};
    static const char *const no[] = {"false", "False", "FALSE"};
    for (size_t i = 0; i < 3 && node->kind == SL_NODE_SCALAR && !node->quoted; i++) {
        if (strcmp(node->text, yes[i]) == 0 || strcmp(node->text, no[i]) == 0) {
            *out = strcmp(node->text, yes[i]) == 0;
            return;
        }
    }
    sl_reader_report_type(reader, option, node, "true or false");
}

static bool has_limits(const struct sl_option *option)
{
    return option->min != 0 || option->max != 0;
}

/* "at least 1", "above 0 and below 1", "from 0 to 1". A limit that only a type has is named where it is passed. */
static const char *describe_limits(struct sl_reader *reader, const struct sl_option *o, double value)
{
    char low[SL_TEXT_NUMBER_BYTES], high[SL_TEXT_NUMBER_BYTES];
    sl_text_print_float64(low, o->min);
    sl_text_print_float64(high, o->max);
    const char *above = o->flags & SL_OPTION_ABOVE ? "above" : "at least";
    const char *below = o->flags & SL_OPTION_BELOW ? "below" : "at most";
    if (o->max >= INT32_MAX && isfinite(value) && value > o->max)
        return sl_reader_printf(reader, "%s %.0f", below, o->max);
    if (o->max >= INT32_MAX)
        return sl_reader_printf(reader, "%s %s", above, low);
    if (o->min == -SL_NO_LIMIT)
        return sl_reader_printf(reader, "%s %s", below, high);
    return sl_reader_printf(reader, "%s %s and %s %s", above, low, below, high);
}

static bool check_limits(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node,
                         double value)
{
    bool low = option->flags & SL_OPTION_ABOVE ? value > option->min : value >= option->min;
    bool high = option->flags & SL_OPTION_BELOW ? value < option->max : value <= option->max;
    bool inside = isfinite(value) && (!has_limits(option) || (low && high));
    if (inside)
        return true;
    sl_reader_report(reader, "E0103", node->place, NULL, NULL, "`%s` must be %s, not %s", option->key,
                     isfinite(value) || has_limits(option) ? describe_limits(reader, option, value) : "a finite number",
                     node->text);
    return false;
}

static bool read_int(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node, int64_t *out)
{
    int64_t value;
    double number;
    if (node->kind != SL_NODE_SCALAR || node->quoted || !sl_text_parse_int64(node->text, strlen(node->text), &value)) {
        bool is_number = node->kind == SL_NODE_SCALAR && !node->quoted &&
                         sl_text_parse_float64(node->text, strlen(node->text), &number);
        bool beyond = is_number && has_limits(option) && node->text[strspn(node->text, "-0123456789")] == 0;
        if (!beyond || check_limits(reader, option, node, number)) /* 2^63 and more is beyond every limit */
            sl_reader_report_type(reader, option, node,
                                  is_number ? "an integer, written with digits only" : "an integer");
        return false;
    }
    if (!check_limits(reader, option, node, (double)value))
        return false;
    *out = value;
    return true;
}

/* Rates that masks would round to 0 or to 1 (seqlstm_mask_count). */
static bool check_rate(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node,
                       double value)
{
    const double half_a_step = 0x1p-17;
    if (value == 0 || (value >= half_a_step && value < 1 - half_a_step))
        return true;
    sl_reader_report(reader, "E0103", node->place, value < 0.5 ? "use 0, or 1e-5 and above" : "use 0.99999 and below",
                     NULL, "`%s` is rounded to a multiple of 1/65536, and %s would become %d", option->key, node->text,
                     value < 0.5 ? 0 : 1);
    return false;
}

static void read_float(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node,
                       double *out)
{
    double value;
    if (node->kind != SL_NODE_SCALAR || node->quoted || !sl_text_parse_float64(node->text, strlen(node->text), &value))
        sl_reader_report_type(reader, option, node, "a number");
    else if (check_limits(reader, option, node, value) &&
             (!(option->flags & SL_OPTION_MASK) || check_rate(reader, option, node, value)))
        *out = value;
}

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    return text[0] != 0 && strchr(letters, text[0]) != NULL &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-.")] == 0;
}

static void read_text(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node,
                      const char **out)
{
    if (node->kind != SL_NODE_SCALAR) {
        sl_reader_report_type(reader, option, node, "a string");
        return;
    }
    if (node->text[0] == 0 || (option->kind == SL_VALUE_NAME && !is_name(node->text))) {
        sl_reader_report(reader, "E0103", node->place,
                         option->kind == SL_VALUE_NAME
                             ? "a name has letters, digits, `_`, `-` and `.`, and begins with a letter"
                             : NULL,
                         NULL, "`%s` must not be `%.60s`", option->key, node->text);
        return;
    }
    if (option->kind == SL_VALUE_NAME && strlen(node->text) > SL_NAME_MOST) {
        sl_reader_report(reader, "E0103", node->place, NULL, NULL, "`%s` has %zu letters, and a name at most %d",
                         option->key, strlen(node->text), SL_NAME_MOST);
        return;
    }
    *out = node->text;
}

struct text_place {
    const char *text;
    size_t at;
};

static int compare_texts(const void *left, const void *right)
{
    const struct text_place *a = left, *b = right;
    const int order = strcmp(a->text, b->text);
    return order ? order : (a->at > b->at) - (a->at < b->at);
}

/* The place of a text that stands in the list before, too; `count`: there is none. */
static size_t find_twice(struct sl_reader *reader, const char *const *items, size_t count)
{
    struct text_place *sorted = sl_reader_alloc(reader, count + 1, sizeof *sorted);
    size_t twice = count;
    for (size_t i = 0; sorted != NULL && i < count; i++)
        sorted[i] = (struct text_place){items[i], i};
    if (sorted != NULL)
        qsort(sorted, count, sizeof *sorted, compare_texts);
    for (size_t i = 1; sorted != NULL && i < count; i++)
        if (strcmp(sorted[i].text, sorted[i - 1].text) == 0 && sorted[i].at < twice)
            twice = sorted[i].at;
    return twice;
}

static void read_texts(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node,
                       struct sl_string_list *out)
{
    if (node->kind != SL_NODE_LIST) {
        sl_reader_report(reader, "E0101", node->place,
                         node->kind == SL_NODE_SCALAR
                             ? sl_reader_printf(reader, "use `%s: [%.60s]`", option->key, node->text)
                             : NULL,
                         NULL, "`%s` takes a list, not %s", option->key, sl_node_kind_get_name(node->kind));
        return;
    }
    const char **items = sl_reader_alloc(reader, node->count + 1, sizeof *items);
    if (items == NULL)
        return;
    for (size_t i = 0; i < node->count; i++) {
        const struct sl_node *item = node->items[i];
        if (item->kind != SL_NODE_SCALAR || sl_node_is_null(item)) {
            sl_reader_report(reader, "E0101", item->place, NULL, NULL, "`%s` is a list of strings, not of %s",
                             option->key, item->kind == SL_NODE_SCALAR ? "nothing" : sl_node_kind_get_name(item->kind));
            return;
        }
        items[i] = item->text;
    }
    const size_t twice = find_twice(reader, items, node->count);
    if (twice < node->count)
        sl_reader_report(reader, "E0207", node->items[twice]->place, NULL, NULL, "`%s` lists `%.60s` twice",
                         option->key, items[twice]);
    *out = (struct sl_string_list){items, node->count};
}

const char *sl_reader_list_words(struct sl_reader *reader, const struct sl_word *words)
{
    struct sl_buf text;
    sl_buf_init(&text);
    const char *last = NULL;
    for (bool first = true; words->word != NULL; words++) {
        if (words->later)
            continue;
        if (last != NULL) {
            sl_buf_printf(&text, "%s%s", first ? "" : ", ", last);
            first = false;
        }
        last = words->word;
    }
    if (last != NULL)
        sl_buf_printf(&text, "%s%s", text.length_bytes ? " or " : "", last);
    const char *kept = sl_reader_printf(reader, "%s", sl_buf_text(&text));
    if (text.failed)
        reader->no_memory = true;
    sl_buf_deinit(&text);
    return kept;
}

static void report_word(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node)
{
    const char *names[64];
    size_t count = 0;
    for (const struct sl_word *w = option->words; w->word != NULL && count < 64; w++)
        names[count++] = w->word;
    const struct sl_synonym *synonym = sl_synonym_find(node->text, NULL);
    const char *close = sl_text_closest(node->text, names, count);
    struct sl_diagnostic finding = {.code = "E0102", .place = node->place};
    finding.message = sl_reader_printf(reader, "`%s` has no value `%.60s`", option->key, node->text);
    if (synonym != NULL && synonym->section == NULL && synonym->key != NULL &&
        sl_word_find(option->words, synonym->key) != NULL) {
        finding.label = synonym->owner;
        finding.help = synonym->help ? synonym->help : sl_reader_printf(reader, "use `%s`", synonym->key);
    } else if (close != NULL) {
        finding.help = sl_reader_printf(reader, "did you mean `%s`?", close);
    }
    finding.note = sl_reader_printf(reader, "it takes %s", sl_reader_list_words(reader, option->words));
    sl_diagnostics_add(reader->diagnostics, &finding);
    reader->errors++;
}

static void read_word(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node, int *out)
{
    if (node->kind != SL_NODE_SCALAR) {
        if (option->flags & SL_OPTION_FIXED)
            sl_reader_refuse_later(
                reader, node->place,
                sl_reader_printf(reader, "`%s` with %s", option->key, sl_node_kind_get_name(node->kind)));
        else
            sl_reader_report_type(reader, option, node, sl_reader_list_words(reader, option->words));
        return;
    }
    const struct sl_word *word = sl_word_find(option->words, node->text);
    if (word == NULL)
        report_word(reader, option, node);
    else if (word->later)
        sl_reader_refuse_later(reader, node->place, sl_reader_printf(reader, "`%s: %s`", option->key, node->text));
    else
        *out = word->value;
}

/* Parses a period; false: the text is not one. `10Mt`: digits, perhaps a multiplier, a unit. */
static bool parse_period(const char *text, struct sl_period *out)
{
    static const struct {
        char letter;
        enum sl_period_unit unit;
        double scale;
    } units[] = {{'u', SL_PERIOD_UPDATES, 1},    {'e', SL_PERIOD_EPOCHS, 1},   {'t', SL_PERIOD_TOKENS, 1},
                 {'s', SL_PERIOD_SECONDS, 1},    {'m', SL_PERIOD_SECONDS, 60}, {'h', SL_PERIOD_SECONDS, 3600},
                 {'d', SL_PERIOD_SECONDS, 86400}};
    size_t digits = strspn(text, "0123456789.");
    double count;
    if (digits == 0 || !sl_text_parse_float64(text, digits, &count))
        return false;
    const char *rest = text + digits;
    double scale = *rest == 'k' ? 1e3 : *rest == 'M' ? 1e6 : *rest == 'G' ? 1e9 : 1;
    rest += scale > 1;
    if (rest[0] == 0 || rest[1] != 0)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].letter != rest[0])
            continue;
        bool times = units[i].unit == SL_PERIOD_SECONDS;
        *out = (struct sl_period){units[i].unit, count * scale * units[i].scale};
        return !(times && scale > 1) && out->count > 0 && isfinite(out->count) &&
               (times || units[i].unit == SL_PERIOD_EPOCHS || out->count == floor(out->count));
    }
    return false;
}

static bool allows_unit(const struct sl_option *option, enum sl_period_unit unit)
{
    static const char letters[] = "-uets";
    return option->period_units == NULL || strchr(option->period_units, letters[unit]) != NULL;
}

static void read_period(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node,
                        struct sl_period *out)
{
    struct sl_period period;
    if (node->kind != SL_NODE_SCALAR) {
        sl_reader_report_type(reader, option, node, "a period, digits and a unit");
        return;
    }
    if (!parse_period(node->text, &period) || !allows_unit(option, period.unit)) {
        const char *units = option->period_units ? option->period_units : "uets";
        const char *help =
            sl_reader_printf(reader, "write digits and a unit:%s%s%s%s", strchr(units, 'u') ? " `100u` updates," : "",
                             strchr(units, 'e') ? " `3e` epochs," : "", strchr(units, 't') ? " `10Mt` tokens," : "",
                             strcmp(units, "s") == 0 ? " `30s`, `10m` or `2h`" : " `30s`, `10m` or `2h` of time");
        sl_reader_report(reader, "E0106", node->place, help, NULL, "`%s` does not take the period `%.60s`", option->key,
                         node->text);
        return;
    }
    *out = period;
}

void sl_reader_read_scalar(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    int64_t integer;
    const char *memory;
    switch (option->kind) {
    case SL_VALUE_BOOL:
        read_bool(reader, option, node, field);
        break;
    case SL_VALUE_INT:
        read_int(reader, option, node, field);
        break;
    case SL_VALUE_SEED:
        if (read_int(reader, option, node, &integer))
            *(uint64_t *)field = (uint64_t)integer;
        break;
    case SL_VALUE_FLOAT:
        read_float(reader, option, node, field);
        break;
    case SL_VALUE_TEXT:
    case SL_VALUE_NAME:
        read_text(reader, option, node, field);
        break;
    case SL_VALUE_PATH:
        if (node->kind != SL_NODE_SCALAR || node->text[0] == 0) {
            sl_reader_report_type(reader, option, node, "a path");
        } else if ((memory = sl_reader_find_memory(reader, node)) != NULL) {
            *(const char **)field = memory; /* the tree keeps the name: memory has no path in a later process */
        } else if ((node->text = sl_reader_resolve_path(reader, node, true)) != NULL) {
            *(const char **)field = node->text;
        } else {
            node->text = "";
        }
        break;
    case SL_VALUE_TEXTS:
        read_texts(reader, option, node, field);
        break;
    case SL_VALUE_WORD:
        read_word(reader, option, node, field);
        break;
    case SL_VALUE_PERIOD:
        read_period(reader, option, node, field);
        break;
    case SL_VALUE_SECTION:
    case SL_VALUE_CUSTOM:
    case SL_VALUE_LATER:
        break; /* no scalars */
    }
}
