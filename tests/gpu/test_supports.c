/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA backends answer to every option, without a device, compared with the table of docs/cuda.md.
 *
 *   test_supports CUDNN.so CUDNN-WITHOUT-KERNELS.so [GENERIC.so]
 *
 * The lattice: each option alone and each pair of options, in both modes, for each cell, with and without equal
 * lengths. A combination must be accepted exactly if each of its options is. A refusal must name one of the refused
 * options, with a reason. Then the names of device classes. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <seqlstm/any_desc.h>
#include <seqlstm/backend.h>
#include <seqlstm/desc_check.h>

/* PLAIN: cuda-cudnn built without nvcc. */
enum { CUDNN = 1, PLAIN = 2, GENERIC = 4, BOTH = CUDNN | PLAIN | GENERIC, KERNELS = CUDNN | GENERIC };
enum { LSTM = 1 << SEQLSTM_CELL_LSTM, GRU = 1 << SEQLSTM_CELL_GRU, RNN = 1 << SEQLSTM_CELL_RNN };
enum { ANY = LSTM | GRU | RNN };

static void add_options(struct seqlstm_recurrent_desc *d, int bit)
{
    d->options |= (uint32_t)bit;
}

static void set_activation(struct seqlstm_recurrent_desc *d, int packed)
{
    const int place = packed / 256, kind = packed % 256;
    d->activations[place][0] = d->activations[place][1] = (struct seqlstm_activation){(uint32_t)kind, 0.3f, 0.2f, 0};
}

/* Of the second of two directions alone. */
static void set_second(struct seqlstm_recurrent_desc *d, int packed)
{
    const int place = packed / 256, kind = packed % 256;
    d->direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
    d->activations[place][1] = (struct seqlstm_activation){(uint32_t)kind, 0.3f, 0.2f, 0};
}

static void set_hidden(struct seqlstm_recurrent_desc *d, int hidden)
{
    d->hidden = hidden;
}

static void set_direction(struct seqlstm_recurrent_desc *d, int packed)
{
    d->direction = (uint32_t)packed / 256;
    d->merge = (uint32_t)packed % 256;
}

static void set_sizes(struct seqlstm_recurrent_desc *d, int packed)
{
    d->layers = packed / 256;
    d->projection = packed % 256;
}

static void set_rate(struct seqlstm_recurrent_desc *d, int which)
{
    float *const rates[] = {&d->dropout,     &d->recurrent_dropout, &d->zoneout_cell, &d->zoneout_hidden,
                            &d->weight_drop, &d->cell_clip,         &d->gate_clip};
    static const float values[] = {0.25f, 0.125f, 0.5f, 0.375f, 0.625f, 0.25f, 0.75f};
    *rates[which] = values[which];
}

static void set_compute(struct seqlstm_recurrent_desc *d, int dtype)
{
    d->head.dtype_compute = (uint32_t)dtype;
}

static void set_head(struct seqlstm_recurrent_desc *d, int flag)
{
    d->head.flags |= (uint32_t)flag;
}

/* One option: which backends accept it in training and in inference, for which cells it exists, under which id and with
 * which value it is refused. */
