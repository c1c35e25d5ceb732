/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `data:`: sources and tokenizer. */
#include <math.h>
#include <string.h>

#include "base/value/text.h"
#include "model/read/sections.h"

#define S(type)    (1u << SL_SOURCE_##type)
#define TABLES     (S(TSV) | S(CSV))
#define TEXTUAL    (S(TEXT) | S(LINES) | S(TSV) | S(CSV) | S(CONLL))
#define AT(member) offsetof(struct sl_source, member)

const struct sl_word sl_words_source_type[] = {
    WORD("text", SL_SOURCE_TEXT, "one long text"),
    WORD("lines", SL_SOURCE_LINES, "one sequence per line, with or without a label"),
    WORD("tsv", SL_SOURCE_TSV, "a table whose fields are separated by tabs"),
    WORD("csv", SL_SOURCE_CSV, "a table whose fields are separated by commas"),
    WORD("conll", SL_SOURCE_CONLL, "one token per line; a blank line ends a sequence"),
    WORD("npy", SL_SOURCE_NPY, "NumPy arrays"),
    WORD("tokens", SL_SOURCE_TOKENS, "token ids, one sequence per line"),
    WORD("generator", SL_SOURCE_GENERATOR, "generated on the fly from the seed"),
    WORD_END,
};

const struct sl_word sl_words_generator[] = {
    WORD("adding_problem", SL_GENERATOR_ADDING_PROBLEM, "the sum of two marked values"),
    WORD("addition", SL_GENERATOR_ADDITION, "pairs: `535+61` and `596`"),
    WORD("copy", SL_GENERATOR_COPY, "symbols to be repeated after a delay; pairs for encoder and decoder"),
    WORD("reverse", SL_GENERATOR_REVERSE, "symbols to be repeated backwards; pairs for encoder and decoder"),
    WORD("sine", SL_GENERATOR_SINE, "noisy sine waves to be continued"),
    WORD_END,
};

static const struct sl_word encoding_words[] = {
    WORD("utf-8", SL_ENCODING_UTF_8, ""),
    WORD("latin-1", SL_ENCODING_LATIN_1, ""),
    WORD_END,
};

static const struct sl_word decimal_words[] = {
    WORD(".", SL_DECIMAL_POINT, "a point"),
    WORD(",", SL_DECIMAL_COMMA, "a comma"),
    WORD_END,
};

static const struct sl_word missing_targets_words[] = {
    WORD("fill", SL_MISSING_TARGETS_FILL, "like missing inputs"),
    WORD("ignore", SL_MISSING_TARGETS_IGNORE, "left out of the loss and of the metrics"),
    WORD_END,
};

static const struct sl_word label_words[] = {
    WORD("class", SL_LABEL_CLASS, "one of a small number of words"),
    WORD("value", SL_LABEL_VALUE, "a number"),
    WORD_END,
};

static const struct sl_word gaps_words[] = {
    WORD("error", SL_GAPS_ERROR, "stop"),
    WORD("keep", SL_GAPS_KEEP, "ignore the gap"),
    WORD("break", SL_GAPS_BREAK, "a new series begins"),
    WORD_END,
};

static const struct sl_word scale_words[] = {
    WORD("none", SL_SCALE_NONE, "no scaling"),
    WORD("standard", SL_SCALE_STANDARD, "mean 0, standard deviation 1"),
    WORD("minmax", SL_SCALE_MINMAX, "from 0 to 1"),
    WORD_END,
};

static const struct sl_word fit_words[] = {
    WORD("train", SL_SCALE_FIT_TRAIN, "the training rows"),
    WORD("all", SL_SCALE_FIT_ALL, "the rows of every split"),
    WORD_END,
};

static const struct sl_word missing_words[] = {
    WORD("error", SL_MISSING_ERROR, "stop"),
    WORD("drop", SL_MISSING_DROP, "drop the row"),
    WORD("zero", SL_MISSING_ZERO, "0"),
    WORD("mean", SL_MISSING_MEAN, "mean of the column in `train`"),
    WORD("forward_fill", SL_MISSING_FORWARD_FILL, "the last known value before it"),
    WORD_END,
};

