/* SPDX-License-Identifier: Apache-2.0 */
/* What a loaded model holds: defaults, resolved options, inheritance between splits, inferred tasks,
 * places. */
#include "oom.h"
#include "model_fixture.h"

#include <stdio.h>

#define HEAD   "seqlstm: 1\n"
#define ADDING "data: {train: {type: generator, name: adding_problem, size: 8, length: 5}}\n"
#define DENSE  "  - {type: dense, units: from_target}\n"
#define TRAIN  "train: {epochs: 1}\n"

static void test_keras_defaults(void **state)
{
    (void)state;
    struct loaded l = load_clean(HEAD ADDING "model:\n  - {type: lstm, units: 7}\n" DENSE TRAIN);
    const struct sl_recurrent *r = &l.model->layers[0].recurrent;
    assert_string_equal(l.model->layers[0].name, "lstm_1");
    assert_string_equal(l.model->name, "m");
    assert_int_equal(r->units, 7);
    assert_int_equal(r->layers, 1);
    assert_int_equal(r->direction, SL_DIRECTION_FORWARD);
    for (int side = 0; side < 2; side++) {
        assert_int_equal(r->activation[side].kind, SL_ACTIVATION_TANH);
        assert_int_equal(r->recurrent_activation[side].kind, SL_ACTIVATION_SIGMOID);
        assert_int_equal(r->output_activation[side].kind, SL_ACTIVATION_TANH);
    }
    assert_true(r->use_bias && r->unit_forget_bias);
    assert_false(r->return_sequences || r->peephole || r->layer_norm || r->coupled_gates);
    assert_int_equal(r->kernel_initializer.kind, SL_INITIALIZER_GLOROT_UNIFORM);
    assert_int_equal(r->recurrent_initializer.kind, SL_INITIALIZER_ORTHOGONAL);
    assert_true(r->recurrent_initializer.gain == 1.0);
    assert_int_equal(r->bias_initializer.kind, SL_INITIALIZER_ZEROS);
    assert_true(r->dropout == 0 && r->recurrent_dropout == 0 && r->cell_clip == 0);
    const struct sl_train_config *t = &l.model->train;
    assert_int_equal(t->task, SL_TASK_REGRESS);
    assert_int_equal(t->loss.kind, SL_LOSS_MSE);
    assert_int_equal(t->loss.reduction, SL_REDUCTION_STEP_MEAN);
    assert_int_equal(t->optimizer.kind, SL_OPTIMIZER_ADAM);
    assert_true(t->optimizer.learning_rate == 1e-3 && t->optimizer.epsilon == 1e-7);
    assert_true(t->optimizer.beta_1 == 0.9 && t->optimizer.beta_2 == 0.999);
    assert_int_equal(t->checkpoint.keep_best, 0);
    assert_false(t->early_stopping.enabled || t->ema.enabled);
    assert_true(l.model->all_backends);
    assert_int_equal(l.model->data.batch_size, 32);
    assert_true(l.model->data.shuffle);
    assert_int_equal(l.model->data.batching.bucketing.kind, SL_BUCKETING_POOLS);
    assert_string_equal(l.model->output.dir, "runs/{name}/{run}");
    unload(&l);
}

/* Of a layer and of the model; what is longer would not fit before the parts of a layer. */
static void test_long_names(void **state)
{
    (void)state;
    for (int bytes = 128; bytes <= 129; bytes++) {
        char name[130] = "", text[600];
        memset(name, 'n', (size_t)bytes);
        snprintf(text, sizeof text,
                 HEAD "name: %s\n" ADDING "model:\n  - {type: lstm, name: l.%.*s, units: 4}\n" DENSE TRAIN,
                 bytes > 128 ? "m" : name, bytes - 2, name);
        if (bytes > 128) {
            assert_refused(text, "error[E0103]: `name` has 129 letters, and a name at most 128");
            continue;
        }
        struct loaded l = load_clean(text);
        assert_string_equal(l.model->name, name);
        assert_int_equal(strlen(l.model->layers[0].name), 128);
        unload(&l);
    }
}

