/* SPDX-License-Identifier: Apache-2.0 */
/* Times the row operations of a backend against their floors on this machine.
 *
 *   bench_ops FILE.so [MEMBERS]
 *
 * For each case: the best of many calls of forward and backward, the bytes that must move (each operand once)
 * or the floating-point operations of its products, and the fraction of what this machine does at its best: a
 * copy of 64 MiB or of 256 KiB (by the size of the case), and a loop of fused multiply-adds. Run on an idle
 * machine; the minimum is reported since other load only ever adds.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <seqlstm/backend.h>

#include "base/operation/op_signature.h"
#include "base/system/pool.h"
#include "registry/host.h"

/* One member: the processor's time, which other programs do not lengthen much. Several: the clock on the
 * wall. */
static clockid_t bench_clock = CLOCK_PROCESS_CPUTIME_ID;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(bench_clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- what the machine can do --------------------------------------------------------------------- */

typedef float wide __attribute__((vector_size(64)));

/* One member's multiply-adds: twelve independent chains, which are kept in registers. */
#define EACH(m)  m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11)
#define START(k) wide a##k = b * (float)k;
#define STEP(k)  a##k = a##k * b + c;
#define TOTAL(k) sum += a##k;
#if defined(__clang__)
#define CONTRACT        _Pragma("STDC FP_CONTRACT ON")
#define FMA_TARGET(isa) __attribute__((target(isa)))
#else
#define CONTRACT
#define FMA_TARGET(isa) __attribute__((target(isa), optimize("O2,fp-contract=fast")))
#endif
#define FMA_LOOP(name, isa)                                                                                            \
    FMA_TARGET(isa) static void name(int64_t count, float *out)                                                        \
    {                                                                                                                  \
        CONTRACT                                                                                                       \
        wide b, c, sum = {0};                                                                                          \
        for (int i = 0; i < 16; i++)                                                                                   \
            b[i] = 0.999f, c[i] = 0.001f;                                                                              \
        EACH(START)                                                                                                    \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            EACH(STEP)                                                                                                 \
        }                                                                                                              \
        EACH(TOTAL)                                                                                                    \
        memcpy(out, &sum, sizeof sum);                                                                                 \
    }

#if defined(__x86_64__)
FMA_LOOP(fma_avx512, "avx512f,avx512dq,avx512vl,avx512bw,fma")
FMA_LOOP(fma_avx2, "avx2,fma")
#endif

static void fma_loop(int64_t count, float *out)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512dq"))
        fma_avx512(count, out);
    else if (__builtin_cpu_supports("fma"))
        fma_avx2(count, out);
    else
#endif
        memset(out, 0, 64), (void)count;
}

struct probe {
    double flops_ns[64]; /* by member */
    char *from, *to;
    int64_t bytes, repeats;
};

static void probe_flops(void *argument, int32_t member, int32_t members)
{
    (void)members;
    float out[16];
    const int64_t count = 4000000;
    double best = 1e99;
    for (int i = 0; i < 5; i++) {
        double t = now_ns();
        fma_loop(count, out);
        t = now_ns() - t;
        best = t < best ? t : best;
    }
    ((struct probe *)argument)->flops_ns[member] = (double)count * 12 * 32 / best;
}

static void probe_copy(void *argument, int32_t member, int32_t members)
{
    const struct probe *p = argument;
    const int64_t each = p->bytes / members / 64 * 64;
    for (int64_t i = 0; i < p->repeats; i++)
        memcpy(p->to + member * each, p->from + member * each, (size_t)each);
}

/* ---- cases --------------------------------------------------------------------------------------- */

struct bench_case {
    const char *name;
    union seqlstm_any_desc desc;
    double flops; /* of the products of forward; backward does twice as many */
    double forward_bytes, backward_bytes;
    const char *variant;
};

struct bench {
    const struct seqlstm_backend *table;
    struct seqlstm_instance *instance;
    struct sl_queue queue;
    double gflops, far_gbs, near_gbs;
};

static void *buffer(int64_t bytes)
{
    void *p = aligned_alloc(64, (size_t)(bytes + 127) / 64 * 64);
    if (p != NULL)
        memset(p, 0, (size_t)(bytes + 127) / 64 * 64);
    return p;
}

