/* SPDX-License-Identifier: Apache-2.0 */
/* Speed of a backend's recurrent and dense operations through the ABI, as a fraction of the measured FMA peak.
 *
 *   bench_recurrent [--threads N] [--rounds N] [--cpu] [--variant V] [--option KEY=VALUE] [--list shapes|options]
 *                   [--against OLD.so] FILE.so [CASE]...
 *
 * A case is a string of the conformance kit, lstm:bwd:T30B32I64H64:f32:uniform:no_dx: `bwd` times one training step
 * (weights_pack, forward, backward), `inf` one inference; `dense` and `dense_loss` have T and B, too. Cases are timed
 * in turn, round after round; shown are the
 * least and the median of the rounds and their spread; with --cpu of processor time, for a machine that others use too.
 * With --against, each round times the case on the old module too; the table has the median of the rounds' ratios.
 * Products alone are counted as work. A processor changes its clock under such loads within a second: the peak is
 * measured anew before and after each case of each round, and what is shown is the median of the rounds' fractions of
 * the mean of both; `of tile` divides by the rate of a bare register tile instead (rates.h), which says what a core
 * with a busy neighbour leaves. The core-to-core round trip is measured before and after, because two-thread figures
 * depend on it. One markdown table on stdout.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/system/clock.h"
#include "base/operation/op_signature.h"
#include "base/system/pool.h"
#include "registry/host.h"
#include "judge/case.h"
#include "measure/flops.h"
#include "bench_machine.h"

enum { CASES_MAX = 96, ROUNDS_MAX = 101, SETTINGS_MAX = 8 };

static const char *const shapes[] = {
    "lstm:bwd:T30B1I64H64:f32:uniform:no_dx",
    "lstm:bwd:T30B8I64H64:f32:uniform:no_dx",
    "lstm:bwd:T30B32I64H64:f32:uniform:no_dx",
    "lstm:bwd:T30B128I64H64:f32:uniform:no_dx",
    "lstm:bwd:T30B512I64H64:f32:uniform:no_dx",
    "lstm:bwd:T30B1024I64H64:f32:uniform:no_dx",
    "lstm:bwd:T30B1I64H32:f32:uniform",
    "lstm:bwd:T30B32I64H32:f32:uniform",
    "lstm:bwd:T30B512I64H32:f32:uniform",
    "lstm:bwd:T35B20I650H650L2:f32:uniform",
    "lstm:bwd:T50B64I1024H1024:f32:uniform:no_dx",
    "lstm:bwd:T200B32I128H128D2:f32:uniform:no_dx",
    "lstm:inf:T30B1I64H64:f32:uniform",
    "lstm:inf:T30B8I64H64:f32:uniform",
    "lstm:inf:T30B32I64H64:f32:uniform",
    "lstm:inf:T30B128I64H64:f32:uniform",
    "lstm:inf:T30B512I64H64:f32:uniform",
    "lstm:inf:T35B20I650H650L2:f32:uniform",
    "lstm:inf:T50B64I1024H1024:f32:uniform",
    "lstm:inf:T200B32I128H128D2:f32:uniform",
};

static const char *const option_names[] = {
    "",
    "act=leaky_relu",
    "gate_act=hard_sigmoid",
    "act=softsign,out_act=relu",
    "peephole",
    "cell_clip=3",
    "gate_clip=3",
    "coupled_gates",
    "dropout=0.2",
    "recurrent_dropout=0.2",
    "zoneout_cell=0.1,zoneout_hidden=0.1",
    "weight_drop=0.5",
    "initial,final",
    "layer_norm",
};

struct bench {
    char text[SL_CASE_TEXT_BYTES];
    struct sl_case c;
    struct seqlstm_axis axis;
    struct seqlstm_op *op;
    struct seqlstm_binding *binding;
    struct seqlstm_sizes sizes;
    void *slots[SL_SLOTS_MAX], *grads[SL_SLOTS_MAX];
    int32_t slot_count;
    void *workspace, *reserve, *packed;
    bool unpacked; /* weights have not been packed yet */
    struct seqlstm_step step;
    double flops;
    const struct seqlstm_backend *table;
    int64_t calls;
    double ns[ROUNDS_MAX], of_peak[ROUNDS_MAX], of_tile[ROUNDS_MAX];
};

static void *buffer(uint64_t bytes)
{
    void *p = aligned_alloc(bytes >= (4u << 20) ? 2u << 20 : 64, (size_t)(bytes + 127) / 64 * 64);
    if (!p) {
        fprintf(stderr, "no memory for %llu bytes\n", (unsigned long long)bytes);
        exit(6);
    }
    if (bytes >= (4u << 20))
        madvise(p, (size_t)bytes, MADV_HUGEPAGE); /* as the host does */
    memset(p, 0, (size_t)(bytes + 127) / 64 * 64);
    return p;
}

