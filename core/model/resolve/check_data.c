/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the keys of `data:` fit together. */
#include <string.h>

#include "base/value/text.h"
#include "model/read/sections.h"

static void check_label(struct sl_reader *reader, const struct sl_node *split, const struct sl_source *source)
{
    const char *column = source->label.column;
    const struct sl_node *label = sl_node_find(split, "label");
    if (column == NULL || label == NULL)
        return;
    if (source->type == SL_SOURCE_LINES && strcmp(column, "first") != 0 && strcmp(column, "last") != 0)
        sl_reader_report(reader, "E0317", label->place, NULL, NULL,
                         "the label of a line is its `first` or its `last` field, not `%.60s`", column);
}

/* A source of pairs has its two sides, or one text that is both, and no label. */
static void check_pairs(struct sl_reader *reader, const struct sl_node *split, const struct sl_source *source)
{
    static const char *const others[] = {"file", "text", "label", "inputs", "targets", "group", "window", "time"};
    bool lines = source->type == SL_SOURCE_LINES;
    bool table = source->type == SL_SOURCE_CSV || source->type == SL_SOURCE_TSV;
    bool from = sl_node_find(split, "source") != NULL, to = sl_node_find(split, "target") != NULL;
    if (!lines && !table && source->type != SL_SOURCE_TEXT && source->type != SL_SOURCE_GENERATOR)
        sl_reader_report(reader, "E0317", source->place, "use `lines`, `tsv`, `csv` or `text`", NULL,
                         "`type: %s` has no pairs of texts, which an encoder and a decoder need",
                         sl_source_type_get_name(source->type));
    if (source->type == SL_SOURCE_GENERATOR && source->generator != SL_GENERATOR_ADDITION &&
        source->generator != SL_GENERATOR_COPY && source->generator != SL_GENERATOR_REVERSE)
        sl_reader_report(reader, "E0317", source->place, "use `addition`, `copy` or `reverse`", NULL,
                         "the generator `%s` makes no pairs of texts, which an encoder and a decoder need",
                         sl_generator_get_name(source->generator));
    if (from != to)
        sl_reader_report(reader, "E0204", source->place, NULL, NULL, "`%s` also needs `%s`", from ? "source" : "target",
                         from ? "target" : "source");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bool is_text = i < 2 && (!table || i > 0); /* the key of the text; the text of a table is in its `file` */
        if ((is_text ? from || to : i > 1) && sl_node_find(split, others[i]) != NULL)
            sl_reader_report(reader, "E0207", sl_reader_get_place(split, others[i]), NULL, NULL,
                             is_text ? "a split has `source` and `target`, or `%s`, not both"
                                     : "`%s` cannot be used with pairs of texts",
                             others[i]);
    }
}

static void check_table(struct sl_reader *reader, const struct sl_node *split, const struct sl_source *source)
{
    /* By the keys that were given, even if their values could not be read: those have errors of their own. */
    bool numeric = sl_node_find(split, "inputs") != NULL, text = sl_node_find(split, "text") != NULL;
    bool targets = sl_node_find(split, "targets") != NULL;
    bool label = sl_node_find(split, "label") != NULL;
    bool window = sl_node_find(split, "window") != NULL;
    struct sl_place place = source->place;
    if (numeric && text)
        sl_reader_report(reader, "E0207", sl_reader_get_place(split, "text"), NULL, NULL,
                         "a table has `inputs` or `text`, not both");
    else if (!numeric && !text && !source->source_column && !source->target_column)
        sl_reader_report(reader, "E0317", place, "name the columns, as in `inputs: [a, b]` or `text: sentence`", NULL,
                         "a table needs `inputs` or `text`");
    if (targets && label)
        sl_reader_report(reader, "E0207", sl_reader_get_place(split, "label"), NULL, NULL,
                         "a table has `targets` or a `label`, not both");
    if (numeric && !targets && !label && !source->target_column)
        sl_reader_report(reader, "E0317", place, "name what is predicted, as in `targets: [b]` or `label: kind`", NULL,
                         "a table with `inputs` needs `targets` or a `label`");
    if (window && !targets)
        sl_reader_report(reader, "E0317", sl_reader_get_place(split, "window"), NULL, NULL,
                         "`window` needs `targets`: the values after each window");
    if (window && text)
        sl_reader_report(reader, "E0207", sl_reader_get_place(split, "window"), NULL, NULL,
                         "`window` is for numeric columns, not for `text`");
    if (source->header && source->columns.count > 0)
        sl_reader_report(reader, "E0207", sl_reader_get_place(split, "columns"),
                         "add `header: false` if the file has no header", NULL,
                         "`columns` is only for a table without a header");
}