/* Seconds, or whole months, or numbers of the column. */
static void test_steps_of_time(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double step; /* 0: refused */
        enum sl_step_unit unit;
    } cases[] = {{"30s", 30, SL_STEP_SECONDS},
                 {"0.5s", 0.5, SL_STEP_SECONDS},
                 {"10m", 600, SL_STEP_SECONDS},
                 {"1.5m", 90, SL_STEP_SECONDS},
                 {"2h", 7200, SL_STEP_SECONDS},
                 {"1d", 86400, SL_STEP_SECONDS},
                 {"0.25d", 21600, SL_STEP_SECONDS},
                 {"1mo", 1, SL_STEP_MONTHS},
                 {"3mo", 3, SL_STEP_MONTHS},
                 {"1y", 12, SL_STEP_MONTHS},
                 {"0.5y", 6, SL_STEP_MONTHS},
                 {"1.25y", 15, SL_STEP_MONTHS},
                 {"7", 7, SL_STEP_NUMBER},
                 {"0.5", 0.5, SL_STEP_NUMBER},
                 {"0.5mo", 0, 0},
                 {"1.1y", 0, 0},
                 {"0s", 0, 0},
                 {"1w", 0, 0},
                 {"h", 0, 0},
                 {"1 h", 0, 0},
                 {"-1h", 0, 0},
                 {"1hh", 0, 0},
                 {"1.2.3s", 0, 0},
                 {"1M", 0, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[400], message[100];
        snprintf(text, sizeof text,
                 HEAD
                 "data: {train: {type: csv, file: x, inputs: [a], targets: [b], time: {column: t, step: %s}}}\nmodel:\n"
                 "  - {type: dense, units: 4}\n" DENSE TRAIN,
                 cases[k].text);
        snprintf(message, sizeof message, "`step` does not take the period `%s`", cases[k].text);
        if (cases[k].step == 0) {
            assert_refused(text, message);
            continue;
        }
        struct loaded l = load_clean(text);
        const struct sl_time *time = &l.model->data.splits[SL_SPLIT_TRAIN].time;
        if (time->step != cases[k].step || time->step_unit != cases[k].unit)
            fail_msg("%s: %g of unit %d", cases[k].text, time->step, (int)time->step_unit);
        unload(&l);
    }
}

static void test_init_sets(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "init: %s\ndata: {train: {type: text, file: x}}\nmodel:\n"
             "  - {type: embedding, dim: 4}\n  - {type: lstm, units: 4, return_sequences: true}\n"
             "  - {type: lstm, units: 4, return_sequences: true, bias_initializer: ones,"
             " unit_forget_bias: true}\n  - {type: output, activation: softmax}\n" TRAIN;
    char filled[1024];
    snprintf(filled, sizeof filled, text, "pytorch");
    struct loaded l = load_clean(filled);
    assert_int_equal(l.model->layers[0].embedding.initializer.kind, SL_INITIALIZER_NORMAL);
    assert_true(l.model->layers[0].embedding.initializer.stddev == 1.0);
    assert_int_equal(l.model->layers[1].recurrent.bias_initializer.kind, SL_INITIALIZER_FAN_UNIFORM);
    assert_false(l.model->layers[1].recurrent.unit_forget_bias);
    assert_int_equal(l.model->layers[2].recurrent.bias_initializer.kind, SL_INITIALIZER_ONES);
    assert_true(l.model->layers[2].recurrent.unit_forget_bias);
    assert_int_equal(l.model->layers[3].dense.kernel_initializer.kind, SL_INITIALIZER_FAN_UNIFORM);
    unload(&l);

    snprintf(filled, sizeof filled, text, "{type: uniform, range: 0.1}");
    l = load_clean(filled);
    const struct sl_initializer *w = &l.model->layers[1].recurrent.recurrent_initializer;
    assert_int_equal(w->kind, SL_INITIALIZER_UNIFORM);
    assert_true(w->min == -0.1 && w->max == 0.1);
    assert_int_equal(l.model->layers[0].embedding.initializer.kind, SL_INITIALIZER_UNIFORM);
    assert_true(l.model->layers[0].embedding.initializer.max == 0.1);
    assert_false(l.model->layers[1].recurrent.unit_forget_bias);
    unload(&l);
}

