/* SPDX-License-Identifier: Apache-2.0 */
/* Runs single operations of the built cpu-blas plugin for its tests: opens the module, makes an operation,
 * poisons workspace and reserve with NaN between guards, executes, and compares. Every case runs on one and
 * on three members and must give the same values within the caller's tolerance. */
#ifndef BLAS_FIXTURE_H
#define BLAS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <seqlstm/backend.h>
#include <seqlstm/philox.h>

#include "base/system/pool.h"
#include "registry/host.h"

struct blas_fixture {
    void *module;
    const struct seqlstm_backend *table;
    struct sl_host host;
    struct seqlstm_instance *instance;
    struct sl_pool *pool;
    struct sl_queue queue; /* three members */
    struct sl_queue alone;
};

enum { FIXTURE_GUARD = 64, FIXTURE_SLOTS = 16, FIXTURE_MEMBERS = 3 };

/* The plugin shares work among no more members than there are processors: on any machine, there are three. A sanitizer
 * may ask before it is ready. */
__attribute__((no_sanitize_address, no_sanitize_thread)) long sysconf(int name)
{
    static long (*original)(int);
    if (name == _SC_NPROCESSORS_CONF)
        return FIXTURE_MEMBERS;
    if (original == NULL)
        original = (long (*)(int))(uintptr_t)dlsym(RTLD_NEXT, "sysconf");
    return original(name);
}

static inline int fixture_open(void **state)
{
    static struct blas_fixture f;
    memset(&f, 0, sizeof f);
    char path[4096];
    const char *build = getenv("SEQLSTM_BUILD"), *module = getenv("BLAS_TEST_MODULE");
    snprintf(path, sizeof path, "%s/backends/libseqlstm_backend_cpu-blas.so", build != NULL ? build : "build");
    if (module != NULL)
        snprintf(path, sizeof path, "%s", module);
    f.module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (f.module == NULL) {
        *state = NULL;
        return 0;
    }
    seqlstm_backend_query_fn query;
    void *symbol = dlsym(f.module, SEQLSTM_QUERY_SYMBOL);
    memcpy(&query, &symbol, sizeof query);
    f.table = query(SEQLSTM_ABI_MINOR);
    sl_host_init_minimal(&f.host, "cpu-blas", NULL);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_pool_create(FIXTURE_MEMBERS, &f.pool, &err) != SEQLSTM_OK)
        return 1;
    sl_queue_init(&f.queue, f.pool);
    sl_queue_init(&f.alone, NULL);
    const char *instructions = getenv("BLAS_TEST_INSTRUCTIONS");
    struct seqlstm_setting setting = {"instructions", instructions != NULL ? instructions : "auto"};
    if (f.table->open(&f.host.services, &setting, 1, &f.instance, &err) != SEQLSTM_OK) {
        print_message("# cpu-blas is unavailable: %s\n", err.message);
        return 1;
    }
    *state = &f;
    return 0;
}

static inline int fixture_close(void **state)
{
    struct blas_fixture *f = *state;
    f->table->close(f->instance);
    sl_pool_destroy(f->pool);
    return f->host.memory.live_bytes != 0;
}

/* Says so as TAP's plan, and gives true, when this processor lacks the instruction set to be tested. */
static inline bool fixture_lacks_instructions(void)
{
    const char *instructions = getenv("BLAS_TEST_INSTRUCTIONS");
    bool lacks = false;
#if defined(__x86_64__)
    lacks = instructions != NULL && strcmp(instructions, "avx2") == 0 && !__builtin_cpu_supports("avx2");
#else
    lacks = instructions != NULL && strcmp(instructions, "portable") != 0;
#endif
    if (lacks)
        printf("1..0 # SKIP this processor has no %s\n", instructions);
    return lacks;
}

#define FIXTURE_RUN(tests)                                                                                             \
    (fixture_lacks_instructions() ? 0 : cmocka_run_group_tests(tests, fixture_open, fixture_close))