static bool has_text(const struct sl_string_list *list, const char *text)
{
    for (size_t i = 0; text && i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

/* A target that is an input of the same row can be copied; behind a window it is history. */
static void warn_of_copies(struct sl_reader *reader, const struct sl_node *split, const struct sl_source *source)
{
    const char *copied = has_text(&source->inputs, source->label.column) ? source->label.column : NULL;
    for (size_t i = 0; i < source->targets.count && copied == NULL; i++)
        if (has_text(&source->inputs, source->targets.items[i]))
            copied = source->targets.items[i];
    if (copied && source->window.length == 0)
        sl_reader_report(reader, "W0302", sl_reader_get_place(split, "inputs"),
                         "remove it from `inputs`, or predict later rows with `window`", NULL,
                         "`%.60s` is an input and the target of the same row: the model need only copy it", copied);
}

static bool is_row_number(const char *text, int64_t *out)
{
    return text != NULL && sl_text_parse_int64(text, strlen(text), out);
}

static void check_rows(struct sl_reader *reader, const struct sl_node *split, const struct sl_source *source)
{
    const struct sl_rows *rows = &source->rows;
    int64_t first, last;
    const struct sl_node *node = sl_node_find(split, "rows");
    if (node == NULL)
        return;
    bool numbers = (rows->first == NULL || is_row_number(rows->first, &first)) &&
                   (rows->last == NULL || is_row_number(rows->last, &last));
    if (!numbers && source->time.column == NULL) {
        sl_reader_report(reader, "E0317", node->place, "add `time: {column: …}`, or use row numbers", NULL,
                         "`rows` need a time column unless they are row numbers");
        return;
    }
    if (!numbers || source->time.column != NULL)
        return;
    if ((rows->first && first < 1) || (rows->last && last < (rows->first ? first : 1)))
        sl_reader_report(reader, "E0103", node->place, NULL, NULL,
                         "`rows` are counted from 1, and the last must not be before the first");
}

/* Keys of maps inside a split that have no effect because of others. */
static void drop_idle_keys(struct sl_reader *reader, struct sl_node *split, const struct sl_source *source,
                           const struct sl_model *model)
{
    const bool arrays = source->type == SL_SOURCE_NPY;
    const bool values = arrays ? model->train.task == SL_TASK_REGRESS
                               : source->targets.count > 0 || source->label.type == SL_LABEL_VALUE;
    struct sl_node *scale = sl_node_find(split, "scale"), *time = sl_node_find(split, "time");
    if (scale != NULL && scale->kind == SL_NODE_MAP)
        sl_reader_drop_idle(reader, scale, "targets", values, "targets that are numbers");
    const bool holes = source->window.length > 0 && source->missing.type == SL_MISSING_DROP;
    if (time != NULL && time->kind == SL_NODE_MAP)
        sl_reader_drop_idle(reader, time, "gaps", source->time.step > 0 || holes, "`step`");
    const bool table = source->type == SL_SOURCE_CSV || source->type == SL_SOURCE_TSV;
    const bool numbers = sl_node_find(split, "inputs") != NULL; /* `[]`: all that have no other use */
    const struct sl_missing *missing = &source->missing;        /* the default is in the configuration of each run */
    const bool asks =
        missing->type != SL_MISSING_ERROR || missing->targets != SL_MISSING_TARGETS_FILL || missing->values.count > 0;
    if (table && asks)
        sl_reader_drop_idle(reader, split, "missing", numbers, "columns of numbers");
    if (table && source->decimal != SL_DECIMAL_POINT)
        sl_reader_drop_idle(reader, split, "decimal", numbers, "columns of numbers");
    if (source->scale.type != SL_SCALE_NONE)
        sl_reader_drop_idle(reader, split, "scale", arrays || numbers || values, "columns of numbers");
}

static void check_split(struct sl_reader *reader, struct sl_node *split, const struct sl_source *source,
                        const struct sl_model *model)
{
    const bool pairs = model->data.pairs;
    if (source->origin != SL_SOURCE_FILES)
        return;
    drop_idle_keys(reader, split, source, model);
    if (source->type == SL_SOURCE_LINES && !sl_node_find(split, "file") && !sl_node_find(split, "source") &&
        !sl_node_find(split, "target"))
        sl_reader_report(reader, "E0204", source->place, NULL, "or `source` and `target`, for parallel files",
                         "the source `lines` needs `file`");
    const bool table = source->type == SL_SOURCE_CSV || source->type == SL_SOURCE_TSV;
    if (table && sl_node_find(split, "inputs") && sl_node_find(split, "target") && !sl_node_find(split, "source"))
        sl_reader_report(reader, "E0207", sl_reader_get_place(split, "target"),
                         "use `targets: [NAME]` for numbers, `label: NAME` for a class", NULL,
                         "`target` is a column of texts, and needs a `source`");
    else if (pairs || source->source_file || source->target_file || source->source_column || source->target_column)
        check_pairs(reader, split, source);
    check_label(reader, split, source);
    if (table) {
        check_table(reader, split, source);
        warn_of_copies(reader, split, source);
    }
    check_rows(reader, split, source);
    const struct sl_node *missing = sl_node_find(split, "missing");
    if (!table && sl_node_find(missing, "values") != NULL)
        sl_reader_report(reader, "E0205", sl_reader_get_place(missing, "values"), NULL, NULL,
                         "`values` has no effect: it is for the fields of a table, and in arrays NaN is missing");
}

static void check_stream(struct sl_reader *reader, struct sl_node *data, struct sl_node *batching,
                         struct sl_model *model)
{
    const struct sl_source *train = &model->data.splits[SL_SPLIT_TRAIN];
    bool streams = train->type == SL_SOURCE_TEXT || train->type == SL_SOURCE_TOKENS;
    if (train->origin == SL_SOURCE_FILES && !streams)
        sl_reader_report(reader, "E0318", sl_reader_get_place(batching, "unit"), NULL, NULL,
                         "`unit: stream` is for one long text (`type: text` or `tokens`), not for "
                         "`type: %s`",
                         sl_source_type_get_name(train->type));
    sl_reader_drop_idle(reader, batching, "bucketing", false, "`unit: sequence`");
    sl_reader_drop_idle(reader, batching, "pool", false, "`unit: sequence`");
    sl_reader_drop_idle(reader, batching, "max_length", false, "`unit: sequence`");
    sl_reader_drop_idle(reader, batching, "on_overflow", false, "`unit: sequence`");
    if (sl_reader_was_said(data, "shuffle") && model->data.shuffle)
        sl_reader_report(reader, "E0318", sl_reader_get_place(data, "shuffle"), NULL, NULL,
                         "streams are read in their order: `shuffle` needs `unit: sequence`");
    else if (!sl_reader_was_said(data, "shuffle"))
        sl_node_remove(data, "shuffle");
    model->data.shuffle = false;
    sl_reader_drop_idle(reader, batching, "pad_to", false, "`unit: sequence`");
    sl_reader_drop_idle(reader, batching, "max_tokens", false, "`unit: sequence`");
    model->data.batching.bucketing = (struct sl_bucketing){.kind = SL_BUCKETING_OFF};
    model->data.batching.padding = SL_PADDING_NONE;
    model->data.batching.max_tokens = 0;
    if (model->data.batching.bptt == 0) {
        sl_reader_set_default(reader, batching, "bptt", "35");
        model->data.batching.bptt = 35;
    }
}

/* Padded steps come after the real ones, so layers that start from the end would read them. */
static void check_padding(struct sl_reader *reader, const struct sl_node *batching, const struct sl_model *model)
{
    struct sl_place place = sl_reader_get_place(batching, "pad_to");
    const struct sl_layer *last = model->layer_count > 0 ? &model->layers[model->layer_count - 1] : NULL;
    if (model->data.batching.padding == SL_PADDING_NONE)
        return;
    if (model->data.pairs)
        sl_reader_report(reader, "E0318", place, NULL, NULL,
                         "`pad_to` pads one sequence, but a model of encoder and decoder has two");
    if (model->data.batching.padding == SL_PADDING_BUCKET && !sl_bucketing_has_edges(&model->data.batching.bucketing))
        sl_reader_report(reader, "E0318", place, "use `bucketing: {count: 16}`, or `pad_to: batch`", NULL,
                         "`pad_to: bucket` needs buckets");
    if (last != NULL && last->output_shape != SL_SHAPE_SEQUENCE)
        sl_reader_report(reader, "E0318", place, NULL, NULL,
                         "`pad_to` needs an output for each step: the last output of a sequence would be a padded one");
    for (size_t i = 0; i < model->layer_count; i++) {
        const struct sl_layer *layer = &model->layers[i];
        bool recurrent = layer->kind == SL_LAYER_LSTM || layer->kind == SL_LAYER_GRU || layer->kind == SL_LAYER_RNN;
        if ((recurrent && layer->recurrent.direction != SL_DIRECTION_FORWARD) || layer->kind == SL_LAYER_POOL)
            sl_reader_report(reader, "E0318", place, NULL, NULL,
                             "`pad_to` needs layers that run forward: %s would read the padded steps", layer->name);
    }
}

/* Parts of a pair are pairs only if word k of the source is word k of the target. */
static void check_parts_of_pairs(struct sl_reader *reader, const struct sl_node *data, const struct sl_node *batching,
                                 const struct sl_model *model)
{
    static const char *const hint = "`truncate` cuts both sides, `drop` leaves such pairs out";
    struct sl_place place = sl_reader_get_place(batching, "on_overflow");
    const struct sl_node *tokenizer = sl_node_find(data, "source_tokenizer");
    const struct sl_batching *limits = &model->data.batching;
    if (limits->on_overflow != SL_OVERFLOW_SPLIT || !model->data.pairs)
        return;
    for (int s = 0; s < SL_SPLIT_COUNT; s++) {
        const struct sl_source *source = &model->data.splits[s];
        if (source->origin == SL_SOURCE_FILES && !sl_source_has_same_target(source)) {
            sl_reader_report(reader, "E0318", place, hint, NULL,
                             "`on_overflow: split` needs one text that is source and target: otherwise it is not known "
                             "which part of the target belongs to a part of the source");
            return;
        }
    }
    if (tokenizer != NULL)
        sl_reader_report(reader, "E0318", place, "leave out `source_tokenizer`", NULL,
                         "`on_overflow: split` needs one tokenizer for source and target, so that their steps are the "
                         "same words");
    if (sl_batching_find_longest(limits) == 1)
        sl_reader_report(
            reader, "E0318", place, NULL, NULL,
            "a part of one step would contain only the end token: `on_overflow: split` needs a length of at least 2");
}

/* `max_tokens` alone: as many sequences as fit. */
static void check_batch_size(struct sl_node *data, struct sl_model *model)
{
    if (model->data.batching.max_tokens == 0 || sl_reader_was_said(data, "batch_size"))
        return;
    sl_node_remove(data, "batch_size");
    model->data.batch_size = 0;
}

static void check_batching(struct sl_reader *reader, struct sl_node *data, struct sl_model *model)
{
    struct sl_node *batching = sl_node_find(data, "batching");
    if (batching == NULL || batching->kind != SL_NODE_MAP)
        return;
    if (model->data.batching.unit == SL_UNIT_STREAM) {
        check_stream(reader, data, batching, model);
        return;
    }
    sl_reader_drop_idle(reader, batching, "pool", model->data.batching.bucketing.kind == SL_BUCKETING_POOLS,
                        "`bucketing: pools`");
    bool lengths = model->data.batching.bucketing.kind == SL_BUCKETING_LENGTHS;
    sl_reader_drop_idle(reader, batching, "on_overflow", model->data.batching.max_length > 0 || lengths,
                        "`max_length` or a list of lengths");
    sl_reader_drop_idle(reader, batching, "max_length", model->data.batching.on_overflow != SL_OVERFLOW_KEEP,
                        "`on_overflow: drop`, `truncate` or `split`");
    check_batch_size(data, model);
    check_padding(reader, batching, model);
    check_parts_of_pairs(reader, data, batching, model);
}

/* A decoder starts with bos, and writes eos at the end. */
static void check_marks(struct sl_reader *reader, struct sl_place place, const struct sl_tokenizer *tokenizer)
{
    bool bos = false, eos = false;
    for (size_t i = 0; i < tokenizer->specials.count; i++) {
        bos = bos || strcmp(tokenizer->specials.items[i], "bos") == 0;
        eos = eos || strcmp(tokenizer->specials.items[i], "eos") == 0;
    }
    if (!bos || !eos)
        sl_reader_report(reader, "E0317", place, NULL, NULL, "a decoder needs the special tokens `bos` and `eos`");
}

static void check_pieces(struct sl_reader *reader, struct sl_node *node, const struct sl_tokenizer *tokenizer)
{
    if (tokenizer->type != SL_TOKENIZER_SENTENCEPIECE || node == NULL)
        return;
    const struct sl_node *size = sl_node_find(node, "vocab_size");
    bool has_model = sl_node_find(node, "model") != NULL;
    sl_reader_drop_idle(reader, node, "method", !has_model, "pieces to learn (no `model`)");
    if (has_model && size != NULL)
        sl_reader_report(reader, "E0207", size->place, "remove it: the model already has its pieces", NULL,
                         "`model` is a trained tokenizer, but `vocab_size` is for training one");
    if (!has_model && size == NULL)
        sl_reader_report(reader, "E0204", node->place, "a few thousand pieces are typical: `vocab_size: 8000`", NULL,
                         "`sentencepiece` needs a `model`, or `vocab_size` to learn one from train");
}

/* The lines of `conll` are tokens, and are not split. */
static void check_cut(struct sl_reader *reader, const struct sl_node *node, const struct sl_model *model)
{
    if (node == NULL || model->data.splits[SL_SPLIT_TRAIN].type != SL_SOURCE_CONLL ||
        model->data.tokenizer.type == SL_TOKENIZER_WHITESPACE)
        return;
    sl_reader_report(reader, "E0317", node->place, "`tokenizer: whitespace` takes them as they are", NULL,
                     "the tokens of `conll` have a tag each and cannot be split into %s",
                     model->data.tokenizer.type == SL_TOKENIZER_CHAR ? "characters" : "pieces");
}

/* A file of tokens is the vocabulary, whatever occurs in train. */
static void check_vocabulary(struct sl_reader *reader, struct sl_node *node, const struct sl_tokenizer *tokenizer)
{
    static const char *const choices[] = {"min_count", "vocab_size"};
    if (node == NULL || node->kind != SL_NODE_MAP)
        return;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        sl_reader_drop_idle(reader, node, choices[i], tokenizer->vocab == NULL, "`vocab: from_train`");
}

void sl_model_check_data(struct sl_reader *reader, struct sl_node *root, struct sl_model *model)
{
    static const char *const keys[SL_SPLIT_COUNT] = {"train", "valid", "test"};
    struct sl_node *data = sl_node_find(root, "data");
    if (data == NULL || data->kind != SL_NODE_MAP)
        return;
    for (int s = 0; s < SL_SPLIT_COUNT; s++)
        check_split(reader, sl_node_find(data, keys[s]), &model->data.splits[s], model);
    double cut = model->data.splits[SL_SPLIT_VALID].split + model->data.splits[SL_SPLIT_TEST].split;
    if (cut >= 1)
        sl_reader_report(reader, "E0103", sl_reader_get_place(data, "valid"), NULL, NULL,
                         "`valid` and `test` together leave nothing of `train`");
    check_batching(reader, data, model);
    check_pieces(reader, sl_node_find(data, "tokenizer"), &model->data.tokenizer);
    check_cut(reader, sl_node_find(data, "tokenizer"), model);
    check_vocabulary(reader, sl_node_find(data, "tokenizer"), &model->data.tokenizer);
    check_vocabulary(reader, sl_node_find(data, "source_tokenizer"), &model->data.source_tokenizer);
    if (model->data.pairs)
        check_pieces(reader, sl_node_find(data, "source_tokenizer"), &model->data.source_tokenizer);
    const struct sl_node *specials = sl_node_find(sl_node_find(data, "tokenizer"), "specials");
    const struct sl_tokenizer *tokenizer = &model->data.tokenizer;
    bool unk = false;
    for (size_t i = 0; i < tokenizer->specials.count; i++)
        unk = unk || strcmp(tokenizer->specials.items[i], "unk") == 0;
    bool plain = model->encoder_count == 0 && model->layer_count > 0;
    if (model->data.pairs && plain && model->train.task != SL_TASK_SEQ2SEQ)
        sl_reader_report(reader, "E0309", sl_reader_get_place(data, "train"),
                         "write `model: {encoder: […], decoder: […]}`", NULL,
                         "these data are pairs of source and target: they need a model of encoder and decoder");
    if (model->data.pairs && specials != NULL && !sl_reader_was_refused(data, "tokenizer"))
        check_marks(reader, specials->place, tokenizer);
    if (!unk && specials != NULL && (tokenizer->vocab_size > 0 || tokenizer->min_count > 1))
        sl_reader_report(reader, "E0317", specials->place, NULL, NULL,
                         "a limited vocabulary needs the special token `unk` for the words that are left out");
}