static void test_activations_by_direction(void **state)
{
    (void)state;
    struct loaded l =
        load_clean(HEAD ADDING "model:\n  - {type: lstm, units: 2, direction: bidirectional, cell_clip: 1,\n"
                               "     activation: {forward: relu, backward: {type: leaky_relu}},\n"
                               "     recurrent_activation: {type: hard_sigmoid, beta: 0.4}}\n" DENSE TRAIN);
    const struct sl_recurrent *r = &l.model->layers[0].recurrent;
    assert_int_equal(r->activation[SL_FORWARD].kind, SL_ACTIVATION_RELU);
    assert_int_equal(r->activation[SL_BACKWARD].kind, SL_ACTIVATION_LEAKY_RELU);
    assert_true(r->activation[SL_BACKWARD].alpha == 0.01);
    /* output_activation follows activation, direction by direction. */
    assert_int_equal(r->output_activation[SL_FORWARD].kind, SL_ACTIVATION_RELU);
    assert_int_equal(r->output_activation[SL_BACKWARD].kind, SL_ACTIVATION_LEAKY_RELU);
    assert_int_equal(r->recurrent_activation[SL_BACKWARD].kind, SL_ACTIVATION_HARD_SIGMOID);
    assert_true(r->recurrent_activation[0].alpha == 0.2 && r->recurrent_activation[0].beta == 0.4);
    unload(&l);
}

static void test_splits_inherit(void **state)
{
    (void)state;
    struct loaded l = load_clean(HEAD "data:\n  type: csv\n  inputs: [a]\n  label: {column: k}\n  group: g\n"
                                      "  train: {file: x.csv, rows: [1, 5], delimiter: \";\"}\n"
                                      "  valid: {file: y.csv, delimiter: \"|\"}\n  test: {split: 0.25}\n"
                                      "model:\n  - {type: gru, units: 2}\n"
                                      "  - {type: dense, units: from_target, activation: softmax}\n" TRAIN);
    const struct sl_source *train = &l.model->data.splits[SL_SPLIT_TRAIN];
    const struct sl_source *valid = &l.model->data.splits[SL_SPLIT_VALID];
    const struct sl_source *test = &l.model->data.splits[SL_SPLIT_TEST];
    assert_int_equal(valid->type, SL_SOURCE_CSV);
    assert_string_equal(train->delimiter, ";");
    assert_string_equal(valid->delimiter, "|");
    assert_string_equal(valid->group, "g");
    assert_string_equal(valid->inputs.items[0], "a");
    assert_string_equal(valid->label.column, "k");
    assert_int_equal(valid->label.type, SL_LABEL_CLASS);
    assert_string_equal(train->rows.last, "5");
    assert_null(valid->rows.last); /* rows belong to one split */
    assert_true(train->file[0] == '/' && strcmp(strrchr(train->file, '/'), "/x.csv") == 0);
    assert_int_equal(test->origin, SL_SOURCE_FROM_TRAIN);
    assert_true(test->split == 0.25);
    assert_int_equal(l.model->train.task, SL_TASK_CLASSIFY);
    assert_int_equal(l.model->train.loss.kind, SL_LOSS_CROSS_ENTROPY);
    assert_int_equal(l.model->data.tokenizer.type, SL_TOKENIZER_NONE);
    unload(&l);
}