static inline float fixture_random(uint64_t *seed)
{
    *seed = seqlstm_mix64_round(*seed);
    return (float)(*seed >> 40) / 8388608.0f - 1.0f;
}

static inline float *fixture_floats(int64_t n, uint64_t seed)
{
    float *x = aligned_alloc(64, ((size_t)n * sizeof *x + 127) / 64 * 64);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = fixture_random(&seed);
    return x;
}

static inline struct seqlstm_desc fixture_head(uint32_t op, size_t size, int64_t rows)
{
    return (struct seqlstm_desc){.struct_size = (uint32_t)size,
                                 .op = op,
                                 .mode = SEQLSTM_MODE_TRAINING,
                                 .max_rows = rows,
                                 .max_sequences = rows,
                                 .max_steps = rows};
}

struct fixture_buffer {
    unsigned char *base;
    uint64_t bytes;
};

static inline struct fixture_buffer fixture_buffer(uint64_t bytes)
{
    struct fixture_buffer b = {aligned_alloc(64, (size_t)((bytes + 63) / 64 * 64 + FIXTURE_GUARD)), bytes};
    assert_non_null(b.base);
    memset(b.base, 0xFF, (size_t)bytes + FIXTURE_GUARD); /* NaN everywhere */
    return b;
}

static inline void fixture_buffer_check(struct fixture_buffer *b)
{
    for (int i = 0; i < FIXTURE_GUARD; i++)
        assert_int_equal(b->base[b->bytes + (uint64_t)i], 0xFF);
    free(b->base);
}

/* One operation at one shape: forward, then backward if `grads` is given. */
struct fixture_run {
    const struct seqlstm_desc *desc;
    int64_t rows, rows_in;
    uint32_t bind_flags;
    const struct seqlstm_axis *axis;
    int64_t t0, t1;
    void *slots[FIXTURE_SLOTS];
    void *grads[FIXTURE_SLOTS];
    uint32_t slot_count;
    uint32_t parts; /* 0: forward only */
    struct seqlstm_step step;
    const char *variant;
    const char *refusal; /* NULL, or: forward fails with NUMERIC and this message */
    /* NULL, or: called when so many bytes of weights are packed, before forward */
    void (*on_packed)(struct fixture_run *run, uint64_t bytes);
};

/* Says so, and gives true, where the processor has no products in the precision of the descriptor. */
static inline bool fixture_lacks_precision(struct blas_fixture *f, const struct seqlstm_desc *desc)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    const seqlstm_status status = f->table->op_create(f->instance, 0, desc, NULL, &op, &err);
    if (status == SEQLSTM_UNSUPPORTED) {
        print_message("# not shown: %s\n", err.message);
        return true;
    }
    assert_int_equal(status, SEQLSTM_OK);
    f->table->op_destroy(op);
    return false;
}

/* 1 + 2^-9, which is 1 in bfloat16. */
static inline float *fixture_above_one(int64_t n)
{
    float *x = fixture_floats(n, 1);
    for (int64_t i = 0; i < n; i++)
        x[i] = 1.0f + 0x1p-9f;
    return x;
}