static const struct sl_word tokenizer_words[] = {
    WORD("whitespace", SL_TOKENIZER_WHITESPACE, "splits at whitespace"),
    WORD("char", SL_TOKENIZER_CHAR, "every character is a token"),
    WORD("word", SL_TOKENIZER_WORD, "splits at whitespace and punctuation"),
    WORD("sentencepiece", SL_TOKENIZER_SENTENCEPIECE, "splits words into pieces, with the SentencePiece library"),
    WORD_END,
};

/* One character. */
static void read_delimiter(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    uint32_t c;
    size_t length = node->kind == SL_NODE_SCALAR ? strlen(node->text) : 0;
    if (length == 0 || sl_text_utf8_decode(node->text, length, &c) != length)
        sl_reader_report(reader, "E0103", node->place, "a tab is `\"\\t\"`, in double quotes", NULL,
                         "`%s` must be a single character", option->key);
    else
        *(const char **)field = node->text;
}

/* `[first, last]`, either may be `~`. */
static void read_rows(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    struct sl_rows *rows = field;
    bool fine = node->kind == SL_NODE_LIST && node->count == 2;
    for (size_t i = 0; fine && i < 2; i++)
        fine = node->items[i]->kind == SL_NODE_SCALAR;
    if (!fine) {
        sl_reader_report(reader, "E0101", node->place, "as in `rows: [1, 96]` or `rows: [\"2017-01-01\", ~]`", NULL,
                         "`%s` takes a list of the first and the last row", option->key);
        return;
    }
    rows->first = sl_node_is_null(node->items[0]) ? NULL : node->items[0]->text;
    rows->last = sl_node_is_null(node->items[1]) ? NULL : node->items[1]->text;
}

/* A number of steps, or `[shortest, longest]`. */
static void read_length(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option number = {.key = "length", .kind = SL_VALUE_INT, .min = 1, .max = 1000000};
    struct sl_source *source = (struct sl_source *)((char *)field - offsetof(struct sl_source, length_min));
    if (node->kind == SL_NODE_LIST && node->count == 2) {
        sl_reader_read_value(reader, &number, node->items[0], &source->length_min);
        sl_reader_read_value(reader, &number, node->items[1], &source->length_max);
        if (source->length_min > source->length_max && source->length_max > 0)
            sl_reader_report(reader, "E0103", node->place, NULL, NULL, "`%s` gives the longest before the shortest",
                             option->key);
        return;
    }
    sl_reader_read_value(reader, &number, node, &source->length_min);
    source->length_max = source->length_min;
}

/* Digits and a unit of time, or a number alone. */
static bool parse_step(const char *text, struct sl_time *out)
{
    static const struct {
        const char *name;
        enum sl_step_unit unit;
        double scale;
    } units[] = {{"s", SL_STEP_SECONDS, 1},     {"m", SL_STEP_SECONDS, 60}, {"h", SL_STEP_SECONDS, 3600},
                 {"d", SL_STEP_SECONDS, 86400}, {"mo", SL_STEP_MONTHS, 1},  {"y", SL_STEP_MONTHS, 12},
                 {"", SL_STEP_NUMBER, 1}};
    size_t digits = strspn(text, "0123456789.");
    double count;
    if (digits == 0 || !sl_text_parse_float64(text, digits, &count) || !(count > 0 && isfinite(count)))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + digits, units[i].name) != 0)
            continue;
        out->step = count * units[i].scale;
        out->step_unit = units[i].unit;
        return out->step_unit != SL_STEP_MONTHS || out->step == floor(out->step);
    }
    return false;
}

static void read_step(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    struct sl_time *time = (struct sl_time *)((char *)field - offsetof(struct sl_time, step));
    if (node->kind != SL_NODE_SCALAR)
        sl_reader_report_type(reader, option, node, "a time between two rows, such as `1h`");
    else if (!parse_step(node->text, time))
        sl_reader_report(reader, "E0106", node->place,
                         "write digits and a unit, `30s`, `10m`, `2h`, `1d`, `1mo` or `1y`; or a number alone, if the "
                         "column holds numbers",
                         NULL, "`%s` does not take the period `%.60s`", option->key, node->text);
}

/* A path, or `from_train`. */
static void read_vocab(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option path = {.key = "vocab", .kind = SL_VALUE_PATH};
    (void)option;
    if (node->kind != SL_NODE_SCALAR || strcmp(node->text, "from_train") != 0)
        sl_reader_read_value(reader, &path, node, field);
}