static void test_tokenizer_defaults(void **state)
{
    (void)state;
    static const char lm[] =
        HEAD "data: {train: {type: text, file: x}%s}\nmodel: [{type: embedding, dim: 2}, {type: rnn, "
             "units: 2, return_sequences: true}, {type: output, activation: softmax}]\n" TRAIN;
    char text[512];
    snprintf(text, sizeof text, lm, "");
    struct loaded l = load_clean(text);
    assert_int_equal(l.model->train.task, SL_TASK_LANGUAGE_MODEL);
    assert_int_equal(l.model->data.tokenizer.type, SL_TOKENIZER_WHITESPACE);
    assert_int_equal(l.model->data.tokenizer.specials.count, 2);
    assert_string_equal(l.model->data.tokenizer.specials.items[1], "eos");
    assert_null(l.model->data.tokenizer.vocab);
    unload(&l);
    snprintf(text, sizeof text, lm, ", tokenizer: char, batching: {unit: stream}, batch_size: 3");
    l = load_clean(text);
    assert_int_equal(l.model->data.tokenizer.type, SL_TOKENIZER_CHAR);
    assert_int_equal(l.model->data.tokenizer.specials.count, 1);
    assert_int_equal(l.model->data.batching.bptt, 35);
    assert_int_equal(l.model->data.batching.bucketing.kind, SL_BUCKETING_OFF);
    assert_false(l.model->data.shuffle);
    unload(&l);
    snprintf(text, sizeof text, lm, ", tokenizer: {type: word, specials: []}");
    l = load_clean(text);
    assert_int_equal(l.model->data.tokenizer.specials.count, 0);
    unload(&l);
}

static void test_schedule_and_periods(void **state)
{
    (void)state;
    struct loaded l = load_clean(HEAD ADDING "model:\n  - {type: lstm, units: 7}\n" DENSE
                                             "train: {updates: 10, max_time: 1.5h, optimizer: adamw,\n"
                                             "  schedule: {type: step, every: 2e, divide_by: 4, warmup: 10Mt}}\n");
    const struct sl_schedule *s = &l.model->train.schedule;
    assert_int_equal(s->kind, SL_SCHEDULE_STEP);
    assert_true(s->factor == 0.25);
    assert_int_equal(s->start.unit, SL_PERIOD_EPOCHS);
    assert_true(s->start.count == 2 && s->every.count == 2);
    assert_int_equal(s->warmup.unit, SL_PERIOD_TOKENS);
    assert_true(s->warmup.count == 10e6);
    assert_int_equal(l.model->train.max_time.unit, SL_PERIOD_SECONDS);
    assert_true(l.model->train.max_time.count == 5400);
    assert_true(l.model->train.optimizer.weight_decay == 4e-3);
    assert_int_equal(l.model->train.epochs, 0);
    unload(&l);
}

static void test_graph_of_layers(void **state)
{
    (void)state;
    struct loaded l = load_clean(HEAD ADDING "model:\n  - {type: lstm, name: a, units: 4, return_sequences: true}\n"
                                             "  - {type: gru, units: 4, return_sequences: true, from: input}\n"
                                             "  - {type: concat, name: both, from: [a, gru_1]}\n"
                                             "  - {type: pool, mode: max}\n"
                                             "  - {type: lstm, name: lstm_2, units: 3, from: both}\n"
                                             "  - {type: concat, from: [pool_1, lstm_2]}\n" DENSE TRAIN);
    const struct sl_layer *layers = l.model->layers;
    assert_int_equal(l.model->layer_count, 7);
    assert_int_equal(layers[0].from[0], SL_LAYER_MODEL_INPUT);
    assert_int_equal(layers[1].from[0], SL_LAYER_MODEL_INPUT);
    assert_int_equal(layers[2].from_count, 2);
    assert_int_equal(layers[2].from[1], 1);
    assert_int_equal(layers[3].from[0], 2);
    assert_int_equal(layers[2].output_shape, SL_SHAPE_SEQUENCE);
    assert_int_equal(layers[3].output_shape, SL_SHAPE_VECTOR);
    assert_int_equal(layers[6].output_shape, SL_SHAPE_VECTOR);
    assert_string_equal(layers[5].name, "concat_2"); /* the second of its kind */
    assert_int_equal(layers[6].dense.units, SL_UNITS_FROM_TARGET);
    assert_int_equal(layers[6].dense.tie_layer, -1);
    assert_ptr_equal(sl_model_find_layer(l.model, "both"), &layers[2]);
    assert_null(sl_model_find_layer(l.model, "neither"));
    unload(&l);
}

