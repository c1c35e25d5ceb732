/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `data:`: sources and tokenizer. */
#include <string.h>

#include "base/value/text.h"
#include "model/read/sections.h"

#define S(type)    (1u << SL_SOURCE_##type)
#define TABLES     (S(TSV) | S(CSV))
#define TEXTUAL    (S(TEXT) | S(LINES) | S(TSV) | S(CSV) | S(CONLL))
#define AT(member) offsetof(struct sl_source, member)
#define G(member)  offsetof(struct sl_source, member), S(GENERATOR)
/* clang-format off */
#define NONE {NULL}
/* clang-format on */

const struct sl_word sl_words_source_type[] = {
    {"text", SL_SOURCE_TEXT, "one long text", false},
    {"lines", SL_SOURCE_LINES, "one sequence per line, with or without a label", false},
    {"tsv", SL_SOURCE_TSV, "a table whose fields are separated by tabs", false},
    {"csv", SL_SOURCE_CSV, "a table whose fields are separated by commas", false},
    {"conll", SL_SOURCE_CONLL, "one token per line; a blank line ends a sequence", false},
    {"npy", SL_SOURCE_NPY, "NumPy arrays", false},
    {"tokens", SL_SOURCE_TOKENS, "token ids, one sequence per line", false},
    {"generator", SL_SOURCE_GENERATOR, "generated on the fly from the seed", false},
    {NULL, 0, NULL, false}};

const struct sl_word sl_words_generator[] = {
    {"adding_problem", SL_GENERATOR_ADDING_PROBLEM, "the sum of two marked values", false},
    {"addition", SL_GENERATOR_ADDITION, "pairs: `535+61` and `596`", false},
    {"copy", SL_GENERATOR_COPY, "symbols to be repeated after a delay; pairs for encoder and decoder", false},
    {"reverse", SL_GENERATOR_REVERSE, "symbols to be repeated backwards; pairs for encoder and decoder", false},
    {"sine", SL_GENERATOR_SINE, "noisy sine waves to be continued", false},
    {NULL, 0, NULL, false}};

static const struct sl_word encoding_words[] = {
    {"utf-8", SL_ENCODING_UTF_8, "", false}, {"latin-1", SL_ENCODING_LATIN_1, "", false}, {NULL, 0, NULL, false}};

static const struct sl_word label_words[] = {{"class", SL_LABEL_CLASS, "one of a small number of words", false},
                                             {"value", SL_LABEL_VALUE, "a number", false},
                                             {NULL, 0, NULL, false}};

static const struct sl_word gaps_words[] = {{"error", SL_GAPS_ERROR, "stop", false},
                                            {"keep", SL_GAPS_KEEP, "ignore the gap", false},
                                            {"break", SL_GAPS_BREAK, "a new series begins", false},
                                            {NULL, 0, NULL, false}};

static const struct sl_word scale_words[] = {{"none", SL_SCALE_NONE, "no scaling", false},
                                             {"standard", SL_SCALE_STANDARD, "mean 0, standard deviation 1", false},
                                             {"minmax", SL_SCALE_MINMAX, "from 0 to 1", false},
                                             {NULL, 0, NULL, false}};

static const struct sl_word fit_words[] = {{"train", SL_SCALE_FIT_TRAIN, "the training rows", false},
                                           {"all", SL_SCALE_FIT_ALL, "the rows of every split", false},
                                           {NULL, 0, NULL, false}};

static const struct sl_word missing_words[] = {
    {"error", SL_MISSING_ERROR, "stop", false},
    {"drop", SL_MISSING_DROP, "drop the row", false},
    {"zero", SL_MISSING_ZERO, "0", false},
    {"mean", SL_MISSING_MEAN, "mean of the column in `train`", false},
    {"forward_fill", SL_MISSING_FORWARD_FILL, "the last known value before it", false},
    {NULL, 0, NULL, false}};

static const struct sl_word tokenizer_words[] = {
    {"whitespace", SL_TOKENIZER_WHITESPACE, "splits at whitespace", false},
    {"char", SL_TOKENIZER_CHAR, "every character is a token", false},
    {"word", SL_TOKENIZER_WORD, "splits at whitespace and punctuation", false},
    {"sentencepiece", SL_TOKENIZER_SENTENCEPIECE, "splits words into pieces, with the SentencePiece library", false},
    {NULL, 0, NULL, false}};

