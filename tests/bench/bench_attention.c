/* SPDX-License-Identifier: Apache-2.0 */
/* Times ATTENTION of a backend against loops over queries, in one run, in turn.
 *
 *   bench_attention FILE.so [MEMBERS]
 *
 * The loops are what one would write first: for each query dot products with the rows of its memory, a softmax, a
 * weighted sum; compiled as this file is, one thread. Sizes of translation: packed target steps of 64 sentences in
 * training, one step of beams in decoding. Best of many calls.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <seqlstm/backend.h>

#include "base/system/pool.h"
#include "registry/host.h"

enum { ROUNDS = 15 };

struct shape {
    const char *name;
    int64_t memories, longest, steps; /* queries: steps for each memory, packed; or beams of one step */
    int64_t width;
    uint32_t kind, mode;
    bool beams;
};

struct world {
    const struct shape *shape;
    int64_t queries, rows;
    int32_t *offsets, *memory_of;
    float *query, *keys, *context, *score, *weights; /* keys are the values */
    float *dquery, *dkeys, *dcontext, *dscore;
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *zeros(int64_t elems)
{
    void *p = aligned_alloc(64, ((size_t)elems * 4 + 127) / 64 * 64);
    if (p == NULL)
        exit(3);
    memset(p, 0, ((size_t)elems * 4 + 127) / 64 * 64);
    return p;
}

static float *numbers(int64_t elems, float size)
{
    float *p = zeros(elems);
    uint32_t state = 1;
    for (int64_t i = 0; i < elems; i++) {
        state = state * 1664525u + 1013904223u;
        p[i] = ((float)(state >> 8) * 0x1p-24f - 0.5f) * size;
    }
    return p;
}

/* Lengths between half of the longest and the longest. */
static void make(struct world *w, const struct shape *s)
{
    memset(w, 0, sizeof *w);
    w->shape = s;
    w->offsets = zeros(s->memories + 1);
    w->memory_of = zeros(s->memories * s->steps);
    for (int64_t m = 0; m < s->memories; m++)
        w->offsets[m + 1] = w->offsets[m] + (int32_t)(s->longest - m * s->longest / (2 * s->memories));
    w->rows = w->offsets[s->memories];
    for (int64_t t = 0; t < s->steps; t++)
        for (int64_t m = 0; m < s->memories; m++) {
            const int64_t q = s->beams ? m * s->steps + t : w->queries;
            if (!s->beams && t >= s->steps - m * s->steps / (2 * s->memories))
                break;
            w->memory_of[q] = (int32_t)m;
            w->queries++;
        }
    w->query = numbers(w->queries * s->width, 1);
    w->keys = numbers(w->rows * s->width, 1);
    w->score = numbers(s->width, 0.1f);
    w->context = zeros(w->queries * s->width);
    w->weights = zeros(w->queries * s->longest);
    w->dcontext = numbers(w->queries * s->width, 1);
    w->dquery = zeros(w->queries * s->width);
    w->dkeys = zeros(w->rows * s->width);
    w->dscore = zeros(s->width);
}

static void release(struct world *w)
{
    void *all[] = {w->offsets, w->memory_of, w->query, w->keys,     w->context, w->score,
                   w->weights, w->dquery,    w->dkeys, w->dcontext, w->dscore};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* ---- the loops ----------------------------------------------------------------------------------- */

static void loop_forward(struct world *w)
{
    const int64_t n = w->shape->width;
    for (int64_t q = 0; q < w->queries; q++) {
        const int64_t first = w->offsets[w->memory_of[q]], length = w->offsets[w->memory_of[q] + 1] - first;
        float *a = w->weights + q * w->shape->longest, most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < length; j++) {
            const float *k = w->keys + (first + j) * n, *x = w->query + q * n;
            a[j] = 0;
            for (int64_t i = 0; i < n; i++)
                a[j] += w->shape->kind == SEQLSTM_KIND_ATTENTION_DOT ? x[i] * k[i] : w->score[i] * tanhf(x[i] + k[i]);
            most = a[j] > most ? a[j] : most;
        }
        for (int64_t j = 0; j < length; j++)
            sum += a[j] = expf(a[j] - most);
        memset(w->context + q * n, 0, (size_t)n * sizeof(float));
        for (int64_t j = 0; j < length; j++) {
            a[j] /= sum;
            for (int64_t i = 0; i < n; i++)
                w->context[q * n + i] += a[j] * w->keys[(first + j) * n + i];
        }
    }
}

static void loop_backward(struct world *w)
{
    const int64_t n = w->shape->width;
    float da[512];
    memset(w->dquery, 0, (size_t)(w->queries * n) * sizeof(float));
    memset(w->dkeys, 0, (size_t)(w->rows * n) * sizeof(float));
    memset(w->dscore, 0, (size_t)n * sizeof(float));
    for (int64_t q = 0; q < w->queries; q++) {
        const int64_t first = w->offsets[w->memory_of[q]], length = w->offsets[w->memory_of[q] + 1] - first;
        const float *a = w->weights + q * w->shape->longest, *dc = w->dcontext + q * n, *x = w->query + q * n;
        float mean = 0;
        for (int64_t j = 0; j < length; j++) {
            da[j] = 0;
            for (int64_t i = 0; i < n; i++)
                da[j] += dc[i] * w->keys[(first + j) * n + i];
            mean += a[j] * da[j];
        }
        for (int64_t j = 0; j < length; j++) {
            const float de = a[j] * (da[j] - mean), *k = w->keys + (first + j) * n;
            float *dk = w->dkeys + (first + j) * n, *dx = w->dquery + q * n;
            for (int64_t i = 0; i < n; i++) {
                float fx = de * k[i], fk = de * x[i];
                if (w->shape->kind == SEQLSTM_KIND_ATTENTION_ADDITIVE) {
                    const float t = tanhf(x[i] + k[i]);
                    fx = fk = de * w->score[i] * (1 - t * t);
                    w->dscore[i] += de * t;
                }
                dx[i] += fx;
                dk[i] += fk + a[j] * dc[i];
            }
        }
    }
}

/* ---- both -------------------------------------------------------------------------------------------- */

static double largest_difference(const float *a, const float *b, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static void compare(const struct seqlstm_backend *table, struct seqlstm_instance *instance, struct seqlstm_queue *queue,
                    const struct shape *s)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world mine, theirs;
    make(&mine, s);
    make(&theirs, s);
    const int64_t most = mine.queries > mine.rows ? mine.queries : mine.rows;
    struct seqlstm_attention_desc d = {.head = {.struct_size = sizeof d,
                                                .op = SEQLSTM_OP_ATTENTION,
                                                .mode = s->mode,
                                                .max_rows = most,
                                                .max_sequences = s->memories,
                                                .max_steps = s->longest},
                                       .key = s->width,
                                       .value = s->width,
                                       .kind = s->kind,
                                       .options = SEQLSTM_BIT_ATTENTION_SHARED,
                                       .scale = s->kind == SEQLSTM_KIND_ATTENTION_DOT ? 1.0f : 0.0f};
    struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = mine.queries, .rows_in = mine.rows};
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    struct seqlstm_step step = {.struct_size = sizeof step};
    struct seqlstm_op *op;
    struct seqlstm_binding *binding;
    if (table->op_create(instance, 0, &d.head, NULL, &op, &err) != SEQLSTM_OK ||
        table->op_sizes(op, &sizes, &err) != SEQLSTM_OK ||
        table->op_bind(op, queue, &bind, &binding, &err) != SEQLSTM_OK) {
        printf("%-26s %s\n", s->name, err.message);
        return;
    }
    void *workspace = zeros((int64_t)sizes.workspace_bytes / 4 + 1),
         *reserve = zeros((int64_t)sizes.reserve_bytes / 4 + 1);
    void *slots[SEQLSTM_SLOT_ATTENTION_COUNT] = {
        theirs.query,   theirs.keys,      NULL, theirs.context,
        theirs.offsets, theirs.memory_of, NULL, d.scale > 0 ? NULL : theirs.score};
    void *grads[SEQLSTM_SLOT_ATTENTION_COUNT] = {theirs.dquery, theirs.dkeys, NULL, theirs.dcontext,
                                                 NULL,          NULL,         NULL, d.scale > 0 ? NULL : theirs.dscore};
    struct seqlstm_forward f = {.struct_size = sizeof f,
                                .slot_count = SEQLSTM_SLOT_ATTENTION_COUNT,
                                .slots = slots,
                                .workspace = workspace,
                                .reserve = reserve,
                                .step = &step};
    struct seqlstm_backward b = {.struct_size = sizeof b,
                                 .slot_count = SEQLSTM_SLOT_ATTENTION_COUNT,
                                 .slots = slots,
                                 .grads = grads,
                                 .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS,
                                 .workspace = workspace,
                                 .reserve = reserve,
                                 .step = &step};
    const bool training = s->mode == SEQLSTM_MODE_TRAINING;
    double best[4] = {1e18, 1e18, 1e18, 1e18};
    for (int round = 0; round < ROUNDS; round++) {
        double at[5] = {now_ns()};
        table->forward(binding, queue, &f, &err);
        at[1] = now_ns();
        if (training)
            table->backward(binding, queue, &b, &err);
        at[2] = now_ns();
        if (round % 5 == 0) {
            loop_forward(&mine);
            at[3] = now_ns();
            if (training)
                loop_backward(&mine);
            at[4] = now_ns();
        }
        for (int k = 0; k < (round % 5 == 0 ? 4 : 2); k++)
            best[k] = at[k + 1] - at[k] < best[k] ? at[k + 1] - at[k] : best[k];
    }
    double pairs = 0;
    for (int64_t q = 0; q < mine.queries; q++)
        pairs += mine.offsets[mine.memory_of[q] + 1] - mine.offsets[mine.memory_of[q]];
    const double flops = pairs * (double)s->width * 4;
    printf("%-26s %6lld queries %5.0f GF/s  forward %8.1f us, loops %9.1f us: %5.1fx", s->name, (long long)mine.queries,
           flops / best[0], best[0] / 1e3, best[2] / 1e3, best[2] / best[0]);
    if (training)
        printf("  backward %8.1f us, loops %9.1f us: %5.1fx", best[1] / 1e3, best[3] / 1e3, best[3] / best[1]);
    printf("  (differ by %.1e, %.1e)\n", largest_difference(mine.context, theirs.context, mine.queries * s->width),
           largest_difference(mine.dkeys, theirs.dkeys, mine.rows * s->width));
    table->binding_destroy(binding);
    table->op_destroy(op);
    free(workspace), free(reserve);
    release(&mine), release(&theirs);
}