/* A made name is none that a layer has, whether it stands before or after. */
static void test_made_names(void **state)
{
    (void)state;
    struct loaded l = load_clean(HEAD ADDING "model:\n  - {type: lstm, units: 4, return_sequences: true}\n"
                                             "  - {type: lstm, name: lstm_1, units: 4, return_sequences: true}\n"
                                             "  - {type: gru, name: gru_2, units: 4, return_sequences: true}\n"
                                             "  - {type: gru, units: 4, return_sequences: true}\n"
                                             "  - {type: lstm, units: 4, return_sequences: true}\n"
                                             "  - {type: gru, units: 4, return_sequences: true}\n"
                                             "  - {type: rnn, name: lstm_4, units: 4}\n" DENSE TRAIN);
    static const char *const names[] = {"lstm_2", "lstm_1", "gru_2", "gru_3", "lstm_3", "gru_4", "lstm_4", "dense_1"};
    assert_int_equal(l.model->layer_count, sizeof names / sizeof *names);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_string_equal(l.model->layers[i].name, names[i]);
        assert_int_equal(l.model->layers[i].index, i);
        assert_ptr_equal(sl_model_find_layer(l.model, names[i]), &l.model->layers[i]);
    }
    unload(&l);
}

static void test_places(void **state)
{
    (void)state;
    struct loaded l = load_clean(HEAD ADDING "model:\n  - {type: lstm, units: 7, zoneout: {cell: 0.1},\n"
                                             "     recurrent_dropout: 0.2}\n" DENSE TRAIN);
    const struct sl_layer *layer = &l.model->layers[0];
    struct sl_place place = sl_layer_find_option_place(layer, "recurrent_dropout");
    assert_string_equal(place.file, "m.yaml");
    assert_int_equal(place.line, 5);
    assert_int_equal(place.column, 6);
    assert_int_equal(place.length, 17);
    place = sl_layer_find_option_place(layer, "zoneout.cell");
    assert_int_equal(place.line, 4);
    assert_int_equal(place.column, 38);
    place = sl_layer_find_option_place(layer, "zoneout.hidden"); /* a default: its map */
    assert_int_equal(place.column, 28);
    place = sl_layer_find_option_place(layer, "use_bias"); /* a default: the layer */
    assert_int_equal(place.line, 4);
    assert_int_equal(place.column, 5);
    assert_true(sl_layer_has_option(layer, "zoneout"));
    assert_false(sl_layer_has_option(layer, "use_bias"));
    place = sl_model_find_place(l.model, "model[0].units");
    assert_int_equal(place.line, 4);
    assert_int_equal(place.column, 18);
    assert_int_equal(sl_model_find_place(l.model, "train.optimizer.learning_rate").line, 6 + 1);
    assert_int_equal(sl_model_find_place(l.model, "log.every").line, 0);
    unload(&l);
}

static void test_backends(void **state)
{
    (void)state;
    struct loaded l =
        load_clean(HEAD ADDING "model:\n  - {type: lstm, units: 7}\n" DENSE TRAIN
                               "backends: [cuda-cudnn, {plugin: ./a/b.so, require: true, options: {tile: 64, "
                               "s: \"x y\"}}]\ndispatch: {pin: {lstm_1: cuda-cudnn}, fallback: error}\n");
    assert_false(l.model->all_backends);
    assert_int_equal(l.model->backend_count, 2);
    assert_string_equal(l.model->backends[0].id, "cuda-cudnn");
    assert_null(l.model->backends[0].file);
    assert_false(l.model->backends[0].require);
    assert_null(l.model->backends[1].id);
    assert_true(l.model->backends[1].file[0] == '/' && strstr(l.model->backends[1].file, "/a/b.so") != NULL);
    assert_true(l.model->backends[1].require);
    assert_int_equal(l.model->backends[1].option_count, 2);
    assert_string_equal(l.model->backends[1].options[0].key, "tile");
    assert_string_equal(l.model->backends[1].options[0].value, "64");
    assert_string_equal(l.model->backends[1].options[1].value, "x y");
    assert_string_equal(l.model->dispatch.pins[0].layer, "lstm_1");
    assert_int_equal(l.model->dispatch.fallback, SL_FALLBACK_ERROR);
    unload(&l);
}