static float *random_floats(int64_t n, float scale)
{
    float *x = buffer((uint64_t)n * sizeof *x);
    uint64_t seed = 88172645463325252u + (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = ((float)(seed >> 40) / 8388608.0f - 1.0f) * scale;
    }
    return x;
}

static void check(seqlstm_status status, const struct seqlstm_error *err, const char *what)
{
    if (status != SEQLSTM_OK) {
        fprintf(stderr, "%s: %s\n", what, err->message);
        exit(1);
    }
}

/* Equal lengths, or with `ragged` lengths that fall evenly from T to T / 4. */
static void axis_fill(struct bench *b)
{
    const int64_t sequences = b->c.sequences, steps = b->c.steps;
    int32_t *lengths = buffer((uint64_t)sequences * 4), *sizes = buffer((uint64_t)steps * 4);
    int64_t *offsets = buffer((uint64_t)(steps + 1) * 8);
    uint64_t *ids = buffer((uint64_t)sequences * 8);
    bool ragged = b->c.lengths == SL_LENGTHS_RAGGED;
    for (int64_t i = 0; i < sequences; i++) {
        lengths[i] = (int32_t)(ragged ? steps - i * (steps * 3 / 4) / sequences : steps);
        ids[i] = (uint64_t)i;
        for (int32_t t = 0; t < lengths[i]; t++)
            sizes[t]++;
    }
    for (int64_t t = 0; t < steps; t++)
        offsets[t + 1] = offsets[t] + sizes[t];
    b->axis = (struct seqlstm_axis){.struct_size = sizeof b->axis,
                                    .flags = ragged ? 0 : SEQLSTM_BIT_AXIS_UNIFORM,
                                    .sequences = sequences,
                                    .steps = steps,
                                    .rows = offsets[steps],
                                    .lengths = lengths,
                                    .batch_sizes = sizes,
                                    .row_offsets = offsets,
                                    .sequence_id = ids,
                                    .position0 = buffer((uint64_t)sequences * 4)};
}

static double work(const struct bench *b)
{
    const struct sl_node node = {.desc = b->c.desc};
    return sl_flops_count(&node, b->axis.rows, b->c.pass == SL_PASS_BACKWARD, !b->c.no_input_grad);
}

/* Classes, as the first slot of that type in a case has them: targets of a loss. */
static int32_t *random_classes(const struct bench *b, int64_t n)
{
    int32_t *classes = buffer((uint64_t)n * sizeof *classes);
    for (int64_t i = 0; i < n; i++)
        classes[i] = (int32_t)(i * 7919 % b->c.desc.dense_loss.output);
    return classes;
}

