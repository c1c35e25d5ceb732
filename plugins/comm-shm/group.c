/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges of a group, chunk by chunk through the boxes of its members.
 *
 * Two members, and small data: each member copies its chunk into its box, waits for the others, and reduces all of them
 * itself. More: each reduces its part of the chunk (first phase), and copies the parts of the others (second phase).
 * Both add in the order of the members, so all get the same bits.
 *
 * Large data in memory that the ranks share (`allocate`) are copied nowhere: each member reduces its part of the
 * vectors of all, and writes the result into all of them. These are the same bits, too.
 */
#include <stdbool.h>
#include <string.h>

#include "connection.h"
#include "reduce.h"

enum { SMALL_BYTES = 16 << 10, LINE_BYTES = 64 };

/* An exchange on its way. */
struct passage {
    struct seqlstm_group *group;
    const struct seqlstm_exchange *exchange;
    int64_t elem_bytes;
    int64_t deadline_ns;
    struct seqlstm_error *err;
};

static unsigned char *chunk_of(const struct seqlstm_group *g, int32_t member)
{
    return g->boxes[member]->chunks[g->chunks % 2];
}

/* Begins the next chunk. `fills`: this member writes into its own box, so all must have read what stood there. */
static seqlstm_status begin_chunk(const struct passage *p, bool fills)
{
    struct seqlstm_group *g = p->group;
    g->chunks++;
    for (int32_t m = 0; fills && m < g->members; m++)
        if (m != g->place)
            SEQLSTM_TRY(
                shm_wait(g->connection, &g->boxes[m]->done, g->chunks - 2, g->ranks[m], p->deadline_ns, p->err));
    return SEQLSTM_OK;
}

static void end_phase(struct seqlstm_group *g)
{
    shm_advance(&g->boxes[g->place]->ready, ++g->phases);
}

static void end_chunk(struct seqlstm_group *g)
{
    shm_advance(&g->boxes[g->place]->done, g->chunks);
}

static seqlstm_status wait_for(const struct passage *p, int32_t member)
{
    struct seqlstm_group *g = p->group;
    return member == g->place
               ? SEQLSTM_OK
               : shm_wait(g->connection, &g->boxes[member]->ready, g->phases, g->ranks[member], p->deadline_ns, p->err);
}

static seqlstm_status wait_for_all(const struct passage *p)
{
    for (int32_t m = 0; m < p->group->members; m++)
        SEQLSTM_TRY(wait_for(p, m));
    return SEQLSTM_OK;
}

/* Reduces elements [first, first + elems) of the chunks of all. */
static void reduce(const struct passage *p, void *to, int64_t first, int64_t elems)
{
    const void *from[HOST_RANKS_MOST];
    for (int32_t m = 0; m < p->group->members; m++)
        from[m] = chunk_of(p->group, m) + first * p->elem_bytes;
    shm_reduce(p->exchange->dtype, p->exchange->reduction, to, from, p->group->members, elems);
}

static int64_t part_begin(int64_t elems, int32_t part, int32_t parts)
{
    return elems / parts * part + (part < elems % parts ? part : elems % parts);
}

static seqlstm_status reduce_in_parts(const struct passage *p, unsigned char *to, int64_t elems)
{
    struct seqlstm_group *g = p->group;
    const int64_t first = part_begin(elems, g->place, g->members);
    /* No other member reads this part of this member's box before the next phase. */
    reduce(p, chunk_of(g, g->place) + first * p->elem_bytes, first,
           part_begin(elems, g->place + 1, g->members) - first);
    end_phase(g);
    for (int32_t k = 0; k < g->members; k++) {
        const int32_t m = (g->place + k) % g->members;
        const int64_t begin = part_begin(elems, m, g->members), end = part_begin(elems, m + 1, g->members);
        SEQLSTM_TRY(wait_for(p, m));
        memcpy(to + begin * p->elem_bytes, chunk_of(g, m) + begin * p->elem_bytes,
               (size_t)((end - begin) * p->elem_bytes));
    }
    return SEQLSTM_OK;
}

/* The vectors of all members, if this exchange is made in memory that they share, and is not too small. */
static bool find_shared(const struct passage *p, void *vectors[HOST_RANKS_MOST])
{
    const struct seqlstm_exchange *e = p->exchange;
    const struct seqlstm_group *g = p->group;
    const uint64_t bytes = (uint64_t)(e->elems * p->elem_bytes);
    uint64_t offset;
    if (e->from != e->to || bytes <= SMALL_BYTES)
        return false;
    const struct host_ranks_region *region = host_ranks_find(&g->connection->ranks, e->to, bytes, &offset);
    for (int32_t m = 0; region && m < g->members; m++)
        vectors[m] = region->base + (uint64_t)g->ranks[m] * region->bytes + offset;
    return region != NULL;
}

static seqlstm_status reduce_shared(const struct passage *p, void *vectors[HOST_RANKS_MOST])
{
    const struct seqlstm_exchange *e = p->exchange;
    struct seqlstm_group *g = p->group;
    const int64_t line = LINE_BYTES / p->elem_bytes, lines = (e->elems + line - 1) / line;
    const int64_t first = part_begin(lines, g->place, g->members) * line;
    const int64_t end = part_begin(lines, g->place + 1, g->members) * line;
    SEQLSTM_TRY(begin_chunk(p, false));
    end_phase(g);
    SEQLSTM_TRY(wait_for_all(p));
    for (int32_t m = 0; m < g->members; m++)
        vectors[m] = (char *)vectors[m] + first * p->elem_bytes;
    shm_reduce_in_place(e->dtype, e->reduction, vectors, g->members, (end < e->elems ? end : e->elems) - first);
    end_phase(g);
    SEQLSTM_TRY(wait_for_all(p));
    end_chunk(g);
    return SEQLSTM_OK;
}