/* YAML 1.2: the words and numbers of 1.1 are texts. */
static void test_yaml_1_2_typing(void **state)
{
    (void)state;
    static const char *const not_bools[] = {"yes", "no", "on", "off", "y", "1", "\"true\""};
    char text[512];
    for (size_t i = 0; i < sizeof not_bools / sizeof *not_bools; i++) {
        snprintf(text, sizeof text, HEAD ADDING "model:\n  - {type: lstm, units: 7, use_bias: %s}\n" DENSE TRAIN,
                 not_bools[i]);
        assert_refused(text, "E0101");
    }
    static const char *const not_ints[] = {"010_0", "1_000", "1:30", "0b1", "1.0", "", "0x"};
    for (size_t i = 0; i < sizeof not_ints / sizeof *not_ints; i++) {
        snprintf(text, sizeof text, HEAD ADDING "model:\n  - {type: lstm, units: %s}\n" DENSE TRAIN, not_ints[i]);
        assert_refused(text, "error[E01");
    }
    struct loaded l = load_clean(HEAD ADDING "model:\n  - {type: lstm, units: 0o10, dropout: 1e-3}\n" DENSE
                                             "train: {epochs: 010, optimizer: {type: sgd, learning_rate: 1}}\n");
    assert_int_equal(l.model->layers[0].recurrent.units, 8);
    assert_true(l.model->layers[0].recurrent.dropout == 1e-3);
    assert_int_equal(l.model->train.epochs, 10); /* no octal in 1.2 */
    unload(&l);
}

/* Input feeding goes from the attention layer, or the last layer without recurrence behind it, to the first recurrent
 * layer that its query comes through. */
