/* SPDX-License-Identifier: Apache-2.0 */
/* The recurrent kernels of cpu-blas: every instruction set of this machine, tiles, and one, two and three members
 * against portable code on one member, at sizes that the conformance kit leaves out: weights beyond the second-level
 * cache, whole and broken groups of units, one to three rows a step (panels side by side), chunks of weight gradients.
 * Portable code itself is compared with the float64 reference by the kit. */
#include "blas_fixture.h"

#include <seqlstm/ext/rebind.h>

#include "base/operation/op_signature.h"

enum { SLOTS = SL_SLOTS_MAX };

struct shape {
    int64_t input, hidden, layers;
    int sequences;
    int32_t longest, shortest;
    uint32_t cell, direction, options;
    float dropout, zoneout; /* dropout: of inputs and of h */
    bool extremes;          /* x is each gate's pre-activation, tiny to huge */
    bool inference;         /* without backward */
};

/* What one run leaves: outputs and gradients of every slot. */
struct result {
    float *values[SLOTS], *grads[SLOTS];
    int64_t elems[SLOTS];
    struct sl_slot slots[SLOTS];
    int32_t count;
};

/* The descriptor allows batches whose gates leave the caches before backward; layer norm then computes them again. */
static bool allows_large;

static void desc_fill(const struct shape *s, const struct seqlstm_axis *axis, struct seqlstm_recurrent_desc *d)
{
    memset(d, 0, sizeof *d);
    d->head = fixture_head(SEQLSTM_OP_RECURRENT, sizeof *d, axis->rows);
    d->head.max_sequences = axis->sequences;
    d->head.max_steps = axis->steps;
    if (allows_large) {
        d->head.max_sequences = 64;
        d->head.max_rows = (49152 + 64) * 16 / s->hidden;
    }
    if (s->inference)
        d->head.mode = SEQLSTM_MODE_INFERENCE;
    d->cell = s->cell;
    d->direction = s->direction;
    d->options = s->options | SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_OUTPUT |
                 SEQLSTM_BIT_RECURRENT_INITIAL_STATE | SEQLSTM_BIT_RECURRENT_FINAL_STATE;
    d->layers = s->layers;
    d->input = s->input;
    d->hidden = s->hidden;
    d->layer_norm_epsilon = 1e-3f;
    d->dropout = d->recurrent_dropout = s->dropout;
    d->zoneout_cell = d->zoneout_hidden = s->zoneout;
    if (s->cell != SEQLSTM_CELL_LSTM)
        d->zoneout_cell = 0;
    for (int i = 0; i < 2; i++) {
        d->activations[SEQLSTM_PLACE_GATE][i].kind = SEQLSTM_ACT_SIGMOID;
        d->activations[SEQLSTM_PLACE_CANDIDATE][i].kind = SEQLSTM_ACT_TANH;
        d->activations[SEQLSTM_PLACE_OUTPUT][i].kind = SEQLSTM_ACT_TANH;
    }
}

static void slots_fill(const struct seqlstm_recurrent_desc *d, const struct seqlstm_axis *axis, struct result *out)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memset(out, 0, sizeof *out);
    assert_int_equal(sl_op_signature(&d->head, out->slots, SLOTS, &out->count, &err), SEQLSTM_OK);
    for (int32_t i = 0; i < out->count; i++) {
        const struct sl_slot *slot = &out->slots[i];
        if (slot->role == SL_SLOT_ABSENT)
            continue;
        int64_t rows = slot->axis == SL_SLOT_ON_ROWS     ? axis->rows
                       : slot->axis == SL_SLOT_ON_STATES ? axis->sequences
                                                         : slot->rows;
        out->elems[i] = rows * slot->features;
        out->values[i] = fixture_floats(out->elems[i], 17 + (uint64_t)i);
        out->grads[i] = fixture_floats(out->elems[i], 91 + (uint64_t)i);
        float scale = slot->role == SL_SLOT_PARAM ? 1.0f / sqrtf((float)d->hidden) : 1.0f;
        for (int64_t k = 0; k < out->elems[i]; k++)
            out->values[i][k] *= scale;
    }
}

