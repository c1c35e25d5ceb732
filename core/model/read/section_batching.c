/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `data.batching:`, and the forms of `bucketing`. */
#include <string.h>

#include "model/read/sections.h"

#define AT(member) offsetof(struct sl_batching, member)

static const struct sl_word unit_words[] = {
    WORD("sequence", SL_UNIT_SEQUENCE, "independent sequences"),
    WORD("stream", SL_UNIT_STREAM, "one long text, cut into parallel streams; states are carried over"),
    WORD_END,
};

static const struct sl_word bucketing_words[] = {
    WORD("off", SL_BUCKETING_OFF, "batches follow the shuffled order"),
    WORD("pools", SL_BUCKETING_POOLS, "sequences are sorted by length within a window of `pool` batches"),
    WORD("auto", SL_BUCKETING_AUTO, "the buckets that are best for the measured cost of a step"),
    WORD_END,
};

static const struct sl_word overflow_words[] = {
    WORD("keep", SL_OVERFLOW_KEEP, "use the whole sequence"),
    WORD("drop", SL_OVERFLOW_DROP, "leave the sequence out; the number is reported"),
    WORD("truncate", SL_OVERFLOW_TRUNCATE, "use the beginning of the sequence"),
    WORD("split", SL_OVERFLOW_SPLIT, "make several sequences of it"),
    WORD_END,
};

static const struct sl_word padding_words[] = {
    WORD("none", SL_PADDING_NONE, "real steps only"),
    WORD("batch", SL_PADDING_BATCH, "to the longest sequence of the batch"),
    WORD("bucket", SL_PADDING_BUCKET, "to the edge of the bucket"),
    WORD("longest", SL_PADDING_LONGEST, "to the longest sequence of the data"),
    WORD_END,
};

static void read_edges(struct sl_reader *reader, struct sl_node *node, struct sl_bucketing *out)
{
    static const struct sl_option number = {.key = "bucketing", .kind = SL_VALUE_INT, .min = 1, .max = INT32_MAX};
    int64_t *edges = sl_reader_alloc(reader, node->count + 1, sizeof *edges);
    size_t errors = reader->errors;
    out->kind = SL_BUCKETING_LENGTHS;
    if (edges == NULL)
        return;
    if (node->count == 0)
        sl_reader_report(reader, "E0103", node->place, "as in `bucketing: [10, 20, 40]`", NULL,
                         "`bucketing` needs at least one length");
    for (size_t i = 0; i < node->count; i++) {
        sl_reader_read_value(reader, &number, node->items[i], &edges[i]);
        if (i > 0 && reader->errors == errors && edges[i] <= edges[i - 1])
            sl_reader_report(reader, "E0103", node->items[i]->place, NULL, NULL,
                             "the lengths of `bucketing` must increase: %lld comes after %lld", (long long)edges[i],
                             (long long)edges[i - 1]);
    }
    if (reader->errors == errors)
        *out = (struct sl_bucketing){.kind = SL_BUCKETING_LENGTHS, .edges = edges, .edge_count = node->count};
}

/* `{count: 16}` or `{generator: greedy}`. */
static void read_generator(struct sl_reader *reader, struct sl_node *node, struct sl_bucketing *out)
{
    static const struct sl_option number = {.key = "count", .kind = SL_VALUE_INT, .min = 1, .max = 1000};
    const struct sl_pair *pair = node->count == 1 ? &node->pairs[0] : NULL;
    if (pair != NULL && strcmp(pair->key, "count") == 0) {
        out->kind = SL_BUCKETING_COUNT;
        sl_reader_read_value(reader, &number, pair->value, &out->count);
    } else if (pair != NULL && strcmp(pair->key, "generator") == 0 && pair->value->kind == SL_NODE_SCALAR &&
               strcmp(pair->value->text, "greedy") == 0) {
        out->kind = SL_BUCKETING_GREEDY;
    } else {
        sl_reader_report(reader, "E0102", node->place,
                         "use `{count: 16}`, `{generator: greedy}`, `auto`, `pools` or `off`", NULL,
                         "`bucketing` cannot be this map");
    }
}