static void test_feeding(void **state)
{
    (void)state;
    static const struct {
        const char *layers, *reader, *giver;
    } cases[] = {
        {"{type: lstm, name: r, units: 4, return_sequences: true}, {type: attention, name: g, input_feeding: true}",
         "r", "g"},
        {"{type: lstm, name: aside, units: 4, return_sequences: true},"
         " {type: lstm, name: r, from: w, units: 4, return_sequences: true},"
         " {type: lstm, name: s, units: 4, return_sequences: true}, {type: attention, name: a, input_feeding: true},"
         " {type: concat, from: [a, aside]}",
         "r", "a"},
        {"{type: lstm, name: r, units: 4, return_sequences: true}, {type: attention, name: a, input_feeding: true},"
         " {type: dense, units: 5}, {type: dropout, name: g, rate: 0.1}",
         "r", "g"},
        {"{type: lstm, name: r, units: 4, return_sequences: true}, {type: attention, name: a, input_feeding: true},"
         " {type: dense, name: g, units: 4}, {type: gru, name: late, units: 4, return_sequences: true},"
         " {type: dense, units: 4}",
         "r", "g"},
        {"{type: lstm, name: r, units: 4, return_sequences: true}, {type: attention, name: a, input_feeding: true},"
         " {type: layer_norm}, {type: activation, name: g, activation: tanh}",
         "r", "g"},
        {"{type: lstm, name: r, units: 4, return_sequences: true}, {type: attention, name: a, input_feeding: true},"
         " {type: activation, activation: tanh}, {type: layer_norm, name: g}",
         "r", "g"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        snprintf(text, sizeof text,
                 HEAD
                 "data: {train: {type: generator, name: reverse, size: 8, length: 5}}\nmodel:\n"
                 "  encoder: [{type: embedding, dim: 4}, {type: lstm, units: 4, return_sequences: true}]\n"
                 "  decoder: [{type: embedding, name: w, dim: 4}, %s, {type: output, activation: softmax}]\n" TRAIN,
                 cases[i].layers);
        struct loaded l = load(text);
        if (l.model == NULL)
            fail_msg("%s", sl_buf_text(&l.text));
        assert_true(l.model->feeding.present);
        assert_string_equal(l.model->layers[l.model->feeding.reader].name, cases[i].reader);
        assert_string_equal(l.model->layers[l.model->feeding.giver].name, cases[i].giver);
        unload(&l);
    }
}

/* The place of what was not given is that of the map or list in which it would stand. */
static void test_places_of_parts(void **state)
{
    (void)state;
    struct loaded l = load_clean(HEAD ADDING "model:\n  - {type: lstm, units: 7}\n" DENSE /* 5 */
                                             "train:\n"                                   /* 6 */
                                             "  epochs: 1\n"                              /* 7 */
                                             "  metrics: [mse, mae]\n"                    /* 8 */
                                             "  optimizer:\n"                             /* 9 */
                                             "    type: adam\n");                         /* 10 */
    static const struct {
        const char *path;
        int line;
    } cases[] = {
        {"train", 6},
        {"train.epochs", 7},
        {"train.updates", 6},
        {"train.metrics", 8},
        {"train.metrics[1]", 8},
        {"train.metrics[7]", 8},
        {"train.metrics[7].name", 8},
        {"train.optimizer.type", 10},
        {"train.optimizer.momentum", 9},
        {"decode.beam", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (sl_model_find_place(l.model, cases[i].path).line != cases[i].line)
            fail_msg("%s is in line %d, expected %d", cases[i].path, sl_model_find_place(l.model, cases[i].path).line,
                     cases[i].line);
    unload(&l);
}

/* A byte order mark is no part of the text, and does not move its places. */
static void test_byte_order_mark(void **state)
{
    (void)state;
    struct loaded l = load_clean("\xEF\xBB\xBF" HEAD ADDING "model:\n  - {type: lstm, units: 7}\n" DENSE TRAIN);
    const struct sl_place place = sl_model_find_place(l.model, "seqlstm");
    assert_int_equal(l.model->layers[0].recurrent.units, 7);
    assert_int_equal(place.line, 1);
    assert_int_equal(place.column, 1);
    unload(&l);
    assert_refused("\xEF\xBB\xBF" HEAD "x: 1", "unknown key `x`");
    assert_refused("\xEF\xBB\xBF", "E00");
    assert_refused("\xEF\xBB", "E00");
}

/* Without `name`, the file's name without its end, in the characters that a name may have. */
static void test_names_of_files(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"m.yaml", "m"},          {"a/b/weather.yml", "weather"}, {"v1.2.yaml", "v1.2"},    {"9lives.yaml", "_9lives"},
        {"a b  c.yaml", "a_b_c"}, {"a_ b.yaml", "a_b"},           {"\xc3\xa4x.yaml", "_x"}, {"x\xc3\xa4.yaml", "x_"},
        {"-a.yaml", "_-a"},       {"A-Z_0.yaml", "A-Z_0"},        {"plain", "plain"},       {"null.yaml", "null"},
        {"a.yaml/b", "b"},        {"a/.model", "_.model"},
    };
    static const char text[] = HEAD ADDING "model:\n  - {type: lstm, units: 7}\n" DENSE TRAIN;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct loaded l = load_text(cases[i][0], text, strlen(text), NULL);
        if (l.model == NULL || strcmp(l.model->name, cases[i][1]) != 0)
            fail_msg("%s: %s", cases[i][0], l.model ? l.model->name : sl_buf_text(&l.text));
        unload(&l);
    }
}