/* One character. */
static void read_delimiter(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    uint32_t c;
    size_t length = node->kind == SL_NODE_SCALAR ? strlen(node->text) : 0;
    if (length == 0 || sl_text_utf8_decode(node->text, length, &c) != length)
        sl_reader_report(reader, "E0103", node->place, "a tab is `\"\\t\"`, in double quotes", NULL,
                         "`%s` is one character", option->key);
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
            sl_reader_report(reader, "E0103", node->place, NULL, NULL, "`%s` says the longest before the shortest",
                             option->key);
        return;
    }
    sl_reader_read_value(reader, &number, node, &source->length_min);
    source->length_max = source->length_min;
}

/* A time, as a number of seconds. */
static void read_step(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option time_step = {.key = "step", .kind = SL_VALUE_PERIOD, .period_units = "s"};
    struct sl_period period = {0};
    (void)option;
    sl_reader_read_value(reader, &time_step, node, &period);
    *(double *)field = period.count;
}

/* A path, or `from_train`. */
static void read_vocab(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option path = {.key = "vocab", .kind = SL_VALUE_PATH};
    (void)option;
    if (node->kind != SL_NODE_SCALAR || strcmp(node->text, "from_train") != 0)
        sl_reader_read_value(reader, &path, node, field);
}

/* A list out of the four special tokens. */
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
        for (size_t j = 0; j < i; j++)
            fine = fine && strcmp(list->items[i], list->items[j]) != 0;
        if (!fine)
            sl_reader_report(reader, "E0102", node->items[i]->place, NULL, "it takes pad, unk, bos and eos, each once",
                             "`specials` cannot hold `%.60s`", list->items[i]);
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
static const struct sl_custom step_custom = {read_step, "time", "{\"type\": \"string\"}"};
static const struct sl_custom vocab_custom = {read_vocab, "path, or `from_train`", "{\"type\": \"string\"}"};
static const struct sl_custom specials_custom = {
    read_specials, "list of some of `pad`, `unk`, `bos`, `eos`",
    "{\"type\": \"array\", \"items\": {\"enum\": [\"pad\", \"unk\", \"bos\", \"eos\"]}}"};