static const struct line {
    const char *name;
    void (*set)(struct seqlstm_recurrent_desc *d, int value);
    int value;
    int cells, training, inference;
    uint32_t option;
    const char *refused; /* its value; NULL: it is not refused */
} lines[] = {
    {"plain", add_options, 0, ANY, BOTH, BOTH, 0, NULL},
    {"no final state", add_options, SEQLSTM_BIT_RECURRENT_OUTPUT, ANY, BOTH, BOTH, 0, NULL},
    {"initial state", add_options, SEQLSTM_BIT_RECURRENT_INITIAL_STATE, ANY, BOTH, BOTH, 0, NULL},
    {"use_bias", add_options, SEQLSTM_BIT_RECURRENT_USE_BIAS, ANY, BOTH, BOTH, 0, NULL},
    {"peephole", add_options, SEQLSTM_BIT_RECURRENT_PEEPHOLE, LSTM, GENERIC, GENERIC, SEQLSTM_OPTION_PEEPHOLE, ""},
    {"coupled_gates", add_options, SEQLSTM_BIT_RECURRENT_COUPLED_GATES, LSTM, GENERIC, GENERIC,
     SEQLSTM_OPTION_COUPLED_GATES, ""},
    {"layer_norm", add_options, SEQLSTM_BIT_RECURRENT_LAYER_NORM, ANY, GENERIC, GENERIC, SEQLSTM_OPTION_LAYER_NORM, ""},
    {"two layers", set_sizes, 2 * 256, ANY, BOTH, BOTH, 0, NULL},
    {"128 units", set_hidden, 128, ANY, BOTH, BOTH, 0, NULL},
    {"129 units", set_hidden, 129, ANY, BOTH, BOTH, 0, NULL},
    {"192 units", set_hidden, 192, ANY, BOTH, BOTH, 0, NULL},
    {"193 units", set_hidden, 193, ANY, BOTH, BOTH, 0, NULL},
    {"256 units", set_hidden, 256, ANY, BOTH, BOTH, 0, NULL},
    {"257 units", set_hidden, 257, ANY, BOTH, BOTH, 0, NULL},
    {"385 units", set_hidden, 385, ANY, BOTH, BOTH, 0, NULL},
    {"projection", set_sizes, 256 + 3, LSTM, BOTH, BOTH, 0, NULL},
    {"projection as wide", set_sizes, 256 + 5, LSTM, GENERIC, GENERIC, SEQLSTM_OPTION_PROJECTION, "5"},
    {"backward", set_direction, SEQLSTM_DIRECTION_BACKWARD * 256, ANY, GENERIC, GENERIC, SEQLSTM_OPTION_DIRECTION,
     "backward"},
    {"bidirectional", set_direction, SEQLSTM_DIRECTION_BIDIRECTIONAL * 256, ANY, BOTH, BOTH, 0, NULL},
    {"merge: sum", set_direction, SEQLSTM_DIRECTION_BIDIRECTIONAL * 256 + SEQLSTM_KIND_MERGE_SUM, ANY, GENERIC, GENERIC,
     SEQLSTM_OPTION_MERGE, "sum"},
    {"merge: mul", set_direction, SEQLSTM_DIRECTION_BIDIRECTIONAL * 256 + SEQLSTM_KIND_MERGE_MUL, ANY, GENERIC, GENERIC,
     SEQLSTM_OPTION_MERGE, "mul"},
    {"merge: ave", set_direction, SEQLSTM_DIRECTION_BIDIRECTIONAL * 256 + SEQLSTM_KIND_MERGE_AVE, ANY, GENERIC, GENERIC,
     SEQLSTM_OPTION_MERGE, "ave"},
    {"dropout", set_rate, 0, ANY, GENERIC, BOTH, SEQLSTM_OPTION_DROPOUT, "0.2500"},
    {"recurrent_dropout", set_rate, 1, ANY, GENERIC, BOTH, SEQLSTM_OPTION_RECURRENT_DROPOUT, "0.1250"},
    {"zoneout of the cell", set_rate, 2, LSTM, GENERIC, GENERIC, SEQLSTM_OPTION_ZONEOUT, "0.5000"},
    {"zoneout of the output", set_rate, 3, ANY, GENERIC, GENERIC, SEQLSTM_OPTION_ZONEOUT, "0.3750"},
    {"weight_drop", set_rate, 4, ANY, GENERIC, BOTH, SEQLSTM_OPTION_WEIGHT_DROP, "0.6250"},
    {"cell_clip", set_rate, 5, LSTM, BOTH, BOTH, 0, NULL},
    {"gate_clip", set_rate, 6, ANY, GENERIC, GENERIC, SEQLSTM_OPTION_GATE_CLIP, "0.7500"},
    {"activation: relu", set_activation, 256 + SEQLSTM_ACT_RELU, RNN, BOTH, BOTH, 0, NULL},
    {"activation: relu", set_activation, 256 + SEQLSTM_ACT_RELU, LSTM | GRU, GENERIC, GENERIC,
     SEQLSTM_OPTION_ACTIVATION, "relu"},
    {"activation: leaky_relu", set_activation, 256 + SEQLSTM_ACT_LEAKY_RELU, ANY, GENERIC, GENERIC,
     SEQLSTM_OPTION_ACTIVATION, "leaky_relu"},
    {"activation: softsign", set_activation, 256 + SEQLSTM_ACT_SOFTSIGN, ANY, GENERIC, GENERIC,
     SEQLSTM_OPTION_ACTIVATION, "softsign"},
    {"recurrent_activation", set_activation, SEQLSTM_ACT_HARD_SIGMOID, LSTM | GRU, GENERIC, GENERIC,
     SEQLSTM_OPTION_RECURRENT_ACTIVATION, "hard_sigmoid"},
    {"output_activation", set_activation, 2 * 256 + SEQLSTM_ACT_RELU, LSTM, GENERIC, GENERIC,
     SEQLSTM_OPTION_OUTPUT_ACTIVATION, "relu"},
    {"second activation", set_second, 256 + SEQLSTM_ACT_RELU, ANY, GENERIC, GENERIC, SEQLSTM_OPTION_ACTIVATION, "relu"},
    {"second recurrent_activation", set_second, SEQLSTM_ACT_ELU, LSTM | GRU, GENERIC, GENERIC,
     SEQLSTM_OPTION_RECURRENT_ACTIVATION, "elu"},
    {"second output_activation", set_second, 2 * 256 + SEQLSTM_ACT_SOFTSIGN, LSTM, GENERIC, GENERIC,
     SEQLSTM_OPTION_OUTPUT_ACTIVATION, "softsign"},
    {"deterministic", set_head, SEQLSTM_BIT_DESC_DETERMINISTIC, ANY, GENERIC, GENERIC, SEQLSTM_OPTION_DETERMINISM,
     "true"},
    {"precision: tf32", set_compute, SEQLSTM_DTYPE_TF32, ANY, BOTH, BOTH, 0, NULL},
    {"precision: bfloat16", set_compute, SEQLSTM_DTYPE_BFLOAT16, ANY, KERNELS, KERNELS, SEQLSTM_OPTION_DTYPE,
     "bfloat16"},
    {"precision: float16", set_compute, SEQLSTM_DTYPE_FLOAT16, ANY, KERNELS, KERNELS, SEQLSTM_OPTION_DTYPE, "float16"},
    {"precision: float64", set_compute, SEQLSTM_DTYPE_FLOAT64, ANY, 0, 0, SEQLSTM_OPTION_DTYPE, "float64"},
};
enum { LINES = sizeof lines / sizeof *lines };

