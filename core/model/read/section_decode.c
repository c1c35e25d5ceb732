/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `decode:`, and the checks between its keys. */
#include "model/read/sections.h"

#define AT(member) offsetof(struct sl_decode_config, member)

static const struct sl_word penalty_words[] = {
    WORD("none", SL_LENGTH_PENALTY_NONE, "log-probabilities are not divided, which favours short texts"),
    WORD("average", SL_LENGTH_PENALTY_AVERAGE, "log-probabilities are divided by the number of tokens"),
    WORD("gnmt", SL_LENGTH_PENALTY_GNMT, "log-probabilities are divided by ((5 + tokens) / 6)^alpha (Wu et al. 2016)"),
    WORD_END,
};

static const struct sl_option penalty_options[] = {
    OPTION(FLOAT, "alpha", offsetof(struct sl_length_penalty, alpha), .variants = 1u << SL_LENGTH_PENALTY_GNMT,
           .default_text = "0.6", .min = 0, .max = 10, .doc = "strength of the penalty"),
    OPTION_END,
};

const struct sl_section sl_section_length_penalty = {
    .path = "decode.length_penalty",
    .noun = "the length penalty",
    .variants = penalty_words,
    .variant_offset = offsetof(struct sl_length_penalty, kind),
    .options = penalty_options,
    .doc = "how texts of different lengths are compared",
};

static const struct sl_option decode_options[] = {
    OPTION(INT, "beam", AT(beam), .default_text = "1", .min = 1, .max = 1000,
           .doc = "beam size: number of hypotheses kept at each step; 1 is greedy decoding"),
    OPTION(SECTION, "length_penalty", AT(length_penalty), .default_text = "average",
           .section = &sl_section_length_penalty, .doc = "how texts of different lengths are compared"),
    OPTION(INT, "max_length", AT(max_length), .min = 1, .max = 1000000,
           .doc = "maximum number of tokens in a text; default: twice the tokens of the source plus ten"),
    OPTION(INT, "n_best", AT(n_best), .default_text = "1", .min = 1, .max = 1000,
           .doc = "number of texts to write for each input, best first"),
    OPTION(FLOAT, "temperature", AT(temperature), .flags = SL_OPTION_ABOVE, .min = 0, .max = 100,
           .doc = "samples tokens instead of taking the best; values below 1 favour the most probable tokens"),
    OPTION(INT, "top_k", AT(top_k), .min = 1, .max = INT32_MAX,
           .doc = "samples only from the `top_k` most probable tokens"),
    OPTION(
        FLOAT, "top_p", AT(top_p), .flags = SL_OPTION_ABOVE, .default_text = "1", .min = 0, .max = 1,
        .doc =
            "samples only from the smallest set of most probable tokens whose probabilities sum to at least `top_p`"),
    OPTION_END,
};

const struct sl_section sl_section_decode = {
    .path = "decode",
    .noun = "the decoding",
    .options = decode_options,
    .doc = "how a decoder generates text: greedily, by beam search, or by sampling",
};

void sl_model_check_decode(struct sl_reader *reader, struct sl_node *root, const struct sl_model *model)
{
    const struct sl_decode_config *decode = &model->decode;
    struct sl_node *node = sl_node_find(root, "decode");
    if (node == NULL || node->kind != SL_NODE_MAP)
        return;
    bool draws = sl_node_find(node, "temperature") != NULL;
    sl_reader_drop_idle(reader, root, "decode", model->encoder_count > 0 || sl_reader_was_refused(root, "model"),
                        "a model of `encoder` and `decoder`");
    sl_reader_drop_idle(reader, node, "top_k", draws, "`temperature`");
    sl_reader_drop_idle(reader, node, "top_p", draws, "`temperature`");
    /* a saved run has the default written out, and may be decoded with another beam */
    sl_reader_drop_idle(reader, node, "length_penalty",
                        decode->beam > 1 || decode->length_penalty.kind == SL_LENGTH_PENALTY_AVERAGE,
                        "a `beam` of more than 1");
    if (draws && decode->beam > 1)
        sl_reader_report(reader, "E0207", sl_reader_get_place(node, "temperature"), "remove one of them", NULL,
                         "`beam: %lld` searches for the best text, but `temperature` samples", (long long)decode->beam);
    if (decode->n_best > decode->beam)
        sl_reader_report(reader, "E0103", sl_reader_get_place(node, "n_best"), "use a larger `beam`", NULL,
                         "`n_best: %lld` is more than a beam of %lld gives", (long long)decode->n_best,
                         (long long)decode->beam);
}