static const struct sl_option source_options[] = {
    {"file", SL_VALUE_PATH, AT(file), (TEXTUAL | S(TOKENS)) & ~S(LINES), SL_OPTION_REQUIRED, NULL, 0, 0, NONE,
     "the file"},
    {"file", SL_VALUE_PATH, AT(file), S(LINES), 0, NULL, 0, 0, NONE,
     "the file; with an encoder and a decoder, each line is both source and target"},
    {"source", SL_VALUE_PATH, AT(source_file), S(LINES), 0, NULL, 0, 0, NONE,
     "instead of `file`: the source side of two parallel files, one sequence per line"},
    {"target", SL_VALUE_PATH, AT(target_file), S(LINES), 0, NULL, 0, 0, NONE, "the target side of two parallel files"},
    {"source", SL_VALUE_TEXT, AT(source_column), TABLES, 0, NULL, 0, 0, NONE,
     "the column that contains the source text of a pair"},
    {"target", SL_VALUE_TEXT, AT(target_column), TABLES, 0, NULL, 0, 0, NONE,
     "the column that contains the target text of a pair"},
    {"x", SL_VALUE_PATH, AT(x), S(NPY), SL_OPTION_REQUIRED, NULL, 0, 0, NONE, "the inputs: [N, T, F] or [N, F]"},
    {"y", SL_VALUE_PATH, AT(y), S(NPY), 0, NULL, 0, 0, NONE, "the targets: [N], [N, F], [N, T] or [N, T, F]"},
    {"lengths", SL_VALUE_PATH, AT(lengths), S(NPY), 0, NULL, 0, 0, NONE,
     "the number of real steps in each row: [N] integers; default: all steps"},
    {"encoding",
     SL_VALUE_WORD,
     AT(encoding),
     TEXTUAL,
     0,
     "utf-8",
     0,
     0,
     {.words = encoding_words},
     "character encoding"},
    {"delimiter",
     SL_VALUE_CUSTOM,
     AT(delimiter),
     S(CSV),
     0,
     ",",
     0,
     0,
     {.custom = &delimiter_custom},
     "separates fields"},
    {"delimiter",
     SL_VALUE_CUSTOM,
     AT(delimiter),
     S(TSV) | S(CONLL),
     0,
     "\t",
     0,
     0,
     {.custom = &delimiter_custom},
     "separates fields"},
    {"delimiter",
     SL_VALUE_CUSTOM,
     AT(delimiter),
     S(LINES),
     0,
     " ",
     0,
     0,
     {.custom = &delimiter_custom},
     "separates the label from the text"},
    {"header", SL_VALUE_BOOL, AT(header), TABLES, 0, "true", 0, 0, NONE, "the first row names the columns"},
    {"columns", SL_VALUE_TEXTS, AT(columns), TABLES, 0, NULL, 0, 0, NONE, "column names for a table without a header"},
    {"comment", SL_VALUE_TEXT, AT(comment), S(CONLL), 0, NULL, 0, 0, NONE, "lines that begin with this are skipped"},
    {"rows",
     SL_VALUE_CUSTOM,
     AT(rows),
     TABLES,
     0,
     NULL,
     0,
     0,
     {.custom = &rows_custom},
     "the first and the last row to use: numbers counted from 1, or values of the time column; `~` means no limit"},
    {"inputs", SL_VALUE_TEXTS, AT(inputs), TABLES, 0, NULL, 0, 0, NONE, "numeric input columns"},
    {"targets", SL_VALUE_TEXTS, AT(targets), TABLES, 0, NULL, 0, 0, NONE, "numeric target columns"},
    {"group", SL_VALUE_TEXT, AT(group), TABLES, 0, NULL, 0, 0, NONE,
     "rows with the same value in this column form one sequence"},
    {"text", SL_VALUE_TEXT, AT(text), TABLES, 0, NULL, 0, 0, NONE, "the column that contains the text"},
    {"text", SL_VALUE_TEXT, AT(text), S(CONLL), 0, "1", 0, 0, NONE, "the column of the token, counted from 1"},
    {"label",
     SL_VALUE_SECTION,
     AT(label),
     TABLES | S(LINES),
     0,
     NULL,
     0,
     0,
     {.section = &sl_section_label},
     "what is predicted for a sequence"},
    {"label",
     SL_VALUE_SECTION,
     AT(label),
     S(CONLL),
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {.section = &sl_section_label},
     "the column of the tag, counted from 1"},
    {"time",
     SL_VALUE_SECTION,
     AT(time),
     TABLES,
     0,
     NULL,
     0,
     0,
     {.section = &sl_section_time},
     "the column that contains the time"},
    {"window",
     SL_VALUE_SECTION,
     AT(window),
     TABLES,
     0,
     NULL,
     0,
     0,
     {.section = &sl_section_window},
     "cuts a series into sequences"},
    {"scale",
     SL_VALUE_SECTION,
     AT(scale),
     TABLES | S(NPY),
     0,
     "none",
     0,
     0,
     {.section = &sl_section_scale},
     "how numeric columns are scaled; `predict` scales back"},
    {"missing",
     SL_VALUE_SECTION,
     AT(missing),
     TABLES | S(NPY),
     0,
     "error",
     0,
     0,
     {.section = &sl_section_missing},
     "how empty numeric fields are handled"},
    {"name",
     SL_VALUE_WORD,
     G(generator),
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {.words = sl_words_generator},
     "which generator"},
    {"size", SL_VALUE_INT, G(size), SL_OPTION_REQUIRED, NULL, 1, INT32_MAX, NONE, "number of sequences in the split"},
    {"seed", SL_VALUE_SEED, G(seed), 0, NULL, 0, 9007199254740991.0, NONE,
     "seed of this split; default: derived from the model's seed and the split"},
    {"length",
     SL_VALUE_CUSTOM,
     AT(length_min),
     S(GENERATOR),
     0,
     NULL,
     0,
     0,
     {.custom = &length_custom},
     "steps in a sequence (copy, reverse: symbols); required except for addition"},
    {"digits", SL_VALUE_INT, G(digits), 0, NULL, 1, 17, NONE, "addition: maximum number of digits of each number"},
    {"features", SL_VALUE_INT, G(features), 0, NULL, 1, 100000, NONE, "sine: number of parallel series"},
    {"horizon", SL_VALUE_INT, G(horizon), 0, NULL, 1, 100000, NONE, "sine: number of steps to predict"},
    {"noise", SL_VALUE_FLOAT, G(noise), 0, NULL, 0, SL_NO_LIMIT, NONE, "sine: standard deviation of the noise"},
    {"symbols", SL_VALUE_INT, G(symbols), 0, NULL, 2, 100000, NONE, "copy, reverse: size of the alphabet"},
    {"delay", SL_VALUE_INT, G(delay), 0, NULL, 0, 1000000, NONE, "copy: number of blanks before the repetition"},
    {0}};