static struct seqlstm_recurrent_desc make(uint32_t cell, bool training, bool uniform)
{
    struct seqlstm_recurrent_desc d;
    memset(&d, 0, sizeof d);
    d.head = (struct seqlstm_desc){
        .struct_size = sizeof d, .op = SEQLSTM_OP_RECURRENT, .max_rows = 12, .max_sequences = 3, .max_steps = 4};
    d.head.mode = training ? SEQLSTM_MODE_TRAINING : SEQLSTM_MODE_INFERENCE;
    d.head.flags = uniform ? SEQLSTM_BIT_DESC_UNIFORM : 0;
    d.cell = cell;
    d.options = SEQLSTM_BIT_RECURRENT_FINAL_STATE | (cell == SEQLSTM_CELL_GRU ? SEQLSTM_BIT_RECURRENT_RESET_AFTER : 0);
    d.layers = 1;
    d.input = 4;
    d.hidden = 5;
    d.layer_norm_epsilon = 1e-3f;
    set_activation(&d, SEQLSTM_ACT_SIGMOID);
    set_activation(&d, 256 + SEQLSTM_ACT_TANH);
    set_activation(&d, 2 * 256 + SEQLSTM_ACT_TANH);
    return d;
}

/* The variants of cuda-cudnn: always `standard`; for equal lengths without projection also the persistent ones and, in
 * training, each of them with `standard` backward; `small_h` up to the sizes for which it has kernels; with two or more
 * layers, all of them with `_layers` too. */