/* The word that stands at a path: of a map its type, of nothing and of lists none. */
static void test_words_at_paths(void **state)
{
    (void)state;
    struct loaded l = load_clean(
        HEAD
        "data: {train: {type: generator, name: reverse, size: 8, length: 5}}\nmodel:\n"
        "  encoder: [{type: embedding, dim: 3}, {type: gru, units: 5, activation: {forward: relu, backward: elu}}]\n"
        "  decoder: [{type: embedding, dim: 4}, {type: gru, units: 5, return_sequences: true, "
        "recurrent_activation: {type: elu, alpha: 2}}, {type: output, activation: softmax}]\n"
        "train: {epochs: 1, optimizer: sgd, metrics: [accuracy]}\n");
    static const struct {
        int layer; /* -1: of the model */
        const char *path, *word;
    } cases[] = {
        {0, "dim", "3"},
        {1, "units", "5"},
        {1, "activation.forward", "relu"},
        {1, "dim", NULL},
        {2, "dim", "4"},
        {3, "return_sequences", "true"},
        {3, "recurrent_activation", "elu"},
        {3, "recurrent_activation.alpha", "2"},
        {3, "recurrent_activation.alpha.beta", NULL},
        {4, "activation", "softmax"},
        {4, "", "output"},
        {-1, "train.optimizer", "sgd"},
        {-1, "train.epochs", "1"},
        {-1, "train.metrics", NULL},
        {-1, "train", NULL},
        {-1, "nothing.at.all", NULL},
        {-1, "a_word_longer_than_any_key_of_a_model_file_could_ever_be_in_its_life", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sl_layer *layer = cases[i].layer < 0 ? NULL : &l.model->layers[cases[i].layer];
        const char *found = sl_model_find_word(l.model, layer, cases[i].path);
        if ((found == NULL) != (cases[i].word == NULL) || (found && strcmp(found, cases[i].word) != 0))
            fail_msg("%d %s: %s", cases[i].layer, cases[i].path, found ? found : "none");
    }
    unload(&l);
}

/* What must come before a layer is not the layer itself. */
static void test_layers_do_not_name_themselves(void **state)
{
    (void)state;
    static const char *const layers[] = {
        "encoder: [{type: embedding, name: x, share: x, dim: 4}, {type: lstm, units: 4}], decoder: [{type: embedding, "
        "dim: 4}, {type: lstm, units: 4, return_sequences: true}, {type: output, activation: softmax}]",
        "encoder: [{type: embedding, dim: 4}, {type: lstm, name: x, from: x, units: 4}], decoder: [{type: embedding, "
        "dim: 4}, {type: lstm, units: 4, return_sequences: true}, {type: output, activation: softmax}]",
        "encoder: [{type: embedding, dim: 4}, {type: lstm, name: x, initial_state: x, units: 4}], decoder: [{type: "
        "embedding, dim: 4}, {type: lstm, units: 4, return_sequences: true}, {type: output, activation: softmax}]",
        "encoder: [{type: embedding, dim: 4}, {type: lstm, units: 4}], decoder: [{type: embedding, dim: 4}, {type: "
        "lstm, units: 4, return_sequences: true}, {type: output, name: x, tie: x, activation: softmax}]",
        "encoder: [{type: embedding, dim: 4}, {type: lstm, units: 4}], decoder: [{type: embedding, dim: 4}, {type: "
        "lstm, units: 4, return_sequences: true}, {type: add, name: x, from: [lstm_2, x]}, {type: output, activation: "
        "softmax}]",
    };
    static const char *const messages[] = {"`x` does not come before this layer", "error[E03", "error[E03",
                                           "error[E0305]", "error[E03"};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 HEAD "data: {train: {type: generator, name: reverse, size: 8, length: 5}}\nmodel: {%s}\n" TRAIN,
                 layers[i]);
        assert_refused(text, messages[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_feeding),
        cmocka_unit_test(test_places_of_parts),
        cmocka_unit_test(test_layers_do_not_name_themselves),
        cmocka_unit_test(test_words_at_paths),
        cmocka_unit_test(test_names_of_files),
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_keras_defaults),
        cmocka_unit_test(test_init_sets),
        cmocka_unit_test(test_steps_of_time),
        cmocka_unit_test(test_activations_by_direction),
        cmocka_unit_test(test_splits_inherit),
        cmocka_unit_test(test_tokenizer_defaults),
        cmocka_unit_test(test_schedule_and_periods),
        cmocka_unit_test(test_graph_of_layers),
        cmocka_unit_test(test_made_names),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_backends),
        cmocka_unit_test(test_yaml_1_2_typing),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