const struct sl_section sl_section_source = {
    "data.train",
    "the source",
    sl_words_source_type,
    offsetof(struct sl_source, type),
    NULL,
    NULL,
    source_options,
    "one split: `train`, `valid` or `test`. Format options may also be placed directly under `data`, where they apply "
    "to all splits; `valid` and `test` take from `train` whatever is set in neither place"};

static const struct sl_option label_options[] = {{"column", SL_VALUE_TEXT, offsetof(struct sl_label, column), 0,
                                                  SL_OPTION_REQUIRED, NULL, 0, 0, NONE,
                                                  "name or number of the column; in `lines` `first` or `last`"},
                                                 {0}};

const struct sl_section sl_section_label = {
    "data.label", "the label", label_words,   offsetof(struct sl_label, type),
    "class",      "column",    label_options, "`{column: …, type: class}`, or just the column"};

static const struct sl_option time_options[] = {{"column", SL_VALUE_TEXT, offsetof(struct sl_time, column), 0,
                                                 SL_OPTION_REQUIRED, NULL, 0, 0, NONE, "name or number of the column"},
                                                {"format", SL_VALUE_TEXT, offsetof(struct sl_time, format), 0, 0, NULL,
                                                 0, 0, NONE,
                                                 "a format string as in strptime; default: ISO 8601, or a number"},
                                                {"step",
                                                 SL_VALUE_CUSTOM,
                                                 offsetof(struct sl_time, step),
                                                 0,
                                                 0,
                                                 NULL,
                                                 0,
                                                 0,
                                                 {.custom = &step_custom},
                                                 "time between two rows; default: not checked"},
                                                {"gaps",
                                                 SL_VALUE_WORD,
                                                 offsetof(struct sl_time, gaps),
                                                 0,
                                                 0,
                                                 "error",
                                                 0,
                                                 0,
                                                 {.words = gaps_words},
                                                 "what happens where rows are further apart than `step`"},
                                                {0}};

const struct sl_section sl_section_time = {
    "data.time", "the time", NULL,         0,
    NULL,        "column",   time_options, "the column that contains the time, and how it is checked"};

static const struct sl_option window_options[] = {{"length", SL_VALUE_INT, offsetof(struct sl_window, length), 0,
                                                   SL_OPTION_REQUIRED, NULL, 1, 1000000, NONE, "number of input rows"},
                                                  {"horizon", SL_VALUE_INT, offsetof(struct sl_window, horizon), 0, 0,
                                                   "1", 1, 1000000, NONE,
                                                   "number of rows after the input whose targets are predicted"},
                                                  {"stride", SL_VALUE_INT, offsetof(struct sl_window, stride), 0, 0,
                                                   "1", 1, 1000000, NONE, "number of rows from one window to the next"},
                                                  {0}};

const struct sl_section sl_section_window = {
    "data.window", "the window", NULL, 0, NULL, NULL, window_options, "cuts a series into sequences"};