static const char *check_variants(const struct seqlstm_recurrent_desc *d, const struct seqlstm_answer *answer)
{
    static const char *const names[] = {"standard",        "persist_static",          "persist_dynamic",
                                        "small_h",         "persist_static+standard", "persist_dynamic+standard",
                                        "small_h+standard"};
    const bool training = d->head.mode == SEQLSTM_MODE_TRAINING;
    const bool persist = (d->head.flags & SEQLSTM_BIT_DESC_UNIFORM) && d->projection == 0;
    const int64_t wide = d->cell == SEQLSTM_CELL_RNN ? 2 : 1;
    uint32_t found = 0;
    for (int cut = 0; cut < (d->layers > 1 ? 2 : 1); cut++)
        for (int k = 0; k < 7; k++) {
            const bool small = k == 3 || k == 6;
            char name[SEQLSTM_MAX_VARIANT_BYTES];
            if ((k > 0 && !persist) || (k > 3 && !training) ||
                (small && d->hidden > wide * (k == 3 && training ? 128 : 192)))
                continue;
            snprintf(name, sizeof name, "%s%s", names[k], cut ? "_layers" : "");
            if (found == answer->variant_count || strcmp(answer->variants[found++], name) != 0)
                return "other variants";
        }
    return found == answer->variant_count ? NULL : "more variants";
}

/* What kind of refusal that of an option is. */
static uint32_t get_code(uint32_t option)
{
    return option == SEQLSTM_OPTION_DETERMINISM  ? SEQLSTM_BIT_REFUSED_DETERMINISM
           : option == SEQLSTM_OPTION_DTYPE      ? SEQLSTM_BIT_REFUSED_DTYPE
           : option == SEQLSTM_OPTION_PROJECTION ? SEQLSTM_BIT_REFUSED_SHAPE
                                                 : SEQLSTM_BIT_REFUSED_OPTION;
}

static long failures, cases;

static void check(const struct seqlstm_backend *table, int kind, uint32_t cell, bool training, bool uniform,
                  const struct line *a, const struct line *b)
{
    struct seqlstm_recurrent_desc d = make(cell, training, uniform);
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const char *wrong = NULL;
    a->set(&d, a->value);
    b->set(&d, b->value);
    /* skips pairs that set the same field or contradict each other */
    if (a->set == b->set && a != b && a->set != add_options && a->set != set_rate)
        return;
    if (a != b && (a->set == set_second || b->set == set_second) && a->set != add_options && b->set != add_options)
        return;
    const bool hidden = a->set == set_hidden || b->set == set_hidden;
    if (hidden && (a->option == SEQLSTM_OPTION_PROJECTION || b->option == SEQLSTM_OPTION_PROJECTION))
        return; /* a projection needs a width */
    if (!seqlstm_desc_check(&d.head, &answer))
        return;
    const bool refused_a = !((training ? a->training : a->inference) & kind);
    const bool refused_b = !((training ? b->training : b->inference) & kind);
    memset(&answer, 0, sizeof answer);
    answer.struct_size = sizeof answer;
    cases++;
    if (table->supports("cuda:sm_90", &d.head, &answer, &err) != SEQLSTM_OK)
        wrong = "an error";
    else if (answer.accepted != !(refused_a || refused_b))
        wrong = answer.accepted ? "accepted" : "refused";
    else if (!answer.accepted && !(refused_a && answer.option == a->option) &&
             !(refused_b && answer.option == b->option))
        wrong = "refused for another option";
    else if (!answer.accepted && (answer.reason[0] == '\0' || answer.code == 0))
        wrong = "refused without a reason";
    else if (!answer.accepted && a == b && strcmp(answer.value, a->refused) != 0)
        wrong = "refused with another value";
    else if (!answer.accepted && answer.code != get_code(answer.option))
        wrong = "refused with another code";
    else if (answer.accepted && kind != GENERIC)
        wrong = check_variants(&d, &answer);
    if (wrong != NULL && failures++ < 20)
        printf("# %s, cell %u, %s%s: %s + %s: %s (%s)\n", table->id, cell, training ? "training" : "inference",
               uniform ? ", uniform" : "", a->name, b->name, wrong, answer.reason);
}

