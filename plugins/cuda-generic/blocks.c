/* SPDX-License-Identifier: Apache-2.0 */
/* See blocks.h. Sizes are powers of two, so that blocks of different batches fit each other. */
#include "cuda-generic/blocks.h"

#include <pthread.h>
#include <string.h>

#include "common/host_memory.h"

enum { KEPT = 256, SMALLEST = 512, LARGEST = 1 << 20 }; /* bytes; larger blocks are not kept */
enum { FIRST = 32 };                                    /* streams whose counters need no memory of the host */
enum { UNUSED = 16 };                                   /* counters without users that are kept */

struct free_block {
    void *at;
    void *stream; /* work that still uses it may be queued there */
    uint64_t bytes;
    int32_t ordinal;
};

struct counter {
    struct counter *next;
    void *stream;
    unsigned *at; /* NULL: this place is free */
    int64_t users;
    int32_t ordinal;
    bool apart; /* memory of the host, not of struct cg_blocks */
};

struct cg_blocks {
    pthread_mutex_t lock;
    struct counter *counters; /* one for each stream, the newest first */
    struct counter first_counters[FIRST];
    int32_t unused;
    int32_t count;
    struct free_block free[KEPT]; /* roughly the oldest first */
};

seqlstm_status cg_blocks_create(const struct seqlstm_host *host, struct cg_blocks **out_blocks,
                                struct seqlstm_error *err)
{
    struct cg_blocks *blocks = host_allocate(host, sizeof *blocks);
    if (blocks == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the list of free blocks of cuda-generic");
    pthread_mutex_init(&blocks->lock, NULL);
    *out_blocks = blocks;
    return SEQLSTM_OK;
}

static struct counter *unlink_counter(struct counter **at)
{
    struct counter *c = *at;
    *at = c->next;
    return c;
}

static void release_counter(const struct seqlstm_host *host, struct counter *c)
{
    gpu_release(c->ordinal, SEQLSTM_MEMORY_DEVICE, c->at);
    c->at = NULL;
    if (c->apart)
        host_release(host, c);
}

void cg_blocks_destroy(const struct seqlstm_host *host, struct cg_blocks *blocks)
{
    if (blocks == NULL)
        return;
    for (int32_t k = 0; k < blocks->count; k++)
        gpu_release(blocks->free[k].ordinal, SEQLSTM_MEMORY_DEVICE, blocks->free[k].at);
    while (blocks->counters != NULL)
        release_counter(host, unlink_counter(&blocks->counters));
    pthread_mutex_destroy(&blocks->lock);
    host_release(host, blocks);
}

/* NULL: the stream has none. */
static struct counter *find_counter(struct cg_blocks *blocks, int32_t ordinal, const void *stream)
{
    pthread_mutex_lock(&blocks->lock);
    struct counter *c = blocks->counters;
    while (c != NULL && (c->stream != stream || c->ordinal != ordinal))
        c = c->next;
    if (c != NULL)
        blocks->unused -= c->users++ == 0;
    pthread_mutex_unlock(&blocks->lock);
    return c;
}

/* Room in `blocks`; NULL: there is none. */
static struct counter *find_room(struct cg_blocks *blocks)
{
    for (int k = 0; k < FIRST; k++)
        if (blocks->first_counters[k].at == NULL)
            return &blocks->first_counters[k];
    return NULL;
}

/* Puts a counter into the list. NULL: no memory. */
static struct counter *add_counter(const struct seqlstm_host *host, struct cg_blocks *blocks, int32_t ordinal,
                                   void *stream, unsigned *at)
{
    pthread_mutex_lock(&blocks->lock);
    struct counter *room = find_room(blocks), *c = room ? room : host_allocate(host, sizeof *c);
    if (c != NULL) {
        *c = (struct counter){blocks->counters, stream, at, 1, ordinal, room == NULL};
        blocks->counters = c;
    }
    pthread_mutex_unlock(&blocks->lock);
    return c;
}

/* Takes the oldest unused counter out of the list if there are too many; otherwise returns NULL. */
static struct counter *take_unused(struct cg_blocks *blocks)
{
    struct counter **oldest = NULL;
    if (blocks->unused <= UNUSED)
        return NULL;
    for (struct counter **at = &blocks->counters; *at != NULL; at = &(*at)->next)
        oldest = (*at)->users == 0 ? at : oldest;
    blocks->unused--;
    return unlink_counter(oldest);
}

/* The device's release waits until what still uses the counter has ended. */
void cg_blocks_leave_counter(const struct seqlstm_host *host, struct cg_blocks *blocks, unsigned *counter)
{
    if (counter == NULL)
        return;
    pthread_mutex_lock(&blocks->lock);
    struct counter *c = blocks->counters, *surplus;
    while (c->at != counter)
        c = c->next;
    blocks->unused += --c->users == 0;
    surplus = take_unused(blocks);
    if (surplus != NULL)
        release_counter(host, surplus);
    pthread_mutex_unlock(&blocks->lock);
}

seqlstm_status cg_blocks_find_counter(const struct seqlstm_host *host, struct cg_blocks *blocks, int32_t ordinal,
                                      void *stream, unsigned **out_counter, struct seqlstm_error *err)
{
    struct counter *c = find_counter(blocks, ordinal, stream);
    void *at = NULL;
    if (c == NULL) {
        seqlstm_status status = gpu_allocate(ordinal, SEQLSTM_MEMORY_DEVICE, sizeof *c->at, &at, err);
        if (status == SEQLSTM_OK)
            status = gpu_fill(ordinal, stream, at, 0, sizeof *c->at, err);
        if (status == SEQLSTM_OK && (c = add_counter(host, blocks, ordinal, stream, at)) == NULL)
            status =
                seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the counter of a stream");
        if (status != SEQLSTM_OK) {
            gpu_release(ordinal, SEQLSTM_MEMORY_DEVICE, at);
            return status;
        }
    }
    *out_counter = c->at;
    return SEQLSTM_OK;
}

static uint64_t round_up(uint64_t bytes)
{
    uint64_t size = SMALLEST;
    while (size < bytes && size < LARGEST)
        size *= 2;
    return size < bytes ? bytes : size;
}

seqlstm_status cg_blocks_take(struct cg_blocks *blocks, int32_t ordinal, void *stream, uint64_t bytes, void **out_block,
                              struct seqlstm_error *err)
{
    const uint64_t size = round_up(bytes);
    void *found = NULL;
    pthread_mutex_lock(&blocks->lock);
    for (int32_t k = blocks->count - 1; found == NULL && k >= 0; k--)
        if (blocks->free[k].ordinal == ordinal && blocks->free[k].stream == stream && blocks->free[k].bytes == size) {
            found = blocks->free[k].at;
            blocks->free[k] = blocks->free[--blocks->count];
        }
    pthread_mutex_unlock(&blocks->lock);
    *out_block = found;
    return found ? SEQLSTM_OK : gpu_allocate(ordinal, SEQLSTM_MEMORY_DEVICE, size, out_block, err);
}

/* Returns the block for which there is no room: the oldest, whose stream may be gone. */
static struct free_block keep(struct cg_blocks *blocks, struct free_block block)
{
    struct free_block oldest = {.at = NULL};
    pthread_mutex_lock(&blocks->lock);
    if (blocks->count == KEPT) {
        oldest = blocks->free[0];
        memmove(blocks->free, blocks->free + 1, (size_t)--blocks->count * sizeof *blocks->free);
    }
    blocks->free[blocks->count++] = block;
    pthread_mutex_unlock(&blocks->lock);
    return oldest;
}

void cg_blocks_give(struct cg_blocks *blocks, int32_t ordinal, void *stream, uint64_t bytes, void *block)
{
    struct free_block surplus = {block, stream, round_up(bytes), ordinal};
    if (block != NULL && surplus.bytes <= LARGEST)
        surplus = keep(blocks, surplus);
    gpu_release(surplus.ordinal, SEQLSTM_MEMORY_DEVICE, surplus.at);
}
