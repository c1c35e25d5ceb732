/* SPDX-License-Identifier: Apache-2.0 */
/* Reads `data:`: copies options next to the splits into them, gives `valid` and `test` the missing options of `train`,
 * and fills in what follows from the type of the source. */
#include <string.h>

#include "model/read/sections.h"

#define AT(member) offsetof(struct sl_data_config, member)

static const char *const split_keys[SL_SPLIT_COUNT] = {"train", "valid", "test"};

/* Keys that are not copied to other splits. */
static const char *const own_keys[] = {"file", "x", "y", "lengths", "rows", "size", "seed", "split"};

static int get_source_type(const struct sl_node *split)
{
    const struct sl_node *type = sl_node_find(split, "type");
    const struct sl_word *word =
        type != NULL && type->kind == SL_NODE_SCALAR ? sl_word_find(sl_words_source_type, type->text) : NULL;
    return word ? word->value : -1;
}

/* `source` and `target` are files, or columns of a table. */
static bool is_own_key(const char *key, const struct sl_node *train)
{
    for (size_t i = 0; i < sizeof own_keys / sizeof *own_keys; i++)
        if (strcmp(own_keys[i], key) == 0)
            return true;
    return (strcmp(key, "source") == 0 || strcmp(key, "target") == 0) && get_source_type(train) == SL_SOURCE_LINES;
}

/* A split that reads files of its own. */
static bool is_source(const struct sl_node *split)
{
    return split != NULL && split->kind == SL_NODE_MAP && sl_node_find(split, "split") == NULL;
}

/* A copy of a pair in a split that lacks the key; false: it has the key. */
static bool copy_pair(struct sl_reader *reader, struct sl_node *split, const struct sl_pair *pair)
{
    if (sl_node_find(split, pair->key) != NULL)
        return false;
    if (!sl_node_append_pair(reader->arena, split, pair->key, pair->place, sl_node_copy(reader->arena, pair->value)))
        reader->no_memory = true;
    return true;
}

enum spread {
    SPREAD_NOWHERE /* no split can have it */,
    SPREAD_OWN /* those that can have their own */,
    SPREAD_COPIED
};

/* Copies one option of `data:` into the splits that can have it and lack it. */
static enum spread spread_pair(struct sl_reader *reader, const struct sl_node *data, const struct sl_pair *pair)
{
    enum spread found = SPREAD_NOWHERE;
    for (int s = 0; s < SL_SPLIT_COUNT; s++) {
        struct sl_node *split = sl_node_find(data, split_keys[s]);
        if (!is_source(split))
            continue;
        int type = get_source_type(split);
        bool fits = strcmp(pair->key, "type") == 0 ||
                    (type >= 0 && sl_option_find(&sl_section_source, pair->key, type) != NULL);
        const bool copied = fits && copy_pair(reader, split, pair);
        if (copied || type < 0)
            found = SPREAD_COPIED;
        else if (fits && found == SPREAD_NOWHERE)
            found = SPREAD_OWN;
    }
    return found;
}

static void spread_source_options(struct sl_reader *reader, struct sl_node *data)
{
    /* The type comes first: it decides which of the others fit. */
    struct sl_pair *type = sl_node_find_pair(data, "type");
    if (type != NULL) {
        spread_pair(reader, data, type);
        sl_node_remove(data, "type");
    }
    const struct sl_node *train = sl_node_find(data, "train");
    const struct sl_pair *train_type = sl_node_find_pair(train, "type");
    for (int s = SL_SPLIT_VALID; s < SL_SPLIT_COUNT && train_type != NULL; s++)
        if (is_source(sl_node_find(data, split_keys[s])))
            copy_pair(reader, sl_node_find(data, split_keys[s]), train_type);
    for (size_t i = data->count; i-- > 0;) {
        struct sl_pair *pair = &data->pairs[i];
        if (sl_option_find(&sl_section_data, pair->key, -1) != NULL ||
            sl_option_find(&sl_section_source, pair->key, -1) == NULL || is_own_key(pair->key, train))
            continue;
        const enum spread found = spread_pair(reader, data, pair);
        if (found == SPREAD_NOWHERE)
            sl_reader_report(reader, "E0205", pair->place, NULL, NULL,
                             "`%s` has no effect: no split is of a type that has it", pair->key);
        if (found == SPREAD_OWN)
            sl_reader_report(reader, "E0205", pair->place,
                             sl_reader_printf(reader, "change `data.train.%s`, or remove it there", pair->key), NULL,
                             "`%s` has no effect: the splits have their own", pair->key);
        sl_node_remove(data, pair->key);
    }
}

