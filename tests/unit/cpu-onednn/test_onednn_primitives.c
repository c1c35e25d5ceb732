/* SPDX-License-Identifier: Apache-2.0 */
/* What cpu-onednn keeps of the shapes that it has met, and whose threads run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <seqlstm/ext/rebind.h>

#include "base/system/pool.h"
#include "onednn_fixture.h"

enum { KEPT = 128, SLOTS = 32 };

static void primitives_are_kept_in_bounded_number(void **state)
{
    (void)state;
    static struct batch b;
    struct seqlstm_op *op = make_lstm(4, SEQLSTM_MODE_TRAINING, "sliced");
    const int64_t before = host.memory.live_blocks;
    for (int32_t steps = 1; steps <= 4; steps++)
        for (int32_t n = 1; n <= SEQUENCES; n++) {
            batch_fill(&b, n, steps, steps);
            bind_once(op, &b);
        }
    assert_int_equal(host.memory.live_blocks - before, 2 * KEPT); /* of 256 shapes, with the calls of each */
    const int64_t made = host.memory.n_allocs;
    batch_fill(&b, SEQUENCES, 4, 4); /* known */
    bind_once(op, &b);
    const int64_t again = host.memory.n_allocs - made;
    batch_fill(&b, SEQUENCES, 1, 1); /* forgotten */
    bind_once(op, &b);
    assert_int_equal(host.memory.n_allocs - made - again, again + 2);
    assert_int_equal(host.memory.live_blocks - before, 2 * KEPT);
    table->op_destroy(op);
}

static void bind_all(struct seqlstm_op *op)
{
    static struct batch b;
    for (int32_t steps = 1; steps <= 3; steps++)
        for (int32_t n = 1; n <= SEQUENCES; n++) {
            batch_fill(&b, n, steps, steps);
            bind_once(op, &b);
        }
}

/* Eight of inference keep what four would keep; when the others have gone, the rest has more again. */
static void operations_of_inference_share_what_is_kept(void **state)
{
    (void)state;
    enum { OPS = 8, ALL = 512 };
    struct seqlstm_op *ops[OPS];
    for (int k = 0; k < OPS; k++)
        ops[k] = make_lstm(4, SEQLSTM_MODE_INFERENCE, "sliced");
    const int64_t before = host.memory.live_blocks;
    for (int k = 0; k < OPS; k++)
        bind_all(ops[k]);
    assert_int_equal(host.memory.live_blocks - before, 2 * ALL);
    for (int k = 1; k < OPS; k++)
        table->op_destroy(ops[k]);
    const int64_t left = host.memory.live_blocks;
    bind_all(ops[0]);
    assert_int_equal(host.memory.live_blocks - left, 2 * (KEPT - ALL / OPS));
    table->op_destroy(ops[0]);
}

/* With a host that has no memory. `refusal`: NULL, or what is said. */
static void rebind(struct seqlstm_binding *binding, const struct batch *b, const char *refusal)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_rebind *extension = table->get_extension(instance, SEQLSTM_REBIND_EXTENSION);
    struct sl_queue queue;
    sl_queue_init(&queue, NULL);
    const struct seqlstm_bind bind = describe(b);
    assert_non_null(extension);
    host.fail_after = host.memory.n_allocs;
    const seqlstm_status status = extension->rebind(binding, &queue.queue, &bind, &err);
    host.fail_after = -1;
    assert_int_equal(status, refusal != NULL ? SEQLSTM_UNSUPPORTED : SEQLSTM_OK);
    assert_string_equal(err.message, refusal != NULL ? refusal : "");
}

