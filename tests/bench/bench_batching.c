/* SPDX-License-Identifier: Apache-2.0 */
/* Whole training runs in turn, a slice of real tokens each, in one process: what differs between the models (their way
 * of batching) is compared while the machine is the same.
 *
 * bench_batching BACKEND_FOLDER SCRATCH_FOLDER MODEL.yaml ...   the turns, one a line, on standard input: INDEX TOKENS
 *
 * Each model is a session on a thread of its own, which trains as `seqlstm run` does (batches built ahead, updates) and
 * waits in its observer while it is not its turn. Standard output has a line for each turn: index, real tokens,
 * updates, nanoseconds of wall time and of processor time. A turn ends with the update that reaches its tokens. Runs do
 * not end by themselves: the program leaves when the turns are over. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/value/text.h"
#include "session/session.h"

enum { MOST = 16, WARM_UPDATES = 3 };

struct contest;

struct runner {
    struct contest *contest;
    const char *path, *out_dir;
    int64_t tokens, updates; /* of the run, as the observer last saw them */
};

struct contest {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct runner runners[MOST];
    const char *backends;
    int turn;      /* whose it is; -1: none */
    int64_t limit; /* tokens of the run at which the turn ends */
};

static int64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void fail(const struct runner *runner, const char *what)
{
    fprintf(stderr, "%s: %s\n", runner->path, what);
    fflush(stderr);
    _exit(1);
}

/* Behind every update: goes on as long as the turn does. */
static void on_step(void *context, const struct sl_train_report *report)
{
    struct runner *runner = context;
    struct contest *contest = runner->contest;
    int index = (int)(runner - contest->runners);
    pthread_mutex_lock(&contest->lock);
    runner->tokens = report->progress.tokens;
    runner->updates = report->progress.updates;
    if (runner->updates >= WARM_UPDATES && contest->turn == index && runner->tokens >= contest->limit) {
        contest->turn = -1;
        pthread_cond_broadcast(&contest->changed);
    }
    while (contest->turn != index)
        pthread_cond_wait(&contest->changed, &contest->lock);
    pthread_mutex_unlock(&contest->lock);
}

static void *train(void *context)
{
    struct runner *runner = context;
    struct contest *contest = runner->contest;
    struct sl_model_request request = {.path = runner->path};
    struct sl_session_options options = {.model = &request,
                                         .backend_folders = &contest->backends,
                                         .backend_folder_count = 1,
                                         .out_dir = runner->out_dir};
    struct sl_run_observer observer = {.train = {.context = runner, .on_step = on_step}};
    struct sl_diagnostics *diagnostics;
    struct sl_session *session;
    struct sl_run_result result;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    pthread_mutex_lock(&contest->lock); /* one begins after the other */
    while (contest->turn != (int)(runner - contest->runners))
        pthread_cond_wait(&contest->changed, &contest->lock);
    pthread_mutex_unlock(&contest->lock);
    if (sl_diagnostics_create(&diagnostics, &err) != SEQLSTM_OK ||
        sl_session_open_model(&options, diagnostics, &session, &err) != SEQLSTM_OK ||
        sl_session_run(session, &observer, &result, &err) != SEQLSTM_OK)
        fail(runner, err.message);
    fail(runner, "the run ended before its turns did");
    return NULL;
}

/* Gives the turn away and waits for its end. */
static void take_turn(struct contest *contest, int index, int64_t limit)
{
    pthread_mutex_lock(&contest->lock);
    contest->turn = index;
    contest->limit = limit;
    pthread_cond_broadcast(&contest->changed);
    while (contest->turn >= 0)
        pthread_cond_wait(&contest->changed, &contest->lock);
    pthread_mutex_unlock(&contest->lock);
}

static void start(struct contest *contest, struct runner *runner, const char *folder)
{
    pthread_t thread;
    char *out_dir = malloc(4096);
    int index = (int)(runner - contest->runners);
    if (!out_dir)
        fail(runner, "no memory");
    sl_text_snprintf(out_dir, 4096, "%s/run-%d", folder, index);
    runner->out_dir = out_dir;
    if (pthread_create(&thread, NULL, train, runner) != 0)
        fail(runner, "no thread");
    pthread_detach(thread);
    take_turn(contest, index, 1);
}

int main(int argc, char **argv)
{
    struct contest contest = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .turn = -1};
    int count = argc - 3, index;
    long long tokens;
    if (count < 1 || count > MOST) {
        fprintf(stderr, "usage: bench_batching BACKENDS SCRATCH MODEL.yaml ... (at most %d models)\n", MOST);
        return 2;
    }
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    contest.backends = argv[1];
    for (int i = 0; i < count; i++) {
        contest.runners[i] = (struct runner){.contest = &contest, .path = argv[3 + i]};
        start(&contest, &contest.runners[i], argv[2]);
    }
    while (scanf("%d %lld", &index, &tokens) == 2 && index >= 0 && index < count) {
        struct runner *runner = &contest.runners[index];
        int64_t before = runner->tokens, updates = runner->updates, cpu = processor_ns(), wall = sl_clock_ns();
        take_turn(&contest, index, before + tokens);
        wall = sl_clock_ns() - wall;
        cpu = processor_ns() - cpu;
        printf("%d %lld %lld %lld %lld\n", index, (long long)(runner->tokens - before),
               (long long)(runner->updates - updates), (long long)wall, (long long)cpu);
        fflush(stdout);
    }
    _exit(0);
}
