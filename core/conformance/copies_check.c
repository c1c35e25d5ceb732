/* SPDX-License-Identifier: Apache-2.0 */
/* See copies_check.h. */
#include "conformance/copies_check.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/ext/draft/memory.h>

#include "base/value/text.h"
#include "registry/plugin.h"

enum {
    GUARD = 64,          /* bytes behind a copy, which it must not change */
    LARGE = 4194304 + 5, /* bytes of the largest copy */
    ROUNDS = 6,          /* copies from the same memory, one after the other */
    UNTOUCHED = 0xA5,
};

/* A domain with memory in it. */
struct end {
    struct sl_domain domain;
    void *memory; /* ROUNDS parts of LARGE + GUARD bytes, each aligned */
};

struct copies {
    struct sl_workbench *w;
    struct end to, from;
    unsigned char *host; /* a part */
    char *text;
    size_t capacity_bytes;
};

static int64_t get_part_bytes(void)
{
    return (LARGE + GUARD + SEQLSTM_ALIGNMENT - 1) / SEQLSTM_ALIGNMENT * SEQLSTM_ALIGNMENT;
}

static unsigned char *get_part(const struct end *end, int k)
{
    return (unsigned char *)end->memory + k * get_part_bytes();
}

static seqlstm_status open_end(struct copies *c, uint32_t device, struct end *end, struct seqlstm_error *err)
{
    struct seqlstm_device_info info = {.struct_size = sizeof info};
    SEQLSTM_TRY(sl_plugin_describe_device(&c->w->table, c->w->instance, device, &info, err));
    SEQLSTM_TRY(sl_domain_open(&end->domain, &c->w->table, c->w->instance, device, info.domain, err));
    return sl_domain_allocate(&end->domain, ROUNDS * get_part_bytes(), &end->memory, err);
}

static void close_end(struct end *end)
{
    sl_domain_release(&end->domain, end->memory);
    sl_domain_close(&end->domain);
    end->memory = NULL;
}

/* The byte at i of what round k copies. */
static unsigned char get_byte(int k, int64_t i)
{
    return (unsigned char)(i * 7 + i / 251 + 31 * k);
}

static void write_part(struct copies *c, int k, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        c->host[i] = get_byte(k, i);
}

static bool fail(struct copies *c, const char *what, int64_t bytes)
{
    sl_text_snprintf(c->text, c->capacity_bytes, "copy_across from device %u to device %u, %lld bytes: %s",
                     c->from.domain.device, c->to.domain.device, (long long)bytes, what);
    return false;
}

/* Part k of the target holds what round k has copied, and nothing behind it. */
static bool is_right(struct copies *c, int k, int64_t bytes, struct seqlstm_error *err)
{
    if (sl_domain_download(&c->to.domain, c->host, get_part(&c->to, k), bytes + GUARD, err) != SEQLSTM_OK)
        return fail(c, err->message, bytes);
    for (int64_t i = 0; i < bytes; i++)
        if (c->host[i] != get_byte(k, i))
            return fail(c, "the bytes that were copied are not those which the source had in the order of both streams",
                        bytes);
    for (int64_t i = bytes; i < bytes + GUARD; i++)
        if (c->host[i] != UNTOUCHED)
            return fail(c, "it writes behind its target", bytes);
    return true;
}

/* Every round writes the same source, copies it, and clears it at once: a copy that runs before the source is written,
 * or after it is cleared, gives other bytes. Each target is filled just before; its last copy reads what was copied. */
static bool check_rounds(struct copies *c, uint32_t peer, int64_t bytes)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_memory *memory = c->w->table.memory;
    unsigned char *source = get_part(&c->from, 0);
    for (int k = 0; k < ROUNDS; k++) {
        write_part(c, k, bytes);
        seqlstm_status status =
            memory->fill(c->w->instance, c->to.domain.device, c->to.domain.queue.queue.native_stream,
                         get_part(&c->to, k), UNTOUCHED, (uint64_t)(bytes + GUARD), &err);
        if (status == SEQLSTM_OK)
            status = sl_domain_upload(&c->from.domain, source, c->host, bytes, &err);
        if (status == SEQLSTM_OK) /* not sl_domain_copy_across, which leaves out a copy of nothing */
            status = memory->copy_across(c->w->instance, c->to.domain.device, c->to.domain.queue.queue.native_stream,
                                         get_part(&c->to, k), peer, c->from.domain.queue.queue.native_stream, source,
                                         (uint64_t)bytes, &err);
        if (status == SEQLSTM_OK)
            status = sl_domain_clear(&c->from.domain, source, bytes, &err);
        if (status != SEQLSTM_OK)
            return fail(c, err.message, bytes);
    }
    for (int k = 0; k < ROUNDS; k++)
        if (!is_right(c, k, bytes, &err))
            return false;
    return true;
}