static void bench_open(struct bench *b, const char *text, const struct seqlstm_backend *table,
                       struct seqlstm_instance *instance, struct seqlstm_queue *queue, const char *variant)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memset(b, 0, sizeof *b);
    b->table = table;
    snprintf(b->text, sizeof b->text, "%s", text);
    check(sl_case_parse(text, &b->c, &err), &err, text);
    const uint32_t kind = b->c.desc.head.op;
    if (kind != SEQLSTM_OP_RECURRENT && kind != SEQLSTM_OP_DENSE && kind != SEQLSTM_OP_DENSE_LOSS) {
        fprintf(stderr, "%s: not a recurrent, dense or dense_loss case\n", text);
        exit(1);
    }
    bool training = b->c.pass != SL_PASS_INFERENCE;
    axis_fill(b);
    struct seqlstm_desc *head = &b->c.desc.head;
    head->mode = training ? SEQLSTM_MODE_TRAINING : SEQLSTM_MODE_INFERENCE;
    head->max_rows = b->axis.rows;
    head->max_sequences = b->axis.sequences;
    head->max_steps = b->axis.steps;
    check(table->op_create(instance, 0, head, variant, &b->op, &err), &err, text);
    b->sizes.struct_size = sizeof b->sizes;
    check(table->op_sizes(b->op, &b->sizes, &err), &err, text);
    struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                .rows = b->axis.rows,
                                .rows_in = b->axis.rows,
                                .axis = &b->axis,
                                .t0 = 0,
                                .t1 = b->axis.steps};
    check(table->op_bind(b->op, queue, &bind, &b->binding, &err), &err, text);
    struct sl_slot *slots = buffer(sizeof *slots * SL_SLOTS_MAX);
    check(sl_op_signature(head, slots, SL_SLOTS_MAX, &b->slot_count, &err), &err, text);
    const int64_t width = kind == SEQLSTM_OP_RECURRENT ? b->c.desc.recurrent.hidden
                          : kind == SEQLSTM_OP_DENSE   ? b->c.desc.dense.input
                                                       : b->c.desc.dense_loss.input;
    for (int32_t i = 0; i < b->slot_count; i++) {
        if (slots[i].role == SL_SLOT_ABSENT)
            continue;
        int64_t rows = slots[i].axis == SL_SLOT_ON_ROWS     ? b->axis.rows
                       : slots[i].axis == SL_SLOT_ON_STATES ? b->axis.sequences
                                                            : slots[i].rows;
        float scale = slots[i].role == SL_SLOT_PARAM ? 1.0f / sqrtf((float)width) : 1.0f;
        const int64_t elems = rows * slots[i].features;
        if (slots[i].dtype == SEQLSTM_DTYPE_FLOAT32) {
            b->slots[i] = random_floats(elems, scale);
            b->grads[i] = random_floats(elems, 1.0f);
        } else {
            b->slots[i] = slots[i].dtype == SEQLSTM_DTYPE_INT32
                              ? random_classes(b, elems)
                              : buffer((uint64_t)(elems * sl_dtype_bytes(slots[i].dtype)));
        }
    }
    if (b->c.no_input_grad)
        b->grads[SEQLSTM_SLOT_RECURRENT_X] = NULL;
    free(slots);
    b->workspace = buffer(b->sizes.workspace_bytes);
    b->reserve = buffer(b->sizes.reserve_bytes);
    b->packed = buffer(b->sizes.packed_bytes);
    b->step = (struct seqlstm_step){.struct_size = sizeof b->step, .seed = 1, .normaliser = 1, .loss_scale = 1};
    b->flops = work(b);
    b->unpacked = true;
}

/* Keeps the larger of two buffers for both. */
static void share_buffer(void **a, uint64_t a_bytes, void **b, uint64_t b_bytes)
{
    void **kept = a_bytes < b_bytes ? b : a, **other = kept == a ? b : a;
    free(*other);
    *other = *kept;
}

/* Two modules work in the same memory: where it lies alone is worth some percent of a small case. */
static void bench_share(struct bench *a, struct bench *b)
{
    for (int32_t i = 0; i < a->slot_count; i++) {
        share_buffer(&a->slots[i], 0, &b->slots[i], 0);
        share_buffer(&a->grads[i], 0, &b->grads[i], 0);
    }
    share_buffer(&a->workspace, a->sizes.workspace_bytes, &b->workspace, b->sizes.workspace_bytes);
    share_buffer(&a->reserve, a->sizes.reserve_bytes, &b->reserve, b->sizes.reserve_bytes);
    share_buffer(&a->packed, a->sizes.packed_bytes, &b->packed, b->sizes.packed_bytes);
}

static void bench_call(struct bench *b, struct seqlstm_queue *queue)
{
    const struct seqlstm_backend *table = b->table;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    bool training = b->c.pass != SL_PASS_INFERENCE;
    struct seqlstm_forward forward = {.struct_size = sizeof forward,
                                      .slot_count = (uint32_t)b->slot_count,
                                      .slots = b->slots,
                                      .workspace = b->workspace,
                                      .reserve = training ? b->reserve : NULL,
                                      .packed = b->sizes.packed_bytes ? b->packed : NULL,
                                      .step = &b->step};
    if ((training || b->unpacked) && table->weights_pack && b->sizes.packed_bytes)
        check(table->weights_pack(b->op, queue, b->slots, b->packed, &b->step, &err), &err, b->text);
    b->unpacked = false;
    check(table->forward(b->binding, queue, &forward, &err), &err, b->text);
    if (b->c.pass != SL_PASS_BACKWARD)
        return;
    struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                        .slot_count = (uint32_t)b->slot_count,
                                        .slots = b->slots,
                                        .grads = b->grads,
                                        .workspace = b->workspace,
                                        .reserve = b->reserve,
                                        .packed = b->sizes.packed_bytes ? b->packed : NULL,
                                        .step = &b->step,
                                        .parts = SEQLSTM_BIT_BACKWARD_WEIGHTS |
                                                 (b->c.no_input_grad ? 0 : SEQLSTM_BIT_BACKWARD_INPUTS)};
    check(table->backward(b->binding, queue, &backward, &err), &err, b->text);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void by_size(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
}

struct arguments {
    int32_t threads;
    int rounds;
    bool cpu; /* processor time instead of real time */
    const char *variant, *file, *against;
    struct seqlstm_setting settings[SETTINGS_MAX];
    uint32_t setting_count;
    char cases[CASES_MAX][SL_CASE_TEXT_BYTES];
    int count;
};