static void inherit_from_train(struct sl_reader *reader, const struct sl_node *data)
{
    const struct sl_node *train = sl_node_find(data, "train");
    if (!is_source(train))
        return;
    for (int s = SL_SPLIT_VALID; s < SL_SPLIT_COUNT; s++) {
        struct sl_node *split = sl_node_find(data, split_keys[s]);
        if (!is_source(split) || get_source_type(split) != get_source_type(train))
            continue;
        for (size_t i = 0; i < train->count; i++)
            if (!is_own_key(train->pairs[i].key, train))
                copy_pair(reader, split, &train->pairs[i]);
    }
}

/* Sets defaults for the options that the generator has, and reports the others. */
static void complete_generator(struct sl_reader *reader, struct sl_node *split, struct sl_source *source)
{
    static const struct {
        const char *key, *fallback;
        unsigned generators;
        const char *needs;
    } options[] = {
        {"features", "1", 1u << SL_GENERATOR_SINE, "`name: sine`"},
        {"horizon", "1", 1u << SL_GENERATOR_SINE, "`name: sine`"},
        {"noise", "0", 1u << SL_GENERATOR_SINE, "`name: sine`"},
        {"symbols", "8", 1u << SL_GENERATOR_COPY | 1u << SL_GENERATOR_REVERSE, "`name: copy` or `name: reverse`"},
        {"delay", "10", 1u << SL_GENERATOR_COPY, "`name: copy`"},
        {"digits", "3", 1u << SL_GENERATOR_ADDITION, "`name: addition`"},
    };
    const struct sl_node *name = sl_node_find(split, "name");
    const struct sl_word *word =
        name != NULL && name->kind == SL_NODE_SCALAR ? sl_word_find(sl_words_generator, name->text) : NULL;
    if (word == NULL)
        return;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        bool fits = (options[i].generators >> word->value & 1) != 0;
        if (fits && source == NULL)
            sl_reader_set_default(reader, split, options[i].key, options[i].fallback);
        else if (!fits && source != NULL)
            sl_reader_drop_idle(reader, split, options[i].key, false, options[i].needs);
    }
    if (source != NULL && word->value == SL_GENERATOR_ADDITION)
        sl_reader_drop_idle(reader, split, "length", false, "another generator: addition has `digits`");
    else if (source != NULL && sl_node_find(split, "length") == NULL)
        sl_reader_report(reader, "E0204", split->place, NULL, NULL, "the generator `%s` needs `length`", word->word);
}

/* `{split: 0.1}`: nothing else. */
static void read_cut(struct sl_reader *reader, struct sl_node *node, struct sl_source *source, const char *key)
{
    static const struct sl_option fraction = {
        .key = "split", .kind = SL_VALUE_FLOAT, .flags = SL_OPTION_ABOVE | SL_OPTION_BELOW, .max = 1};
    source->origin = SL_SOURCE_FROM_TRAIN;
    for (size_t i = 0; i < node->count; i++)
        if (strcmp(node->pairs[i].key, "split") != 0)
            sl_reader_report(reader, "E0207", node->pairs[i].place, NULL, NULL,
                             "`%.60s` cannot be combined with `split`, which takes `%s` from `train`",
                             node->pairs[i].key, key);
    sl_reader_read_value(reader, &fraction, sl_node_find(node, "split"), &source->split);
}

static void read_split(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    struct sl_source *source = field;
    source->place = node->place;
    if (node->kind == SL_NODE_MAP && sl_node_find(node, "split") != NULL) {
        if (strcmp(option->key, "train") == 0)
            sl_reader_report(reader, "E0207", sl_reader_get_place(node, "split"), NULL, NULL,
                             "`split` cuts a part off train, so train itself needs a source");
        else
            read_cut(reader, node, source, option->key);
        return;
    }
    if (node->kind == SL_NODE_MAP)
        complete_generator(reader, node, NULL);
    sl_reader_read_section(reader, &sl_section_source, node, source);
    source->origin = get_source_type(node) >= 0 ? SL_SOURCE_FILES : SL_SOURCE_NONE;
    source->has_seed = sl_node_find(node, "seed") != NULL;
    if (source->type == SL_SOURCE_GENERATOR && node->kind == SL_NODE_MAP)
        complete_generator(reader, node, source);
}

static const struct sl_custom split_custom = {
    read_split, "a source, or `{split: 0.1}`",
    "{\"anyOf\": [{\"type\": \"object\", \"required\": [\"split\"], \"additionalProperties\": false, "
    "\"properties\": {\"split\": {\"type\": \"number\", \"exclusiveMinimum\": 0, "
    "\"exclusiveMaximum\": 1}}}, {\"$ref\": \"#/$defs/data.train\"}]}"};