/* A list of special tokens. */
static void read_specials(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const char *const known[] = {"pad", "unk", "bos", "eos"};
    static const struct sl_option texts = {.key = "specials", .kind = SL_VALUE_TEXTS};
    struct sl_string_list *list = field;
    (void)option;
    sl_reader_read_value(reader, &texts, node, list);
    for (size_t i = 0; i < list->count; i++) {
        bool fine = false;
        for (size_t j = 0; j < 4; j++)
            fine = fine || strcmp(list->items[i], known[j]) == 0;
        if (!fine)
            sl_reader_report(reader, "E0102", node->items[i]->place, NULL, "it takes pad, unk, bos and eos",
                             "`specials` cannot contain `%.60s`", list->items[i]);
    }
}

static const struct sl_custom delimiter_custom = {read_delimiter, "one character",
                                                  "{\"type\": \"string\", \"minLength\": 1}"};
static const struct sl_custom rows_custom = {read_rows, "`[first, last]`",
                                             "{\"type\": \"array\", \"minItems\": 2, \"maxItems\": 2}"};
static const struct sl_custom length_custom = {
    read_length, "integer, or `[shortest, longest]`",
    "{\"anyOf\": [{\"type\": \"integer\", \"minimum\": 1}, {\"type\": \"array\", \"minItems\": 2, "
    "\"maxItems\": 2, \"items\": {\"type\": \"integer\", \"minimum\": 1}}]}"};
static const struct sl_custom step_custom = {read_step, "time, or a number", "{\"type\": [\"string\", \"number\"]}"};
static const struct sl_custom vocab_custom = {read_vocab, "path, or `from_train`", "{\"type\": \"string\"}"};
static const struct sl_custom specials_custom = {
    read_specials, "list of some of `pad`, `unk`, `bos`, `eos`",
    "{\"type\": \"array\", \"items\": {\"enum\": [\"pad\", \"unk\", \"bos\", \"eos\"]}}"};

