/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads that take chunks of a text in turn. */
#include "data/read/token_build_private.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/system/file_error.h"

seqlstm_status sl_token_write_at(int fd, const char *path, const void *data, size_t bytes, int64_t offset,
                                 struct seqlstm_error *err)
{
    const char *from = data;
    while (bytes > 0) {
        ssize_t put = pwrite(fd, from, bytes, offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return sl_file_fail(err, errno, "cannot write the token cache (SEQLSTM_CACHE moves it)", path);
        from += put;
        offset += put;
        bytes -= (size_t)put;
    }
    return SEQLSTM_OK;
}

int64_t sl_token_builder_take(struct sl_token_builder *b)
{
    pthread_mutex_lock(&b->mutex);
    int64_t chunk = b->stop || b->next >= b->chunk_count ? -1 : b->next++;
    pthread_mutex_unlock(&b->mutex);
    return chunk;
}

struct start {
    struct sl_token_worker *worker;
    void (*run)(struct sl_token_worker *worker);
};

static void *start_worker(void *context)
{
    const struct start *start = context;
    struct sl_token_worker *w = start->worker;
    start->run(w);
    if (w->status != SEQLSTM_OK) {
        pthread_mutex_lock(&w->builder->mutex);
        w->builder->stop = true;
        pthread_mutex_unlock(&w->builder->mutex);
    }
    return NULL;
}

/* The chunks of workers that cannot be started are done by the first one, which runs here. Workers block all signals:
 * the main program handles them. */
seqlstm_status sl_token_builder_work(struct sl_token_builder *b, void (*run)(struct sl_token_worker *worker),
                                     struct seqlstm_error *err)
{
    struct start starts[SL_TOKEN_THREADS_MOST];
    bool started[SL_TOKEN_THREADS_MOST] = {false};
    sigset_t all, before;
    b->next = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    for (int i = 0; i < b->worker_count; i++) {
        starts[i] = (struct start){&b->workers[i], run};
        started[i] = i > 0 && pthread_create(&b->workers[i].thread, NULL, start_worker, &starts[i]) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    start_worker(&starts[0]);
    const struct sl_token_worker *first = NULL;
    for (int i = 0; i < b->worker_count; i++) {
        const struct sl_token_worker *w = &b->workers[i];
        if (started[i])
            pthread_join(w->thread, NULL);
        if (w->status != SEQLSTM_OK && (!first || w->error_offset < first->error_offset))
            first = w;
    }
    if (!first)
        return SEQLSTM_OK;
    if (err && err->struct_size >= sizeof *err) {
        uint32_t size = err->struct_size;
        *err = first->error;
        err->struct_size = size;
    }
    return first->status;
}
