/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `train.teacher_forcing`, and where it has a meaning. */
#include "model/read/sections.h"

#define AT(member) offsetof(struct sl_teacher_forcing, member)
#define C(kind)    (1u << SL_TEACHER_##kind)
/* clang-format off */
#define NONE {NULL}
/* clang-format on */

enum { SAMPLED = C(CONSTANT) | C(LINEAR) | C(EXPONENTIAL) | C(INVERSE_SIGMOID) };

static const struct sl_word teacher_words[] = {
    {"always", SL_TEACHER_ALWAYS, "p = 1: always the true token", false},
    {"constant", SL_TEACHER_CONSTANT, "p = `probability`", false},
    {"linear", SL_TEACHER_LINEAR, "p falls linearly from `from` to `to` over `over`", false},
    {"exponential", SL_TEACHER_EXPONENTIAL, "p = k^i, where i counts periods of `every`", false},
    {"inverse_sigmoid", SL_TEACHER_INVERSE_SIGMOID, "p = k / (k + exp(i / k)), where i counts periods of `every`",
     false},
    {NULL, 0, NULL, false}};

static const struct sl_word own_words[] = {{"sample", SL_OWN_SAMPLE, "sampled from the model's distribution", false},
                                           {"argmax", SL_OWN_ARGMAX, "the most probable token", false},
                                           {NULL, 0, NULL, false}};

static const struct sl_option teacher_options[] = {
    {"probability", SL_VALUE_FLOAT, AT(probability), C(CONSTANT), SL_OPTION_REQUIRED, NULL, 0, 1, NONE,
     "probability of the true token"},
    {"from", SL_VALUE_FLOAT, AT(from), C(LINEAR), 0, "1", 0, 1, NONE, "p at the start"},
    {"to", SL_VALUE_FLOAT, AT(to), C(LINEAR), 0, "0", 0, 1, NONE, "p at the end"},
    {"over", SL_VALUE_PERIOD, AT(over), C(LINEAR), 0, NULL, 0, 0, NONE,
     "duration of the schedule; default: the whole run"},
    {"k", SL_VALUE_FLOAT, AT(k), C(EXPONENTIAL), SL_OPTION_REQUIRED | SL_OPTION_ABOVE | SL_OPTION_BELOW, NULL, 0, 1,
     NONE, "the base"},
    {"k", SL_VALUE_FLOAT, AT(k), C(INVERSE_SIGMOID), SL_OPTION_REQUIRED, NULL, 1, SL_NO_LIMIT, NONE,
     "the larger k is, the later and the more slowly p falls"},
    {"every", SL_VALUE_PERIOD, AT(every), C(EXPONENTIAL) | C(INVERSE_SIGMOID), 0, "1u", 0, 0, NONE,
     "the period counted by i"},
    {"own",
     SL_VALUE_WORD,
     AT(own),
     SAMPLED,
     0,
     "sample",
     0,
     0,
     {.words = own_words},
     "how the model's own token is chosen"},
    {0}};

const struct sl_section sl_section_teacher_forcing = {
    "train.teacher_forcing",
    "teacher forcing",
    teacher_words,
    AT(kind),
    NULL,
    NULL,
    teacher_options,
    "what a decoder reads during training: at each step the token of the target with probability p, otherwise its own"};

const char *sl_teacher_kind_get_name(enum sl_teacher_kind kind)
{
    return sl_word_get_name(teacher_words, (int)kind);
}

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
                         "the schedule needs `over`, because train says neither `epochs` nor `updates`");
}
