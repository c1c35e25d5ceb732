/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup in the option tables. */
#include "model/schema/schema_table.h"

#include <string.h>

const struct sl_section *const sl_schema_sections[] = {
    &sl_section_top,
    &sl_section_data,
    &sl_section_source,
    &sl_section_label,
    &sl_section_time,
    &sl_section_window,
    &sl_section_scale,
    &sl_section_missing,
    &sl_section_tokenizer,
    &sl_section_batching,
    &sl_section_layer,
    &sl_section_sides,
    &sl_section_initial_state,
    &sl_section_activation,
    &sl_section_initializer,
    &sl_section_regularizer,
    &sl_section_zoneout,
    &sl_section_train,
    &sl_section_loss,
    &sl_section_optimizer,
    &sl_section_schedule,
    &sl_section_validate,
    &sl_section_checkpoint,
    &sl_section_early_stopping,
    &sl_section_ema,
    &sl_section_decode,
    &sl_section_parallel,
    &sl_section_reduce,
    &sl_section_compress,
    &sl_section_length_penalty,
    &sl_section_teacher_forcing,
    &sl_section_backend,
    &sl_section_dispatch,
    &sl_section_output,
    &sl_section_log,
    NULL,
};

const char *sl_word_get_name(const struct sl_word *words, int value)
{
    for (; words->word != NULL; words++)
        if (words->value == value)
            return words->word;
    return "?";
}

const struct sl_word *sl_word_find(const struct sl_word *words, const char *word)
{
    for (; words->word != NULL; words++)
        if (strcmp(words->word, word) == 0)
            return words;
    return NULL;
}

bool sl_option_belongs(const struct sl_option *option, int value)
{
    return option->variants == SL_ALL_VARIANTS || value < 0 || (option->variants >> value & 1) != 0;
}

const struct sl_option *sl_option_find(const struct sl_section *section, const char *key, int value)
{
    for (const struct sl_option *option = section->options; option->key != NULL; option++)
        if (strcmp(option->key, key) == 0 && sl_option_belongs(option, value))
            return option;
    return NULL;
}
