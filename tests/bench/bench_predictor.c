/* SPDX-License-Identifier: Apache-2.0 */
/* What a call costs with a prepared predictor, for a model of the adding problem. Driven by predictor.py, which makes
 * the runs.
 *
 *   bench_predictor step  RUN CALLS           one stream, one step a call: median, 99.9th percentile, page faults; then
 *                                             the same of a loop that only looks at the clock for the median time
 *   bench_predictor many  RUN STREAMS WIDTH   all streams, one step each, in batches of WIDTH: time of a stream-step
 *   bench_predictor cells RUN THREADS T:B...  whole sequences, B of T steps: a line "steps sequences median_us least_us
 *                                             calls" each
 *   bench_predictor beside RUN THREADS LIBRARY MODEL.onnx ROUNDS T:B...
 *                                             the same in turn with ONNX Runtime, through its C API: lines "steps
 *                                             sequences ours_us theirs_us rounds least median most" with the medians of
 *                                             the rounds and of their ratios, theirs by ours
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <seqlstm/seqlstm.h>

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static long count_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static void need(seqlstm_status status, const struct seqlstm_error *err)
{
    if (status == SEQLSTM_OK)
        return;
    fprintf(stderr, "bench_predictor: %s\n", err->message);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void show(const char *what, int64_t *times, int64_t count, long faults)
{
    qsort(times, (size_t)count, sizeof *times, by_value);
    printf("%s: min %.3f p50 %.3f p99 %.3f p99.9 %.3f us, %ld page faults in %lld calls\n", what,
           (double)times[0] * 1e-3, (double)times[count / 2] * 1e-3, (double)times[count * 99 / 100] * 1e-3,
           (double)times[count * 999 / 1000] * 1e-3, faults, (long long)count);
}

/* What the machine takes away: nothing but the clock is between the two ends of a call. */
static void wait_as_long(int64_t *times, int64_t calls, int64_t ns)
{
    const long faults = count_faults();
    for (int64_t c = 0; c < calls; c++) {
        const int64_t begin = now_ns();
        int64_t now = begin;
        while (now - begin < ns)
            now = now_ns();
        times[c] = now - begin;
    }
    show("empty loop", times, calls, count_faults() - faults);
}

static void step(struct seqlstm_predictor *p, struct seqlstm_context *k, int64_t calls, struct seqlstm_error *err)
{
    struct seqlstm_stream *s = NULL;
    const float x[2] = {0.25f, 1};
    float y[1];
    int64_t *times = malloc((size_t)calls * sizeof *times);
    if (times == NULL)
        exit(1);
    memset(times, 1, (size_t)calls * sizeof *times); /* its pages */
    need(seqlstm_stream_open(p, &s, err), err);
    need(seqlstm_stream_step(k, s, x, 1, y, err), err);
    const long faults = count_faults();
    for (int64_t c = 0; c < calls; c++) {
        const int64_t begin = now_ns();
        need(seqlstm_stream_step(k, s, x, 1, y, err), err);
        times[c] = now_ns() - begin;
    }
    show("step", times, calls, count_faults() - faults);
    seqlstm_stream_close(s);
    wait_as_long(times, calls, times[calls / 2]);
    free(times);
}

static void many(struct seqlstm_predictor *p, struct seqlstm_context *k, int64_t count, struct seqlstm_error *err)
{
    enum { ROUNDS = 101 };
    struct seqlstm_stream **streams = malloc((size_t)count * sizeof *streams);
    float *x = calloc((size_t)count, 2 * sizeof *x), *y = calloc((size_t)count, sizeof *y);
    int64_t times[ROUNDS];
    if (streams == NULL || x == NULL || y == NULL)
        exit(1);
    for (int64_t s = 0; s < count; s++) {
        x[2 * s] = (float)(s % 100) / 100;
        need(seqlstm_stream_open(p, &streams[s], err), err);
    }
    need(seqlstm_streams_step(k, streams, count, x, y, err), err);
    const long faults = count_faults();
    for (int r = 0; r < ROUNDS; r++) {
        const int64_t begin = now_ns();
        need(seqlstm_streams_step(k, streams, count, x, y, err), err);
        times[r] = (now_ns() - begin) / count;
    }
    show("stream-step", times, ROUNDS, count_faults() - faults);
    for (int64_t s = 0; s < count; s++)
        seqlstm_stream_close(streams[s]);
    free(streams);
    free(x);
    free(y);
}