static void fill(const struct sl_slot *slot, void *p, int64_t elems, int64_t classes)
{
    uint64_t seed = 1;
    for (int64_t i = 0; i < elems; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (slot->dtype == SEQLSTM_DTYPE_INT32)
            ((int32_t *)p)[i] = (int32_t)((seed >> 33) % (uint64_t)classes);
        else if (slot->dtype == SEQLSTM_DTYPE_FLOAT32)
            ((float *)p)[i] = (float)(int32_t)(seed >> 32) * 4e-11f;
    }
}

static double fraction(const struct bench *b, double flops, double bytes, double ns)
{
    const double rate = bytes > 8e6 ? b->far_gbs : b->near_gbs;
    const double floor_ns = flops / b->gflops > bytes / rate ? flops / b->gflops : bytes / rate;
    return floor_ns / ns;
}

static void run(const struct bench *b, const struct bench_case *c, const struct seqlstm_axis *axis, int64_t rows)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op;
    struct seqlstm_binding *binding;
    static struct sl_slot signature[SL_SLOTS_MAX];
    int32_t count = 0;
    if (sl_op_signature(&c->desc.head, signature, SL_SLOTS_MAX, &count, &err) != SEQLSTM_OK ||
        b->table->op_create(b->instance, 0, &c->desc.head, c->variant, &op, &err) != SEQLSTM_OK) {
        printf("%-34s %s\n", c->name, err.message);
        return;
    }
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    b->table->op_sizes(op, &sizes, &err);
    struct seqlstm_bind bind = {
        .struct_size = sizeof bind, .rows = rows, .rows_in = rows, .axis = axis, .t1 = axis->steps};
    if (b->table->op_bind(op, (struct seqlstm_queue *)&b->queue.queue, &bind, &binding, &err) != SEQLSTM_OK)
        return;
    void *slots[16] = {0}, *grads[16] = {0};
    for (int32_t s = 0; s < count; s++) {
        if (signature[s].role == SL_SLOT_ABSENT)
            continue;
        const int64_t slot_rows = signature[s].axis == SL_SLOT_FREE           ? signature[s].rows
                                  : signature[s].axis == SL_SLOT_ON_SEQUENCES ? axis->sequences
                                                                              : rows;
        const int64_t elems = slot_rows * signature[s].features;
        const int64_t classes = c->desc.head.op == SEQLSTM_OP_EMBEDDING    ? c->desc.embedding.vocabulary
                                : c->desc.head.op == SEQLSTM_OP_LOSS       ? c->desc.loss.features
                                : c->desc.head.op == SEQLSTM_OP_DENSE_LOSS ? c->desc.dense_loss.output
                                                                           : rows;
        slots[s] = buffer(elems * sl_dtype_bytes(signature[s].dtype));
        fill(&signature[s], slots[s], elems, classes);
        if (signature[s].role != SL_SLOT_CONST && signature[s].role != SL_SLOT_INOUT) {
            grads[s] = buffer(elems * sl_dtype_bytes(signature[s].dtype));
            fill(&signature[s], grads[s], elems, 1);
        }
    }
    struct seqlstm_step step = {.struct_size = sizeof step,
                                .seed = 1,
                                .update = 10,
                                .normaliser = 1e-3f,
                                .loss_scale = 1.0f,
                                .learning_rate = 1e-3f,
                                .grad_scale = 1.0f,
                                .alpha = 0.5f};
    void *workspace = buffer((int64_t)sizes.workspace_bytes), *reserve = buffer((int64_t)sizes.reserve_bytes);
    struct seqlstm_forward f = {.struct_size = sizeof f,
                                .slot_count = (uint32_t)count,
                                .slots = slots,
                                .workspace = workspace,
                                .reserve = reserve,
                                .step = &step};
    struct seqlstm_backward g = {.struct_size = sizeof g,
                                 .slot_count = (uint32_t)count,
                                 .slots = slots,
                                 .grads = grads,
                                 .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS,
                                 .workspace = workspace,
                                 .reserve = reserve,
                                 .step = &step};
    double forward = 1e99, backward = 1e99;
    struct seqlstm_queue *queue = (struct seqlstm_queue *)&b->queue.queue;
    const double until = now_ns() + 4e8;
    for (int i = 0; i < 5 || now_ns() < until; i++) {
        double t0 = now_ns();
        b->table->forward(binding, queue, &f, &err);
        double t1 = now_ns();
        forward = t1 - t0 < forward ? t1 - t0 : forward;
        if (c->backward_bytes == 0.0)
            continue;
        b->table->backward(binding, queue, &g, &err);
        double t2 = now_ns();
        backward = t2 - t1 < backward ? t2 - t1 : backward;
    }
    printf("%-34s %9.1f us %5.1f GB/s %6.1f GF/s %3.0f %%", c->name, forward / 1e3, c->forward_bytes / forward,
           c->flops / forward, 100 * fraction(b, c->flops, c->forward_bytes, forward));
    if (c->backward_bytes > 0.0)
        printf(" | %9.1f us %5.1f GB/s %6.1f GF/s %3.0f %%", backward / 1e3, c->backward_bytes / backward,
               2 * c->flops / backward, 100 * fraction(b, 2 * c->flops, c->backward_bytes, backward));
    printf("\n");
    fflush(stdout);
    b->table->binding_destroy(binding);
    b->table->op_destroy(op);
    for (int32_t s = 0; s < count; s++)
        free(slots[s]), free(grads[s]);
    free(workspace), free(reserve);
}