static void check_lattice(const struct seqlstm_backend *table, int kind)
{
    for (uint32_t cell = SEQLSTM_CELL_LSTM; cell <= SEQLSTM_CELL_RNN; cell++)
        for (int mode = 0; mode < 4; mode++)
            for (int a = 0; a < LINES; a++)
                for (int b = a; b < LINES; b++)
                    if ((lines[a].cells >> cell & 1) && (lines[b].cells >> cell & 1))
                        check(table, kind, cell, mode & 1, mode & 2, &lines[a], &lines[b]);
}

/* cuDNN counts in 32 bits, and with eight of each size: 2^28 - 1 of a size is accepted, one more is refused. */
static void check_sizes(const struct seqlstm_backend *table)
{
    enum { MOST = (1 << 28) - 1 };
    for (int size = 0; size < 5; size++)
        for (int more = 0; more < 2; more++) {
            struct seqlstm_recurrent_desc d = make(SEQLSTM_CELL_LSTM, true, false);
            struct seqlstm_answer answer = {.struct_size = sizeof answer};
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            int64_t *const sizes[] = {&d.input, &d.hidden, &d.head.max_sequences, &d.head.max_steps, &d.head.max_rows};
            d.head.max_rows = 1;
            d.head.max_sequences = d.head.max_steps = size == 4 ? 1 << 14 : 1;
            if (size == 2 || size == 3)
                d.head.max_rows = MOST;
            *sizes[size] = MOST + more;
            const seqlstm_status status = table->supports("cuda:sm_90", &d.head, &answer, &err);
            cases++;
            if (status == SEQLSTM_OK && answer.accepted == !more &&
                (!more || (answer.code == SEQLSTM_BIT_REFUSED_SHAPE && answer.option == SEQLSTM_OPTION_SHAPE)))
                continue;
            failures++;
            printf("# %s, size %d, %d more: %d (%s)\n", table->id, size, more, (int)answer.accepted, answer.reason);
        }
}

/* Of the names of device classes only `cuda:sm_` and a number, wholly, is a CUDA device. cuDNN 9 runs from sm_75 on,
 * our kernels from sm_80. */
static void check_classes(const struct seqlstm_backend *table, int kind)
{
    static const struct {
        const char *name;
        int accepted; /* by which */
        bool old;
    } classes[] = {
        {"cuda:sm_100", BOTH, false},
        {"cuda:sm_90", BOTH, false},
        {"cuda:sm_120", BOTH, false},
        {"cuda:sm_999", BOTH, false},
        {"cuda:sm_80", BOTH, false},
        {"cuda:sm_79", CUDNN | PLAIN, true},
        {"cuda:sm_75", CUDNN | PLAIN, true},
        {"cuda:sm_74", 0, true},
        {"cuda:sm_10", 0, true},
        {"cuda:sm_1", 0, true},
        {"cuda:sm_90a", 0, false},
        {"cuda:sm_90 ", 0, false},
        {"cuda:sm_ 90", 0, false},
        {"cuda:sm_+90", 0, false},
        {"cuda:sm_090", 0, false},
        {"cuda:sm_90.", 0, false},
        {"cuda:sm_90:1", 0, false},
        {"cuda:sm_0", 0, false},
        {"cuda:sm_-90", 0, false},
        {"cuda:sm_", 0, false},
        {"cuda:sm_a", 0, false},
        {"cuda:sm_1000", 0, false},
        {"cuda:sm_9000", 0, false},
        {"cuda:sm_99999999999999999999", 0, false},
        {"cuda:1000", 0, false},
        {"cuda:90", 0, false},
        {"cuda:", 0, false},
        {"CUDA:sm_90", 0, false},
        {"cpu", 0, false},
        {"", 0, false},
    };
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++) {
        const struct seqlstm_recurrent_desc d = make(SEQLSTM_CELL_LSTM, true, true);
        struct seqlstm_answer answer = {.struct_size = sizeof answer};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = table->supports(classes[k].name, &d.head, &answer, &err);
        const char *const why = classes[k].old ? "a device this old" : "on CUDA devices only";
        cases++;
        if (status == SEQLSTM_OK && answer.accepted == ((classes[k].accepted & kind) != 0) &&
            (answer.accepted || (answer.code == SEQLSTM_BIT_REFUSED_DEVICE && strstr(answer.reason, why) != NULL &&
                                 strcmp(answer.value, classes[k].name) == 0)))
            continue;
        failures++;
        printf("# %s, device class `%s`: %s (%s)\n", table->id, classes[k].name,
               answer.accepted ? "accepted" : "refused", answer.reason);
    }
}

