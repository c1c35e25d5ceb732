/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `train.optimizer` and `train.schedule`. */
#include "model/read/sections.h"

#define O(kind)             (1u << SL_OPTIMIZER_##kind)
#define C(kind)             (1u << SL_SCHEDULE_##kind)
#define AT(member)          offsetof(struct sl_optimizer, member)
#define SCHEDULE_AT(member) offsetof(struct sl_schedule, member)
#define ADAMS               (O(ADAM) | O(ADAMW))
/* clang-format off */
#define NONE {NULL}
/* clang-format on */

static const struct sl_word optimizer_words[] = {
    {"sgd", SL_OPTIMIZER_SGD, "gradient descent", false},
    {"momentum", SL_OPTIMIZER_MOMENTUM, "gradient descent with momentum", false},
    {"nesterov", SL_OPTIMIZER_NESTEROV, "gradient descent with Nesterov momentum", false},
    {"adam", SL_OPTIMIZER_ADAM, "Adam", false},
    {"adamw", SL_OPTIMIZER_ADAMW, "Adam with weight decay", false},
    {"rmsprop", SL_OPTIMIZER_RMSPROP, "RMSprop", false},
    {"adagrad", SL_OPTIMIZER_ADAGRAD, "Adagrad", false},
    {"adadelta", SL_OPTIMIZER_ADADELTA, "Adadelta", false},
    {"nt_asgd", SL_OPTIMIZER_NT_ASGD, "gradient descent; the parameters are averaged once the validation loss stalls",
     false},
    {NULL, 0, NULL, false}};

static const struct sl_option optimizer_options[] = {
    {"learning_rate", SL_VALUE_FLOAT, AT(learning_rate), O(SGD) | O(MOMENTUM) | O(NESTEROV) | O(NT_ASGD),
     SL_OPTION_ABOVE, "0.01", 0, SL_NO_LIMIT, NONE, "learning rate"},
    {"learning_rate", SL_VALUE_FLOAT, AT(learning_rate), ADAMS | O(RMSPROP) | O(ADAGRAD) | O(ADADELTA), SL_OPTION_ABOVE,
     "1e-3", 0, SL_NO_LIMIT, NONE, "learning rate"},
    {"momentum", SL_VALUE_FLOAT, AT(momentum), O(MOMENTUM) | O(NESTEROV), SL_OPTION_BELOW, "0.9", 0, 1, NONE,
     "fraction of the previous step that is added to the next"},
    {"momentum", SL_VALUE_FLOAT, AT(momentum), O(RMSPROP), SL_OPTION_BELOW, "0", 0, 1, NONE,
     "fraction of the previous step that is added to the next"},
    {"beta_1", SL_VALUE_FLOAT, AT(beta_1), ADAMS, SL_OPTION_BELOW, "0.9", 0, 1, NONE,
     "decay of the running mean of the gradient"},
    {"beta_2", SL_VALUE_FLOAT, AT(beta_2), ADAMS, SL_OPTION_BELOW, "0.999", 0, 1, NONE,
     "decay of the running mean of its square"},
    {"rho", SL_VALUE_FLOAT, AT(rho), O(RMSPROP), SL_OPTION_BELOW, "0.9", 0, 1, NONE,
     "decay of the running mean of the squared gradient"},
    {"rho", SL_VALUE_FLOAT, AT(rho), O(ADADELTA), SL_OPTION_BELOW, "0.95", 0, 1, NONE, "decay of both running means"},
    {"epsilon", SL_VALUE_FLOAT, AT(epsilon), ADAMS | O(RMSPROP) | O(ADAGRAD) | O(ADADELTA), SL_OPTION_ABOVE, "1e-7", 0,
     1, NONE, "added to the divisor"},
    {"amsgrad", SL_VALUE_BOOL, AT(amsgrad), ADAMS, 0, "false", 0, 0, NONE,
     "divides by the largest running mean so far (AMSGrad)"},
    {"centered", SL_VALUE_BOOL, AT(centered), O(RMSPROP), 0, "false", 0, 0, NONE,
     "subtracts the squared running mean of the gradient"},
    {"initial_accumulator", SL_VALUE_FLOAT, AT(initial_accumulator), O(ADAGRAD), 0, "0.1", 0, SL_NO_LIMIT, NONE,
     "initial value of the sum of squares"},
    {"patience", SL_VALUE_INT, AT(patience), O(NT_ASGD), 0, "5", 1, 1000000, NONE,
     "number of latest validations that are left out of the comparison with the best so far"},
    {"weight_decay", SL_VALUE_FLOAT, AT(weight_decay), O(ADAMW), 0, "4e-3", 0, SL_NO_LIMIT, NONE,
     "each update subtracts learning_rate * weight_decay * w from w"},
    {"weight_decay", SL_VALUE_FLOAT, AT(weight_decay), ~O(ADAMW), 0, "0", 0, SL_NO_LIMIT, NONE,
     "each update subtracts learning_rate * weight_decay * w from w"},
    {0}};

const struct sl_section sl_section_optimizer = {"train.optimizer",
                                                "the optimizer",
                                                optimizer_words,
                                                offsetof(struct sl_optimizer, kind),
                                                NULL,
                                                NULL,
                                                optimizer_options,
                                                "how parameters are updated; equations and defaults as in Keras"};

