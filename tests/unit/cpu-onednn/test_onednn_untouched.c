/* SPDX-License-Identifier: Apache-2.0 */
/* What cpu-onednn says to stay untouched against what stays untouched: calls leave all of it alone, and there is little
 * else that they leave alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onednn_fixture.h"

enum { INPUT = 40, HIDDEN = 64, LONGEST = 24, MANY = 16, SLOTS = 64, LINE = 64, POISON = 0xA5 };
enum { WIDTH = MANY * LONGEST * 2 * HIDDEN };

struct layer {
    const char *name;
    uint32_t cell, mode, flags, direction;
    int64_t layers, projection;
    int32_t shortest;
    int64_t workspace, reserve; /* lines that stay and are not said, where it was measured */
};

static bool is_measured; /* oneDNN 2 with the kernels of AVX-512 */

static struct seqlstm_op *create_layer(const struct layer *layer)
{
    struct seqlstm_recurrent_desc d;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    memset(&d, 0, sizeof d);
    d.head = (struct seqlstm_desc){.struct_size = sizeof d,
                                   .op = SEQLSTM_OP_RECURRENT,
                                   .mode = layer->mode,
                                   .flags = layer->flags,
                                   .max_rows = MANY * LONGEST,
                                   .max_sequences = MANY,
                                   .max_steps = LONGEST};
    d.cell = layer->cell;
    d.direction = layer->direction;
    d.options = SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_USE_BIAS;
    d.layers = (uint32_t)layer->layers;
    d.input = INPUT;
    d.hidden = HIDDEN;
    d.projection = layer->projection;
    for (int i = 0; i < 2; i++) {
        d.activations[SEQLSTM_PLACE_GATE][i].kind = SEQLSTM_ACT_SIGMOID;
        d.activations[SEQLSTM_PLACE_CANDIDATE][i].kind = SEQLSTM_ACT_TANH;
        d.activations[SEQLSTM_PLACE_OUTPUT][i].kind = SEQLSTM_ACT_TANH;
    }
    if (table->op_create(instance, 0, &d.head, "sliced", &op, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", layer->name, err.message);
    return op;
}

struct memory {
    unsigned char *bytes;
    uint64_t count;
    int64_t said, left; /* lines that are said to stay, and that stay */
};

static struct memory poison(uint64_t count)
{
    struct memory m = {aligned_alloc(LINE, (size_t)(count / LINE + 1) * LINE), count, 0, 0};
    assert_non_null(m.bytes);
    memset(m.bytes, POISON, (size_t)count);
    return m;
}

static bool is_poison(const struct memory *m, uint64_t begin, uint64_t end)
{
    for (uint64_t i = begin; i < end; i++)
        if (m->bytes[i] != POISON)
            return false;
    return true;
}

static void compare(const struct layer *layer, const char *what, struct memory *m, const struct seqlstm_ranges *ranges,
                    int64_t most)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        m->said += (int64_t)(ranges->at[i].end - ranges->at[i].begin) / LINE;
        if (!is_poison(m, ranges->at[i].begin, ranges->at[i].end))
            fail_msg("%s: a call writes to the %s in [%llu, %llu)", layer->name, what,
                     (unsigned long long)ranges->at[i].begin, (unsigned long long)ranges->at[i].end);
    }
    for (uint64_t at = 0; at + LINE <= m->count; at += LINE)
        m->left += is_poison(m, at, at + LINE);
    if (is_measured && m->left - m->said > most)
        fail_msg("%s: %lld lines of the %s stay, and %lld are said", layer->name, (long long)m->left, what,
                 (long long)m->said);
}