/* ---- whole sequences -------------------------------------------------------------------------------------------- */

enum { CALLS_MOST = 20000, STEPS_MOST = 2000, SEQUENCES_MOST = 512 };

/* What predicts for sequences of equal length. */
struct side {
    void (*call)(struct side *side, int64_t steps, int64_t sequences);
    struct seqlstm_context *context;
    struct peer *peer;
    float *x, *y;
    int64_t *lengths;
};

/* A cell of the table, from "T:B". */
struct cell {
    int64_t steps, sequences;
};

static struct cell read_cell(const char *text)
{
    char *end = NULL;
    const struct cell cell = {.steps = strtoll(text, &end, 10),
                              .sequences = *end == ':' ? strtoll(end + 1, NULL, 10) : 0};
    if (cell.steps < 1 || cell.steps > STEPS_MOST || cell.sequences < 1 || cell.sequences > SEQUENCES_MOST) {
        fprintf(stderr, "bench_predictor: %s, expected STEPS:SEQUENCES of at most %d:%d\n", text, STEPS_MOST,
                SEQUENCES_MOST);
        exit(2);
    }
    return cell;
}

/* Calls for `span_ns`, or three times, or as often as calls begin in the time of seven spans. */
static int64_t time_calls(struct side *side, const struct cell *cell, int64_t span_ns, int64_t *times)
{
    int64_t count = 0;
    side->call(side, cell->steps, cell->sequences);
    const int64_t start = now_ns();
    for (int64_t spent = 0; spent < span_ns || (count < 3 && spent < 7 * span_ns); spent = now_ns() - start) {
        if (count == CALLS_MOST)
            break;
        const int64_t begin = now_ns();
        side->call(side, cell->steps, cell->sequences);
        times[count++] = now_ns() - begin;
    }
    qsort(times, (size_t)count, sizeof *times, by_value);
    return count;
}

static void make_room(struct side *side)
{
    side->x = calloc((size_t)STEPS_MOST * SEQUENCES_MOST, 2 * sizeof *side->x);
    side->y = calloc(SEQUENCES_MOST, sizeof *side->y);
    side->lengths = calloc(SEQUENCES_MOST, sizeof *side->lengths);
    if (side->x == NULL || side->y == NULL || side->lengths == NULL)
        exit(1);
    for (int64_t r = 0; r < STEPS_MOST * SEQUENCES_MOST; r++)
        side->x[2 * r] = (float)(r % 100) / 100;
}

static void release_room(struct side *side)
{
    free(side->x);
    free(side->y);
    free(side->lengths);
}

static void time_cells(struct side *side, char **cells)
{
    static int64_t times[CALLS_MOST];
    make_room(side);
    for (; *cells; cells++) {
        const struct cell cell = read_cell(*cells);
        const int64_t count = time_calls(side, &cell, 150000000, times);
        printf("%lld %lld %.3f %.3f %lld\n", (long long)cell.steps, (long long)cell.sequences,
               (double)times[count / 2] * 1e-3, (double)times[0] * 1e-3, (long long)count);
        fflush(stdout);
    }
    release_room(side);
}

static void call_ours(struct side *side, int64_t steps, int64_t sequences)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int64_t s = 0; s < sequences; s++)
        side->lengths[s] = steps;
    need(seqlstm_predict(side->context, side->x, side->lengths, sequences, side->y, &err), &err);
}

/* ---- ONNX Runtime ----------------------------------------------------------------------------------------------- */

/* Its table of functions, by their places in version 1 of its C API, of which only these are used. */
enum {
    GET_MESSAGE = 2,
    CREATE_ENVIRONMENT = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_OPTIONS = 10,
    SET_INNER_THREADS = 24,
    SET_OUTER_THREADS = 25,
    CREATE_TENSOR = 49,
    CREATE_CPU_MEMORY = 69,
    RELEASE_VALUE = 96,
    TYPE_FLOAT = 1,
    TYPE_INT32 = 6,
    API_VERSION = 17
};

