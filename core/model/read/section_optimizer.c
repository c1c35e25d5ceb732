/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `train.optimizer` and `train.schedule`. */
#include "model/read/sections.h"

#define O(kind)             (1u << SL_OPTIMIZER_##kind)
#define C(kind)             (1u << SL_SCHEDULE_##kind)
#define AT(member)          offsetof(struct sl_optimizer, member)
#define SCHEDULE_AT(member) offsetof(struct sl_schedule, member)
#define ADAMS               (O(ADAM) | O(ADAMW))

static const struct sl_word optimizer_words[] = {
    WORD("sgd", SL_OPTIMIZER_SGD, "gradient descent"),
    WORD("momentum", SL_OPTIMIZER_MOMENTUM, "gradient descent with momentum"),
    WORD("nesterov", SL_OPTIMIZER_NESTEROV, "gradient descent with Nesterov momentum"),
    WORD("adam", SL_OPTIMIZER_ADAM, "Adam"),
    WORD("adamw", SL_OPTIMIZER_ADAMW, "Adam with weight decay"),
    WORD("rmsprop", SL_OPTIMIZER_RMSPROP, "RMSprop"),
    WORD("adagrad", SL_OPTIMIZER_ADAGRAD, "Adagrad"),
    WORD("adadelta", SL_OPTIMIZER_ADADELTA, "Adadelta"),
    WORD("nt_asgd", SL_OPTIMIZER_NT_ASGD,
         "gradient descent; the parameters are averaged once the validation loss stalls"),
    WORD_END,
};

static const struct sl_option optimizer_options[] = {
    OPTION(FLOAT, "learning_rate", AT(learning_rate), .variants = O(SGD) | O(MOMENTUM) | O(NESTEROV) | O(NT_ASGD),
           .flags = SL_OPTION_ABOVE, .default_text = "0.01", .min = 0, .max = SL_NO_LIMIT, .doc = "learning rate"),
    OPTION(FLOAT, "learning_rate", AT(learning_rate), .variants = ADAMS | O(RMSPROP) | O(ADAGRAD) | O(ADADELTA),
           .flags = SL_OPTION_ABOVE, .default_text = "1e-3", .min = 0, .max = SL_NO_LIMIT, .doc = "learning rate"),
    OPTION(FLOAT, "momentum", AT(momentum), .variants = O(MOMENTUM) | O(NESTEROV), .flags = SL_OPTION_BELOW,
           .default_text = "0.9", .min = 0, .max = 1, .doc = "fraction of the previous step that is added to the next"),
    OPTION(FLOAT, "momentum", AT(momentum), .variants = O(RMSPROP), .flags = SL_OPTION_BELOW, .default_text = "0",
           .min = 0, .max = 1, .doc = "fraction of the previous step that is added to the next"),
    OPTION(FLOAT, "beta_1", AT(beta_1), .variants = ADAMS, .flags = SL_OPTION_BELOW, .default_text = "0.9", .min = 0,
           .max = 1, .doc = "decay of the running mean of the gradient"),
    OPTION(FLOAT, "beta_2", AT(beta_2), .variants = ADAMS, .flags = SL_OPTION_BELOW, .default_text = "0.999", .min = 0,
           .max = 1, .doc = "decay of the running mean of its square"),
    OPTION(FLOAT, "rho", AT(rho), .variants = O(RMSPROP), .flags = SL_OPTION_BELOW, .default_text = "0.9", .min = 0,
           .max = 1, .doc = "decay of the running mean of the squared gradient"),
    OPTION(FLOAT, "rho", AT(rho), .variants = O(ADADELTA), .flags = SL_OPTION_BELOW, .default_text = "0.95", .min = 0,
           .max = 1, .doc = "decay of both running means"),
    OPTION(FLOAT, "epsilon", AT(epsilon), .variants = ADAMS | O(RMSPROP) | O(ADAGRAD) | O(ADADELTA),
           .flags = SL_OPTION_ABOVE, .default_text = "1e-7", .min = 0, .max = 1, .doc = "added to the divisor"),
    OPTION(BOOL, "amsgrad", AT(amsgrad), .variants = ADAMS, .default_text = "false",
           .doc = "divides by the largest running mean so far (AMSGrad)"),
    OPTION(BOOL, "centered", AT(centered), .variants = O(RMSPROP), .default_text = "false",
           .doc = "subtracts the squared running mean of the gradient"),
    OPTION(FLOAT, "initial_accumulator", AT(initial_accumulator), .variants = O(ADAGRAD), .default_text = "0.1",
           .min = 0, .max = SL_NO_LIMIT, .doc = "initial value of the sum of squares"),
    OPTION(INT, "patience", AT(patience), .variants = O(NT_ASGD), .default_text = "5", .min = 1, .max = 1000000,
           .doc = "number of latest validations that are left out of the comparison with the best so far"),
    OPTION(FLOAT, "weight_decay", AT(weight_decay), .variants = O(ADAMW), .default_text = "4e-3", .min = 0,
           .max = SL_NO_LIMIT, .doc = "each update subtracts learning_rate * weight_decay * w from w"),
    OPTION(FLOAT, "weight_decay", AT(weight_decay), .variants = ~O(ADAMW), .default_text = "0", .min = 0,
           .max = SL_NO_LIMIT, .doc = "each update subtracts learning_rate * weight_decay * w from w"),
    OPTION_END,
};

const struct sl_section sl_section_optimizer = {
    .path = "train.optimizer",
    .noun = "the optimizer",
    .variants = optimizer_words,
    .variant_offset = offsetof(struct sl_optimizer, kind),
    .options = optimizer_options,
    .doc = "how parameters are updated; equations and defaults as in Keras",
};

