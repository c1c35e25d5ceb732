/* SPDX-License-Identifier: Apache-2.0 */
/* See reducer.h. */
#include "parallel/reducer.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"

enum {
    BUNDLE_LEAST = 16 << 10, /* elements */
    BUNDLE_MOST = 4 << 20,
    TRIALS = 5,
    TRIAL_ELEMS = 64 << 10,
    LATENCIES = 16, /* a bundle takes so many times its latency */
    GROUP_PART = 2  /* a group of compressed bundles is closed when it has this part of the elements of a bundle */
};

/* Neighbouring bundles that are added at once. */
struct group {
    int32_t first, count;
};

struct sl_reducer {
    struct sl_adder adder;
    struct sl_memory *memory;
    bool lent;      /* the scratch is memory of the connection */
    uint8_t *flags; /* of all embeddings */
    struct sl_bundle_matrix *matrices;
    int32_t matrix_count;
    struct sl_bundle *bundles; /* from the end of the gradients to their beginning */
    int32_t bundle_count;
    struct group *groups;
    int32_t group_count;
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    int64_t complete; /* gradients from here on are complete */
    int32_t next;     /* the first group that is not exchanged */
    int32_t finished; /* the first that is not finished */
    bool closes;
    seqlstm_status status;
    struct seqlstm_error err;
    struct sl_reducer_times times;
};

/* ---- one bundle ------------------------------------------------------------------------------------------------- */

/* Of so many bundles. */
static seqlstm_status find_used(struct sl_reducer *r, int32_t first, int32_t count, struct seqlstm_error *err)
{
    for (int32_t b = first; b < first + count; b++)
        SEQLSTM_TRY(sl_adder_find_used(&r->adder, &r->bundles[b], err));
    return SEQLSTM_OK;
}

/* If used rows are marked, they are known before the first gradient is complete: the flags of all embeddings cross
 * while the backward pass goes on. */
