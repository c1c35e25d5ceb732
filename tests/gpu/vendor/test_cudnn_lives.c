/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of cuda-cudnn from their creation to their end. Each call of CUDA and each of cuDNN fails in its turn: the
 * backend says so, and what it has begun leaves nothing. The same call, repeated, computes what it would have computed.
 * Those of two devices take turns.
 *
 *   test_cudnn_lives PLUGIN.so LIBCUDNN.so */
#include "cudnn_fixture.h"

#include <seqlstm/philox.h>

#include "emulated_device.h"

enum { USED = SEQLSTM_SLOT_RECURRENT_COUNT(2), FLOATS = 200 /* of each slot that are looked at */ };
enum { CREATE, BIND, PACK, FORWARD, BACKWARD, WAIT, ENDS };

/* Of CUDA, or of cuDNN: as emulated_device.h and fake_cudnn.h say. */
static struct source {
    void (*fail_at)(int n);
    int (*disarm)(void);
} sources[] = {{emulated_fail_at, emulated_disarm}, {NULL, NULL}};
static int (*count_library)(void);
static uint32_t device; /* of what is made, run and released */

static void find_library(void)
{
    void *module = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(module);
    void *const symbols[] = {dlsym(module, "fake_cudnn_fail_at"), dlsym(module, "fake_cudnn_disarm"),
                             dlsym(module, "fake_cudnn_count_alive")};
    for (int k = 0; k < 3; k++)
        assert_non_null(symbols[k]);
    memcpy(&sources[1].fail_at, &symbols[0], sizeof symbols[0]);
    memcpy(&sources[1].disarm, &symbols[1], sizeof symbols[1]);
    memcpy(&count_library, &symbols[2], sizeof symbols[2]);
    dlclose(module);
}

/* ---- a life ------------------------------------------------------------------------------------------------------ */

struct results {
    float slots[USED][FLOATS], grads[USED][FLOATS];
};

/* Without an error to tell of, none of this fails. */
static void *allocate(uint64_t bytes, const void *values)
{
    void *block = NULL;
    assert_int_equal(table->memory->allocate(instance, device, SEQLSTM_MEMORY_DEVICE, bytes + 256, &block, NULL),
                     SEQLSTM_OK);
    assert_int_equal(table->memory->fill(instance, device, queue.native_stream, block, 0, bytes + 256, NULL),
                     SEQLSTM_OK);
    if (values != NULL)
        assert_int_equal(table->memory->copy(instance, device, queue.native_stream, SEQLSTM_COPY_TO_DEVICE, block,
                                             values, bytes, NULL),
                         SEQLSTM_OK);
    return block;
}

/* Other values in each slot, and in each element; all lives have the same slots. */
static void make_slots(struct call *c)
{
    static float values[BYTES / sizeof(float)];
    for (int k = 0; k < SLOTS; k++) {
        for (size_t e = 0; e < sizeof values / sizeof *values; e++)
            values[e] = (float)(seqlstm_mix64(1, (uint64_t)k, e) % 2001) / 4000 - 0.25f;
        c->slots[k] = allocate(BYTES, values);
        c->grads[k] = allocate(BYTES, values);
    }
}

/* What an earlier life has computed. */
static void clear_results(const struct call *c)
{
    const int made[] = {SEQLSTM_SLOT_RECURRENT_X, SEQLSTM_SLOT_RECURRENT_STATE(1, SEQLSTM_STATE_H0),
                        SEQLSTM_SLOT_RECURRENT_STATE(1, SEQLSTM_STATE_C0),
                        SEQLSTM_SLOT_RECURRENT_PARAM(2, 0, SEQLSTM_PARAM_W_X),
                        SEQLSTM_SLOT_RECURRENT_PARAM(2, 1, SEQLSTM_PARAM_BIAS)};
    for (size_t k = 0; k < sizeof made / sizeof *made; k++)
        assert_int_equal(table->memory->fill(instance, device, queue.native_stream, c->grads[made[k]], 0,
                                             FLOATS * sizeof(float), NULL),
                         SEQLSTM_OK);
    assert_int_equal(table->memory->fill(instance, device, queue.native_stream, c->slots[SEQLSTM_SLOT_RECURRENT_Y], 0,
                                         FLOATS * sizeof(float), NULL),
                     SEQLSTM_OK);
}

static void release_all(void **blocks, int count)
{
    for (int k = 0; k < count; k++)
        table->memory->release(instance, device, SEQLSTM_MEMORY_DEVICE, blocks[k]);
}