/* Read after the sources, whose type decides whether there is a tokenizer (read_tokenizer). */
static void read_nothing(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    (void)reader, (void)option, (void)node, (void)field;
}

static const struct sl_custom tokenizer_custom = {read_nothing, "tokenizer", "{\"$ref\": \"#/$defs/data.tokenizer\"}"};

static const struct sl_option data_options[] = {
    OPTION(CUSTOM, "train", AT(splits[SL_SPLIT_TRAIN]), .flags = SL_OPTION_REQUIRED, .custom = &split_custom,
           .map = &sl_section_source, .doc = "the training data"),
    OPTION(CUSTOM, "valid", AT(splits[SL_SPLIT_VALID]), .custom = &split_custom, .map = &sl_section_source,
           .doc = "the validation data, evaluated during training; `{split: 0.1}` is the last tenth of `train`"),
    OPTION(CUSTOM, "test", AT(splits[SL_SPLIT_TEST]), .custom = &split_custom, .map = &sl_section_source,
           .doc = "the test data, evaluated after training"),
    OPTION(CUSTOM, "tokenizer", AT(tokenizer), .custom = &tokenizer_custom, .map = &sl_section_tokenizer,
           .doc = "how text becomes tokens; default: `whitespace`"),
    OPTION(CUSTOM, "source_tokenizer", AT(source_tokenizer), .custom = &tokenizer_custom, .map = &sl_section_tokenizer,
           .doc =
               "how the source text of pairs becomes tokens; default: like `tokenizer`, but without `bos` and `eos`"),
    OPTION(SECTION, "batching", AT(batching), .default_text = "{}", .section = &sl_section_batching,
           .doc = "how sequences become batches"),
    OPTION(INT, "batch_size", AT(batch_size), .default_text = "32", .min = 1, .max = 1000000,
           .doc = "number of sequences, or of streams, in a batch"),
    OPTION(BOOL, "shuffle", AT(shuffle), .default_text = "true",
           .doc = "whether the training sequences get a new order in each epoch"),
    OPTION_END,
};

const struct sl_section sl_section_data = {
    .path = "data",
    .noun = "the data",
    .options = data_options,
    .spread = &sl_section_source,
    .doc = "the data; format options of the sources may also be placed here, where they apply to all splits",
};

static bool has_text(const struct sl_data_config *data)
{
    const struct sl_source *train = &data->splits[SL_SPLIT_TRAIN];
    switch (train->type) {
    case SL_SOURCE_TEXT:
    case SL_SOURCE_LINES:
    case SL_SOURCE_CONLL:
        return true;
    case SL_SOURCE_TSV:
    case SL_SOURCE_CSV:
        return train->text != NULL || train->source_column != NULL;
    case SL_SOURCE_GENERATOR:
        return data->pairs;
    default:
        return false;
    }
}

/* `specials: [word, …]` of those that are not NULL, unless some were given. */
static void set_specials(struct sl_reader *reader, struct sl_node *tokenizer, const char *const words[3])
{
    static const struct sl_place nowhere;
    if (sl_node_find(tokenizer, "specials") != NULL)
        return;
    struct sl_node *list = sl_node_create(reader->arena, SL_NODE_LIST, nowhere, NULL);
    for (int i = 0; list != NULL && i < 3; i++)
        if (words[i] != NULL &&
            !sl_node_append_item(reader->arena, list, sl_node_create_scalar(reader->arena, nowhere, NULL, words[i])))
            list = NULL;
    if (list == NULL)
        reader->no_memory = true;
    else
        sl_reader_set_default_copy(reader, tokenizer, "specials", list);
}

/* `[unk]`; `[unk, eos]` for a text of words; `[unk, bos, eos]` for what a decoder writes. */
static void set_default_specials(struct sl_reader *reader, struct sl_node *tokenizer, const struct sl_data_config *data)
{
    const struct sl_node *type = sl_node_find(tokenizer, "type");
    bool words = type != NULL && strcmp(type->text, "char") != 0;
    bool eos = data->pairs || (data->splits[SL_SPLIT_TRAIN].type == SL_SOURCE_TEXT && words);
    const char *const specials[3] = {"unk", data->pairs ? "bos" : NULL, eos ? "eos" : NULL};
    set_specials(reader, tokenizer, specials);
}

