/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables: the only description of each key of the model file.
 *
 * The reader (reader.h), the defaults, the JSON Schema, the tables of docs/model-file.md and the error messages all
 * use these tables. A section of the file is a map of options. If it has variants, the key `type` (or a bare word
 * instead of the map) selects one, and each option names the variants that have it. One section struct describes one C
 * struct, and each option has the offset of its field.
 *
 * To add a key: a member in data_config.h, layer.h, train_config.h or model.h, an entry in the table in section_*.c,
 * and its row in docs/model-file.md, which tests/unit/model/test_model_schema.c demands.
 */
#ifndef SL_MODEL_SCHEMA_SCHEMA_TABLE_H
#define SL_MODEL_SCHEMA_SCHEMA_TABLE_H

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_node;
struct sl_reader;

enum sl_value_kind {
    SL_VALUE_BOOL,    /* bool */
    SL_VALUE_INT,     /* int64_t */
    SL_VALUE_SEED,    /* uint64_t */
    SL_VALUE_FLOAT,   /* double */
    SL_VALUE_TEXT,    /* const char * */
    SL_VALUE_NAME,    /* const char *: letters, digits, `_`, `-`, `.`; begins with a letter or `_`; SL_NAME_MOST */
    SL_VALUE_PATH,    /* const char *: made absolute, ${VAR} replaced */
    SL_VALUE_TEXTS,   /* struct sl_string_list */
    SL_VALUE_WORD,    /* an enum, one of `words` */
    SL_VALUE_PERIOD,  /* struct sl_period */
    SL_VALUE_SECTION, /* the struct of `section` */
    SL_VALUE_CUSTOM,  /* read by `custom` */
    SL_VALUE_LATER    /* nothing: the key belongs to a later version */
};

/* A word and what it means; a table ends with a NULL word. */
struct sl_word {
    const char *word;
    int value;
    const char *doc; /* one phrase */
    bool later;      /* known, but not available in this version */
};

/* The entries of a table of words. */
#define WORD(text, number, meaning)                                                                                    \
    {                                                                                                                  \
        .word = text, .value = number, .doc = meaning                                                                  \
    }
#define WORD_LATER(text)                                                                                               \
    {                                                                                                                  \
        .word = text, .value = -1, .doc = "", .later = true                                                            \
    }
#define WORD_END                                                                                                       \
    {                                                                                                                  \
        .word = NULL                                                                                                   \
    }

struct sl_option;

/* A value that a function of its own reads. */
struct sl_custom {
    void (*read)(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field);
    const char *form; /* for the docs: "a name or a list of names" */
    const char *json; /* a JSON Schema of it */
};

enum {
    SL_OPTION_REQUIRED = 1,
    SL_OPTION_ABOVE = 2, /* the value is greater than min, not equal */
    SL_OPTION_BELOW = 4, /* the value is less than max, not equal */
    SL_OPTION_FIXED = 8, /* any value but the default belongs to a later version */
    SL_OPTION_MASK = 16  /* the rate of a mask: acts as the nearest multiple of 2^-16, and must not become 0 or 1 */
};

#define SL_NO_LIMIT     DBL_MAX
#define SL_ALL_VARIANTS 0u

struct sl_option {
    const char *key; /* NULL ends a table */
    enum sl_value_kind kind;
    size_t offset;     /* of the field in the section's struct */
    uint32_t variants; /* bit (1 << value) for each variant that has it; 0: all */
    unsigned flags;
    const char *default_text; /* the default as it would be written; NULL: none, the field stays zero */
    double min, max;          /* of numbers; both 0: no limits */
    union {
        const struct sl_word *words;
        const struct sl_section *section;
        const struct sl_custom *custom;
        const char *period_units; /* of "ueTs": updates, epochs, tokens, seconds; NULL: all */
    };
    /* Where `custom` reads a map or a list of maps that sections describe (for load/overlay.c): */
    const struct sl_section *map, *items;
    const char *const *lone_words; /* bare words that are no `type` of that map; NULL-terminated, or NULL */
    const char *doc;               /* one sentence without a full stop */
};

/* An entry of a table: the kind of its value without SL_VALUE_, the key, the offset of its field, and the rest by name:
 *
 *     OPTION(INT, "units", AT(units), .min = 1, .max = 1000, .doc = "number of hidden units")
 */
#define OPTION(value_kind, key_text, field_offset, ...)                                                                \
    {                                                                                                                  \
        .key = key_text, .kind = SL_VALUE_##value_kind, .offset = field_offset, __VA_ARGS__                            \
    }
#define OPTION_END                                                                                                     \
    {                                                                                                                  \
        .key = NULL                                                                                                    \
    }
#define SL_NO_FIELD 0 /* the offset of an option whose value goes elsewhere */

/* A map that has several forms: a map with `key`, laid on one without it, takes these keys of the lower one away. What
 * is taken away may go on for the rest: an activation of both directions becomes that of the one which is not named. */
struct sl_form {
    const char *key;
    const char *displaces[3]; /* NULL ends it; "*": all other keys */
    const char *rest;         /* the key of the rest; NULL: none */
};

struct sl_section {
    const char *path;               /* heading in the docs: "train.optimizer" */
    const char *noun;               /* in messages: "the optimizer"; a layer: "a layer" */
    const struct sl_word *variants; /* NULL: none */
    size_t variant_offset;          /* of the enum that `type` sets */
    const char *default_variant;    /* if `type` is not given; NULL: it is required */
    const char *bare_key;           /* a bare value instead of the map is the value of this key; or NULL */
    const struct sl_option *options;
    const struct sl_section *spread; /* a section whose options may be written here too; or NULL */
    const struct sl_form *forms;     /* a NULL key ends them; or NULL */
    const char *doc;
};

/* All sections, for the docs and the tests; NULL-terminated. */
extern const struct sl_section *const sl_schema_sections[];

extern const struct sl_section sl_section_top, sl_section_data, sl_section_source, sl_section_label, sl_section_time,
    sl_section_window, sl_section_scale, sl_section_missing, sl_section_tokenizer, sl_section_batching,
    sl_section_layer, sl_section_sides, sl_section_initial_state, sl_section_zoneout, sl_section_activation,
    sl_section_initializer, sl_section_regularizer, sl_section_train, sl_section_loss, sl_section_optimizer,
    sl_section_schedule, sl_section_validate, sl_section_checkpoint, sl_section_early_stopping, sl_section_ema,
    sl_section_backend, sl_section_dispatch, sl_section_output, sl_section_log, sl_section_decode, sl_section_parallel,
    sl_section_reduce, sl_section_compress, sl_section_length_penalty, sl_section_teacher_forcing;

/* The word of a value, or "?"; the entry of a word, or NULL. */
const char *sl_word_get_name(const struct sl_word *words, int value);
const struct sl_word *sl_word_find(const struct sl_word *words, const char *word);

/* Whether the variant `value` has the option. */
bool sl_option_belongs(const struct sl_option *option, int value);

/* The option with that key that the variant has, or NULL; with `value` -1, of any variant. */
const struct sl_option *sl_option_find(const struct sl_section *section, const char *key, int value);

#endif
