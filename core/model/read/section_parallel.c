/* SPDX-License-Identifier: Apache-2.0 */
/* The section `parallel`. */
#include <string.h>

#include "model/read/sections.h"

#define AT(member) offsetof(struct sl_parallel_config, member)

/* A number of ranks, or `none`. */
static void read_ranks(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    const struct sl_option number = {.key = option->key, .kind = SL_VALUE_INT, .min = 1, .max = SL_RANKS_MOST};
    if (node->kind == SL_NODE_SCALAR && strcmp(node->text, "none") == 0)
        *(int64_t *)field = 1;
    else if (!sl_reader_may_be_number(node))
        sl_reader_report_type(reader, option, node, "an integer or `none`");
    else
        sl_reader_read_value(reader, &number, node, field);
}

static const struct sl_custom ranks_custom = {
    read_ranks, "`none` or integer ≥ 1 and ≤ 4096",
    "{\"anyOf\": [{\"enum\": [\"none\"]}, {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 4096}]}"};

static const struct sl_word how_words[] = {
    WORD("all_reduce", SL_REDUCE_ALL, "each rank gets the sum and updates its own weights"),
    WORD("central", SL_REDUCE_CENTRAL, "rank 0 adds the gradients, updates, and sends the weights"),
    WORD_END,
};

static const struct sl_word dtype_words[] = {
    WORD("float32", SL_REDUCE_FLOAT32, "single precision"),
    WORD("bfloat16", SL_REDUCE_BFLOAT16, "half as many bytes, each gradient rounded to 8 bits of mantissa"),
    WORD_END,
};

static const struct sl_option reduce_options[] = {
    OPTION(WORD, "how", offsetof(struct sl_reduce_config, how), .default_text = "all_reduce", .words = how_words,
           .doc = "which rank adds and updates"),
    OPTION(WORD, "dtype", offsetof(struct sl_reduce_config, dtype), .default_text = "float32", .words = dtype_words,
           .doc = "the form in which gradients are exchanged"),
    OPTION_END,
};

const struct sl_section sl_section_reduce = {
    .path = "parallel.reduce",
    .noun = "the sum of gradients",
    .bare_key = "how",
    .options = reduce_options,
    .doc = "how the gradients of the ranks are added",
};

static const struct sl_word compress_words[] = {
    WORD("none", SL_COMPRESS_NONE, "gradients are exchanged whole"),
    WORD("powersgd", SL_COMPRESS_POWERSGD,
         "two factors of low rank stand for a matrix; what they miss is added to the next"),
    WORD_END,
};

static const struct sl_option compress_options[] = {
    OPTION(WORD, "type", offsetof(struct sl_compress_config, kind), .default_text = "none", .words = compress_words,
           .doc = "how matrices of gradients are compressed"),
    OPTION(INT, "rank", offsetof(struct sl_compress_config, rank), .min = 1, .max = 1024,
           .doc = "the rank of the factors: more is more exact, and more bytes; 4 by default"),
    OPTION_END,
};

const struct sl_section sl_section_compress = {
    .path = "parallel.compress",
    .noun = "the compression of gradients",
    .bare_key = "type",
    .options = compress_options,
    .doc = "compression of the gradients that ranks exchange",
};

static const struct sl_option parallel_options[] = {
    OPTION(CUSTOM, "data", AT(data), .default_text = "none", .custom = &ranks_custom,
           .doc = "the number of ranks (processes, each with one device) that share every batch; with `pipeline`, of "
                  "groups of ranks"),
    OPTION(CUSTOM, "pipeline", AT(pipeline), .default_text = "none", .custom = &ranks_custom,
           .doc = "the number of ranks that share the layers: each runs neighbouring layers, on one piece of the steps "
                  "after the other"),
    OPTION(INT, "pieces", AT(pieces), .min = 1, .max = 1024,
           .doc = "into how many pieces the steps of each batch are cut; the weights then have the same bits for any "
                  "`pipeline`; each rank computes with one thread. Without it, a pipeline has as many pieces as are "
                  "fast"),
    OPTION(INT, "shards", AT(shards), .min = 1, .max = 65536,
           .doc = "into how many shards each batch is cut; the weights then have the same bits on any number of ranks "
                  "up to this; each rank computes with one thread"),
    OPTION(SECTION, "reduce", AT(reduce), .default_text = "{}", .section = &sl_section_reduce,
           .doc = "how the gradients of the ranks are added"),
    OPTION(SECTION, "compress", AT(compress), .default_text = "{}", .section = &sl_section_compress,
           .doc = "how gradients are compressed between the ranks"),
    OPTION_END,
};

const struct sl_section sl_section_parallel = {
    .path = "parallel",
    .noun = "the division among ranks",
    .bare_key = "data",
    .options = parallel_options,
    .doc = "training on several ranks; see [parallel.md](parallel.md)",
};