/* The tokenizer of the target also reads the source, without bos and eos. */
static void derive_source_tokenizer(struct sl_reader *reader, struct sl_data_config *data)
{
    struct sl_string_list *specials = &data->source_tokenizer.specials;
    data->source_tokenizer = data->tokenizer;
    const char **kept = sl_reader_alloc(reader, specials->count + 1, sizeof *kept);
    size_t count = 0;
    for (size_t i = 0; kept != NULL && i < specials->count; i++)
        if (strcmp(specials->items[i], "bos") != 0 && strcmp(specials->items[i], "eos") != 0)
            kept[count++] = specials->items[i];
    *specials = (struct sl_string_list){kept, count};
}

static void read_source_tokenizer(struct sl_reader *reader, struct sl_node *node, struct sl_data_config *data)
{
    static const struct sl_option option = {
        .key = "source_tokenizer", .kind = SL_VALUE_SECTION, .section = &sl_section_tokenizer};
    static const char *const unk[3] = {"unk"};
    struct sl_node *tokenizer = sl_node_find(node, "source_tokenizer");
    if (!data->pairs) {
        sl_reader_drop_idle(reader, node, "source_tokenizer", false, "pairs, for an encoder and a decoder");
        return;
    }
    if (tokenizer == NULL) {
        derive_source_tokenizer(reader, data);
        return;
    }
    if (data->tokenizer.shared)
        sl_reader_report(reader, "E0207", tokenizer->place, "use `shared: false`, or one `tokenizer`", NULL,
                         "one vocabulary for both sides (`shared`) needs one tokenizer for both");
    if (!sl_reader_expand(reader, tokenizer, "type"))
        return;
    if (tokenizer->kind == SL_NODE_MAP) {
        sl_reader_drop_idle(reader, tokenizer, "shared", false, "`tokenizer`, to which it belongs");
        set_specials(reader, tokenizer, unk);
    }
    sl_reader_read_value(reader, &option, tokenizer, &data->source_tokenizer);
}

static void read_tokenizer(struct sl_reader *reader, struct sl_node *node, struct sl_data_config *data)
{
    static const struct sl_option option = {
        .key = "tokenizer", .kind = SL_VALUE_SECTION, .section = &sl_section_tokenizer};
    const struct sl_source *train = &data->splits[SL_SPLIT_TRAIN];
    struct sl_node *tokenizer = sl_node_find(node, "tokenizer");
    if (train->origin != SL_SOURCE_FILES)
        return;
    if (!has_text(data)) {
        sl_reader_drop_idle(reader, node, "tokenizer", false, "text in the data");
        sl_reader_drop_idle(reader, node, "source_tokenizer", false, "text in the data");
        return;
    }
    bool characters = train->type == SL_SOURCE_GENERATOR && train->generator == SL_GENERATOR_ADDITION;
    if (tokenizer == NULL)
        tokenizer = sl_reader_set_default(reader, node, "tokenizer", characters ? "char" : "whitespace");
    if (tokenizer == NULL || !sl_reader_expand(reader, tokenizer, "type"))
        return;
    if (tokenizer->kind == SL_NODE_MAP) {
        bool split = sl_node_find(node, "source_tokenizer") != NULL;
        set_default_specials(reader, tokenizer, data);
        if (data->pairs)
            sl_reader_set_default(reader, tokenizer, "shared",
                                  sl_source_has_same_target(train) && !split ? "true" : "false");
        else
            sl_reader_drop_idle(reader, tokenizer, "shared", false, "pairs, for an encoder and a decoder");
    }
    sl_reader_read_value(reader, &option, tokenizer, &data->tokenizer);
    read_source_tokenizer(reader, node, data);
}

/* Whether the options of the source show that it has pairs. */
static bool has_pairs(const struct sl_source *train)
{
    return train->source_file || train->target_file || train->source_column ||
           (train->target_column && train->inputs.count == 0) ||
           (train->type == SL_SOURCE_GENERATOR && train->generator == SL_GENERATOR_ADDITION);
}

void sl_model_read_data(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    struct sl_data_config *data = field;
    (void)option;
    data->place = node->place;
    if (node->kind == SL_NODE_MAP) {
        spread_source_options(reader, node);
        inherit_from_train(reader, node);
    }
    sl_reader_read_section(reader, &sl_section_data, node, data);
    data->pairs = data->pairs || has_pairs(&data->splits[SL_SPLIT_TRAIN]);
    for (int s = 0; s < SL_SPLIT_COUNT && data->pairs; s++)
        if (is_source(sl_node_find(node, split_keys[s])))
            sl_reader_drop_idle(reader, sl_node_find(node, split_keys[s]), "delay", false,
                                "a model that reads on while it waits: pairs have none");
    if (node->kind == SL_NODE_MAP && !reader->no_memory)
        read_tokenizer(reader, node, data);
}
