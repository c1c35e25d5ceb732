/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `decode:`, and what its keys say about each other. */
#include "model/read/sections.h"

#define AT(member) offsetof(struct sl_decode_config, member)
/* clang-format off */
#define NONE {NULL}
/* clang-format on */

static const struct sl_word penalty_words[] = {
    {"none", SL_LENGTH_PENALTY_NONE, "log-probabilities are not divided, which favours short texts", false},
    {"average", SL_LENGTH_PENALTY_AVERAGE, "log-probabilities are divided by the number of tokens", false},
    {"gnmt", SL_LENGTH_PENALTY_GNMT, "log-probabilities are divided by ((5 + tokens) / 6)^alpha (Wu et al. 2016)",
     false},
    {NULL, 0, NULL, false}};

static const struct sl_option penalty_options[] = {{"alpha", SL_VALUE_FLOAT, offsetof(struct sl_length_penalty, alpha),
                                                    1u << SL_LENGTH_PENALTY_GNMT, 0, "0.6", 0, 10, NONE,
                                                    "strength of the penalty"},
                                                   {0}};

const struct sl_section sl_section_length_penalty = {"decode.length_penalty",
                                                     "the length penalty",
                                                     penalty_words,
                                                     offsetof(struct sl_length_penalty, kind),
                                                     NULL,
                                                     NULL,
                                                     penalty_options,
                                                     "how texts of different lengths are compared"};

static const struct sl_option decode_options[] = {
    {"beam", SL_VALUE_INT, AT(beam), 0, 0, "1", 1, 1000, NONE,
     "beam size: number of hypotheses kept at each step; 1 is greedy decoding"},
    {"length_penalty",
     SL_VALUE_SECTION,
     AT(length_penalty),
     0,
     0,
     "average",
     0,
     0,
     {.section = &sl_section_length_penalty},
     "how texts of different lengths are compared"},
    {"max_length", SL_VALUE_INT, AT(max_length), 0, 0, NULL, 1, 1000000, NONE,
     "maximum number of tokens in a text; default: twice the tokens of the source plus ten"},
    {"n_best", SL_VALUE_INT, AT(n_best), 0, 0, "1", 1, 1000, NONE,
     "number of texts to write for each input, best first"},
    {"temperature", SL_VALUE_FLOAT, AT(temperature), 0, SL_OPTION_ABOVE, NULL, 0, 100, NONE,
     "samples tokens instead of taking the best; values below 1 favour the most probable tokens"},
    {"top_k", SL_VALUE_INT, AT(top_k), 0, 0, NULL, 1, INT32_MAX, NONE,
     "samples only from the `top_k` most probable tokens"},
    {"top_p", SL_VALUE_FLOAT, AT(top_p), 0, SL_OPTION_ABOVE, "1", 0, 1, NONE,
     "samples only from the smallest set of most probable tokens whose probabilities sum to at least `top_p`"},
    {0}};

const struct sl_section sl_section_decode = {
    "decode", "the decoding", NULL,           0,
    NULL,     NULL,           decode_options, "how a decoder generates text: greedily, by beam search, or by sampling"};

void sl_model_check_decode(struct sl_reader *reader, struct sl_node *root, const struct sl_model *model)
{
    const struct sl_decode_config *decode = &model->decode;
    struct sl_node *node = sl_node_find(root, "decode");
    if (node == NULL || node->kind != SL_NODE_MAP)
        return;
    bool draws = sl_node_find(node, "temperature") != NULL;
    sl_reader_drop_idle(reader, root, "decode", model->encoder_count > 0, "a model of `encoder` and `decoder`");
    sl_reader_drop_idle(reader, node, "top_k", draws, "`temperature`");
    sl_reader_drop_idle(reader, node, "top_p", draws, "`temperature`");
    /* a saved run says the default, and may be decoded with another beam */
    sl_reader_drop_idle(reader, node, "length_penalty",
                        decode->beam > 1 || decode->length_penalty.kind == SL_LENGTH_PENALTY_AVERAGE,
                        "a `beam` of more than 1");
    if (draws && decode->beam > 1)
        sl_reader_report(reader, "E0207", sl_reader_get_place(node, "temperature"), "take one of them away", NULL,
                         "`beam: %lld` follows the best, and `temperature` draws", (long long)decode->beam);
    if (decode->n_best > decode->beam)
        sl_reader_report(reader, "E0103", sl_reader_get_place(node, "n_best"), "say a wider `beam`", NULL,
                         "`n_best: %lld` wants more texts than a beam of %lld follows", (long long)decode->n_best,
                         (long long)decode->beam);
}