/* One step from zero states, where every gate of unit u gets x[u]: of both signs, 1e-30 to 1e38. */
static void extremes_fill(const struct shape *s, const struct result *r)
{
    const int32_t w_x = SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_X);
    for (int32_t i = 2; i < r->count; i++)
        for (int64_t k = 0; k < r->elems[i]; k++)
            r->values[i][k] = i == w_x && k / s->input % s->hidden == k % s->input ? 1.0f : 0.0f;
    for (int64_t k = 0; k < r->elems[SEQLSTM_SLOT_RECURRENT_X]; k++) {
        double size = pow(10.0, -30.0 + 68.0 * (double)(k / 2) / (double)(r->elems[SEQLSTM_SLOT_RECURRENT_X] / 2));
        if (k % 3) /* most of them where the curves bend */
            size = 20.0 * (double)k / (double)r->elems[SEQLSTM_SLOT_RECURRENT_X];
        r->values[SEQLSTM_SLOT_RECURRENT_X][k] = (float)(k % 2 ? size : -size);
    }
}

static void result_free(struct result *r)
{
    for (int32_t i = 0; i < r->count; i++) {
        free(r->values[i]);
        free(r->grads[i]);
    }
}

static bool is_tiles(const char *set)
{
    return strcmp(set, "tiles") == 0;
}

/* Packs, runs forward and in training backward on `members` members with the given instruction set, or on tiles. */
static void run(struct blas_fixture *f, const char *set, int32_t members, const struct shape *shape,
                const struct seqlstm_axis *axis, struct result *out)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_setting setting = {"instructions", is_tiles(set) ? "auto" : set};
    struct seqlstm_instance *instance = NULL;
    assert_int_equal(f->table->open(&f->host.services, &setting, 1, &instance, &err), SEQLSTM_OK);
    struct sl_pool *pool = NULL;
    struct sl_queue queue;
    if (members > 1)
        assert_int_equal(sl_pool_create(members, &pool, &err), SEQLSTM_OK);
    sl_queue_init(&queue, pool);
    struct seqlstm_recurrent_desc desc;
    desc_fill(shape, axis, &desc);
    slots_fill(&desc, axis, out);
    if (shape->extremes)
        extremes_fill(shape, out);
    struct seqlstm_op *op = NULL;
    struct seqlstm_binding *binding = NULL;
    assert_int_equal(f->table->op_create(instance, 0, &desc.head, is_tiles(set) ? "tiles" : "packed", &op, &err),
                     SEQLSTM_OK);
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    assert_int_equal(f->table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
    struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                .rows = axis->rows,
                                .rows_in = axis->rows,
                                .axis = axis,
                                .t0 = 0,
                                .t1 = axis->steps};
    assert_int_equal(f->table->op_bind(op, &queue.queue, &bind, &binding, &err), SEQLSTM_OK);
    struct fixture_buffer workspace = fixture_buffer(sizes.workspace_bytes);
    struct fixture_buffer reserve = fixture_buffer(sizes.reserve_bytes);
    struct fixture_buffer packed = fixture_buffer(sizes.packed_bytes);
    struct seqlstm_step step = {.struct_size = sizeof step, .seed = 5, .epoch = 2};
    void *slots[SLOTS], *grads[SLOTS];
    for (int32_t i = 0; i < out->count; i++) {
        slots[i] = out->values[i];
        grads[i] = out->grads[i];
    }
    assert_int_equal(f->table->weights_pack(op, &queue.queue, slots, packed.base, &step, &err), SEQLSTM_OK);
    struct seqlstm_forward forward = {.struct_size = sizeof forward,
                                      .slot_count = (uint32_t)out->count,
                                      .slots = slots,
                                      .workspace = workspace.base,
                                      .reserve = reserve.base,
                                      .packed = packed.base,
                                      .step = &step};
    assert_int_equal(f->table->forward(binding, &queue.queue, &forward, &err), SEQLSTM_OK);
    memset(workspace.base, 0xFF, (size_t)workspace.bytes);
    struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                        .slot_count = (uint32_t)out->count,
                                        .slots = slots,
                                        .grads = grads,
                                        .workspace = workspace.base,
                                        .reserve = reserve.base,
                                        .packed = packed.base,
                                        .step = &step,
                                        .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES |
                                                 SEQLSTM_BIT_BACKWARD_WEIGHTS | SEQLSTM_BIT_BACKWARD_ACCUMULATE};
    if (!shape->inference)
        assert_int_equal(f->table->backward(binding, &queue.queue, &backward, &err), SEQLSTM_OK);
    fixture_buffer_check(&workspace);
    fixture_buffer_check(&reserve);
    fixture_buffer_check(&packed);
    f->table->binding_destroy(binding);
    f->table->op_destroy(op);
    sl_pool_destroy(pool);
    f->table->close(instance);
}