struct peer_base {
    const void *const *(*get_api)(uint32_t version);
};

struct peer {
    const void *const *api;
    void *session, *memory;
};

/* A function of the table, whose type the caller states. */
#define PEER(peer, place, type) ((void *(*)type)(uintptr_t)(peer)->api[place])

static void need_peer(const struct peer *peer, void *status)
{
    if (status == NULL)
        return;
    fprintf(stderr, "onnxruntime: %s\n", (const char *)PEER(peer, GET_MESSAGE, (void *))(status));
    exit(1);
}

static void open_peer(struct peer *peer, const char *library, const char *model, int threads)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *found = handle ? dlsym(handle, "OrtGetApiBase") : NULL;
    const struct peer_base *(*get_base)(void);
    void *environment = NULL, *options = NULL;
    if (found == NULL) {
        fprintf(stderr, "bench_predictor: %s\n", dlerror());
        exit(1);
    }
    memcpy(&get_base, &found, sizeof get_base);
    peer->api = get_base()->get_api(API_VERSION);
    need_peer(peer, PEER(peer, CREATE_ENVIRONMENT, (int, const char *, void **))(3, "bench", &environment));
    need_peer(peer, PEER(peer, CREATE_OPTIONS, (void **))(&options));
    need_peer(peer, PEER(peer, SET_INNER_THREADS, (void *, int))(options, threads));
    need_peer(peer, PEER(peer, SET_OUTER_THREADS, (void *, int))(options, 1));
    need_peer(peer, PEER(peer, CREATE_SESSION, (void *, const char *, void *, void **))(environment, model, options,
                                                                                        &peer->session));
    need_peer(peer, PEER(peer, CREATE_CPU_MEMORY, (int, int, void **))(1, 0, &peer->memory));
}

static void *make_tensor(const struct peer *peer, void *data, size_t bytes, const int64_t *shape, size_t rank, int type)
{
    void *value = NULL;
    need_peer(peer, PEER(peer, CREATE_TENSOR, (void *, void *, size_t, const int64_t *, size_t, int, void **))(
                        peer->memory, data, bytes, shape, rank, type, &value));
    return value;
}

static void call_peer(struct side *side, int64_t steps, int64_t sequences)
{
    static const char *const inputs[] = {"input", "lengths"}, *const outputs[] = {"output"};
    static int32_t lengths[SEQUENCES_MOST];
    const struct peer *peer = side->peer;
    const int64_t shape[3] = {sequences, steps, 2}, out[2] = {sequences, 1};
    for (int64_t s = 0; s < sequences; s++)
        lengths[s] = (int32_t)steps;
    void *values[3] = {
        make_tensor(peer, side->x, (size_t)(sequences * steps * 2) * sizeof(float), shape, 3, TYPE_FLOAT),
        make_tensor(peer, lengths, (size_t)sequences * sizeof(int32_t), shape, 1, TYPE_INT32),
        make_tensor(peer, side->y, (size_t)sequences * sizeof(float), out, 2, TYPE_FLOAT)};
    need_peer(peer,
              PEER(peer, RUN,
                   (void *, const void *, const char *const *, const void *const *, size_t, const char *const *, size_t,
                    void **))(peer->session, NULL, inputs, (const void *const *)values, 2, outputs, 1, &values[2]));
    for (int v = 0; v < 3; v++)
        ((void (*)(void *))(uintptr_t)peer->api[RELEASE_VALUE])(values[v]);
}

/* ---- both in turn ----------------------------------------------------------------------------------------------- */

enum { ROUNDS_MOST = 99, ROUND_NS = 30000000, LOOK_NS = 10000000, LOOKS_MOST = 100 };

static int by_ratio(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int64_t get_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

/* Threads of both sides wait awake for their next work: those of ONNX Runtime for 30 to 40 ms after each call. They
 * would take a processor from the other side. */
static void wait_until_idle(void)
{
    int64_t before = get_cpu_ns(), used = LOOK_NS;
    for (int look = 0; look < LOOKS_MOST && used > LOOK_NS / 50; look++) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        const int64_t now = get_cpu_ns();
        used = now - before;
        before = now;
    }
}