static const struct sl_option source_options[] = {
    OPTION(PATH, "file", AT(file), .variants = (TEXTUAL | S(TOKENS)) & ~S(LINES), .flags = SL_OPTION_REQUIRED,
           .doc = "the file"),
    OPTION(PATH, "file", AT(file), .variants = S(LINES),
           .doc = "the file; with an encoder and a decoder, each line is both source and target"),
    OPTION(PATH, "source", AT(source_file), .variants = S(LINES),
           .doc = "instead of `file`: the source side of two parallel files, one sequence per line"),
    OPTION(PATH, "target", AT(target_file), .variants = S(LINES), .doc = "the target side of two parallel files"),
    OPTION(TEXT, "source", AT(source_column), .variants = TABLES,
           .doc = "the column that contains the source text of a pair"),
    OPTION(TEXT, "target", AT(target_column), .variants = TABLES,
           .doc = "the column that contains the target text of a pair"),
    OPTION(PATH, "x", AT(x), .variants = S(NPY), .flags = SL_OPTION_REQUIRED, .doc = "the inputs: [N, T, F] or [N, F]"),
    OPTION(PATH, "y", AT(y), .variants = S(NPY), .doc = "the targets: [N], [N, F], [N, T] or [N, T, F]"),
    OPTION(PATH, "lengths", AT(lengths), .variants = S(NPY),
           .doc = "the number of real steps in each row: [N] integers; default: all steps"),
    OPTION(WORD, "encoding", AT(encoding), .variants = TEXTUAL, .default_text = "utf-8", .words = encoding_words,
           .doc = "character encoding"),
    OPTION(CUSTOM, "delimiter", AT(delimiter), .variants = S(CSV), .default_text = ",", .custom = &delimiter_custom,
           .doc = "separates fields"),
    OPTION(CUSTOM, "delimiter", AT(delimiter), .variants = S(TSV) | S(CONLL), .default_text = "\t",
           .custom = &delimiter_custom, .doc = "separates fields"),
    OPTION(CUSTOM, "delimiter", AT(delimiter), .variants = S(LINES), .default_text = " ", .custom = &delimiter_custom,
           .doc = "separates the label from the text"),
    OPTION(WORD, "decimal", AT(decimal), .variants = TABLES, .default_text = ".", .words = decimal_words,
           .doc = "what stands before the decimals of a number"),
    OPTION(BOOL, "header", AT(header), .variants = TABLES, .default_text = "true",
           .doc = "the first row names the columns"),
    OPTION(TEXTS, "columns", AT(columns), .variants = TABLES, .doc = "column names for a table without a header"),
    OPTION(TEXT, "comment", AT(comment), .variants = S(CONLL), .doc = "lines that begin with this are skipped"),
    OPTION(CUSTOM, "rows", AT(rows), .variants = TABLES, .custom = &rows_custom,
           .doc = "the first and the last row to use: numbers counted from 1, or values of the time column; `~` means "
                  "no limit"),
    OPTION(TEXTS, "inputs", AT(inputs), .variants = TABLES,
           .doc = "numeric input columns; `[]`: all that have no other use, with `window` also the targets"),
    OPTION(TEXTS, "targets", AT(targets), .variants = TABLES, .doc = "numeric target columns"),
    OPTION(TEXT, "group", AT(group), .variants = TABLES,
           .doc = "rows with the same value in this column form one sequence"),
    OPTION(TEXT, "text", AT(text), .variants = TABLES, .doc = "the column that contains the text"),
    OPTION(TEXT, "text", AT(text), .variants = S(CONLL), .default_text = "1",
           .doc = "the column of the token, counted from 1"),
    OPTION(SECTION, "label", AT(label), .variants = TABLES | S(LINES), .section = &sl_section_label,
           .doc = "what is predicted for a sequence"),
    OPTION(SECTION, "label", AT(label), .variants = S(CONLL), .flags = SL_OPTION_REQUIRED, .section = &sl_section_label,
           .doc = "the column of the tag, counted from 1"),
    OPTION(SECTION, "time", AT(time), .variants = TABLES, .section = &sl_section_time,
           .doc = "the column that contains the time"),
    OPTION(SECTION, "window", AT(window), .variants = TABLES, .section = &sl_section_window,
           .doc = "cuts a series into sequences"),
    OPTION(SECTION, "scale", AT(scale), .variants = TABLES | S(NPY), .default_text = "none",
           .section = &sl_section_scale, .doc = "how numeric columns are scaled; `predict` scales back"),
    OPTION(SECTION, "missing", AT(missing), .variants = TABLES | S(NPY), .default_text = "error",
           .section = &sl_section_missing, .doc = "how empty numeric fields are handled"),
    OPTION(WORD, "name", AT(generator), .variants = S(GENERATOR), .flags = SL_OPTION_REQUIRED,
           .words = sl_words_generator, .doc = "which generator"),
    OPTION(INT, "size", AT(size), .variants = S(GENERATOR), .flags = SL_OPTION_REQUIRED, .min = 1, .max = INT32_MAX,
           .doc = "number of sequences in the split"),
    OPTION(SEED, "seed", AT(seed), .variants = S(GENERATOR), .min = 0, .max = 9007199254740991.0,
           .doc = "seed of this split; default: derived from the model's seed and the split"),
    OPTION(CUSTOM, "length", AT(length_min), .variants = S(GENERATOR), .custom = &length_custom,
           .doc = "steps in a sequence (copy, reverse: symbols); required except for addition"),
    OPTION(INT, "digits", AT(digits), .variants = S(GENERATOR), .min = 1, .max = 17,
           .doc = "addition: maximum number of digits of each number"),
    OPTION(INT, "features", AT(features), .variants = S(GENERATOR), .min = 1, .max = 100000,
           .doc = "sine: number of parallel series; 1 by default"),
    OPTION(INT, "horizon", AT(horizon), .variants = S(GENERATOR), .min = 1, .max = 100000,
           .doc = "sine: number of steps to predict; 1 by default"),
    OPTION(FLOAT, "noise", AT(noise), .variants = S(GENERATOR), .min = 0, .max = SL_NO_LIMIT,
           .doc = "sine: standard deviation of the noise"),
    OPTION(INT, "symbols", AT(symbols), .variants = S(GENERATOR), .min = 2, .max = 100000,
           .doc = "copy, reverse: size of the alphabet; 8 by default"),
    OPTION(INT, "delay", AT(delay), .variants = S(GENERATOR), .min = 0, .max = 1000000,
           .doc = "copy: number of blanks before the repetition; 10 by default"),
    OPTION_END,
};

/* `{split: 0.1}`, or what a source begins with. */
static const struct sl_form source_forms[] = {
    {"split", {"*"}, NULL},    {"type", {"split"}, NULL},   {"file", {"split"}, NULL},
    {"x", {"split"}, NULL},    {"source", {"split"}, NULL}, {"target", {"split"}, NULL},
    {"name", {"split"}, NULL}, {"size", {"split"}, NULL},   {.key = NULL},
};