/* Largest difference of a slot over the largest value of the wanted one. */
static void compare(const struct result *got, const struct result *want, const char *what)
{
    for (int32_t i = 0; i < want->count; i++)
        for (int pass = 0; pass < 2; pass++) {
            const float *a = pass ? got->grads[i] : got->values[i], *b = pass ? want->grads[i] : want->values[i];
            double largest = 1e-3, worst = 0;
            for (int64_t k = 0; k < want->elems[i]; k++) {
                double d = fabs((double)a[k] - (double)b[k]);
                largest = fabs((double)b[k]) > largest ? fabs((double)b[k]) : largest;
                worst = !(d <= worst) ? d : worst; /* a NaN stays */
            }
            if (want->elems[i] > 0 && !(worst <= 2e-5 * largest)) {
                print_message("%s: %s%s differs by %g of %g\n", what, pass ? "d" : "", want->slots[i].name, worst,
                              largest);
                fail();
            }
        }
}

/* Are tiles offered for this shape? */
static bool has_tiles(struct blas_fixture *f, const struct shape *shape, const struct seqlstm_axis *axis)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    struct seqlstm_recurrent_desc desc;
    desc_fill(shape, axis, &desc);
    struct seqlstm_device_info device = {.struct_size = sizeof device};
    assert_int_equal(f->table->device_info(f->instance, 0, &device, &err), SEQLSTM_OK);
    assert_int_equal(f->table->supports(device.device_class, &desc.head, &answer, &err), SEQLSTM_OK);
    assert_true(answer.accepted);
    for (uint32_t i = 0; i < answer.variant_count; i++)
        if (is_tiles(answer.variants[i]))
            return true;
    return false;
}

/* Does this machine have the instructions, and run the shape with them? */
static bool can_run(struct blas_fixture *f, const char *set, const struct shape *shape, const struct seqlstm_axis *axis)
{
#if defined(__x86_64__)
    if (strcmp(set, "avx2") == 0)
        return __builtin_cpu_supports("avx2");
    if (strcmp(set, "avx512") == 0)
        return __builtin_cpu_supports("avx512bw");
#endif
    return is_tiles(set) ? has_tiles(f, shape, axis) : strcmp(set, "portable") == 0;
}

enum { SETS = 4 };
static const char *const sets[SETS] = {"portable", "avx2", "avx512", "tiles"};

static void check(struct blas_fixture *f, const struct shape *shape)
{
    int32_t lengths[64];
    for (int b = 0; b < shape->sequences; b++)
        lengths[b] = shape->longest - b * (shape->longest - shape->shortest) / shape->sequences;
    struct fixture_axis axis;
    fixture_axis(&axis, shape->sequences, lengths);
    struct result want;
    run(f, "portable", 1, shape, &axis.axis, &want);
    for (int i = 0; i < SETS; i++) {
        if (!can_run(f, sets[i], shape, &axis.axis))
            continue;
        for (int32_t members = 1; members <= 3; members++) {
            char what[96];
            snprintf(what, sizeof what, "%s, %d members, I %d H %d B %d", sets[i], (int)members, (int)shape->input,
                     (int)shape->hidden, shape->sequences);
            struct result got;
            run(f, sets[i], members, shape, &axis.axis, &got);
            compare(&got, &want, what);
            result_free(&got);
        }
    }
    result_free(&want);
}