static void add_case(struct arguments *a, const char *text)
{
    if (a->count < CASES_MAX)
        snprintf(a->cases[a->count++], sizeof a->cases[0], "%s", text);
}

static void add_list(struct arguments *a, const char *list)
{
    static const int batches[] = {1, 32, 512};
    char text[SL_CASE_TEXT_BYTES];
    for (size_t i = 0; strcmp(list, "shapes") == 0 && i < sizeof shapes / sizeof *shapes; i++)
        add_case(a, shapes[i]);
    for (size_t k = 0; strcmp(list, "options") == 0 && k < 3; k++)
        for (size_t i = 0; i < sizeof option_names / sizeof *option_names; i++) {
            snprintf(text, sizeof text, "lstm:bwd:T30B%dI64H64:f32:uniform:no_dx%s%s", batches[k],
                     option_names[i][0] ? "," : "", option_names[i]);
            add_case(a, text);
        }
}

static void parse(int argc, char **argv, struct arguments *a)
{
    a->threads = 1;
    a->rounds = 21;
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--threads") == 0) {
            a->threads = (int32_t)strtol(next, NULL, 10), i++;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            a->rounds = (int)strtol(next, NULL, 10), i++;
        } else if (strcmp(argv[i], "--variant") == 0) {
            a->variant = next, i++;
        } else if (strcmp(argv[i], "--against") == 0) {
            a->against = next, i++;
        } else if (strcmp(argv[i], "--cpu") == 0) {
            a->cpu = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            add_list(a, next), i++;
        } else if (strcmp(argv[i], "--option") == 0 && a->setting_count < SETTINGS_MAX) {
            char *equals = strchr(argv[++i], '=');
            if (equals)
                *equals = 0;
            a->settings[a->setting_count++] = (struct seqlstm_setting){argv[i], equals ? equals + 1 : ""};
        } else if (!a->file) {
            a->file = argv[i];
        } else {
            add_case(a, argv[i]);
        }
    }
    if (a->rounds < 1 || a->rounds > ROUNDS_MAX)
        a->rounds = ROUNDS_MAX;
    if (a->count == 0)
        add_list(a, "shapes");
}

/* Time of the first case with the same pass and sizes: what an option is compared to. */
static double plain_ns(const struct bench *benches, int i)
{
    size_t head = 0, colons = 0;
    while (benches[i].text[head] && colons < 5)
        colons += benches[i].text[head++] == ':';
    for (int k = 0; k <= i; k++)
        if (strncmp(benches[k].text, benches[i].text, head) == 0)
            return benches[k].ns[0];
    return benches[i].ns[0];
}

/* One case of one module, once per round. */
static void bench_round(struct bench *b, const struct arguments *a, int round, struct seqlstm_queue *queue,
                        struct sl_pool *pool, double *io_least, double *io_most)
{
    static _Alignas(64) float operands[BENCH_TILE_BYTES / sizeof(float) + 1024];
    double peak = bench_peak_measure(pool, a->threads, NULL), tile = bench_peak_measure(pool, a->threads, operands);
    b->unpacked = true; /* the other module packs into the same memory */
    bench_call(b, queue);
    int64_t t = a->cpu ? sl_clock_process_cpu_ns() : sl_clock_ns();
    for (int64_t k = 0; k < b->calls; k++)
        bench_call(b, queue);
    int64_t end = a->cpu ? sl_clock_process_cpu_ns() : sl_clock_ns();
    b->ns[round] = (double)(end - t) / (double)b->calls;
    peak = (peak + bench_peak_measure(pool, a->threads, NULL)) / 2;
    tile = (tile + bench_peak_measure(pool, a->threads, operands)) / 2;
    b->of_peak[round] = peak > 0 ? b->flops / b->ns[round] / peak : 0;
    b->of_tile[round] = tile > 0 ? b->flops / b->ns[round] / tile : 0;
    *io_least = peak < *io_least ? peak : *io_least;
    *io_most = peak > *io_most ? peak : *io_most;
}

static const struct seqlstm_backend *module_open(const char *file, struct arguments *a,
                                                 struct seqlstm_instance **out_instance)
{
    static struct sl_host hosts[2];
    static int used;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    void *module = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!module) {
        fprintf(stderr,
                "usage: bench_recurrent [--threads N] [--rounds N] [--variant V] [--option K=V] [--cpu]\n"
                "                       [--list shapes|options] [--against OLD.so] FILE.so [CASE]...\n%s\n",
                file ? dlerror() : "");
        exit(2);
    }
    void *symbol = dlsym(module, SEQLSTM_QUERY_SYMBOL);
    seqlstm_backend_query_fn query;
    memcpy(&query, &symbol, sizeof query);
    const struct seqlstm_backend *table = query(SEQLSTM_ABI_MINOR);
    struct sl_host *host = &hosts[used++];
    sl_host_init_minimal(host, table->id, NULL);
    check(table->open(&host->services, a->settings, a->setting_count, out_instance, &err), &err, "open");
    return table;
}