static seqlstm_status all_reduce(const struct passage *p)
{
    const struct seqlstm_exchange *e = p->exchange;
    struct seqlstm_group *g = p->group;
    void *vectors[HOST_RANKS_MOST];
    if (find_shared(p, vectors))
        return reduce_shared(p, vectors);
    const int64_t most = SHM_CHUNK_BYTES / p->elem_bytes;
    for (int64_t at = 0; at < e->elems; at += most) {
        const int64_t elems = e->elems - at < most ? e->elems - at : most;
        unsigned char *to = (unsigned char *)e->to + at * p->elem_bytes;
        SEQLSTM_TRY(begin_chunk(p, true));
        memcpy(chunk_of(g, g->place), (const char *)e->from + at * p->elem_bytes, (size_t)(elems * p->elem_bytes));
        end_phase(g);
        SEQLSTM_TRY(wait_for_all(p));
        if (g->members > 2 && elems * p->elem_bytes > SMALL_BYTES)
            SEQLSTM_TRY(reduce_in_parts(p, to, elems));
        else
            reduce(p, to, 0, elems);
        end_chunk(g);
    }
    return SEQLSTM_OK;
}

static seqlstm_status reduce_scatter(const struct passage *p)
{
    const struct seqlstm_exchange *e = p->exchange;
    struct seqlstm_group *g = p->group;
    const int64_t most = SHM_CHUNK_BYTES / p->elem_bytes / g->members;
    for (int64_t at = 0; at < e->elems; at += most) {
        const int64_t elems = e->elems - at < most ? e->elems - at : most;
        const size_t bytes = (size_t)(elems * p->elem_bytes);
        SEQLSTM_TRY(begin_chunk(p, true));
        for (int32_t m = 0; m < g->members; m++)
            memcpy(chunk_of(g, g->place) + (size_t)m * bytes,
                   (const char *)e->from + (m * e->elems + at) * p->elem_bytes, bytes);
        end_phase(g);
        SEQLSTM_TRY(wait_for_all(p));
        reduce(p, (char *)e->to + at * p->elem_bytes, g->place * elems, elems);
        end_chunk(g);
    }
    return SEQLSTM_OK;
}

static seqlstm_status all_gather(const struct passage *p)
{
    const struct seqlstm_exchange *e = p->exchange;
    struct seqlstm_group *g = p->group;
    const int64_t bytes = e->elems * p->elem_bytes;
    char *own = (char *)e->to + g->place * bytes;
    if (bytes > 0 && own != e->from)
        memcpy(own, e->from, (size_t)bytes);
    for (int64_t at = 0; at < bytes; at += SHM_CHUNK_BYTES) {
        const size_t now = (size_t)(bytes - at < SHM_CHUNK_BYTES ? bytes - at : SHM_CHUNK_BYTES);
        SEQLSTM_TRY(begin_chunk(p, true));
        memcpy(chunk_of(g, g->place), own + at, now);
        end_phase(g);
        for (int32_t k = 1; k < g->members; k++) {
            const int32_t m = (g->place + k) % g->members;
            SEQLSTM_TRY(wait_for(p, m));
            memcpy((char *)e->to + m * bytes + at, chunk_of(g, m), now);
        }
        end_chunk(g);
    }
    return SEQLSTM_OK;
}

static seqlstm_status broadcast(const struct passage *p)
{
    const struct seqlstm_exchange *e = p->exchange;
    struct seqlstm_group *g = p->group;
    const int64_t bytes = e->elems * p->elem_bytes;
    const bool is_root = e->peer == g->place;
    for (int64_t at = 0; at < bytes; at += SHM_CHUNK_BYTES) {
        const size_t now = (size_t)(bytes - at < SHM_CHUNK_BYTES ? bytes - at : SHM_CHUNK_BYTES);
        SEQLSTM_TRY(begin_chunk(p, is_root));
        if (is_root)
            memcpy(chunk_of(g, g->place), (char *)e->to + at, now);
        end_phase(g);
        SEQLSTM_TRY(wait_for(p, e->peer));
        if (!is_root)
            memcpy((char *)e->to + at, chunk_of(g, e->peer), now);
        end_chunk(g);
    }
    return SEQLSTM_OK;
}

static seqlstm_status barrier(const struct passage *p)
{
    SEQLSTM_TRY(begin_chunk(p, false));
    end_phase(p->group);
    SEQLSTM_TRY(wait_for_all(p));
    end_chunk(p->group);
    return SEQLSTM_OK;
}

seqlstm_status shm_run_group(struct seqlstm_group *group, const struct seqlstm_exchange *exchange, int64_t elem_bytes,
                             int64_t deadline_ns, struct seqlstm_error *err)
{
    static seqlstm_status (*const functions[SEQLSTM_COLLECTIVE_COUNT])(const struct passage *) = {
        [SEQLSTM_COLLECTIVE_ALL_REDUCE] = all_reduce, [SEQLSTM_COLLECTIVE_REDUCE_SCATTER] = reduce_scatter,
        [SEQLSTM_COLLECTIVE_ALL_GATHER] = all_gather, [SEQLSTM_COLLECTIVE_BROADCAST] = broadcast,
        [SEQLSTM_COLLECTIVE_BARRIER] = barrier,
    };
    const struct passage p = {group, exchange, elem_bytes, deadline_ns, err};
    return functions[exchange->kind](&p);
}