static seqlstm_status add_group(struct sl_reducer *r, int32_t g, struct seqlstm_error *err)
{
    const struct group *group = &r->groups[g];
    if (!r->adder.marks)
        SEQLSTM_TRY(find_used(r, group->first, group->count, err));
    else if (g == 0)
        SEQLSTM_TRY(find_used(r, 0, r->bundle_count, err));
    return sl_adder_add(&r->adder, &r->bundles[group->first], group->count, err);
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

/* Is the next group complete? Under the lock. */
static bool is_ready(const struct sl_reducer *r)
{
    if (r->status != SEQLSTM_OK || r->next >= r->group_count)
        return false;
    const struct group *group = &r->groups[r->next];
    return r->bundles[group->first + group->count - 1].begin >= r->complete;
}

/* The next group that has been exchanged. Under the lock, which is released meanwhile. */
static void finish_one(struct sl_reducer *r)
{
    const struct group *group = &r->groups[r->finished];
    if (r->status != SEQLSTM_OK)
        return;
    pthread_mutex_unlock(&r->lock);
    sl_adder_finish(&r->adder, &r->bundles[group->first], group->count);
    pthread_mutex_lock(&r->lock);
    r->finished++;
}

static void *work(void *reducer)
{
    struct sl_reducer *r = reducer;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (!is_ready(r) && !r->closes)
            pthread_cond_wait(&r->changed, &r->lock);
        if (r->closes)
            break;
        const int32_t group = r->next;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        pthread_mutex_unlock(&r->lock);
        const int64_t begin = sl_clock_ns();
        const seqlstm_status status = add_group(r, group, &err);
        pthread_mutex_lock(&r->lock);
        r->times.exchange_ns += sl_clock_ns() - begin;
        r->status = status;
        r->err = err;
        r->next++;
        if (r->adder.ranks->spares_core)
            finish_one(r);
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* The thread looks at flags only after a note, which comes later. */
void sl_reducer_mark(struct sl_reducer *r, int64_t offset, const int32_t *ids, int64_t count)
{
    for (int32_t b = 0; b < r->bundle_count; b++) {
        const struct sl_bundle *bundle = &r->bundles[b];
        if (!bundle->rows || bundle->begin != offset)
            continue;
        for (int64_t k = 0; k < count; k++)
            if (ids[k] >= 0)
                bundle->flags[ids[k]] = 1;
    }
}

void sl_reducer_note(struct sl_reducer *r, int64_t from)
{
    pthread_mutex_lock(&r->lock);
    if (from < r->complete) {
        r->complete = from;
        if (is_ready(r))
            pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
}

seqlstm_status sl_reducer_finish(struct sl_reducer *r, struct seqlstm_error *err)
{
    const int64_t begin = sl_clock_ns();
    sl_reducer_note(r, 0);
    pthread_mutex_lock(&r->lock);
    while (r->status == SEQLSTM_OK && r->finished < r->group_count)
        if (!r->adder.ranks->spares_core && r->finished < r->next) /* while others are on their way */
            finish_one(r);
        else
            pthread_cond_wait(&r->changed, &r->lock);
    const seqlstm_status status = r->status;
    if (status != SEQLSTM_OK && err)
        *err = r->err;
    r->complete = r->adder.elems;
    r->next = r->finished = 0;
    r->times.wait_ns += sl_clock_ns() - begin;
    pthread_mutex_unlock(&r->lock);
    return status;
}

const uint8_t *sl_reducer_get_used(const struct sl_reducer *r, int64_t offset)
{
    for (int32_t b = 0; b < r->bundle_count; b++)
        if (r->bundles[b].rows && r->bundles[b].begin == offset)
            return r->bundles[b].used;
    return NULL;
}

struct sl_reducer_times sl_reducer_get_times(struct sl_reducer *r)
{
    pthread_mutex_lock(&r->lock);
    const struct sl_reducer_times times = r->times;
    pthread_mutex_unlock(&r->lock);
    return times;
}

/* ---- the bundles ------------------------------------------------------------------------------------------------ */

int64_t sl_reducer_choose_bundle(double latency_s, double bytes_per_s)
{
    const double elems = LATENCIES * latency_s * bytes_per_s / (double)sizeof(float);
    return !(elems > BUNDLE_LEAST) ? BUNDLE_LEAST : elems > BUNDLE_MOST ? BUNDLE_MOST : (int64_t)elems;
}

/* Seconds of the fastest of some all_reduces. */
static seqlstm_status time_one(struct sl_reducer *r, int64_t elems, double *out_seconds, struct seqlstm_error *err)
{
    const struct seqlstm_exchange sum = {.kind = SEQLSTM_COLLECTIVE_ALL_REDUCE,
                                         .dtype = SEQLSTM_DTYPE_FLOAT32,
                                         .elems = elems,
                                         .from = r->adder.scratch,
                                         .to = r->adder.scratch};
    int64_t best = INT64_MAX;
    for (int k = 0; k < TRIALS; k++) {
        const int64_t begin = sl_clock_ns();
        SEQLSTM_TRY(sl_connection_run(r->adder.ranks->connection, 0, sum, err));
        const int64_t took = sl_clock_ns() - begin;
        best = took < best ? took : best;
    }
    *out_seconds = (double)best * 1e-9;
    return SEQLSTM_OK;
}

/* Rank 0 chooses, since all must have the same bundles. */
static seqlstm_status measure(struct sl_reducer *r, int64_t *out_bundle, struct seqlstm_error *err)
{
    const int64_t most = r->adder.elems < TRIAL_ELEMS ? r->adder.elems : TRIAL_ELEMS;
    double latency = 0, whole = 0;
    *out_bundle = BUNDLE_LEAST;
    if (r->adder.elems > BUNDLE_LEAST) {
        SEQLSTM_TRY(time_one(r, 1, &latency, err));
        SEQLSTM_TRY(time_one(r, most, &whole, err));
        *out_bundle = sl_reducer_choose_bundle(latency, (double)most * (double)sizeof(float) /
                                                            (whole > latency ? whole - latency : 1e-9));
    }
    return sl_ranks_broadcast(r->adder.ranks, 0, out_bundle, (int64_t)sizeof *out_bundle, err);
}

static void cut(struct sl_reducer *r, int64_t begin, int64_t end, int64_t bundle)
{
    for (; end > begin; end -= end - begin < bundle ? end - begin : bundle)
        r->bundles[r->bundle_count++] =
            (struct sl_bundle){.begin = end - begin < bundle ? begin : end - bundle, .end = end};
}

/* Does the bundle come into the same group as others? */
static bool is_joined(const struct sl_reducer *r, const struct sl_bundle *bundle, int64_t limit)
{
    if (bundle->rows)
        return bundle->gathered != NULL;
    return r->adder.gathers && (bundle->factors || bundle->end - bundle->begin <= limit);
}

/* How much of the link it takes; of rows that is not known. */
static int64_t count_sent(const struct sl_bundle *bundle)
{
    return bundle->rows ? 0 : bundle->factors ? sl_low_rank_count_most(bundle->factors) : bundle->end - bundle->begin;
}

/* Makes groups: of several bundles where matrices are compressed, and of one otherwise. */
static seqlstm_status group_bundles(struct sl_reducer *r, int64_t limit, struct seqlstm_error *err)
{
    r->groups = calloc((size_t)r->bundle_count + 1, sizeof *r->groups);
    if (!r->groups)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the gradients of other ranks");
    for (int32_t b = 0; b < r->bundle_count;) {
        struct group *group = &r->groups[r->group_count++];
        const bool joins = is_joined(r, &r->bundles[b], limit);
        int64_t elems = 0;
        *group = (struct group){.first = b};
        do {
            elems += count_sent(&r->bundles[b++]);
            group->count++;
        } while (joins && elems < limit && b < r->bundle_count && is_joined(r, &r->bundles[b], limit));
    }
    return SEQLSTM_OK;
}

static seqlstm_status divide(struct sl_reducer *r, int64_t bundle, struct seqlstm_error *err)
{
    int64_t end = r->adder.elems;
    uint8_t *flags = r->flags;
    r->bundles = calloc((size_t)(r->adder.elems / bundle + 2 * r->matrix_count + 2), sizeof *r->bundles);
    if (!r->bundles)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the gradients of other ranks");
    for (int32_t k = r->matrix_count - 1; k >= 0; k--) {
        const struct sl_bundle_matrix *m = &r->matrices[k];
        const int64_t stop = m->offset + m->rows * m->columns;
        cut(r, stop, end, bundle);
        struct sl_bundle *own = &r->bundles[r->bundle_count++];
        *own = (struct sl_bundle){.begin = m->offset, .end = stop};
        if (m->compressed)
            SEQLSTM_TRY(sl_low_rank_create(m->rows, m->columns, r->adder.ranks->compress_rank, (uint64_t)m->offset,
                                           &own->factors, err));
        else {
            const int64_t ranks = r->adder.gathers ? r->adder.ranks->replicas.ranks : 0;
            own->rows = m;
            own->flags = flags;
            own->used = flags + m->rows;
            own->gathered = ranks > 0 ? flags + 2 * m->rows : NULL;
            flags += (2 + ranks) * m->rows;
        }
        end = m->offset;
    }
    cut(r, 0, end, bundle);
    return group_bundles(r, bundle / GROUP_PART, err);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

/* Transports need not know the flags' reduction; then all rows are exchanged. */
static bool can_find_used(const struct sl_ranks *ranks)
{
    const struct seqlstm_transport *transport = sl_connection_get_transport(ranks->connection);
    return transport->dtypes >> SEQLSTM_DTYPE_UINT8 & 1 && transport->reductions >> SEQLSTM_REDUCE_MAX & 1;
}

static seqlstm_status allocate_scratch(struct sl_reducer *r, struct seqlstm_error *err)
{
    const int64_t bytes = (r->adder.elems + 1) * (int64_t)sizeof *r->adder.scratch;
    void *memory;
    SEQLSTM_TRY(sl_connection_allocate(r->adder.ranks->connection, bytes, &memory, err));
    r->lent = memory != NULL;
    r->adder.scratch = r->lent ? memory : sl_memory_alloc(r->memory, (size_t)bytes);
    if (!r->adder.scratch)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the gradients of other ranks");
    return SEQLSTM_OK;
}

static seqlstm_status allocate(struct sl_reducer *r, const struct sl_reducer_request *request,
                               struct seqlstm_error *err)
{
    int64_t rows = 0;
    r->matrices = calloc((size_t)request->matrix_count + 1, sizeof *r->matrices);
    for (int32_t k = 0; r->matrices && k < request->matrix_count; k++) {
        const struct sl_bundle_matrix *m = &request->matrices[k];
        if (m->compressed || can_find_used(r->adder.ranks))
            r->matrices[r->matrix_count++] = *m;
        rows += m->rows;
    }
    const int64_t copies = 2 + (r->adder.gathers ? r->adder.ranks->replicas.ranks : 0);
    r->flags = calloc((size_t)(rows * copies) + 1, sizeof *r->flags);
    if (!r->matrices || !r->flags)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the gradients of other ranks");
    SEQLSTM_TRY(allocate_scratch(r, err));
    memset(r->adder.scratch, 0, (size_t)r->adder.elems * sizeof *r->adder.scratch);
    return SEQLSTM_OK;
}

/* Signals are for the thread that computes. */
static seqlstm_status start(struct sl_reducer *r, struct seqlstm_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r->runs = pthread_create(&r->thread, NULL, work, r) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!r->runs)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no thread for the gradients of other ranks");
    return SEQLSTM_OK;
}

static seqlstm_status open_all(struct sl_reducer *r, const struct sl_reducer_request *request,
                               struct seqlstm_error *err)
{
    int64_t bundle = 0;
    SEQLSTM_TRY(allocate(r, request, err));
    SEQLSTM_TRY(measure(r, &bundle, err));
    SEQLSTM_TRY(divide(r, bundle, err));
    return start(r, err);
}

seqlstm_status sl_reducer_create(const struct sl_reducer_request *request, struct sl_reducer **out_reducer,
                                 struct seqlstm_error *err)
{
    struct sl_reducer *r = calloc(1, sizeof *r);
    if (!r)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the gradients of other ranks");
    r->memory = request->memory;
    r->adder = (struct sl_adder){.ranks = request->ranks,
                                 .grads = request->grads,
                                 .elems = request->elems,
                                 .errors = request->errors,
                                 .marks = request->marks,
                                 .gathers = sl_adder_may_gather(request->ranks)};
    r->complete = request->elems;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    const seqlstm_status status = open_all(r, request, err);
    if (status != SEQLSTM_OK) {
        sl_reducer_destroy(r);
        return status;
    }
    *out_reducer = r;
    return SEQLSTM_OK;
}

void sl_reducer_destroy(struct sl_reducer *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->closes = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    if (r->runs)
        pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    if (!r->lent)
        sl_memory_free(r->memory, r->adder.scratch);
    free(r->flags);
    free(r->groups);
    free(r->matrices);
    for (int32_t k = 0; k < r->bundle_count; k++)
        sl_low_rank_destroy(r->bundles[k].factors);
    free(r->bundles);
    free(r);
}