static inline void fixture_run(struct blas_fixture *f, struct sl_queue *queue, struct fixture_run *run)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    struct seqlstm_binding *binding = NULL;
    seqlstm_status status = f->table->op_create(f->instance, 0, run->desc, run->variant, &op, &err);
    if (status != SEQLSTM_OK)
        print_message("%s\n", err.message);
    assert_int_equal(status, SEQLSTM_OK);
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    assert_int_equal(f->table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
    struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                .flags = run->bind_flags,
                                .rows = run->rows,
                                .rows_in = run->rows_in != 0 ? run->rows_in : run->rows,
                                .axis = run->axis,
                                .t0 = run->t0,
                                .t1 = run->t1};
    assert_int_equal(f->table->op_bind(op, &queue->queue, &bind, &binding, &err), SEQLSTM_OK);
    run->step.struct_size = sizeof run->step;
    struct fixture_buffer workspace = fixture_buffer(sizes.workspace_bytes);
    struct fixture_buffer reserve = fixture_buffer(sizes.reserve_bytes);
    struct fixture_buffer packed = fixture_buffer(sizes.packed_bytes);
    if (sizes.packed_bytes > 0)
        assert_int_equal(f->table->weights_pack(op, &queue->queue, run->slots, packed.base, &run->step, &err),
                         SEQLSTM_OK);
    if (run->on_packed)
        run->on_packed(run, sizes.packed_bytes);
    struct seqlstm_forward forward = {.struct_size = sizeof forward,
                                      .slot_count = run->slot_count,
                                      .slots = run->slots,
                                      .packed = sizes.packed_bytes > 0 ? packed.base : NULL,
                                      .workspace = workspace.base,
                                      .reserve = reserve.base,
                                      .step = &run->step};
    assert_int_equal(f->table->forward(binding, &queue->queue, &forward, &err),
                     run->refusal ? SEQLSTM_NUMERIC : SEQLSTM_OK);
    assert_string_equal(err.message, run->refusal ? run->refusal : "");
    if (run->parts != 0) {
        memset(workspace.base, 0xFF, (size_t)workspace.bytes);
        struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                            .slot_count = run->slot_count,
                                            .slots = run->slots,
                                            .grads = run->grads,
                                            .parts = run->parts,
                                            .packed = forward.packed,
                                            .workspace = workspace.base,
                                            .reserve = reserve.base,
                                            .step = &run->step};
        assert_int_equal(f->table->backward(binding, &queue->queue, &backward, &err), SEQLSTM_OK);
    }
    fixture_buffer_check(&workspace);
    fixture_buffer_check(&reserve);
    fixture_buffer_check(&packed);
    f->table->binding_destroy(binding);
    f->table->op_destroy(op);
}

/* |got - want| <= tolerance (1 + |want|), NaN fails. */
static inline void fixture_close_to(double got, double want, double tolerance, const char *what, int64_t index)
{
    if (!(fabs(got - want) <= tolerance * (1.0 + fabs(want)))) {
        print_message("%s[%lld]: %.9g instead of %.9g\n", what, (long long)index, got, want);
        fail();
    }
}

static inline void fixture_compare(const float *got, const double *want, int64_t n, double tolerance, const char *what)
{
    for (int64_t i = 0; i < n; i++)
        fixture_close_to((double)got[i], want[i], tolerance, what, i);
}

/* An axis of the given lengths (not increasing), with all its arrays. */
struct fixture_axis {
    struct seqlstm_axis axis;
    int32_t lengths[64], batch_sizes[512];
    int64_t row_offsets[513];
    uint64_t ids[64];
    uint32_t positions[64];
};

static inline void fixture_axis(struct fixture_axis *a, int count, const int32_t *lengths)
{
    memset(a, 0, sizeof *a);
    for (int b = 0; b < count; b++) {
        a->lengths[b] = lengths[b];
        a->ids[b] = 1000003u * (uint64_t)b + (UINT64_C(1) << 33);
        a->positions[b] = 7u * (uint32_t)b;
    }
    for (int t = 0; t < lengths[0]; t++) {
        int alive = 0;
        while (alive < count && lengths[alive] > t)
            alive++;
        a->batch_sizes[t] = alive;
        a->row_offsets[t + 1] = a->row_offsets[t] + alive;
    }
    a->axis = (struct seqlstm_axis){.struct_size = sizeof a->axis,
                                    .sequences = count,
                                    .steps = lengths[0],
                                    .rows = a->row_offsets[lengths[0]],
                                    .lengths = a->lengths,
                                    .batch_sizes = a->batch_sizes,
                                    .row_offsets = a->row_offsets,
                                    .sequence_id = a->ids,
                                    .position0 = a->positions};
}

#endif