static const struct sl_word schedule_words[] = {
    {"constant", SL_SCHEDULE_CONSTANT, "the rate does not change", false},
    {"step", SL_SCHEDULE_STEP, "multiplied by `factor` at `start` and then once per `every`", false},
    {"exponential", SL_SCHEDULE_EXPONENTIAL, "decays smoothly by `factor` per `every`", false},
    {"plateau", SL_SCHEDULE_PLATEAU, "multiplied by `factor` when `monitor` stops improving", false},
    {"cosine", SL_SCHEDULE_COSINE, "falls along half a cosine", false},
    {"one_cycle", SL_SCHEDULE_ONE_CYCLE, "rises to `max`, then falls to a much smaller rate", false},
    {NULL, 0, NULL, false}};

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
    {"warmup", SL_VALUE_PERIOD, SCHEDULE_AT(warmup), 0, 0, NULL, 0, 0, NONE, "the rate rises from 0 over this period"},
    {"start", SL_VALUE_PERIOD, SCHEDULE_AT(start), C(STEP) | C(EXPONENTIAL), 0, NULL, 0, 0, NONE,
     "the rate does not change before this; default: `every` for step, the beginning for exponential"},
    {"every", SL_VALUE_PERIOD, SCHEDULE_AT(every), C(STEP) | C(EXPONENTIAL), SL_OPTION_REQUIRED, NULL, 0, 0, NONE,
     "period after which the factor has been applied once"},
    {"factor", SL_VALUE_FLOAT, SCHEDULE_AT(factor), C(STEP) | C(EXPONENTIAL), SL_OPTION_ABOVE, NULL, 0, 1, NONE,
     "what the rate is multiplied by"},
    {"divide_by",
     SL_VALUE_CUSTOM,
     SCHEDULE_AT(factor),
     C(STEP) | C(EXPONENTIAL),
     0,
     NULL,
     0,
     0,
     {.custom = &divide_by_custom},
     "instead of `factor`: what the rate is divided by"},
    {"monitor",
     SL_VALUE_CUSTOM,
     SCHEDULE_AT(monitor),
     C(PLATEAU),
     0,
     "valid.loss",
     0,
     0,
     {.custom = &sl_custom_monitor},
     "the metric that must improve"},
    {"factor", SL_VALUE_FLOAT, SCHEDULE_AT(factor), C(PLATEAU), SL_OPTION_ABOVE | SL_OPTION_BELOW, "0.1", 0, 1, NONE,
     "what the rate is multiplied by"},
    {"patience", SL_VALUE_INT, SCHEDULE_AT(patience), C(PLATEAU), 0, "10", 0, 1000000, NONE,
     "number of validations in a row without improvement after which the rate is lowered; 0 means 1"},
    {"min_delta", SL_VALUE_FLOAT, SCHEDULE_AT(min_delta), C(PLATEAU), 0, "1e-4", 0, SL_NO_LIMIT, NONE,
     "an improvement must be larger than this"},
    {"cooldown", SL_VALUE_INT, SCHEDULE_AT(cooldown), C(PLATEAU), 0, "0", 0, 1000000, NONE,
     "number of validations after a change that do not count"},
    {"min_learning_rate", SL_VALUE_FLOAT, SCHEDULE_AT(min_learning_rate), C(PLATEAU) | C(COSINE), 0, "0", 0,
     SL_NO_LIMIT, NONE, "the rate does not fall below this"},
    {"over", SL_VALUE_PERIOD, SCHEDULE_AT(over), C(COSINE) | C(ONE_CYCLE), 0, NULL, 0, 0, NONE,
     "duration of the schedule; default: the whole run"},
    {"max", SL_VALUE_FLOAT, SCHEDULE_AT(max), C(ONE_CYCLE), SL_OPTION_REQUIRED | SL_OPTION_ABOVE, NULL, 0, SL_NO_LIMIT,
     NONE, "the highest rate"},
    {"rise", SL_VALUE_FLOAT, SCHEDULE_AT(rise), C(ONE_CYCLE), SL_OPTION_ABOVE | SL_OPTION_BELOW, "0.3", 0, 1, NONE,
     "fraction of the time during which the rate rises"},
    {"divide_start", SL_VALUE_FLOAT, SCHEDULE_AT(divide_start), C(ONE_CYCLE), 0, "25", 1, SL_NO_LIMIT, NONE,
     "the rate starts at max / divide_start"},
    {"divide_end", SL_VALUE_FLOAT, SCHEDULE_AT(divide_end), C(ONE_CYCLE), 0, "1e4", 1, SL_NO_LIMIT, NONE,
     "the rate ends at max / divide_end"},
    {0}};

const struct sl_section sl_section_schedule = {"train.schedule",
                                               "the schedule",
                                               schedule_words,
                                               offsetof(struct sl_schedule, kind),
                                               NULL,
                                               NULL,
                                               schedule_options,
                                               "how the learning rate changes"};

const char *sl_optimizer_kind_get_name(enum sl_optimizer_kind kind)
{
    return sl_word_get_name(optimizer_words, (int)kind);
}

const char *sl_schedule_kind_get_name(enum sl_schedule_kind kind)
{
    return sl_word_get_name(schedule_words, (int)kind);
}
