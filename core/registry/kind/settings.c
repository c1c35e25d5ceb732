/* SPDX-License-Identifier: Apache-2.0 */
/* See settings.h. */
#include "registry/kind/settings.h"

#include <stdbool.h>
#include <string.h>

#include "base/value/text.h"

enum { KEYS_SHOWN = 64 };

static const struct seqlstm_option *find_option(const struct seqlstm_option *options, uint32_t count, const char *key)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(options[i].key, key) == 0)
            return &options[i];
    return NULL;
}

static bool is_one_of(const char *choices, const char *value)
{
    size_t length = strlen(value);
    for (const char *p = choices;;) {
        size_t n = strcspn(p, "|");
        if (n == length && strncmp(p, value, n) == 0)
            return true;
        if (p[n] == 0)
            return false;
        p += n + 1;
    }
}

/* Is `type` this word, perhaps followed by a range? */
static bool is_number(const char *type, const char *word)
{
    size_t length = strlen(word);
    return strncmp(type, word, length) == 0 && (type[length] == 0 || type[length] == ' ');
}

/* Reads " LOW..HIGH" after the word; false: there is no range. */
static bool find_range(const char *type, double *low, double *high)
{
    const char *text = strchr(type, ' '), *dots = text ? strstr(text, "..") : NULL;
    return dots && sl_text_parse_float64(text + 1, (size_t)(dots - text - 1), low) &&
           sl_text_parse_float64(dots + 2, strlen(dots + 2), high);
}

static bool has_type(const char *type, const char *value)
{
    int64_t integer;
    double number, low, high;
    bool is_int = is_number(type, "int");
    if (is_int || is_number(type, "float")) {
        if (is_int && sl_text_parse_int64(value, strlen(value), &integer))
            number = (double)integer;
        else if (is_int || !sl_text_parse_float64(value, strlen(value), &number))
            return false;
        return !find_range(type, &low, &high) || (number >= low && number <= high);
    }
    if (strcmp(type, "bool") == 0)
        return strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
    return strcmp(type, "string") == 0 || is_one_of(type, value);
}

static seqlstm_status unknown_key(const char *id, const struct seqlstm_option *options, uint32_t option_count,
                                  const char *key, struct seqlstm_error *err)
{
    const char *names[KEYS_SHOWN];
    char list[400] = "";
    size_t used = 0, count = 0;
    for (uint32_t i = 0; i < option_count && count < KEYS_SHOWN; i++) {
        names[count++] = options[i].key;
        if (used < sizeof list - 1)
            used += (size_t)sl_text_snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", options[i].key);
    }
    if (count == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s has no option '%.60s'; it has no options", id, key);
    const char *near = sl_text_closest(key, names, count);
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s has no option '%.60s'; %s%s%sit has: %s", id, key,
                 near ? "did you mean '" : "", near ? near : "", near ? "'? " : "", list);
}

seqlstm_status sl_settings_check(const char *id, const struct seqlstm_option *options, uint32_t option_count,
                                 const struct seqlstm_setting *settings, uint32_t setting_count, int32_t *out_wrong,
                                 struct seqlstm_error *err)
{
    for (uint32_t i = 0; i < setting_count; i++) {
        if (out_wrong)
            *out_wrong = (int32_t)i;
        const struct seqlstm_option *option = find_option(options, option_count, settings[i].key);
        if (!option)
            return unknown_key(id, options, option_count, settings[i].key, err);
        if (!has_type(option->type, settings[i].value))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "option '%s' of %s is '%.60s', expected %s (%.200s)", option->key,
                         id, settings[i].value, option->type, option->help);
    }
    if (out_wrong)
        *out_wrong = -1;
    return SEQLSTM_OK;
}