/* The median of a round, begun when no thread of the other side computes any more. */
static double time_round(struct side *side, const struct cell *cell)
{
    static int64_t times[CALLS_MOST];
    wait_until_idle();
    const int64_t count = time_calls(side, cell, ROUND_NS, times);
    return (double)times[count / 2] * 1e-3;
}

/* As many rounds as are wanted, or as begin within ten seconds. */
static void compare_cell(struct side sides[2], const struct cell *cell, int rounds)
{
    double us[2][ROUNDS_MOST], ratios[ROUNDS_MOST];
    int made = 0;
    for (const int64_t start = now_ns(); made < rounds && now_ns() - start < 10000000000; made++) {
        for (int side = 0; side < 2; side++)
            us[side][made] = time_round(&sides[side], cell);
        ratios[made] = us[1][made] / us[0][made];
    }
    qsort(ratios, (size_t)made, sizeof *ratios, by_ratio);
    for (int side = 0; side < 2; side++)
        qsort(us[side], (size_t)made, sizeof *us[side], by_ratio);
    printf("%lld %lld %.3f %.3f %d %.3f %.3f %.3f\n", (long long)cell->steps, (long long)cell->sequences,
           us[0][made / 2], us[1][made / 2], made, ratios[0], ratios[made / 2], ratios[made - 1]);
    fflush(stdout);
}

/* argv: beside RUN THREADS LIBRARY MODEL ROUNDS T:B... */
static void compare(struct seqlstm_context *context, char **argv)
{
    struct peer peer = {.api = NULL};
    struct side sides[2] = {{.call = call_ours, .context = context}, {.call = call_peer, .peer = &peer}};
    const int wanted = atoi(argv[6]), rounds = wanted < 1 ? 1 : wanted > ROUNDS_MOST ? ROUNDS_MOST : wanted;
    open_peer(&peer, argv[4], argv[5], atoi(argv[3]));
    make_room(&sides[0]);
    sides[1].x = sides[0].x;
    sides[1].y = sides[0].y;
    for (char **text = argv + 7; *text; text++) {
        const struct cell cell = read_cell(*text);
        compare_cell(sides, &cell, rounds);
    }
    release_room(&sides[0]);
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options opened = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_predictor_options options = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    struct seqlstm_session *session = NULL;
    struct seqlstm_predictor *p = NULL;
    struct seqlstm_context *k = NULL;
    const bool beside = argc > 7 && strcmp(argv[1], "beside") == 0;
    const bool cells = beside || (argc > 4 && strcmp(argv[1], "cells") == 0);
    const bool manys = argc > 4 && strcmp(argv[1], "many") == 0;
    if (!cells && !manys && (argc < 4 || strcmp(argv[1], "step") != 0)) {
        fprintf(stderr, "usage: bench_predictor step RUN CALLS | many RUN STREAMS WIDTH | cells RUN THREADS T:B... | "
                        "beside RUN THREADS LIBRARY MODEL.onnx ROUNDS T:B...\n");
        return 2;
    }
    opened.threads = cells ? atoi(argv[3]) : 1;
    options.streams = manys ? atoll(argv[4]) : 1;
    options.steps = cells ? STEPS_MOST : 0;
    options.sequences = cells ? SEQUENCES_MOST : 0;
    options.rows = cells ? STEPS_MOST * SEQUENCES_MOST : 0;
    options.threads = opened.threads;
    need(seqlstm_open_run(argv[2], &opened, &session, &err), &err);
    need(seqlstm_predictor_open(session, &options, &p, &err), &err);
    need(seqlstm_context_open(p, &k, &err), &err);
    if (beside)
        compare(k, argv);
    else if (cells)
        time_cells(&(struct side){.call = call_ours, .context = k}, argv + 4);
    else if (manys)
        many(p, k, atoll(argv[3]), &err);
    else
        step(p, k, atoll(argv[3]), &err);
    seqlstm_context_close(k);
    seqlstm_predictor_close(p);
    seqlstm_close(session);
    return 0;
}