static void make_spaces(struct call *c)
{
    c->sizes = (struct seqlstm_sizes){.struct_size = sizeof c->sizes};
    assert_int_equal(table->op_sizes(c->op, &c->sizes, NULL), SEQLSTM_OK);
    c->workspace = allocate(c->sizes.workspace_bytes, NULL);
    c->reserve = allocate(c->sizes.reserve_bytes, NULL);
    c->packed = allocate(c->sizes.packed_bytes, NULL);
}

static seqlstm_status run_step(struct call *c, const char *variant, int step, struct seqlstm_error *err)
{
    struct seqlstm_recurrent_desc d = describe(STEPS, SEQLSTM_MODE_TRAINING);
    const struct seqlstm_step block = {.struct_size = sizeof block};
    const struct seqlstm_bind bind = {
        .struct_size = sizeof bind, .rows = two.rows, .rows_in = two.rows, .axis = &two, .t1 = STEPS};
    d.options |= SEQLSTM_BIT_RECURRENT_INITIAL_STATE | SEQLSTM_BIT_RECURRENT_FINAL_STATE;
    d.cell_clip = 2;
    switch (step) {
    case CREATE:
        return table->op_create(instance, device, &d.head, variant, &c->op, err);
    case BIND:
        return table->op_bind(c->op, &queue, &bind, &c->binding, err);
    case PACK:
        return table->weights_pack(c->op, &queue, c->slots, c->packed, &block, err);
    case FORWARD:
        return forward(c, err);
    case BACKWARD:
        return backward(c, err);
    default:
        return table->streams->synchronize(instance, device, queue.native_stream, err);
    }
}

static void take_results(const struct call *c, struct results *out)
{
    for (int k = 0; k < USED; k++)
        for (int of_grads = 0; of_grads < 2; of_grads++)
            assert_int_equal(table->memory->copy(instance, device, queue.native_stream, SEQLSTM_COPY_TO_HOST,
                                                 of_grads ? out->grads[k] : out->slots[k],
                                                 of_grads ? c->grads[k] : c->slots[k], sizeof out->slots[k], NULL),
                             SEQLSTM_OK);
}

static void end_life(const struct call *c)
{
    void *spaces[] = {c->workspace, c->reserve, c->packed};
    table->binding_destroy(c->binding);
    table->op_destroy(c->op);
    release_all(spaces, 3);
}

static bool is_expected(seqlstm_status status, const struct seqlstm_error *err)
{
    const bool starts = strstr(err->message, "does not start on CUDA device 0") == NULL;
    return status == (starts ? SEQLSTM_DEVICE : SEQLSTM_UNSUPPORTED) && err->code == status &&
           (strstr(err->message, "told to fail") != NULL || strstr(err->message, "(719)") != NULL);
}

/* What a refused call of the backend has begun, it has begun anew when it is repeated; backward needs a forward. */
static void repeat(struct call *c, const char *variant, int step, int n)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if ((step == BACKWARD && run_step(c, variant, FORWARD, &err) != SEQLSTM_OK) ||
        run_step(c, variant, step, &err) != SEQLSTM_OK)
        fail_msg("%s, call %d: step %d is repeated: %s", variant, n, step, err.message);
}

