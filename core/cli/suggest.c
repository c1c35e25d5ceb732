/* SPDX-License-Identifier: Apache-2.0 */
/* Flags that do not exist, but name a key of the model file. */
#include <string.h>

#include "base/value/text.h"
#include "cli/cli.h"
#include "model/read/synonyms.h"
#include "model/schema/schema_table.h"

enum { WORD_BYTES = 64, KEYS_MOST = 256 };

/* Where keys are looked for: those that users change most come first. A flag for a layer means the first one. */
static const struct {
    const struct sl_section *section;
    const char *prefix;
} places[] = {
    {&sl_section_train, "train."},
    {&sl_section_optimizer, "train.optimizer."},
    {&sl_section_data, "data."},
    {&sl_section_batching, "data.batching."},
    {&sl_section_top, ""},
    {&sl_section_early_stopping, "train.early_stopping."},
    {&sl_section_schedule, "train.schedule."},
    {&sl_section_checkpoint, "train.checkpoint."},
    {&sl_section_loss, "train.loss."},
    {&sl_section_decode, "decode."},
    {&sl_section_dispatch, "dispatch."},
    {&sl_section_output, "output."},
    {&sl_section_log, "log."},
    {&sl_section_layer, "model[0]."},
};

enum { PLACES = sizeof places / sizeof *places };

static bool find_exact(const char *word, char out[CLI_KEY_BYTES])
{
    for (int p = 0; p < PLACES; p++) {
        if (sl_option_find(places[p].section, word, -1) == NULL)
            continue;
        sl_text_snprintf(out, CLI_KEY_BYTES, "%s%s", places[p].prefix, word);
        return true;
    }
    return false;
}

/* A name of another program, such as `lr`, with `-` or with `_`. */
static bool find_synonym(const char *said, const char *word, char out[CLI_KEY_BYTES])
{
    for (int p = 0; p < PLACES; p++) {
        const struct sl_synonym *synonym = sl_synonym_find(said, places[p].section);
        if (synonym == NULL)
            synonym = sl_synonym_find(word, places[p].section);
        if (synonym == NULL || synonym->section == NULL || synonym->key == NULL)
            continue;
        sl_text_snprintf(out, CLI_KEY_BYTES, "%s%s", places[p].prefix, synonym->key);
        return true;
    }
    return false;
}

bool cli_suggest_key(const char *flag, bool exact, char out[CLI_KEY_BYTES])
{
    char word[WORD_BYTES];
    const char *names[KEYS_MOST];
    size_t count = 0;
    sl_text_snprintf(word, sizeof word, "%s", flag);
    for (char *c = word; *c; c++)
        *c = *c == '-' ? '_' : *c;
    if (find_exact(word, out) || find_synonym(flag, word, out))
        return true;
    for (int p = 0; p < PLACES && !exact; p++)
        for (const struct sl_option *o = places[p].section->options; o->key != NULL && count < KEYS_MOST; o++)
            names[count++] = o->key;
    const char *near = exact ? NULL : sl_text_closest(word, names, count);
    return near != NULL && find_exact(near, out);
}