const struct sl_section sl_section_source = {
    .path = "data.train",
    .noun = "the source",
    .variants = sl_words_source_type,
    .variant_offset = offsetof(struct sl_source, type),
    .options = source_options,
    .forms = source_forms,
    .doc = "one split: `train`, `valid` or `test`. Format options may also be placed directly under `data`, where they "
           "apply "
           "to all splits; `valid` and `test` take from `train` whatever is set in neither place",
};

static const struct sl_option label_options[] = {
    OPTION(TEXT, "column", offsetof(struct sl_label, column), .flags = SL_OPTION_REQUIRED,
           .doc = "name or number of the column; in `lines` `first` or `last`"),
    OPTION_END,
};

const struct sl_section sl_section_label = {
    .path = "data.label",
    .noun = "the label",
    .variants = label_words,
    .variant_offset = offsetof(struct sl_label, type),
    .default_variant = "class",
    .bare_key = "column",
    .options = label_options,
    .doc = "`{column: …, type: class}`, or just the column",
};

static const struct sl_option time_options[] = {
    OPTION(TEXT, "column", offsetof(struct sl_time, column), .flags = SL_OPTION_REQUIRED,
           .doc = "name or number of the column"),
    OPTION(TEXT, "format", offsetof(struct sl_time, format),
           .doc = "a format string as in strptime; default: ISO 8601, or a number"),
    OPTION(CUSTOM, "step", offsetof(struct sl_time, step), .custom = &step_custom,
           .doc =
               "time between two rows: `30s`, `10m`, `2h`, `1d`, `1mo`, `1y`, or a number alone where the column holds "
               "numbers; default: not checked"),
    OPTION(WORD, "gaps", offsetof(struct sl_time, gaps), .default_text = "error", .words = gaps_words,
           .doc = "what happens where rows are further apart than `step`"),
    OPTION_END,
};

const struct sl_section sl_section_time = {
    .path = "data.time",
    .noun = "the time",
    .bare_key = "column",
    .options = time_options,
    .doc = "the column that contains the time, and how it is checked",
};

static const struct sl_option window_options[] = {
    OPTION(INT, "length", offsetof(struct sl_window, length), .flags = SL_OPTION_REQUIRED, .min = 1, .max = 1000000,
           .doc = "number of input rows"),
    OPTION(INT, "horizon", offsetof(struct sl_window, horizon), .default_text = "1", .min = 1, .max = 1000000,
           .doc = "number of rows after the input whose targets are predicted"),
    OPTION(INT, "stride", offsetof(struct sl_window, stride), .default_text = "1", .min = 1, .max = 1000000,
           .doc = "number of rows from one window to the next"),
    OPTION_END,
};

const struct sl_section sl_section_window = {
    .path = "data.window",
    .noun = "the window",
    .options = window_options,
    .doc = "cuts a series into sequences",
};

static const struct sl_option scale_options[] = {
    OPTION(WORD, "fit", offsetof(struct sl_scale, fit), .variants = 1u << SL_SCALE_STANDARD | 1u << SL_SCALE_MINMAX,
           .default_text = "train", .words = fit_words, .doc = "the rows that the scale is fitted to"),
    OPTION(BOOL, "targets", offsetof(struct sl_scale, targets),
           .variants = 1u << SL_SCALE_STANDARD | 1u << SL_SCALE_MINMAX, .default_text = "true",
           .doc = "whether numeric targets are scaled too"),
    OPTION_END,
};

const struct sl_section sl_section_scale = {
    .path = "data.scale",
    .noun = "the scale",
    .variants = scale_words,
    .variant_offset = offsetof(struct sl_scale, type),
    .options = scale_options,
    .doc = "scaling of each column; saved with the model, and `predict` scales back",
};

static const struct sl_option missing_options[] = {
    OPTION(WORD, "targets", offsetof(struct sl_missing, targets), .default_text = "fill",
           .words = missing_targets_words, .doc = "what happens to a step or sequence whose target is missing"),
    OPTION(TEXTS, "values", offsetof(struct sl_missing, values),
           .doc = "fields of a table that mean that there is no value, such as `[-999, \"#N/A\"]`"),
    OPTION(INT, "limit", offsetof(struct sl_missing, limit), .variants = 1u << SL_MISSING_FORWARD_FILL, .min = 1,
           .max = INT32_MAX, .doc = "maximum number of consecutive rows to fill; default: no limit"),
    OPTION_END,
};