/* There and back: the way back waits for the way there, also where nothing else joins the streams. */
static bool check_return(struct copies *c, uint32_t peer)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_memory *memory = c->w->table.memory;
    const int64_t bytes = LARGE;
    void *streams[] = {c->to.domain.queue.queue.native_stream, c->from.domain.queue.queue.native_stream};
    write_part(c, 1, bytes);
    seqlstm_status status = sl_domain_upload(&c->from.domain, get_part(&c->from, 1), c->host, bytes, &err);
    if (status == SEQLSTM_OK)
        status = memory->copy_across(c->w->instance, c->to.domain.device, streams[0], get_part(&c->to, 0), peer,
                                     streams[1], get_part(&c->from, 1), (uint64_t)bytes, &err);
    if (status == SEQLSTM_OK)
        status = memory->copy_across(c->w->instance, peer, streams[1], get_part(&c->from, 2), c->to.domain.device,
                                     streams[0], get_part(&c->to, 0), (uint64_t)bytes, &err);
    if (status == SEQLSTM_OK)
        status = sl_domain_clear(&c->to.domain, get_part(&c->to, 0), bytes, &err);
    if (status == SEQLSTM_OK)
        status = sl_domain_download(&c->from.domain, c->host, get_part(&c->from, 2), bytes, &err);
    if (status != SEQLSTM_OK)
        return fail(c, err.message, bytes);
    for (int64_t i = 0; i < bytes; i++)
        if (c->host[i] != get_byte(1, i))
            return fail(c, "what is copied there and back is not the same", bytes);
    return true;
}

static bool check_overlap(struct copies *c, uint32_t peer)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int64_t bytes = 1000;
    unsigned char *source = get_part(&c->from, 0);
    for (int side = -1; side <= 1; side += 2) {
        const seqlstm_status status = c->w->table.memory->copy_across(
            c->w->instance, peer, c->from.domain.queue.queue.native_stream, source + 1000 + side * (bytes - 1), peer,
            c->from.domain.queue.queue.native_stream, source + 1000, (uint64_t)bytes, &err);
        if (status != SEQLSTM_INVALID_ARGUMENT)
            return fail(c, "it takes ranges that overlap, expected INVALID_ARGUMENT", bytes);
    }
    return true;
}

static bool check_pair(struct copies *c, uint32_t to, uint32_t from)
{
    static const int64_t sizes[] = {0, 1, 3, SEQLSTM_ALIGNMENT, 100003, LARGE};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    bool good = true;
    if (open_end(c, to, &c->to, &err) != SEQLSTM_OK || open_end(c, from, &c->from, &err) != SEQLSTM_OK)
        good = fail(c, err.message, 0);
    for (size_t s = 0; good && s < sizeof sizes / sizeof *sizes; s++)
        good = check_rounds(c, from, sizes[s]);
    good = good && check_return(c, from) && check_overlap(c, from);
    close_end(&c->to);
    close_end(&c->from);
    return good;
}

bool sl_copies_check(struct sl_workbench *w, char *out_text, size_t capacity_bytes)
{
    struct copies c = {.w = w, .text = out_text, .capacity_bytes = capacity_bytes};
    const struct seqlstm_memory *memory = w->table.memory;
    if (!w->bench.domains || !SEQLSTM_HAS(memory, copy_across) || !memory->copy_across)
        return true;
    c.host = malloc((size_t)get_part_bytes());
    if (!c.host)
        return fail(&c, "no memory for the check", LARGE);
    const bool good =
        check_pair(&c, 0, 0) && (w->record.device_count < 2 || (check_pair(&c, 0, 1) && check_pair(&c, 1, 0)));
    free(c.host);
    return good;
}