static const struct sl_option scale_options[] = {{"fit",
                                                  SL_VALUE_WORD,
                                                  offsetof(struct sl_scale, fit),
                                                  1u << SL_SCALE_STANDARD | 1u << SL_SCALE_MINMAX,
                                                  0,
                                                  "train",
                                                  0,
                                                  0,
                                                  {.words = fit_words},
                                                  "the rows that the scale is fitted to"},
                                                 {"targets", SL_VALUE_BOOL, offsetof(struct sl_scale, targets),
                                                  1u << SL_SCALE_STANDARD | 1u << SL_SCALE_MINMAX, 0, "true", 0, 0,
                                                  NONE, "whether numeric targets are scaled too"},
                                                 {0}};

const struct sl_section sl_section_scale = {
    "data.scale",  "the scale",
    scale_words,   offsetof(struct sl_scale, type),
    NULL,          NULL,
    scale_options, "scaling of each column; saved with the model, and `predict` scales back"};

static const struct sl_option missing_options[] = {{"limit", SL_VALUE_INT, offsetof(struct sl_missing, limit),
                                                    1u << SL_MISSING_FORWARD_FILL, 0, NULL, 1, INT32_MAX, NONE,
                                                    "maximum number of consecutive rows to fill; default: no limit"},
                                                   {0}};

const struct sl_section sl_section_missing = {"data.missing",
                                              "the treatment of missing values",
                                              missing_words,
                                              offsetof(struct sl_missing, type),
                                              NULL,
                                              NULL,
                                              missing_options,
                                              "how empty numeric fields are handled"};

static const struct sl_word method_words[] = {
    {"bpe", SL_PIECES_BPE, "byte-pair encoding: joins the most frequent pairs", false},
    {"unigram", SL_PIECES_UNIGRAM, "chooses the pieces that make the text most probable", false},
    {NULL, 0, NULL, false}};

#define PIECES    (1u << SL_TOKENIZER_SENTENCEPIECE)
#define NO_PIECES (1u << SL_TOKENIZER_WHITESPACE | 1u << SL_TOKENIZER_CHAR | 1u << SL_TOKENIZER_WORD)

static const struct sl_option tokenizer_options[] = {
    {"model", SL_VALUE_PATH, offsetof(struct sl_tokenizer, model), PIECES, 0, NULL, 0, 0, NONE,
     "a SentencePiece model; default: one of `vocab_size` is learned from `train`"},
    {"method",
     SL_VALUE_WORD,
     offsetof(struct sl_tokenizer, method),
     PIECES,
     0,
     "bpe",
     0,
     0,
     {.words = method_words},
     "how the pieces are learned"},
    {"vocab_size", SL_VALUE_INT, offsetof(struct sl_tokenizer, vocab_size), 0, 0, NULL, 2, INT32_MAX, NONE,
     "maximum size of the vocabulary, special tokens included; default: no limit"},
    {"min_count", SL_VALUE_INT, offsetof(struct sl_tokenizer, min_count), NO_PIECES, 0, "1", 1, INT32_MAX, NONE,
     "tokens that occur less often are unknown"},
    {"lowercase", SL_VALUE_BOOL, offsetof(struct sl_tokenizer, lowercase), NO_PIECES, 0, "false", 0, 0, NONE,
     "converts Latin, Greek and Cyrillic letters to lower case"},
    {"specials",
     SL_VALUE_CUSTOM,
     offsetof(struct sl_tokenizer, specials),
     0,
     0,
     NULL,
     0,
     0,
     {.custom = &specials_custom},
     "special tokens, the first entries of the vocabulary; default: `unk`, and also `eos` for a text that is split "
     "into words"},
    {"vocab",
     SL_VALUE_CUSTOM,
     offsetof(struct sl_tokenizer, vocab),
     NO_PIECES,
     0,
     "from_train",
     0,
     0,
     {.custom = &vocab_custom},
     "a file with one token per line; `from_train`: the tokens of `train`"},
    {"shared", SL_VALUE_BOOL, offsetof(struct sl_tokenizer, shared), 0, 0, NULL, 0, 0, NONE,
     "for pairs: one vocabulary for source and target; default: true where both are the same text, otherwise false"},
    {0}};

const struct sl_section sl_section_tokenizer = {
    "data.tokenizer",  "the tokenizer",          tokenizer_words, offsetof(struct sl_tokenizer, type), NULL, NULL,
    tokenizer_options, "how text becomes tokens"};

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
