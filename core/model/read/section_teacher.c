/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `train.teacher_forcing`, and the check that it has an effect. */
#include "model/read/sections.h"

#define AT(member) offsetof(struct sl_teacher_forcing, member)
#define C(kind)    (1u << SL_TEACHER_##kind)

enum { SAMPLED = C(CONSTANT) | C(LINEAR) | C(EXPONENTIAL) | C(INVERSE_SIGMOID) };

static const struct sl_word teacher_words[] = {
    WORD("always", SL_TEACHER_ALWAYS, "p = 1: always the true token"),
    WORD("constant", SL_TEACHER_CONSTANT, "p = `probability`"),
    WORD("linear", SL_TEACHER_LINEAR, "p falls linearly from `from` to `to` over `over`"),
    WORD("exponential", SL_TEACHER_EXPONENTIAL, "p = k^i, where i counts periods of `every`"),
    WORD("inverse_sigmoid", SL_TEACHER_INVERSE_SIGMOID, "p = k / (k + exp(i / k)), where i counts periods of `every`"),
    WORD_END,
};

static const struct sl_word own_words[] = {
    WORD("sample", SL_OWN_SAMPLE, "sampled from the model's distribution"),
    WORD("argmax", SL_OWN_ARGMAX, "the most probable token"),
    WORD_END,
};

static const struct sl_option teacher_options[] = {
    OPTION(FLOAT, "probability", AT(probability), .variants = C(CONSTANT), .flags = SL_OPTION_REQUIRED, .min = 0,
           .max = 1, .doc = "probability of the true token"),
    OPTION(FLOAT, "from", AT(from), .variants = C(LINEAR), .default_text = "1", .min = 0, .max = 1,
           .doc = "p at the start"),
    OPTION(FLOAT, "to", AT(to), .variants = C(LINEAR), .default_text = "0", .min = 0, .max = 1, .doc = "p at the end"),
    OPTION(PERIOD, "over", AT(over), .variants = C(LINEAR), .doc = "duration of the schedule; default: the whole run"),
    OPTION(FLOAT, "k", AT(k), .variants = C(EXPONENTIAL),
           .flags = SL_OPTION_REQUIRED | SL_OPTION_ABOVE | SL_OPTION_BELOW, .min = 0, .max = 1, .doc = "the base"),
    OPTION(FLOAT, "k", AT(k), .variants = C(INVERSE_SIGMOID), .flags = SL_OPTION_REQUIRED, .min = 1, .max = SL_NO_LIMIT,
           .doc = "the larger k is, the later and the more slowly p falls"),
    OPTION(PERIOD, "every", AT(every), .variants = C(EXPONENTIAL) | C(INVERSE_SIGMOID), .default_text = "1u",
           .doc = "the period counted by i"),
    OPTION(WORD, "own", AT(own), .variants = SAMPLED, .default_text = "sample", .words = own_words,
           .doc = "how the model's own token is chosen"),
    OPTION_END,
};

const struct sl_section sl_section_teacher_forcing = {
    .path = "train.teacher_forcing",
    .noun = "teacher forcing",
    .variants = teacher_words,
    .variant_offset = AT(kind),
    .options = teacher_options,
    .doc = "what a decoder reads during training: at each step the token of the target with probability p, otherwise "
           "its own",
};

static bool decoder_reads_tokens(const struct sl_model *model)
{
    for (size_t i = model->encoder_count; i < model->layer_count; i++)
        if (model->layers[i].kind == SL_LAYER_EMBEDDING)
            return model->encoder_count > 0;
    return false;
}

void sl_model_check_teacher(struct sl_reader *reader, struct sl_node *train, const struct sl_model *model)
{
    const struct sl_teacher_forcing *teacher = &model->train.teacher_forcing;
    const struct sl_node *node = sl_node_find(train, "teacher_forcing");
    sl_reader_drop_idle(reader, train, "teacher_forcing", decoder_reads_tokens(model),
                        "a decoder that reads tokens (an `embedding` in `model.decoder`)");
    if (node == NULL || node->kind != SL_NODE_MAP || teacher->kind != SL_TEACHER_LINEAR)
        return;
    if (teacher->over.unit == SL_PERIOD_NONE && model->train.epochs == 0 && model->train.updates == 0)
        sl_reader_report(reader, "E0204", node->place, NULL, NULL,
                         "the schedule needs `over`, because `train` has neither `epochs` nor `updates`");
}