static const struct sl_word schedule_words[] = {
    WORD("constant", SL_SCHEDULE_CONSTANT, "the rate does not change"),
    WORD("step", SL_SCHEDULE_STEP, "multiplied by `factor` at `start` and then once per `every`"),
    WORD("exponential", SL_SCHEDULE_EXPONENTIAL, "decays smoothly by `factor` per `every`"),
    WORD("plateau", SL_SCHEDULE_PLATEAU, "multiplied by `factor` when `monitor` stops improving"),
    WORD("cosine", SL_SCHEDULE_COSINE, "falls along half a cosine"),
    WORD("one_cycle", SL_SCHEDULE_ONE_CYCLE, "rises to `max`, then falls to a much smaller rate"),
    WORD_END,
};

/* `divide_by: d` is `factor: 1/d`. */
static void read_divide_by(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option number = {.key = "divide_by", .kind = SL_VALUE_FLOAT, .min = 1, .max = SL_NO_LIMIT};
    double divisor = 1;
    (void)option;
    sl_reader_read_value(reader, &number, node, &divisor);
    *(double *)field = 1 / divisor;
}

static const struct sl_custom divide_by_custom = {read_divide_by, "number, at least 1",
                                                  "{\"type\": \"number\", \"minimum\": 1}"};

static const struct sl_option schedule_options[] = {
    OPTION(PERIOD, "warmup", SCHEDULE_AT(warmup), .doc = "the rate rises from 0 over this period"),
    OPTION(PERIOD, "start", SCHEDULE_AT(start), .variants = C(STEP) | C(EXPONENTIAL),
           .doc = "the rate does not change before this; default: `every` for step, the beginning for exponential"),
    OPTION(PERIOD, "every", SCHEDULE_AT(every), .variants = C(STEP) | C(EXPONENTIAL), .flags = SL_OPTION_REQUIRED,
           .doc = "period after which the factor has been applied once"),
    OPTION(FLOAT, "factor", SCHEDULE_AT(factor), .variants = C(STEP) | C(EXPONENTIAL), .flags = SL_OPTION_ABOVE,
           .min = 0, .max = 1, .doc = "what the rate is multiplied by"),
    OPTION(CUSTOM, "divide_by", SCHEDULE_AT(factor), .variants = C(STEP) | C(EXPONENTIAL), .custom = &divide_by_custom,
           .doc = "instead of `factor`: what the rate is divided by"),
    OPTION(CUSTOM, "monitor", SCHEDULE_AT(monitor), .variants = C(PLATEAU), .default_text = "valid.loss",
           .custom = &sl_custom_monitor, .doc = "the metric that must improve"),
    OPTION(FLOAT, "factor", SCHEDULE_AT(factor), .variants = C(PLATEAU), .flags = SL_OPTION_ABOVE | SL_OPTION_BELOW,
           .default_text = "0.1", .min = 0, .max = 1, .doc = "what the rate is multiplied by"),
    OPTION(INT, "patience", SCHEDULE_AT(patience), .variants = C(PLATEAU), .default_text = "10", .min = 0,
           .max = 1000000,
           .doc = "number of validations in a row without improvement after which the rate is lowered; 0 means 1"),
    OPTION(FLOAT, "min_delta", SCHEDULE_AT(min_delta), .variants = C(PLATEAU), .default_text = "1e-4", .min = 0,
           .max = SL_NO_LIMIT, .doc = "an improvement must be larger than this"),
    OPTION(INT, "cooldown", SCHEDULE_AT(cooldown), .variants = C(PLATEAU), .default_text = "0", .min = 0,
           .max = 1000000, .doc = "number of validations after a change that do not count"),
    OPTION(FLOAT, "min_learning_rate", SCHEDULE_AT(min_learning_rate), .variants = C(PLATEAU) | C(COSINE),
           .default_text = "0", .min = 0, .max = SL_NO_LIMIT, .doc = "the rate does not fall below this"),
    OPTION(PERIOD, "over", SCHEDULE_AT(over), .variants = C(COSINE) | C(ONE_CYCLE),
           .doc = "duration of the schedule; default: the whole run"),
    OPTION(FLOAT, "max", SCHEDULE_AT(max), .variants = C(ONE_CYCLE), .flags = SL_OPTION_REQUIRED | SL_OPTION_ABOVE,
           .min = 0, .max = SL_NO_LIMIT, .doc = "the highest rate"),
    OPTION(FLOAT, "rise", SCHEDULE_AT(rise), .variants = C(ONE_CYCLE), .flags = SL_OPTION_ABOVE | SL_OPTION_BELOW,
           .default_text = "0.3", .min = 0, .max = 1, .doc = "fraction of the time during which the rate rises"),
    OPTION(FLOAT, "divide_start", SCHEDULE_AT(divide_start), .variants = C(ONE_CYCLE), .default_text = "25", .min = 1,
           .max = SL_NO_LIMIT, .doc = "the rate starts at max / divide_start"),
    OPTION(FLOAT, "divide_end", SCHEDULE_AT(divide_end), .variants = C(ONE_CYCLE), .default_text = "1e4", .min = 1,
           .max = SL_NO_LIMIT, .doc = "the rate ends at max / divide_end"),
    OPTION_END,
};

static const struct sl_form schedule_forms[] = {
    {"factor", {"divide_by"}, NULL}, {"divide_by", {"factor"}, NULL}, {.key = NULL}};

const struct sl_section sl_section_schedule = {
    .path = "train.schedule",
    .noun = "the schedule",
    .variants = schedule_words,
    .variant_offset = offsetof(struct sl_schedule, kind),
    .options = schedule_options,
    .forms = schedule_forms,
    .doc = "how the learning rate changes",
};

const char *sl_schedule_kind_get_name(enum sl_schedule_kind kind)
{
    return sl_word_get_name(schedule_words, (int)kind);
}
