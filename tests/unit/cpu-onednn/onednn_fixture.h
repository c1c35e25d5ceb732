/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM layers of the built cpu-onednn plugin, batches for them, and what it says of these. */
#ifndef ONEDNN_FIXTURE_H
#define ONEDNN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/backend.h>
#include <seqlstm/ext/footprint.h>

#include "registry/host.h"

enum { SEQUENCES = 64, STEPS = 64 };

static const struct seqlstm_backend *table;
static struct seqlstm_instance *instance;
static uint32_t flags; /* of descriptors */
static struct sl_host host;

/* Sequences of `shortest` to `longest` steps, as evenly as it goes. */
struct batch {
    struct seqlstm_axis axis;
    int32_t lengths[SEQUENCES], batch_sizes[STEPS];
    int64_t row_offsets[STEPS + 1];
    uint64_t ids[SEQUENCES];
    uint32_t positions[SEQUENCES];
};

static inline void batch_fill(struct batch *b, int32_t sequences, int32_t shortest, int32_t longest)
{
    memset(b, 0, sizeof *b);
    for (int32_t k = 0; k < sequences; k++) {
        b->lengths[k] = longest - (longest - shortest) * k / sequences;
        for (int32_t t = 0; t < b->lengths[k]; t++)
            b->batch_sizes[t]++;
    }
    for (int32_t t = 0; t < longest; t++)
        b->row_offsets[t + 1] = b->row_offsets[t] + b->batch_sizes[t];
    b->axis = (struct seqlstm_axis){.struct_size = sizeof b->axis,
                                    .sequences = sequences,
                                    .steps = longest,
                                    .rows = b->row_offsets[longest],
                                    .lengths = b->lengths,
                                    .batch_sizes = b->batch_sizes,
                                    .row_offsets = b->row_offsets,
                                    .sequence_id = b->ids,
                                    .position0 = b->positions};
}

static inline struct seqlstm_op *make_lstm_for(int32_t sequences, int32_t steps, int64_t hidden, uint32_t mode,
                                               const char *variant)
{
    struct seqlstm_recurrent_desc d;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    memset(&d, 0, sizeof d);
    d.head = (struct seqlstm_desc){.struct_size = sizeof d,
                                   .op = SEQLSTM_OP_RECURRENT,
                                   .mode = mode,
                                   .flags = flags,
                                   .max_rows = sequences * steps,
                                   .max_sequences = sequences,
                                   .max_steps = steps};
    d.cell = SEQLSTM_CELL_LSTM;
    d.options = SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_OUTPUT;
    d.layers = 1;
    d.input = d.hidden = hidden;
    for (int i = 0; i < 2; i++) {
        d.activations[SEQLSTM_PLACE_GATE][i].kind = SEQLSTM_ACT_SIGMOID;
        d.activations[SEQLSTM_PLACE_CANDIDATE][i].kind = SEQLSTM_ACT_TANH;
        d.activations[SEQLSTM_PLACE_OUTPUT][i].kind = SEQLSTM_ACT_TANH;
    }
    if (table->op_create(instance, 0, &d.head, variant, &op, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return op;
}

static inline struct seqlstm_op *make_lstm(int64_t hidden, uint32_t mode, const char *variant)
{
    return make_lstm_for(SEQUENCES, STEPS, hidden, mode, variant);
}

static inline struct seqlstm_bind describe(const struct batch *b)
{
    return (struct seqlstm_bind){.struct_size = sizeof(struct seqlstm_bind),
                                 .rows = b->axis.rows,
                                 .rows_in = b->axis.rows,
                                 .axis = &b->axis,
                                 .t1 = b->axis.steps};
}

static inline struct seqlstm_binding *bind(struct seqlstm_op *op, const struct batch *b)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_binding *binding = NULL;
    struct sl_queue queue;
    sl_queue_init(&queue, NULL);
    const struct seqlstm_bind bind = describe(b);
    if (table->op_bind(op, &queue.queue, &bind, &binding, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return binding;
}

static inline void bind_once(struct seqlstm_op *op, const struct batch *b)
{
    table->binding_destroy(bind(op, b));
}

struct idle {
    struct seqlstm_sizes sizes;
    struct seqlstm_idle answer;
    struct seqlstm_range workspace[64], reserve[64];
    uint64_t workspace_bytes, reserve_bytes; /* of the ranges */
};

static inline const struct seqlstm_footprint *get_footprint(void)
{
    const struct seqlstm_footprint *footprint = table->get_extension(instance, SEQLSTM_FOOTPRINT_EXTENSION);
    assert_non_null(footprint);
    return footprint;
}

static inline uint64_t sum(const struct seqlstm_ranges *ranges, uint64_t bytes)
{
    uint64_t sum = 0, end = 0;
    for (uint32_t i = 0; i < ranges->count; i++) {
        const struct seqlstm_range range = ranges->at[i];
        assert_true(end <= range.begin && range.begin < range.end && range.end <= bytes);
        end = range.end;
        sum += range.end - range.begin;
    }
    return sum;
}

/* `members`: of the queues on which calls run; 0: any number. */
static inline void ask_members(struct idle *idle, const struct seqlstm_op *op, const struct seqlstm_axis *axis,
                               int32_t members)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_sizes *sizes = &idle->sizes;
    struct seqlstm_idle *answer = &idle->answer;
    *sizes = (struct seqlstm_sizes){.struct_size = sizeof *sizes, .members = members};
    *answer = (struct seqlstm_idle){.struct_size = sizeof *answer,
                                    .workspace = {.at = idle->workspace, .room = 64},
                                    .reserve = {.at = idle->reserve, .room = 64}};
    assert_int_equal(table->op_sizes(op, sizes, &err), SEQLSTM_OK);
    assert_int_equal(get_footprint()->idle_ranges(op, sizes, axis, answer, &err), SEQLSTM_OK);
    idle->workspace_bytes = sum(&answer->workspace, sizes->workspace_bytes);
    idle->reserve_bytes = sum(&answer->reserve, sizes->reserve_bytes);
}

static inline void ask(struct idle *idle, const struct seqlstm_op *op, const struct seqlstm_axis *axis)
{
    ask_members(idle, op, axis, 0);
}

/* False, with TAP's plan: there is no such backend here. */
static inline bool open_backend(void)
{
    char path[4096];
    const char *build = getenv("SEQLSTM_BUILD");
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(path, sizeof path, "%s/backends/libseqlstm_backend_cpu-onednn.so", build != NULL ? build : "build");
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = module != NULL ? dlsym(module, SEQLSTM_QUERY_SYMBOL) : NULL;
    seqlstm_backend_query_fn query;
    if (symbol == NULL) {
        printf("1..0 # SKIP cpu-onednn was not built\n");
        return false;
    }
    memcpy(&query, &symbol, sizeof query);
    table = query(SEQLSTM_ABI_MINOR);
    sl_host_init_minimal(&host, "cpu-onednn", NULL);
    if (table->open(&host.services, NULL, 0, &instance, &err) != SEQLSTM_OK) {
        printf("1..0 # SKIP %s\n", err.message);
        return false;
    }
    return true;
}

#endif