static void show(const struct bench *benches, const struct arguments *a)
{
    printf("| case | least us | median us | spread | GFLOP/s | of peak | to plain | of tile |\n"
           "|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < a->count; i++) {
        const struct bench *b = &benches[i];
        double median = b->ns[a->rounds / 2], spread = b->ns[a->rounds * 3 / 4] / b->ns[a->rounds / 4] - 1;
        printf("| %s | %.1f | %.1f | %.0f %% | %.1f | %.2f | %.2f | %.2f |\n", b->text, b->ns[0] / 1e3, median / 1e3,
               100 * spread, b->flops / b->ns[0], b->of_peak[a->rounds / 2], b->ns[0] / plain_ns(benches, i),
               b->of_tile[a->rounds / 2]);
    }
}

/* `ratios`: old to new of each round, in order of size. */
static void show_against(const struct bench *new, const struct bench *old, const double *ratios,
                         const struct arguments *a)
{
    printf("| %s | %.1f | %.1f | %.3f | %.0f %% | %.3f | %.3f |\n", new->text, old->ns[0] / 1e3, new->ns[0] / 1e3,
           ratios[a->rounds / 2], 100 * (ratios[a->rounds * 3 / 4] / ratios[a->rounds / 4] - 1),
           old->of_peak[a->rounds / 2], new->of_peak[a->rounds / 2]);
}

int main(int argc, char **argv)
{
    static struct arguments a;
    parse(argc, argv, &a);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_instance *instances[2] = {NULL, NULL};
    const struct seqlstm_backend *tables[2];
    const int modules = a.against ? 2 : 1;
    struct sl_pool *pool = NULL;
    if (a.threads > 1)
        check(sl_pool_create(a.threads, &pool, &err), &err, "pool");
    struct sl_queue queue;
    sl_queue_init(&queue, pool);
    struct bench *benches = buffer(sizeof *benches * (size_t)(a.count * modules));
    for (int m = 0; m < modules; m++) {
        tables[m] = module_open(m ? a.against : a.file, &a, &instances[m]);
        for (int i = 0; i < a.count; i++) {
            struct bench *b = &benches[m * a.count + i];
            bench_open(b, a.cases[i], tables[m], instances[m], &queue.queue, a.variant);
            bench_call(b, &queue.queue);
            int64_t t = sl_clock_ns();
            bench_call(b, &queue.queue);
            int64_t ns = sl_clock_ns() - t;
            b->calls = ns < 4000000 ? 4000000 / (ns + 1) + 1 : 1;
        }
    }
    for (int i = 0; a.against && i < a.count; i++)
        bench_share(&benches[i], &benches[a.count + i]);
    double least = INFINITY, most = 0, before = bench_round_trip(pool);
    for (int round = 0; round < a.rounds; round++)
        for (int i = 0; i < a.count * modules; i++) /* old and new in turn, and in turns the first */
            bench_round(&benches[i / modules + (i + round) % modules * a.count], &a, round, &queue.queue, pool, &least,
                        &most);
    printf("%s %s, %d thread%s, FMA peak %.0f to %.0f GFLOP/s", tables[0]->id, tables[0]->version, a.threads,
           a.threads > 1 ? "s" : "", least, most);
    if (pool)
        printf(", round trip %.0f ns before, %.0f ns after", before, bench_round_trip(pool));
    printf("\n\n");
    if (a.against)
        printf("| case | old least us | new least us | old / new | spread | old of peak | new of peak |\n"
               "|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < a.count; i++) {
        struct bench *new = &benches[i], *old = a.against ? &benches[a.count + i] : new;
        double ratios[ROUNDS_MAX];
        for (int round = 0; round < a.rounds; round++)
            ratios[round] = old->ns[round] / new->ns[round];
        by_size(ratios, a.rounds);
        by_size(new->ns, a.rounds);
        by_size(new->of_peak, a.rounds);
        by_size(new->of_tile, a.rounds);
        if (!a.against)
            continue;
        by_size(old->ns, a.rounds);
        by_size(old->of_peak, a.rounds);
        show_against(new, old, ratios, &a);
    }
    if (!a.against)
        show(benches, &a);
    return 0;
}