/* A binding takes the primitives that others have left. */
static void bindings_take_shapes_that_others_had(void **state)
{
    (void)state;
    static struct batch flat, ragged, unknown;
    struct seqlstm_op *op = make_lstm(4, SEQLSTM_MODE_INFERENCE, "sliced");
    batch_fill(&flat, 8, 5, 5);
    batch_fill(&ragged, 6, 1, 7);
    batch_fill(&unknown, 9, 5, 5);
    bind_once(op, &flat);
    struct seqlstm_binding *binding = bind(op, &ragged);
    for (int k = 0; k < 3; k++) {
        rebind(binding, &flat, NULL);
        rebind(binding, &ragged, NULL);
    }
    struct seqlstm_binding *beside = bind(op, &flat);
    rebind(beside, &ragged, "no idle primitives have 2 steps of 6 sequences"); /* the first one has its calls */
    table->binding_destroy(beside);
    rebind(binding, &unknown, "no idle primitives have 5 steps of 9 sequences");
    table->binding_destroy(binding);
    bind_once(op, &unknown);
    binding = bind(op, &flat);
    rebind(binding, &unknown, NULL);
    table->binding_destroy(binding);
    table->op_destroy(op);
}

static void bindings_have_room_for_so_many_rectangles(void **state)
{
    (void)state;
    static struct batch flat, many;
    struct seqlstm_op *op = make_lstm(4, SEQLSTM_MODE_INFERENCE, "sliced");
    batch_fill(&flat, 8, 5, 5);
    batch_fill(&many, SEQUENCES, 1, STEPS); /* each step has fewer sequences */
    bind_once(op, &many);
    bind_once(op, &flat);
    struct seqlstm_binding *binding = bind(op, &flat);
    rebind(binding, &many, "the binding has room for 16 rectangles, and the shape has 63");
    for (int count = 15; count <= 17; count++) { /* one for each step */
        static struct batch full;
        char refusal[80];
        batch_fill(&full, count, 0, count);
        bind_once(op, &full);
        snprintf(refusal, sizeof refusal, "the binding has room for 16 rectangles, and the shape has %d", count);
        rebind(binding, &full, count > 16 ? refusal : NULL);
    }
    table->binding_destroy(binding);
    binding = bind(op, &many);
    rebind(binding, &flat, NULL);
    rebind(binding, &many, NULL);
    table->binding_destroy(binding);
    table->op_destroy(op);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HAS_OWN_MEMORY /* sanitizers put memory of theirs around every block */
#endif

#ifdef HAS_OWN_MEMORY
static int64_t measure_resident(void)
{
    long long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lld %lld", &all, &resident), 2);
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

/* Batches of an epoch come, of which some are bound at a time: what was said over what the process has grown by. */
static double compare_own(uint32_t mode)
{
    enum { BATCHES = 96, BOUND = 8 };
    static struct batch batches[BATCHES];
    const struct seqlstm_axis *axes[BATCHES];
    struct seqlstm_binding *bound[BOUND] = {NULL};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = make_lstm(32, mode, "sliced");
    for (int32_t k = 0; k < BATCHES; k++) {
        batch_fill(&batches[k], SEQUENCES - k % 5, 8 + k % 7, 20 + k % 40);
        axes[k] = &batches[k].axis;
    }
    uint64_t one = 0, all = 0;
    assert_int_equal(get_footprint()->own_bytes(op, axes, 1, 1, &one, &err), SEQLSTM_OK);
    assert_int_equal(get_footprint()->own_bytes(op, axes, BATCHES, BOUND, &all, &err), SEQLSTM_OK);
    assert_true(0 < one && one < all / 2);
    const int64_t before = measure_resident();
    for (int32_t k = 0; k < BATCHES; k++) {
        table->binding_destroy(bound[k % BOUND]);
        bound[k % BOUND] = bind(op, &batches[k]);
    }
    const double ratio = (double)all / (double)(measure_resident() - before);
    for (int32_t k = 0; k < BOUND; k++)
        table->binding_destroy(bound[k]);
    table->op_destroy(op);
    return ratio;
}

/* In a process of its own: in this one, what others gave back is taken again. */
static void check_own(uint32_t mode)
{
    int status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const double ratio = compare_own(mode);
        print_message("# mode %u: %.2f of what was taken was said\n", (unsigned)mode, ratio);
        _exit(ratio > 0.8 && ratio < 1.25 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* What is said was measured with oneDNN 2.6. Its kernels for batches of products, which inference runs, are for
 * AVX-512: the general code that other processors run takes less. */
static void what_shapes_take_is_said(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_device_info info = {.struct_size = sizeof info};
    assert_int_equal(table->device_info(instance, 0, &info, &err), SEQLSTM_OK);
    if (strstr(info.name, "oneDNN 2.") == NULL) {
        print_message("# %s: what it takes is not measured\n", info.name);
        return;
    }
    check_own(SEQLSTM_MODE_TRAINING);
    if (strcmp(info.device_class, "cpu:x86-64-v4") == 0)
        check_own(SEQLSTM_MODE_INFERENCE);
    else
        print_message("# no AVX-512 here: what inference takes is not measured\n");
}
/* The library keeps primitives, too, of operations that are no more as well. */
static void memory_is_bounded_whatever_shapes_come(void **state)
{
    (void)state;
    static struct batch b;
    const int32_t all = SEQUENCES * STEPS;
    struct seqlstm_op *op = make_lstm(4, SEQLSTM_MODE_INFERENCE, "sliced");
    int64_t before = 0;
    for (int32_t k = 0; k < 1536; k++) {
        const int32_t shape = (int32_t)(2053LL * k % all); /* each comes once, in no order */
        batch_fill(&b, 1 + shape % SEQUENCES, 1 + shape / SEQUENCES, 1 + shape / SEQUENCES);
        bind_once(op, &b);
        before = k == 511 ? measure_resident() : before;
    }
    const double grown = (double)(measure_resident() - before) / (1 << 20);
    if (!(grown < 32)) /* 1024 shapes take 100 MB */
        fail_msg("1024 shapes more took %.1f MB", grown);
    table->op_destroy(op);
}
#endif

static int count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    int count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* The host's threads pack, each on its own: also where the library changes layouts, as it does for inference on AVX-512
 * and in bfloat16. A team of the library's below one of them would also count for good as threads beyond the
 * processors: the library's waits then sleep at once, which took a fifth of a step. */
static void packing_starts_no_threads(void **state)
{
    (void)state;
    enum { HIDDEN = 256 };
    static float weights[4 * HIDDEN * HIDDEN];
    void *slots[SLOTS];
    for (int i = 0; i < SLOTS; i++)
        slots[i] = weights;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_pool *pool = NULL;
    struct sl_queue queue;
    assert_int_equal(sl_pool_create(2, &pool, &err), SEQLSTM_OK);
    sl_queue_init(&queue, pool);
    const int before = count_threads();
    struct seqlstm_op *op = make_lstm(HIDDEN, SEQLSTM_MODE_INFERENCE, "exclusive");
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    assert_int_equal(table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
    void *packed = aligned_alloc(64, ((size_t)sizes.packed_bytes + 63) / 64 * 64);
    assert_non_null(packed);
    const struct seqlstm_step step = {.struct_size = sizeof step};
    for (int i = 0; i < 4; i++)
        if (table->weights_pack(op, &queue.queue, slots, packed, &step, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
    assert_int_equal(count_threads(), before);
    free(packed);
    table->op_destroy(op);
    sl_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef HAS_OWN_MEMORY
        cmocka_unit_test(what_shapes_take_is_said),
        cmocka_unit_test(memory_is_bounded_whatever_shapes_come),
#endif
        cmocka_unit_test(primitives_are_kept_in_bounded_number),
        cmocka_unit_test(operations_of_inference_share_what_is_kept),
        cmocka_unit_test(bindings_take_shapes_that_others_had),
        cmocka_unit_test(bindings_have_room_for_so_many_rectangles),
        cmocka_unit_test(packing_starts_no_threads),
    };
    if (!open_backend())
        return 0;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    table->close(instance);
    return failed || host.memory.live_blocks != 0;
}