static void large_layers_agree(void **state)
{
    struct blas_fixture *f = *state;
    static const struct shape shapes[] = {
        {256, 256, 1, 11, 9, 9, SEQLSTM_CELL_LSTM, 0, 0, 0, 0, false, false},    /* whole groups, dW in place */
        {200, 230, 2, 20, 7, 3, SEQLSTM_CELL_LSTM, 0, 0, 0, 0, false, false},    /* broken groups, two layers */
        {64, 300, 1, 60, 20, 2, SEQLSTM_CELL_LSTM, 2, 0, 0.3f, 0, false, false}, /* both directions, several chunks */
        {256, 256, 1, 8, 6, 4, SEQLSTM_CELL_LSTM, 1, SEQLSTM_BIT_RECURRENT_LAYER_NORM, 0, 0, false, false},
        {260, 256, 1, 9, 6, 4, SEQLSTM_CELL_GRU, 0, SEQLSTM_BIT_RECURRENT_RESET_AFTER, 0, 0, false, false},
        {200, 600, 1, 9, 5, 4, SEQLSTM_CELL_RNN, 0, 0, 0, 0, false, false},
        {256, 512, 1, 64, 6, 5, SEQLSTM_CELL_LSTM, 0, 0, 0, 0, false, false}, /* many rows, panels of gates in parts */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct shape s = shapes[i];
        check(f, &s);
    }
}

/* Tiles, which round otherwise, are taken for steps of 32 sequences, and for what many steps share in calls of 384
 * rows; else vectors are. The variant is offered for all. */
static void tiles_are_taken(void **state)
{
    struct blas_fixture *f = *state;
    static const struct {
        int sequences, steps;
        bool taken;
    } batches[] = {{31, 12, false}, {32, 2, true}, {15, 25, false}, {16, 24, true}};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        const int sequences = batches[i].sequences, steps = batches[i].steps;
        const struct shape s = {40, 32, 1, sequences, steps, steps, SEQLSTM_CELL_LSTM, 0, 0, 0, 0, false, false};
        int32_t lengths[32];
        for (int b = 0; b < sequences; b++)
            lengths[b] = s.longest;
        struct fixture_axis axis;
        fixture_axis(&axis, sequences, lengths);
        if (!has_tiles(f, &s, &axis.axis)) {
            assert_int_equal(i, 0); /* then for none */
            return;
        }
        struct result vectors, tiles;
        run(f, "auto", 1, &s, &axis.axis, &vectors);
        run(f, "tiles", 1, &s, &axis.axis, &tiles);
        const size_t bytes = (size_t)tiles.elems[SEQLSTM_SLOT_RECURRENT_Y] * sizeof(float);
        const bool equal =
            memcmp(tiles.values[SEQLSTM_SLOT_RECURRENT_Y], vectors.values[SEQLSTM_SLOT_RECURRENT_Y], bytes) == 0;
        assert_int_equal(equal, !batches[i].taken);
        result_free(&vectors);
        result_free(&tiles);
    }
}

static void few_rows_agree(void **state)
{
    struct blas_fixture *f = *state;
    for (int sequences = 1; sequences <= 5; sequences++) {
        struct shape s = {64, 64, 1, sequences, 12, 12, SEQLSTM_CELL_LSTM, 0, 0, 0, 0, false, false};
        check(f, &s);
        s.hidden = 37;
        s.shortest = 5;
        s.options = SEQLSTM_BIT_RECURRENT_PEEPHOLE | SEQLSTM_BIT_RECURRENT_COUPLED_GATES;
        s.zoneout = 0.25f;
        check(f, &s);
        s.options = 0;
        s.direction = SEQLSTM_DIRECTION_BACKWARD;
        s.dropout = 0.3f;
        check(f, &s);
        s.hidden = 128; /* shared by units */
        s.zoneout = 0;
        check(f, &s);
    }
}

/* Members share the steps of a few sequences of equal lengths. Some members have panels that are not whole groups of
 * four, or of whole 16 units. */
