/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts the memory that the library allocates for the primitives of an epoch's batches, and for the calls of those
 * that are bound at the same time. This memory is in no buffer of the host.
 *
 * Entries are counted as the cache keeps them (primitive.c): those of bound batches, and at most ODN_ENTRIES_IDLE
 * others. A primitive consists of descriptors, copied for each of its inner products, and the code of these. The bytes
 * of both depend on the kind of kernel, and hardly on the shape. They were measured with 2.6;
 * tests/unit/cpu-onednn/test_onednn_primitives.c checks them. */
#include <string.h>

#include "cpu-onednn/recurrent/recurrent.h"

enum {
    ARGUMENT_BYTES = 750, /* a descriptor of about 700 bytes, and a storage object */
    SLACK = 5             /* 1 / SLACK is lost in holes between small blocks (measured: 12 to 26 %) */
};

/* Bytes of all passes of one shape. Training in float32 and GRU cells run the library's general code. The others run
 * its kernels for batches of products, which it generates for them. */
static uint64_t entry_bytes(const struct odn_recurrent *r)
{
    if (r->training)
        return r->elem.type == dnnl_f32 ? 150000 : 310000;
    return r->cell == ODN_GRU || r->cell == ODN_GRU_RESET_AFTER ? 68000 : 140000;
}

/* A shape that has occurred, and the last group of batches that had it. */
struct met {
    uint64_t key;
    int64_t group;
};

/* Shapes, sorted by key. */
struct shapes {
    const struct seqlstm_host *host;
    struct met *items;
    int64_t count, capacity;
};

static bool grow(struct shapes *shapes)
{
    const int64_t capacity = shapes->capacity > 0 ? 2 * shapes->capacity : 64;
    struct met *items = host_allocate(shapes->host, (uint64_t)capacity * sizeof *items);
    if (items == NULL)
        return false;
    if (shapes->count > 0)
        memcpy(items, shapes->items, (size_t)shapes->count * sizeof *items);
    host_release(shapes->host, shapes->items);
    shapes->items = items;
    shapes->capacity = capacity;
    return true;
}

/* Records a shape; adds one to *io_used if it is new in this group. Returns false without memory. */
static bool meet(struct shapes *shapes, const struct odn_shape *shape, int64_t group, int64_t *io_used)
{
    const uint64_t key = (uint64_t)shape->n << 32 | (uint64_t)shape->steps;
    int64_t low = 0, high = shapes->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (shapes->items[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == shapes->count || shapes->items[low].key != key) {
        if (shapes->count == shapes->capacity && !grow(shapes))
            return false;
        memmove(&shapes->items[low + 1], &shapes->items[low], (size_t)(shapes->count - low) * sizeof *shapes->items);
        shapes->items[low] = (struct met){.key = key, .group = -1};
        shapes->count++;
    }
    *io_used += shapes->items[low].group != group;
    shapes->items[low].group = group;
    return true;
}

/* A group of batches that are bound at the same time. */
struct group {
    int64_t number;
    int64_t used;  /* different shapes */
    int64_t bound; /* shapes of all slices, each with calls of its own */
};

static seqlstm_status meet_batch(struct odn_recurrent *r, const struct seqlstm_axis *axis, struct shapes *shapes,
                                 struct group *group, struct seqlstm_error *err)
{
    struct odn_recurrent_binding b;
    SEQLSTM_TRY(odn_binding_suppose(&b, r, axis, r->slices_max, err));
    seqlstm_status status = SEQLSTM_OK;
    for (int32_t m = 0; m < b.slices_count && status == SEQLSTM_OK; m++)
        for (int32_t i = 0; i < b.slices[m].shape_count && status == SEQLSTM_OK; i++) {
            group->bound++;
            if (!meet(shapes, &b.slices[m].shapes[i], group->number, &group->used))
                status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for shapes");
        }
    odn_slices_release(&b);
    return status;
}

/* Bytes of the calls of one shape. */
static seqlstm_status call_bytes(const struct odn_recurrent *r, uint64_t *out_bytes, struct seqlstm_error *err)
{
    *out_bytes = 0;
    for (int32_t k = 0; k < r->kinds; k++) {
        struct odn_need need = {.kind = k, .way = odn_way_of(r, 0), .n = 1, .steps = 1};
        SEQLSTM_TRY(odn_need_find(r, &need, err));
        *out_bytes += (uint64_t)(r->directions * need.arguments) * ARGUMENT_BYTES;
    }
    *out_bytes += (uint64_t)(r->kinds * r->directions) * sizeof(struct odn_calls);
    return SEQLSTM_OK;
}

static seqlstm_status count(struct odn_recurrent *r, const struct seqlstm_axis *const *batches, uint32_t batch_count,
                            uint32_t bound_count, struct shapes *shapes, struct group *out_most,
                            struct seqlstm_error *err)
{
    const uint32_t at_a_time = bound_count > 0 ? bound_count : 1;
    struct group group = {0};
    for (uint32_t i = 0; i < batch_count; i++) {
        if (i % at_a_time == 0)
            group = (struct group){.number = i / at_a_time};
        SEQLSTM_TRY(meet_batch(r, batches[i], shapes, &group, err));
        out_most->used = group.used > out_most->used ? group.used : out_most->used;
        out_most->bound = group.bound > out_most->bound ? group.bound : out_most->bound;
    }
    return SEQLSTM_OK;
}

seqlstm_status odn_recurrent_find_own(const struct seqlstm_op *op, const struct seqlstm_axis *const *batches,
                                      uint32_t batch_count, uint32_t bound_count, uint64_t *out_bytes,
                                      struct seqlstm_error *err)
{
    struct odn_recurrent *r = op->recurrent;
    struct shapes shapes = {.host = op->instance->host};
    struct group most = {0};
    uint64_t calls = 0;
    seqlstm_status status = count(r, batches, batch_count, bound_count, &shapes, &most, err);
    host_release(shapes.host, shapes.items);
    const int before = odn_threads_set(op->exclusive ? op->instance->members_max : 1);
    if (status == SEQLSTM_OK)
        status = call_bytes(r, &calls, err);
    odn_threads_set(before);
    const int64_t entries = (int64_t)(r->kinds * r->directions);
    const int64_t all = entries * shapes.count, kept = entries * most.used + ODN_ENTRIES_IDLE;
    const int64_t made = all < kept ? all : kept, idle = made - entries * most.used; /* an idle entry has calls, too */
    const uint64_t bytes =
        (uint64_t)made * entry_bytes(r) +
        ((uint64_t)(entries * most.bound) + (uint64_t)(idle > 0 ? idle : 0)) * calls / (uint64_t)entries;
    *out_bytes = bytes + bytes / SLACK;
    return status;
}