static struct seqlstm_desc head(uint32_t op, int64_t rows, const struct seqlstm_axis *axis)
{
    return (struct seqlstm_desc){.struct_size = sl_op_desc_bytes(op),
                                 .op = op,
                                 .mode = SEQLSTM_MODE_TRAINING,
                                 .max_rows = rows,
                                 .max_sequences = axis->sequences,
                                 .max_steps = axis->steps};
}

/* The row operations of ptb-small (20 streams of 20 words, 200 units, 10000 words) and some others. */
static void run_cases(const struct bench *b, const struct seqlstm_axis *axis)
{
    const int64_t r = axis->rows, e = 200, v = 10000, n = 4651600;
    const double re = 4.0 * (double)(r * e), rv = 4.0 * (double)(r * v), ve = 4.0 * (double)(v * e),
                 p = 4.0 * (double)n;
    struct bench_case c = {.name = "embedding 10000x200"};
    c.desc.embedding = (struct seqlstm_embedding_desc){head(SEQLSTM_OP_EMBEDDING, r, axis), v, e};
    c.forward_bytes = 2 * re, c.backward_bytes = ve + 3 * re;
    run(b, &c, axis, r);
    static const struct {
        const char *name;
        int64_t in, out;
    } dense[] = {{"dense 200-800", 200, 800},
                 {"dense 1000-512 tanh", 1000, 512},
                 {"dense 64-1", 64, 1},
                 {"dense 650-10000", 650, 10000}};
    for (size_t i = 0; i < sizeof dense / sizeof *dense; i++) {
        const int64_t in = dense[i].in, out = dense[i].out;
        memset(&c, 0, sizeof c);
        c.name = dense[i].name;
        c.desc.dense = (struct seqlstm_dense_desc){.head = head(SEQLSTM_OP_DENSE, r, axis),
                                                   .input = in,
                                                   .output = out,
                                                   .options = SEQLSTM_BIT_DENSE_USE_BIAS,
                                                   .activation = {.kind = i == 1 ? SEQLSTM_ACT_TANH : 0}};
        c.flops = 2.0 * (double)(r * in * out);
        c.forward_bytes = 4.0 * (double)(r * in + in * out + r * out), c.backward_bytes = 2 * c.forward_bytes;
        run(b, &c, axis, r);
    }
    static const int64_t few[] = {1, 8, 50, 128};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        static const char *const names[] = {"dense 1000-512, 1 row", "dense 1000-512, 8 rows",
                                            "dense 1000-512, 50 rows", "dense 1000-512, 128 rows"};
        memset(&c, 0, sizeof c), c.name = names[i];
        c.desc.dense = (struct seqlstm_dense_desc){.head = head(SEQLSTM_OP_DENSE, r, axis),
                                                   .input = 1000,
                                                   .output = 512,
                                                   .options = SEQLSTM_BIT_DENSE_USE_BIAS};
        c.flops = 2.0 * (double)(few[i] * 1000 * 512);
        c.forward_bytes = 4.0 * 1000 * 512, c.backward_bytes = 2 * c.forward_bytes;
        run(b, &c, axis, few[i]);
    }
    static const char *const variants[] = {"stored", "recomputed"};
    for (int i = 0; i < 4; i++) {
        const int64_t in = i & 2 ? 1500 : e;
        static const char *const names[] = {"dense_loss 200-10000 stored", "dense_loss 200-10000 recomputed",
                                            "dense_loss 1500-10000 stored", "dense_loss 1500-10000 recomputed"};
        memset(&c, 0, sizeof c);
        c.name = names[i], c.variant = variants[i & 1];
        c.desc.dense_loss = (struct seqlstm_dense_loss_desc){.head = head(SEQLSTM_OP_DENSE_LOSS, r, axis),
                                                             .input = in,
                                                             .output = v,
                                                             .dense_options = SEQLSTM_BIT_DENSE_USE_BIAS,
                                                             .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY};
        c.flops = 2.0 * (double)(r * in * v);
        c.forward_bytes = 4.0 * (double)(in * v + r * in), c.backward_bytes = 2 * c.forward_bytes;
        run(b, &c, axis, r);
    }
    memset(&c, 0, sizeof c), c.name = "dense_loss 128-65 (char-lm)";
    c.desc.dense_loss = (struct seqlstm_dense_loss_desc){.head = head(SEQLSTM_OP_DENSE_LOSS, r, axis),
                                                         .input = 128,
                                                         .output = 65,
                                                         .dense_options = SEQLSTM_BIT_DENSE_USE_BIAS,
                                                         .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY};
    c.flops = 2.0 * (double)(r * 128 * 65), c.forward_bytes = 4.0 * (double)(r * 193),
    c.backward_bytes = 2 * c.forward_bytes;
    run(b, &c, axis, r);
    memset(&c, 0, sizeof c), c.name = "loss cross_entropy 10000";
    c.desc.loss = (struct seqlstm_loss_desc){
        .head = head(SEQLSTM_OP_LOSS, r, axis), .features = v, .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY};
    c.forward_bytes = rv, c.backward_bytes = 2 * rv;
    run(b, &c, axis, r);
    for (uint32_t mask = 0; mask < 2; mask++) {
        memset(&c, 0, sizeof c), c.name = mask ? "dropout 200 sequence" : "dropout 200 step";
        c.desc.dropout = (struct seqlstm_dropout_desc){head(SEQLSTM_OP_DROPOUT, r, axis), e, 1, 0.5f, mask};
        c.forward_bytes = c.backward_bytes = 2 * re;
        run(b, &c, axis, r);
    }
    memset(&c, 0, sizeof c), c.name = "activation tanh 200";
    c.desc.activation =
        (struct seqlstm_activation_desc){head(SEQLSTM_OP_ACTIVATION, r, axis), e, {SEQLSTM_ACT_TANH, 0, 0, 0}};
    c.forward_bytes = 2 * re, c.backward_bytes = 3 * re;
    run(b, &c, axis, r);
    memset(&c, 0, sizeof c), c.name = "layer_norm 200";
    c.desc.layer_norm = (struct seqlstm_layer_norm_desc){head(SEQLSTM_OP_LAYER_NORM, r, axis), e, 1e-3f, 3};
    c.forward_bytes = 2 * re, c.backward_bytes = 3 * re;
    run(b, &c, axis, r);
    memset(&c, 0, sizeof c), c.name = "pool mean 200";
    c.desc.pool = (struct seqlstm_pool_desc){head(SEQLSTM_OP_POOL, r, axis), e, SEQLSTM_KIND_POOL_MEAN, 0};
    c.forward_bytes = c.backward_bytes = re;
    run(b, &c, axis, r);
    memset(&c, 0, sizeof c), c.name = "gather 200";
    c.desc.gather = (struct seqlstm_gather_desc){head(SEQLSTM_OP_GATHER, r, axis), e};
    c.forward_bytes = 2 * re, c.backward_bytes = 4 * re;
    run(b, &c, axis, r);
    memset(&c, 0, sizeof c), c.name = "cast float32-bfloat16 10000";
    c.desc.cast =
        (struct seqlstm_cast_desc){head(SEQLSTM_OP_CAST, r, axis), v, SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_BFLOAT16};
    c.forward_bytes = c.backward_bytes = 1.5 * rv;
    run(b, &c, axis, r);
    memset(&c, 0, sizeof c), c.name = "top_k 1 of 10000";
    c.desc.top_k = (struct seqlstm_top_k_desc){.head = head(SEQLSTM_OP_TOP_K, r, axis), .features = v, .k = 1};
    c.forward_bytes = rv;
    run(b, &c, axis, r);
    static const char *const optimizers[] = {"",     "sgd",     "momentum", "nesterov",
                                             "adam", "rmsprop", "adagrad",  "adadelta"};
    static const double arrays[] = {0, 3, 5, 5, 7, 5, 5, 7}; /* read and written */
    for (uint32_t kind = SEQLSTM_KIND_OPTIMIZER_SGD; kind <= SEQLSTM_KIND_OPTIMIZER_ADADELTA; kind++) {
        memset(&c, 0, sizeof c), c.name = optimizers[kind];
        c.desc.optimizer =
            (struct seqlstm_optimizer_desc){.head = head(SEQLSTM_OP_OPTIMIZER, n, axis),
                                            .kind = kind,
                                            .beta_1 = 0.9f,
                                            .beta_2 = 0.999f,
                                            .rho = 0.9f,
                                            .momentum = kind == SEQLSTM_KIND_OPTIMIZER_RMSPROP ? 0.0f : 0.9f,
                                            .epsilon = 1e-7f};
        c.forward_bytes = arrays[kind] * p;
        run(b, &c, axis, n);
    }
    for (uint32_t op = SEQLSTM_OP_FINITE_CHECK; op <= SEQLSTM_OP_SQUARED_NORM; op++) {
        memset(&c, 0, sizeof c), c.name = op == SEQLSTM_OP_FINITE_CHECK ? "finite_check" : "squared_norm";
        c.desc.reduce = (struct seqlstm_reduce_desc){head(op, n, axis)};
        c.forward_bytes = p;
        run(b, &c, axis, n);
    }
    memset(&c, 0, sizeof c), c.name = "vector axpy";
    c.desc.vector = (struct seqlstm_vector_desc){head(SEQLSTM_OP_VECTOR, n, axis), SEQLSTM_KIND_VECTOR_AXPY, 0};
    c.forward_bytes = 3 * p;
    run(b, &c, axis, n);
}