static void shared_sweeps_agree(void **state)
{
    struct blas_fixture *f = *state;
    static const int64_t hidden[] = {128, 150, 256, 310}; /* the last two: one sequence alone sweeps */
    for (int i = 0; i < 4; i++)
        for (int sequences = 1; sequences <= (i < 2 ? 4 : 1); sequences++) {
            struct shape s = {.input = 20,
                              .hidden = hidden[i],
                              .layers = 2,
                              .sequences = sequences,
                              .longest = 7,
                              .shortest = 7,
                              .cell = SEQLSTM_CELL_LSTM};
            check(f, &s);
            s.layers = 1;
            s.dropout = 0.3f;
            s.direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
            check(f, &s);
            s.inference = true; /* a little more than one chunk of steps */
            s.dropout = 0;
            s.direction = SEQLSTM_DIRECTION_BACKWARD;
            s.longest = s.shortest = (i < 2 ? 100 : 260) / sequences;
            check(f, &s);
        }
}

/* Each pre-activation is a sum of its own, in an order that does not depend on the panels beside it. So members that
 * have whole groups of four panels leave the same bits as one that passes over all of them. Without 16 lanes, the last
 * two vectors of a member's units share a reciprocal, which rounds otherwise. */
static void order_of_panels_leaves_bits(void **state)
{
    struct blas_fixture *f = *state;
    const struct shape s = {.input = 20,
                            .hidden = 256,
                            .layers = 1,
                            .sequences = 1,
                            .longest = 30,
                            .shortest = 30,
                            .cell = SEQLSTM_CELL_LSTM,
                            .inference = true};
    struct fixture_axis axis;
    struct result one, many;
    fixture_axis(&axis, 1, (const int32_t[]){30});
    if (!can_run(f, "avx512", &s, &axis.axis))
        return;
    run(f, "avx512", 1, &s, &axis.axis, &one);
    for (int32_t members = 2; members <= 4; members += 2) {
        run(f, "avx512", members, &s, &axis.axis, &many);
        const size_t bytes = (size_t)one.elems[SEQLSTM_SLOT_RECURRENT_Y] * sizeof(float);
        assert_memory_equal(many.values[SEQLSTM_SLOT_RECURRENT_Y], one.values[SEQLSTM_SLOT_RECURRENT_Y], bytes);
        result_free(&many);
    }
    result_free(&one);
}

/* Against those that are kept. */
static void gates_that_are_computed_again_agree(void **state)
{
    struct blas_fixture *f = *state;
    static const uint32_t options[] = {0, SEQLSTM_BIT_RECURRENT_PEEPHOLE, SEQLSTM_BIT_RECURRENT_COUPLED_GATES};
    struct fixture_axis axis;
    fixture_axis(&axis, 5, (const int32_t[]){7, 6, 6, 5, 3});
    for (int i = 0; i < 3 * SETS; i++) {
        const uint32_t norm = SEQLSTM_BIT_RECURRENT_LAYER_NORM | options[i % 3];
        const struct shape s = {20, 75, 1, 5, 7, 3, SEQLSTM_CELL_LSTM, 0, norm, 0, 0, false, false};
        struct result kept, again;
        for (int32_t members = 1; members <= 3 && can_run(f, sets[i / 3], &s, &axis.axis); members += 2) {
            run(f, sets[i / 3], members, &s, &axis.axis, &kept);
            allows_large = true;
            run(f, sets[i / 3], members, &s, &axis.axis, &again);
            allows_large = false;
            compare(&again, &kept, sets[i / 3]);
            result_free(&kept);
            result_free(&again);
        }
    }
}

static void many_steps_agree(void **state)
{
    struct blas_fixture *f = *state;
    struct shape s = {48, 64, 2, 7, 200, 40, SEQLSTM_CELL_LSTM, 2, 0, 0, 0, false, false};
    check(f, &s);
    s.input = 33;
    s.hidden = 20;
    s.cell = SEQLSTM_CELL_GRU;
    check(f, &s);
}