/* cuda-cudnn has no other operation, and names the plugin that has. */
static void check_operations(const struct seqlstm_backend *table)
{
    static const uint32_t ops[] = {SEQLSTM_OP_FINITE_CHECK, SEQLSTM_OP_SQUARED_NORM, SEQLSTM_OP_EMBEDDING,
                                   SEQLSTM_OP_DENSE};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        union seqlstm_any_desc d;
        struct seqlstm_answer answer = {.struct_size = sizeof answer};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        memset(&d, 0, sizeof d);
        d.head = (struct seqlstm_desc){.struct_size = seqlstm_desc_bytes(ops[k]),
                                       .op = ops[k],
                                       .mode = SEQLSTM_MODE_INFERENCE,
                                       .max_rows = 8,
                                       .max_sequences = 8,
                                       .max_steps = 8};
        if (ops[k] == SEQLSTM_OP_EMBEDDING)
            d.embedding.vocabulary = d.embedding.features = 4;
        else if (ops[k] == SEQLSTM_OP_DENSE)
            d.dense.input = d.dense.output = 4;
        const seqlstm_status status = table->supports("cuda:sm_90", &d.head, &answer, &err);
        cases++;
        if (status == SEQLSTM_OK && !answer.accepted && answer.code == SEQLSTM_BIT_REFUSED_OPERATION &&
            answer.option == SEQLSTM_OPTION_NONE && strstr(answer.hint, "cuda-generic") != NULL)
            continue;
        failures++;
        printf("# %s, operation %u: code %u, option %u (%s)\n", table->id, ops[k], answer.code, answer.option,
               answer.reason);
    }
}

static const struct seqlstm_backend *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, SEQLSTM_QUERY_SYMBOL) : NULL;
    seqlstm_backend_query_fn query;
    memcpy(&query, &symbol, sizeof query);
    if (symbol == NULL)
        printf("# %s\n", dlerror());
    return symbol != NULL ? query(SEQLSTM_ABI_MINOR) : NULL;
}

int main(int argc, char **argv)
{
    static const int kinds[] = {CUDNN, PLAIN, GENERIC};
    int failed = 0;
    printf("1..%d\n", argc - 1);
    for (int k = 1; k < argc && k <= 3; k++) {
        const struct seqlstm_backend *table = load(argv[k]);
        failures = cases = 0;
        if (table != NULL) {
            check_lattice(table, kinds[k - 1]);
            check_classes(table, kinds[k - 1]);
            if (kinds[k - 1] != GENERIC) {
                check_sizes(table);
                check_operations(table);
            }
        }
        const bool fine = table != NULL && failures == 0 && cases > 1000;
        printf("%s %d - %s: %ld combinations, %ld wrong\n", fine ? "ok" : "not ok", k, argv[k], cases, failures);
        failed |= !fine;
    }
    return failed;
}