static double copy_rate(struct sl_pool *pool, struct probe *p, int64_t bytes, int64_t repeats)
{
    double best = 1e99;
    p->bytes = bytes, p->repeats = repeats;
    for (int i = 0; i < 7; i++) {
        double t = now_ns();
        sl_pool_team(pool, probe_copy, p);
        t = now_ns() - t;
        best = t < best ? t : best;
    }
    return 2.0 * (double)bytes * (double)repeats / best;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_ops FILE.so [MEMBERS]\n");
        return 2;
    }
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct bench b = {0};
    static struct sl_host host;
    struct sl_pool *pool = NULL;
    void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void *symbol = module != NULL ? dlsym(module, SEQLSTM_QUERY_SYMBOL) : NULL;
    seqlstm_backend_query_fn query;
    memcpy(&query, &symbol, sizeof query);
    if (symbol == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    b.table = query(SEQLSTM_ABI_MINOR);
    sl_host_init_minimal(&host, "bench", NULL);
    if (b.table->open(&host.services, NULL, 0, &b.instance, &err) != SEQLSTM_OK ||
        sl_pool_create(argc > 2 ? atoi(argv[2]) : 1, &pool, &err) != SEQLSTM_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 3;
    }
    sl_queue_init(&b.queue, pool);
    const int32_t members = sl_pool_get_members(pool);
    if (members > 1)
        bench_clock = CLOCK_MONOTONIC;
    struct probe probe = {.from = buffer(64 << 20), .to = buffer(64 << 20)};
    sl_pool_team(pool, probe_flops, &probe);
    for (int32_t m = 0; m < members && m < 64; m++)
        b.gflops += probe.flops_ns[m];
    b.far_gbs = copy_rate(pool, &probe, 64 << 20, 1);
    b.near_gbs = copy_rate(pool, &probe, members * (256 << 10), 500);
    printf("%s, %d members: %.0f GF/s, copies %.0f GB/s of 64 MiB, %.0f GB/s of 256 KiB each\n", b.table->id, members,
           b.gflops, b.far_gbs, b.near_gbs);
    enum { B = 20, T = 20 };
    int32_t lengths[B], batch_sizes[T];
    int64_t row_offsets[T + 1];
    uint64_t ids[B];
    uint32_t positions[B] = {0};
    for (int i = 0; i < B; i++)
        lengths[i] = T, ids[i] = (uint64_t)i;
    for (int t = 0; t <= T; t++) {
        row_offsets[t] = (int64_t)t * B;
        if (t < T)
            batch_sizes[t] = B;
    }
    struct seqlstm_axis axis = {.struct_size = sizeof axis,
                                .flags = SEQLSTM_BIT_AXIS_UNIFORM,
                                .sequences = B,
                                .steps = T,
                                .rows = (int64_t)B * T,
                                .lengths = lengths,
                                .batch_sizes = batch_sizes,
                                .row_offsets = row_offsets,
                                .sequence_id = ids,
                                .position0 = positions};
    run_cases(&b, &axis);
    b.table->close(b.instance);
    sl_pool_destroy(pool);
    free(probe.from), free(probe.to);
    return 0;
}