const struct sl_section sl_section_missing = {
    .path = "data.missing",
    .noun = "the treatment of missing values",
    .variants = missing_words,
    .variant_offset = offsetof(struct sl_missing, type),
    .default_variant = "error",
    .options = missing_options,
    .doc = "how empty numeric fields are handled",
};

static const struct sl_word method_words[] = {
    WORD("bpe", SL_PIECES_BPE, "byte-pair encoding: joins the most frequent pairs"),
    WORD("unigram", SL_PIECES_UNIGRAM, "chooses the pieces that make the text most probable"),
    WORD_END,
};

#define PIECES    (1u << SL_TOKENIZER_SENTENCEPIECE)
#define NO_PIECES (1u << SL_TOKENIZER_WHITESPACE | 1u << SL_TOKENIZER_CHAR | 1u << SL_TOKENIZER_WORD)

static const struct sl_option tokenizer_options[] = {
    OPTION(PATH, "model", offsetof(struct sl_tokenizer, model), .variants = PIECES,
           .doc = "a SentencePiece model; default: one of `vocab_size` is learned from `train`"),
    OPTION(WORD, "method", offsetof(struct sl_tokenizer, method), .variants = PIECES, .default_text = "bpe",
           .words = method_words, .doc = "how the pieces are learned"),
    OPTION(INT, "vocab_size", offsetof(struct sl_tokenizer, vocab_size), .min = 2, .max = INT32_MAX,
           .doc = "maximum size of the vocabulary, special tokens included; default: no limit"),
    OPTION(INT, "min_count", offsetof(struct sl_tokenizer, min_count), .variants = NO_PIECES, .default_text = "1",
           .min = 1, .max = INT32_MAX, .doc = "tokens that occur less often are unknown"),
    OPTION(BOOL, "lowercase", offsetof(struct sl_tokenizer, lowercase), .variants = NO_PIECES, .default_text = "false",
           .doc = "converts Latin, Greek and Cyrillic letters to lower case"),
    OPTION(CUSTOM, "specials", offsetof(struct sl_tokenizer, specials), .custom = &specials_custom,
           .doc = "special tokens, the first entries of the vocabulary; default: `unk`, and also `eos` for a text that "
                  "is split into words"),
    OPTION(CUSTOM, "vocab", offsetof(struct sl_tokenizer, vocab), .variants = NO_PIECES, .default_text = "from_train",
           .custom = &vocab_custom, .doc = "a file with one token per line; `from_train`: the tokens of `train`"),
    OPTION(BOOL, "shared", offsetof(struct sl_tokenizer, shared),
           .doc = "for pairs: one vocabulary for source and target; default: true where both are the same text, "
                  "otherwise false"),
    OPTION_END,
};

const struct sl_section sl_section_tokenizer = {
    .path = "data.tokenizer",
    .noun = "the tokenizer",
    .variants = tokenizer_words,
    .variant_offset = offsetof(struct sl_tokenizer, type),
    .options = tokenizer_options,
    .doc = "how text becomes tokens",
};

int sl_source_list_files(const struct sl_source *source, struct sl_data_file out[SL_DATA_FILE_COUNT])
{
    const struct sl_data_file files[] = {
        {"file", source->file}, {"source", source->source_file}, {"target", source->target_file}, {"x", source->x},
        {"y", source->y},       {"lengths", source->lengths}};
    int count = 0;
    for (int i = 0; i < SL_DATA_FILE_COUNT && source->origin == SL_SOURCE_FILES; i++)
        if (files[i].path && source->type != SL_SOURCE_GENERATOR)
            out[count++] = files[i];
    return count;
}

const char *sl_source_type_get_name(enum sl_source_type type)
{
    return sl_word_get_name(sl_words_source_type, (int)type);
}

const char *sl_generator_get_name(enum sl_generator generator)
{
    return sl_word_get_name(sl_words_generator, (int)generator);
}

const char *sl_split_get_name(enum sl_split split)
{
    static const char *const names[] = {"train", "valid", "test"};
    return (unsigned)split < SL_SPLIT_COUNT ? names[split] : "?";
}