static void run_layer(const struct layer *layer, const struct batch *b)
{
    static float values[WIDTH], results[SLOTS][WIDTH];
    const int directions = layer->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    const int32_t ld = (int32_t)layer->layers * directions;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = create_layer(layer);
    struct seqlstm_binding *binding = bind(op, b);
    static struct idle idle;
    ask_members(&idle, op, &b->axis, 1);
    struct memory workspace = poison(idle.sizes.workspace_bytes), reserve = poison(idle.sizes.reserve_bytes);
    void *packed = aligned_alloc(LINE, (size_t)(idle.sizes.packed_bytes / LINE + 1) * LINE);
    const struct seqlstm_step step = {.struct_size = sizeof step};
    void *slots[SLOTS] = {NULL}, *grads[SLOTS] = {NULL};
    struct sl_queue queue;
    sl_queue_init(&queue, NULL);
    for (int i = 0; i < WIDTH; i++)
        values[i] = (float)(i % 97) / 300.0f - 0.15f;
    slots[SEQLSTM_SLOT_RECURRENT_X] = values;
    slots[SEQLSTM_SLOT_RECURRENT_Y] = results[0];
    grads[SEQLSTM_SLOT_RECURRENT_X] = results[1];
    grads[SEQLSTM_SLOT_RECURRENT_Y] = values;
    for (int32_t n = 0; n < ld; n++)
        for (int p = SEQLSTM_PARAM_W_X; p <= SEQLSTM_PARAM_PROJECTION; p++) {
            const uint32_t slot = (uint32_t)SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, p);
            if (p == SEQLSTM_PARAM_PEEPHOLE || (p == SEQLSTM_PARAM_PROJECTION && layer->projection == 0))
                continue;
            assert_true(slot < SLOTS);
            slots[slot] = values;
            grads[slot] = results[slot];
        }
    if (table->weights_pack(op, &queue.queue, slots, packed, &step, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", layer->name, err.message);
    const uint32_t count = (uint32_t)SEQLSTM_SLOT_RECURRENT_COUNT(ld);
    const struct seqlstm_forward forward = {.struct_size = sizeof forward,
                                            .slot_count = count,
                                            .slots = slots,
                                            .packed = packed,
                                            .workspace = workspace.bytes,
                                            .reserve = reserve.bytes,
                                            .step = &step};
    const struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                              .slot_count = count,
                                              .slots = slots,
                                              .grads = grads,
                                              .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS,
                                              .packed = packed,
                                              .workspace = workspace.bytes,
                                              .reserve = reserve.bytes,
                                              .step = &step};
    if (table->forward(binding, &queue.queue, &forward, &err) != SEQLSTM_OK ||
        (layer->mode == SEQLSTM_MODE_TRAINING && table->backward(binding, &queue.queue, &backward, &err) != SEQLSTM_OK))
        fail_msg("%s: %s", layer->name, err.message);
    compare(layer, "workspace", &workspace, &idle.answer.workspace, layer->workspace);
    compare(layer, "reserve", &reserve, &idle.answer.reserve, layer->reserve);
    free(workspace.bytes), free(reserve.bytes), free(packed);
    table->binding_destroy(binding);
    table->op_destroy(op);
}

enum { LSTM = SEQLSTM_CELL_LSTM, GRU = SEQLSTM_CELL_GRU, RNN = SEQLSTM_CELL_RNN };
enum { TRAINING = SEQLSTM_MODE_TRAINING, INFERENCE = SEQLSTM_MODE_INFERENCE, UNIFORM = SEQLSTM_BIT_DESC_UNIFORM };
enum { BACKWARD = SEQLSTM_DIRECTION_BACKWARD, BOTH = SEQLSTM_DIRECTION_BIDIRECTIONAL };

static void what_is_said_stays_and_little_else(void **state)
{
    static const struct layer layers[] = {
        {"training", LSTM, TRAINING, UNIFORM, 0, 1, 0, LONGEST, 5000, 3610},
        {"training backwards", LSTM, TRAINING, UNIFORM, BACKWARD, 1, 0, LONGEST, 5000, 5630},
        {"training both ways", LSTM, TRAINING, UNIFORM, BOTH, 3, 0, LONGEST, 1870, 30830},
        {"training a GRU", GRU, TRAINING, UNIFORM, 0, 2, 0, LONGEST, 3770, 2820},
        {"training an RNN", RNN, TRAINING, UNIFORM, 0, 1, 0, LONGEST, 4740, 3080},
        {"training of any lengths", LSTM, TRAINING, 0, 0, 2, 0, 5, 4180, 48980},
        {"inference", LSTM, INFERENCE, UNIFORM, 0, 1, 0, LONGEST, 4270, 0},
        {"inference backwards", LSTM, INFERENCE, UNIFORM, BACKWARD, 1, 0, LONGEST, 4790, 0},
        {"inference both ways", LSTM, INFERENCE, UNIFORM, BOTH, 2, 0, LONGEST, 15640, 0},
        {"inference of a projection", LSTM, INFERENCE, UNIFORM, 0, 1, 24, LONGEST, 3320, 0},
        {"inference of a GRU", GRU, INFERENCE, UNIFORM, 0, 1, 0, LONGEST, 4760, 0},
        {"inference of any lengths", LSTM, INFERENCE, 0, 0, 1, 0, 5, 4320, 0},
    };
    (void)state;
    static struct batch b;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_device_info info = {.struct_size = sizeof info};
    assert_int_equal(table->device_info(instance, 0, &info, &err), SEQLSTM_OK);
    is_measured = strstr(info.name, "oneDNN 2.") != NULL && strcmp(info.device_class, "cpu:x86-64-v4") == 0;
    if (!is_measured)
        print_message("# %s, %s: what stays is not measured\n", info.name, info.device_class);
    for (size_t k = 0; k < sizeof layers / sizeof *layers; k++) {
        batch_fill(&b, MANY, layers[k].shortest, LONGEST);
        run_layer(&layers[k], &b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_stays_and_little_else),
    };
    if (!open_backend())
        return 0;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    table->close(instance);
    return failed || host.memory.live_blocks != 0;
}
