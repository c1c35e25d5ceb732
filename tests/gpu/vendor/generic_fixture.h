/* SPDX-License-Identifier: Apache-2.0 */
/* cuda-generic on the emulated device: instances, what they say, descriptors of operations, and an axis. */
#ifndef GENERIC_FIXTURE_H
#define GENERIC_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <seqlstm/any_desc.h>
#include <seqlstm/backend.h>
#include <seqlstm/desc_check.h>
#include <seqlstm/ext/draft/memory.h>
#include <seqlstm/ext/rebind.h>
#include <seqlstm/ext/recorder.h>

#include "registry/host.h"

enum { INFERENCE = SEQLSTM_MODE_INFERENCE, TRAINING = SEQLSTM_MODE_TRAINING };

static const struct seqlstm_backend *table;
static struct sl_host host;
static const char *cublaslt; /* NULL: there is no fake one */
/* ---- what an instance says --------------------------------------------------------------------------------------- */

static int32_t said_level, said_count;
static char said[800];

static inline void hear(void *context, int32_t level, const char *message)
{
    (void)context;
    said_level = level;
    said_count++;
    snprintf(said, sizeof said, "%s", message);
}

/* NULL: it does not open. */
static inline struct seqlstm_instance *open_with(const char *key, const char *value, seqlstm_status expected,
                                                 struct seqlstm_error *err)
{
    struct seqlstm_instance *instance = NULL;
    struct seqlstm_host services = host.services;
    const struct seqlstm_setting settings[] = {{"capture", "true"}, {key, value}};
    services.log = hear;
    said_level = said_count = 0;
    const seqlstm_status status = table->open(&services, settings, key != NULL ? 2 : 0, &instance, err);
    if (status != expected)
        fail_msg("%s=%s: status %d, %s", key != NULL ? key : "", value != NULL ? value : "", (int)status, err->message);
    return instance;
}

static inline struct seqlstm_instance *open_plain(void)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    return open_with(NULL, NULL, SEQLSTM_OK, &err);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static inline void set_head(union seqlstm_any_desc *d, uint32_t op, uint32_t mode, int64_t rows)
{
    memset(d, 0, sizeof *d);
    d->head = (struct seqlstm_desc){.struct_size = seqlstm_desc_bytes(op),
                                    .op = op,
                                    .mode = mode,
                                    .max_rows = rows,
                                    .max_sequences = rows,
                                    .max_steps = rows};
}

static inline union seqlstm_any_desc make_dense(uint32_t mode)
{
    union seqlstm_any_desc d;
    set_head(&d, SEQLSTM_OP_DENSE, mode, 64);
    d.dense.input = d.dense.output = 32;
    return d;
}

static inline union seqlstm_any_desc make_layer(uint32_t mode, int64_t hidden, uint32_t dtype)
{
    union seqlstm_any_desc d;
    set_head(&d, SEQLSTM_OP_RECURRENT, mode, 64);
    d.head.max_sequences = d.head.max_steps = 8;
    d.head.dtype_compute = dtype;
    d.recurrent.cell = SEQLSTM_CELL_LSTM;
    d.recurrent.options = SEQLSTM_BIT_RECURRENT_OUTPUT;
    d.recurrent.layers = 1;
    d.recurrent.input = 16;
    d.recurrent.hidden = hidden;
    for (int i = 0; i < 2; i++) {
        d.recurrent.activations[SEQLSTM_PLACE_GATE][i].kind = SEQLSTM_ACT_SIGMOID;
        d.recurrent.activations[SEQLSTM_PLACE_CANDIDATE][i].kind = SEQLSTM_ACT_TANH;
        d.recurrent.activations[SEQLSTM_PLACE_OUTPUT][i].kind = SEQLSTM_ACT_TANH;
    }
    return d;
}

static inline union seqlstm_any_desc make_pool(void)
{
    union seqlstm_any_desc d;
    set_head(&d, SEQLSTM_OP_POOL, INFERENCE, 64);
    d.pool.features = 3;
    return d;
}

static inline struct seqlstm_op *create(struct seqlstm_instance *instance, const union seqlstm_any_desc *d,
                                        const char *variant, seqlstm_status expected, struct seqlstm_error *err)
{
    struct seqlstm_op *op = NULL;
    const seqlstm_status status = table->op_create(instance, 0, &d->head, variant, &op, err);
    if (status != expected)
        fail_msg("%s: status %d, %s", variant ? variant : "any variant", (int)status, err->message);
    return op;
}

/* ---- an axis ----------------------------------------------------------------------------------------------------- */

static const int32_t lengths[] = {2, 2, 1}, batch_sizes[] = {3, 2};
static const int64_t row_offsets[] = {0, 3, 5};
static const uint64_t ids[] = {1, 2, 3};
static const uint32_t positions[] = {0, 0, 0};
static const struct seqlstm_axis axis = {.struct_size = sizeof axis,
                                         .sequences = 3,
                                         .steps = 2,
                                         .rows = 5,
                                         .lengths = lengths,
                                         .batch_sizes = batch_sizes,
                                         .row_offsets = row_offsets,
                                         .sequence_id = ids,
                                         .position0 = positions};

/* ---- the program ------------------------------------------------------------------------------------------------- */

/* Runs the tests with the plugin, and the library if there is one, that the arguments name. Returns the program's exit
 * status. */
static inline int run_with(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    seqlstm_backend_query_fn query;
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = module != NULL ? dlsym(module, SEQLSTM_QUERY_SYMBOL) : NULL;
    cublaslt = argc > 2 ? argv[2] : NULL;
    if (symbol == NULL) {
        printf("Bail out! %s\n", argc > 1 ? dlerror() : "expected a plugin");
        return 1;
    }
    memcpy(&query, &symbol, sizeof query);
    table = query(SEQLSTM_ABI_MINOR);
    sl_host_init_minimal(&host, "cuda-generic", NULL);
    const int failed = _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
    return failed || host.memory.live_blocks != 0;
}

#endif