/* h = sigmoid(x) tanh(sigmoid(x) tanh(x)), each curve to 3e-7 and near zero relatively, wherever x lies. */
static void gates_saturate(void **state)
{
    struct blas_fixture *f = *state;
    const struct shape shape = {.input = 16,
                                .hidden = 16,
                                .layers = 1,
                                .sequences = 64,
                                .longest = 1,
                                .shortest = 1,
                                .cell = SEQLSTM_CELL_LSTM,
                                .extremes = true};
    int32_t lengths[64];
    for (int b = 0; b < 64; b++)
        lengths[b] = 1;
    struct fixture_axis axis;
    fixture_axis(&axis, shape.sequences, lengths);
    for (int i = 0; i < SETS; i++) {
        struct result got;
        if (!can_run(f, sets[i], &shape, &axis.axis))
            continue;
        run(f, sets[i], 1, &shape, &axis.axis, &got);
        for (int64_t k = 0; k < got.elems[SEQLSTM_SLOT_RECURRENT_Y]; k++) {
            const double x = (double)got.values[SEQLSTM_SLOT_RECURRENT_X][k], s = 1.0 / (1.0 + exp(-x));
            const double want = s * tanh(s * tanh(x)), d = (double)got.values[SEQLSTM_SLOT_RECURRENT_Y][k] - want;
            if (!(fabs(d) <= 4 * 3e-7 * fmin(fabs(x), 1.0) + 1e-37)) {
                print_message("%s: h of %g is off by %g\n", sets[i], x, d);
                fail();
            }
        }
        result_free(&got);
    }
}

/* Scratch is made for max_steps: a longer axis of fewer sequences is refused, though its rows would fit. */
static void longer_axes_are_refused(void **state)
{
    struct blas_fixture *f = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct shape shape = {
        .input = 16, .hidden = 16, .layers = 1, .sequences = 1, .longest = 8, .shortest = 8, .cell = SEQLSTM_CELL_LSTM};
    struct fixture_axis axis;
    fixture_axis(&axis, 1, (const int32_t[]){8});
    struct seqlstm_recurrent_desc desc;
    desc_fill(&shape, &axis.axis, &desc);
    struct seqlstm_instance *instance = NULL;
    assert_int_equal(f->table->open(&f->host.services, NULL, 0, &instance, &err), SEQLSTM_OK);
    struct sl_queue queue;
    sl_queue_init(&queue, NULL);
    for (int64_t bound = 7; bound <= 8; bound++) {
        struct seqlstm_op *op = NULL;
        struct seqlstm_binding *binding = NULL;
        desc.head.max_steps = bound;
        assert_int_equal(f->table->op_create(instance, 0, &desc.head, "packed", &op, &err), SEQLSTM_OK);
        const struct seqlstm_bind bind = {
            .struct_size = sizeof bind, .rows = 8, .rows_in = 8, .axis = &axis.axis, .t0 = 0, .t1 = 8};
        assert_int_equal(f->table->op_bind(op, &queue.queue, &bind, &binding, &err),
                         bound < 8 ? SEQLSTM_INVALID_ARGUMENT : SEQLSTM_OK);
        if (bound < 8)
            assert_string_equal(err.message, "8 steps, the descriptor allows 7");
        f->table->binding_destroy(binding);
        f->table->op_destroy(op);
    }
    f->table->close(instance);
}

/* ---- bindings ---------------------------------------------------------------------------------------------------- */