/* The n-th call of the source fails; 0: none does. Returns false if there are fewer. */
static bool live(const struct source *source, const struct call *slots, const char *variant, int n, struct results *out)
{
    struct seqlstm_instance *const usual = instance;
    const struct seqlstm_setting settings[] = {{"library", library}};
    const int alive = emulated_count_alive(), of_library = count_library();
    const int64_t blocks = host.memory.live_blocks;
    const size_t bytes = emulated_count_memory();
    struct call c = *slots;
    bool failed = false;
    assert_int_equal(table->open(&host.services, settings, 1, &instance, NULL), SEQLSTM_OK);
    clear_results(&c);
    source->fail_at(n);
    for (int step = 0; step < ENDS; step++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = run_step(&c, variant, step, &err);
        if (status != SEQLSTM_OK) {
            if (!source->disarm() || failed || !is_expected(status, &err) || (step == CREATE && c.op != NULL) ||
                (step == BIND && c.binding != NULL))
                fail_msg("%s, call %d: step %d gives %d, `%s`", variant, n, step, (int)status, err.message);
            failed = true;
            repeat(&c, variant, step, n);
        }
        if (step == CREATE)
            make_spaces(&c);
    }
    const bool told = source->disarm() || failed;
    if (told && !failed)
        fail_msg("%s, call %d: no call of the backend says that it failed", variant, n);
    take_results(&c, out);
    end_life(&c);
    table->close(instance);
    instance = usual;
    if (emulated_count_alive() != alive || count_library() != of_library || host.memory.live_blocks != blocks ||
        emulated_count_memory() != bytes)
        fail_msg("%s, call %d: %d streams, %d of cuDNN's handles and descriptors, %d blocks, %lld bytes are left",
                 variant, n, emulated_count_alive() - alive, count_library() - of_library,
                 (int)(host.memory.live_blocks - blocks), (long long)(emulated_count_memory() - bytes));
    return told;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void what_fails_says_so_and_leaves_nothing(void **state)
{
    static const char *const variants[] = {"persist_dynamic", "small_h+standard_layers"};
    static struct results wanted, got;
    struct call slots = {0};
    (void)state;
    find_library();
    make_slots(&slots);
    parts |= SEQLSTM_BIT_BACKWARD_STATES;
    setenv("FAKE_CUDNN_RESERVE", "shared", 1);
    for (int v = 0; v < 2; v++)
        for (int s = 0; s < 2; s++) {
            int n = 1;
            assert_false(live(&sources[s], &slots, variants[v], 0, &wanted));
            for (; live(&sources[s], &slots, variants[v], n, &got); n++)
                if (memcmp(&got, &wanted, sizeof got) != 0)
                    fail_msg("%s, call %d: other results", variants[v], n);
            assert_true(n > 20);
        }
    unsetenv("FAKE_CUDNN_RESERVE");
    release_all(slots.slots, SLOTS);
    release_all(slots.grads, SLOTS);
}

/* Each call is one for the other device than the call before. A handle that the one device has left is not for the
 * other one. */
static void devices_take_turns(void **state)
{
    static const char *const variants[] = {"standard", "persist_dynamic", "small_h+standard_layers"};
    static struct results wanted, got;
    const struct seqlstm_setting settings[] = {{"library", library}};
    struct seqlstm_instance *const usual = instance;
    const struct seqlstm_queue usual_queue = queue;
    (void)state;
    setenv("FAKE_CUDNN_RESERVE", "shared", 1);
    for (int v = 0; v < 3; v++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct call slots = {0}, calls[2];
        struct seqlstm_queue queues[2];
        make_slots(&slots);
        assert_false(live(&sources[0], &slots, variants[v], 0, &wanted));
        release_all(slots.slots, SLOTS);
        release_all(slots.grads, SLOTS);
        setenv("SEQLSTM_EMULATED_DEVICES", "2", 1);
        assert_int_equal(table->open(&host.services, settings, 1, &instance, &err), SEQLSTM_OK);
        unsetenv("SEQLSTM_EMULATED_DEVICES");
        for (device = 0; device < 2; device++) {
            queues[device] = usual_queue;
            assert_int_equal(table->streams->create(instance, device, &queues[device].native_stream, &err), SEQLSTM_OK);
            queue = queues[device];
            calls[device] = (struct call){0};
            make_slots(&calls[device]);
            clear_results(&calls[device]);
        }
        for (int step = 0; step < ENDS; step++)
            for (device = 0; device < 2; device++) {
                queue = queues[device];
                if (run_step(&calls[device], variants[v], step, &err) != SEQLSTM_OK)
                    fail_msg("%s, device %u, step %d: %s", variants[v], device, step, err.message);
                if (step == CREATE)
                    make_spaces(&calls[device]);
            }
        for (device = 0; device < 2; device++) {
            queue = queues[device];
            take_results(&calls[device], &got);
            if (memcmp(&got, &wanted, sizeof got) != 0)
                fail_msg("%s, device %u: other results", variants[v], device);
        }
        for (device = 0; device < 2; device++) {
            queue = queues[device];
            end_life(&calls[device]);
            release_all(calls[device].slots, SLOTS);
            release_all(calls[device].grads, SLOTS);
            table->streams->destroy(instance, device, queue.native_stream);
        }
        table->close(instance);
        instance = usual;
        queue = usual_queue;
        device = 0;
    }
    unsetenv("FAKE_CUDNN_RESERVE");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_says_so_and_leaves_nothing),
        cmocka_unit_test(devices_take_turns),
    };
    return run_with(argc, argv, tests, sizeof tests / sizeof *tests);
}