int main(int argc, char **argv)
{
    enum {
        DOT = SEQLSTM_KIND_ATTENTION_DOT,
        ADD = SEQLSTM_KIND_ATTENTION_ADDITIVE,
        LEARN = SEQLSTM_MODE_TRAINING,
        INFER = SEQLSTM_MODE_INFERENCE
    };
    static const struct shape shapes[] = {
        {"train dot 512", 64, 20, 20, 512, DOT, LEARN, false},
        {"train dot 1024", 128, 30, 30, 1024, DOT, LEARN, false},
        {"train additive 512", 64, 20, 20, 512, ADD, LEARN, false},
        {"one step dot 512", 64, 20, 1, 512, DOT, LEARN, false},
        {"beams dot 512", 32, 20, 5, 512, DOT, INFER, true},
        {"beams additive 512", 32, 20, 5, 512, ADD, INFER, true},
        {"greedy dot 512", 1, 20, 1, 512, DOT, INFER, true},
    };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static struct sl_host host;
    struct sl_pool *pool = NULL;
    struct sl_queue queue;
    struct seqlstm_instance *instance;
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = module != NULL ? dlsym(module, SEQLSTM_QUERY_SYMBOL) : NULL;
    seqlstm_backend_query_fn query;
    memcpy(&query, &symbol, sizeof query);
    if (symbol == NULL) {
        fprintf(stderr, "usage: bench_attention FILE.so [MEMBERS]\n");
        return 2;
    }
    const struct seqlstm_backend *table = query(SEQLSTM_ABI_MINOR);
    sl_host_init_minimal(&host, "bench", NULL);
    if (table->open(&host.services, NULL, 0, &instance, &err) != SEQLSTM_OK ||
        sl_pool_create(argc > 2 ? atoi(argv[2]) : 1, &pool, &err) != SEQLSTM_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 3;
    }
    sl_queue_init(&queue, pool);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        compare(table, instance, &queue.queue, &shapes[i]);
    table->close(instance);
    sl_pool_destroy(pool);
    return 0;
}