static void read_bucketing(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option word = {.key = "bucketing", .kind = SL_VALUE_WORD, .words = bucketing_words};
    struct sl_bucketing *out = field;
    int kind = SL_BUCKETING_POOLS;
    (void)option;
    *out = (struct sl_bucketing){.kind = SL_BUCKETING_POOLS};
    if (node->kind == SL_NODE_LIST) {
        read_edges(reader, node, out);
    } else if (node->kind == SL_NODE_MAP) {
        read_generator(reader, node, out);
    } else {
        sl_reader_read_value(reader, &word, node, &kind);
        out->kind = (enum sl_bucketing_kind)kind;
    }
}

static const struct sl_custom bucketing_custom = {
    read_bucketing, "`pools`, `auto`, `off`, `{count: K}`, `{generator: greedy}` or a list of lengths",
    "{\"anyOf\": [{\"enum\": [\"pools\", \"auto\", \"off\"]}, "
    "{\"type\": \"object\", \"required\": [\"count\"], \"additionalProperties\": false, \"properties\": "
    "{\"count\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000}}}, "
    "{\"type\": \"object\", \"required\": [\"generator\"], \"additionalProperties\": false, \"properties\": "
    "{\"generator\": {\"enum\": [\"greedy\"]}}}, "
    "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"type\": \"integer\", \"minimum\": 1}}]}"};

static const struct sl_option bucketing_options[] = {OPTION_END};
static const struct sl_form bucketing_forms[] = {
    {"count", {"generator"}, NULL}, {"generator", {"count"}, NULL}, {.key = NULL}};

/* The maps of `bucketing`, for overlays. */
static const struct sl_section bucketing_section = {.options = bucketing_options, .forms = bucketing_forms};
static const char *const bucketing_lone_words[] = {"off", "pools", "auto", NULL};

static const struct sl_option batching_options[] = {
    OPTION(WORD, "unit", AT(unit), .default_text = "sequence", .words = unit_words, .doc = "what a batch consists of"),
    OPTION(CUSTOM, "bucketing", AT(bucketing), .default_text = "pools", .custom = &bucketing_custom,
           .map = &bucketing_section, .lone_words = bucketing_lone_words,
           .doc = "how sequences of similar length are grouped"),
    OPTION(INT, "pool", AT(pool), .default_text = "100", .min = 1, .max = 1000000,
           .doc = "size of the sorted window, in batches"),
    OPTION(WORD, "pad_to", AT(padding), .default_text = "none", .words = padding_words,
           .doc = "for comparisons only: computes padded positions, which the loss ignores"),
    OPTION(INT, "max_tokens", AT(max_tokens), .min = 1, .max = INT32_MAX,
           .doc = "maximum number of steps in a batch, together with `batch_size` or instead of it; a longer sequence "
                  "gets a batch of its own"),
    OPTION(INT, "bptt", AT(bptt), .min = 1, .max = 1000000,
           .doc = "number of steps that gradients flow back (truncated backpropagation through time); default: 35 for "
                  "streams, otherwise whole sequences"),
    OPTION(INT, "max_length", AT(max_length), .min = 1, .max = INT32_MAX,
           .doc = "maximum length of a sequence; `on_overflow` says what happens beyond it; default: no limit"),
    OPTION(WORD, "on_overflow", AT(on_overflow), .default_text = "keep", .words = overflow_words,
           .doc = "what happens to a sequence that is longer than `max_length` or the last bucket"),
    OPTION_END,
};

const struct sl_section sl_section_batching = {
    .path = "data.batching",
    .noun = "the batching",
    .options = batching_options,
    .doc = "how sequences become batches",
};

int64_t sl_batching_find_longest(const struct sl_batching *batching)
{
    const struct sl_bucketing *bucketing = &batching->bucketing;
    int64_t longest = batching->max_length;
    bool ends = bucketing->kind == SL_BUCKETING_LENGTHS && bucketing->edge_count > 0; /* 0: the list had errors */
    if (ends && batching->on_overflow != SL_OVERFLOW_KEEP) {
        int64_t last = bucketing->edges[bucketing->edge_count - 1];
        longest = longest > 0 && longest < last ? longest : last;
    }
    return longest;
}