/* One direction of 16 units, for one member. */
static struct seqlstm_op *make_small(struct blas_fixture *f, int64_t rows, int64_t sequences, int64_t steps,
                                     uint32_t options)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    struct fixture_axis axis;
    struct seqlstm_recurrent_desc desc;
    const struct shape shape = {
        .input = 16, .hidden = 16, .layers = 1, .sequences = 1, .longest = 8, .shortest = 8, .cell = SEQLSTM_CELL_LSTM};
    fixture_axis(&axis, 1, (const int32_t[]){8});
    desc_fill(&shape, &axis.axis, &desc);
    desc.options |= options;
    desc.head.mode = SEQLSTM_MODE_TRAINING;
    desc.head.max_rows = rows;
    desc.head.max_sequences = sequences;
    desc.head.max_steps = steps;
    if (f->table->op_create(f->instance, 0, &desc.head, "packed", &op, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return op;
}

static struct seqlstm_bind cut(const struct fixture_axis *a, int64_t t0, int64_t t1)
{
    const int64_t rows = a->row_offsets[t1] - a->row_offsets[t0];
    return (struct seqlstm_bind){.struct_size = sizeof(struct seqlstm_bind),
                                 .rows = rows,
                                 .rows_in = rows,
                                 .axis = &a->axis,
                                 .t0 = t0,
                                 .t1 = t1};
}

/* A smaller batch leaves the room that there was; a longer one needs a binding of its own. */
static void bindings_keep_their_room(void **state)
{
    struct blas_fixture *f = *state;
    const struct seqlstm_rebind *rebind = f->table->get_extension(f->instance, SEQLSTM_REBIND_EXTENSION);
    struct seqlstm_op *op = make_small(f, 100, 4, 20, 0);
    struct seqlstm_binding *binding = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct fixture_axis first, smaller, longer, unfit;
    fixture_axis(&first, 3, (const int32_t[]){8, 6, 5});
    fixture_axis(&smaller, 2, (const int32_t[]){5, 1});
    fixture_axis(&longer, 1, (const int32_t[]){12});
    fixture_axis(&unfit, 5, (const int32_t[]){2, 2, 2, 2, 2});
    const struct seqlstm_bind binds[] = {cut(&first, 0, 8), cut(&smaller, 0, 5), cut(&longer, 0, 12),
                                         cut(&unfit, 0, 2)};
    assert_int_equal(f->table->op_bind(op, &f->alone.queue, &binds[0], &binding, &err), SEQLSTM_OK);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(rebind->rebind(binding, &f->alone.queue, &binds[1], &err), SEQLSTM_OK);
        assert_int_equal(rebind->rebind(binding, &f->alone.queue, &binds[2], &err), SEQLSTM_UNSUPPORTED);
        assert_string_equal(err.message, "the binding has no room for 12 steps in 1 blocks");
        assert_int_equal(rebind->rebind(binding, &f->alone.queue, &binds[3], &err), SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, "5 sequences, the descriptor allows 4");
        assert_int_equal(rebind->rebind(binding, &f->alone.queue, &binds[0], &err), SEQLSTM_OK);
    }
    f->table->binding_destroy(binding);
    f->table->op_destroy(op);
}

/* Segments that share a reserve are of one axis, which must fit as a whole. */
static void segments_of_a_shared_reserve_need_an_axis_that_fits(void **state)
{
    static const struct {
        int64_t rows, sequences, steps;
        const char *message; /* NULL: it fits */
    } bounds[] = {{14, 4, 8, NULL},
                  {13, 4, 8, "14 rows of 4 sequences and 8 steps are more than the bounds 13, 4 and 8"},
                  {14, 3, 8, "14 rows of 4 sequences and 8 steps are more than the bounds 14, 3 and 8"},
                  {14, 4, 7, "14 rows of 4 sequences and 8 steps are more than the bounds 14, 4 and 7"}};
    struct blas_fixture *f = *state;
    struct fixture_axis axis;
    fixture_axis(&axis, 4, (const int32_t[]){8, 2, 2, 2});
    const struct seqlstm_bind last = cut(&axis, 2, 5); /* of one sequence */
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++)
        for (int stepwise = 0; stepwise < 2; stepwise++) {
            const char *const message = stepwise ? bounds[k].message : NULL;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct seqlstm_binding *binding = NULL;
            struct seqlstm_op *op = make_small(f, bounds[k].rows, bounds[k].sequences, bounds[k].steps,
                                               stepwise ? SEQLSTM_BIT_RECURRENT_STEPWISE : 0);
            assert_int_equal(f->table->op_bind(op, &f->alone.queue, &last, &binding, &err),
                             message ? SEQLSTM_INVALID_ARGUMENT : SEQLSTM_OK);
            assert_string_equal(err.message, message ? message : "");
            f->table->binding_destroy(binding);
            f->table->op_destroy(op);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_layers_agree),
        cmocka_unit_test(tiles_are_taken),
        cmocka_unit_test(few_rows_agree),
        cmocka_unit_test(gates_that_are_computed_again_agree),
        cmocka_unit_test(many_steps_agree),
        cmocka_unit_test(gates_saturate),
        cmocka_unit_test(longer_axes_are_refused),
        cmocka_unit_test(shared_sweeps_agree),
        cmocka_unit_test(order_of_panels_leaves_bits),
        cmocka_unit_test(bindings_keep_their_room),
        cmocka_unit_test(segments_of_a_shared_reserve_need_an_axis_that_fits),
    };
    return FIXTURE_RUN(tests);
}
