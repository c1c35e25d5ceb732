/* SPDX-License-Identifier: Apache-2.0 */
/* An executor of steps in frames without a plan that was made: a device that is a table of functions on the host's
 * memory, a batch with a source, and calls that do nothing. Every test of a file uses all of it. */
#ifndef SL_TESTS_FRAME_WORLD_H
#define SL_TESTS_FRAME_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/ext/draft/memory.h>

#include "ok.h"

#include "exec/capture/capture.h"
#include "exec/place/place.h"
#include "exec/shape/shapes.h"

/* ---- the device ---- */

static int memories, streams, events, captures; /* that are there */
static double now_ns;
static bool refuses;
static int fails_at = -1; /* the number of the call that fails, of those that have a status; below 0: none */

static inline seqlstm_status give(struct seqlstm_error *err)
{
    if (fails_at < 0 || fails_at-- > 0)
        return SEQLSTM_OK;
    SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "the card is gone");
}

static seqlstm_status allocate(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, uint64_t bytes,
                               void **out_pointer, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)kind;
    SEQLSTM_TRY(give(err));
    memories++;
    *out_pointer = calloc(1, bytes);
    return SEQLSTM_OK;
}

static void release(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, void *pointer)
{
    (void)instance, (void)device, (void)kind;
    memories--;
    free(pointer);
}

static seqlstm_status copy(struct seqlstm_instance *instance, uint32_t device, void *stream, uint32_t direction,
                           void *to, const void *from, uint64_t bytes, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream, (void)direction;
    memcpy(to, from, bytes);
    return give(err);
}

static seqlstm_status fill(struct seqlstm_instance *instance, uint32_t device, void *stream, void *to, uint32_t value,
                           uint64_t bytes, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream;
    memset(to, (int)value, bytes);
    return give(err);
}

static seqlstm_status create_stream(struct seqlstm_instance *instance, uint32_t device, void **out_stream,
                                    struct seqlstm_error *err)
{
    (void)instance, (void)device;
    SEQLSTM_TRY(give(err));
    streams++;
    *out_stream = malloc(1);
    return SEQLSTM_OK;
}

static void destroy_stream(struct seqlstm_instance *instance, uint32_t device, void *stream)
{
    (void)instance, (void)device;
    streams--;
    free(stream);
}

static seqlstm_status finish(struct seqlstm_instance *instance, uint32_t device, void *what, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)what;
    return give(err);
}

static seqlstm_status create_event(struct seqlstm_instance *instance, uint32_t device, void **out_event,
                                   struct seqlstm_error *err)
{
    (void)instance, (void)device;
    SEQLSTM_TRY(give(err));
    events++;
    *out_event = calloc(1, sizeof(double));
    return SEQLSTM_OK;
}

static void destroy_event(struct seqlstm_instance *instance, uint32_t device, void *event)
{
    (void)instance, (void)device;
    events--;
    free(event);
}

static seqlstm_status record_event(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                   struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream;
    *(double *)event = now_ns;
    return give(err);
}

static seqlstm_status wait_event(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                 struct seqlstm_error *err)
{
    (void)stream;
    return finish(instance, device, event, err);
}

static seqlstm_status get_elapsed(struct seqlstm_instance *instance, uint32_t device, void *begin, void *end,
                                  double *out_ns, struct seqlstm_error *err)
{
    (void)instance, (void)device;
    *out_ns = *(double *)end - *(double *)begin;
    return give(err);
}

static seqlstm_status end_capture(struct seqlstm_instance *instance, uint32_t device, void *stream, void **out_capture,
                                  struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream;
    if (refuses)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "the device is out of nodes");
    SEQLSTM_TRY(give(err));
    captures++;
    *out_capture = malloc(1);
    return SEQLSTM_OK;
}

static seqlstm_status launch(struct seqlstm_instance *instance, uint32_t device, void *capture, void *stream,
                             struct seqlstm_error *err)
{
    (void)stream;
    return finish(instance, device, capture, err);
}

static void destroy_capture(struct seqlstm_instance *instance, uint32_t device, void *capture)
{
    (void)instance, (void)device;
    captures--;
    free(capture);
}

static seqlstm_status pass_frame(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                 const struct seqlstm_frame *frame, struct seqlstm_error *err)
{
    (void)frame;
    return finish(instance, device, stream, err);
}

static const struct seqlstm_memory memory_table = {
    .struct_size = sizeof memory_table, .allocate = allocate, .release = release, .copy = copy, .fill = fill};
static const struct seqlstm_streams stream_table = {.struct_size = sizeof stream_table,
                                                    .create = create_stream,
                                                    .destroy = destroy_stream,
                                                    .synchronize = finish,
                                                    .event_create = create_event,
                                                    .event_destroy = destroy_event,
                                                    .event_record = record_event,
                                                    .event_wait = wait_event,
                                                    .event_elapsed = get_elapsed,
                                                    .capture_begin = finish,
                                                    .capture_end = end_capture,
                                                    .capture_launch = launch,
                                                    .capture_destroy = destroy_capture,
                                                    .event_synchronize = finish,
                                                    .frame_begin = pass_frame,
                                                    .frame_end = pass_frame};
static const struct seqlstm_backend backend = {.id = "fake", .memory = &memory_table, .streams = &stream_table};

/* ---- the executor ---- */

enum { X, STATE, SOURCE, Y, X_AGAIN, SUMS, TENSORS, CALLS = 2, MOST = 3 };

static const struct sl_tensor tensors[TENSORS] = {
    [X] = {.role = SL_TENSOR_INPUT, .axis = SL_AXIS_STEPS, .features = 2},
    [STATE] = {.role = SL_TENSOR_STATE_IN, .axis = SL_AXIS_SEQUENCES, .features = 3},
    [SOURCE] = {.role = SL_TENSOR_SOURCE, .axis = SL_AXIS_SOURCE_STEPS, .dtype = SEQLSTM_DTYPE_INT32, .features = 1},
    [Y] = {.role = SL_TENSOR_TARGET, .axis = SL_AXIS_SEQUENCES, .features = 1},
    [X_AGAIN] = {.role = SL_TENSOR_INPUT, .axis = SL_AXIS_STEPS, .features = 2},
    [SUMS] = {.role = SL_TENSOR_SUMS, .axis = SL_AXIS_FREE, .dtype = SEQLSTM_DTYPE_FLOAT64, .rows = 1, .features = 2}};

static struct world {
    struct sl_graph graph;
    struct sl_plan plan;
    struct sl_params params;
    struct sl_domain domain;
    struct sl_exec exec;
    struct sl_exec_call calls[CALLS];
    struct sl_exec_timing timing[CALLS];
    uint8_t valid[TENSORS], grad_valid[TENSORS];
    bool param_written[1];
    char fields[SL_EXEC_FIELDS]; /* addresses on the device */
    struct sl_batch *batch;
} w;

static struct sl_call plan_calls[CALLS];
static struct sl_node nodes[CALLS];

static inline struct sl_batch *make_batch(bool weighted)
{
    static const int32_t lengths[] = {3, 2, 1}, source_lengths[] = {2, 4, 1};
    const struct sl_batch_shape shape = {.sequences = 3,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_VALUES,
                                         .input_features = 2,
                                         .input_on_steps = true,
                                         .target_kind = SL_FIELD_VALUES,
                                         .target_features = 1,
                                         .has_weight = weighted,
                                         .source_lengths = source_lengths,
                                         .source_kind = SL_FIELD_IDS,
                                         .source_features = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int k = 0; k < 12; k++)
        ((float *)(uintptr_t)batch->input.values)[k] = (float)(k + 1);
    for (int k = 0; k < 7; k++)
        ((int32_t *)(uintptr_t)batch->source.input.ids)[k] = 70 + k;
    for (uint32_t k = 0; k < 3; k++) {
        ((float *)(uintptr_t)batch->target.values)[k] = 0.5f + (float)k;
        ((uint64_t *)(uintptr_t)batch->axis.sequence_id)[k] = 40 + k;
        ((uint32_t *)(uintptr_t)batch->axis.position0)[k] = 100 + k;
        ((uint64_t *)(uintptr_t)batch->source.axis.sequence_id)[k] = 60 + k;
        ((uint32_t *)(uintptr_t)batch->source.axis.position0)[k] = 200 + k;
    }
    return batch;
}

static inline void open_world(void)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    w = (struct world){.graph = {.tensors = tensors, .tensor_count = TENSORS, .sums = SUMS, .phase = SL_PHASE_TRAIN}};
    now_ns = 0;
    refuses = false;
    w.graph.facts.envelope =
        (struct sl_envelope){.sequences = MOST, .steps = 4, .rows = 6, .source_steps = 4, .source_rows = 7};
    w.plan = (struct sl_plan){.graph = &w.graph};
    ok(sl_domain_open(&w.domain, &backend, NULL, 0, "fake:0", &err), &err);
    struct sl_exec *exec = &w.exec;
    exec->graph = &w.graph;
    exec->plan = &w.plan;
    exec->params = &w.params;
    exec->calls = w.calls;
    exec->timing = w.timing;
    exec->valid = w.valid;
    exec->grad_valid = w.grad_valid;
    exec->param_written = w.param_written;
    exec->loop.step = exec->pieces.running = -1;
    exec->device_place = 1;
    sl_domain_init_host(&exec->host, NULL, NULL);
    exec->places[SL_PLACE_HOST].domain = &exec->host;
    exec->places[1].domain = &w.domain;
    for (int f = 0; f < SL_EXEC_FIELDS; f++)
        exec->places[1].fields[f] = &w.fields[f];
    ok(sl_exec_open_live(exec, &err), &err);
    ok(sl_exec_open_frame(exec, &err), &err);
    w.batch = make_batch(false);
    ok(sl_exec_bind(exec, w.batch, &err), &err);
    /* only now: the calls have no backends that bind them */
    w.plan.calls = plan_calls;
    for (int c = 0; c < CALLS; c++)
        plan_calls[c].node = &nodes[c];
}

static inline void close_world(void)
{
    fails_at = -1;
    w.plan.call_count = 0;
    sl_exec_unbind_all(&w.exec);
    sl_exec_close_frame(&w.exec);
    sl_exec_close_live(&w.exec);
    sl_domain_close(&w.domain);
    sl_batch_destroy(w.batch);
    assert_int_equal(memories, 0);
    assert_int_equal(streams, 0);
    assert_int_equal(events, 0);
    assert_int_equal(captures, 0);
}

static inline seqlstm_status run_no_calls(struct sl_exec *exec, const struct sl_exec_step *step,
                                          struct seqlstm_error *err)
{
    (void)exec, (void)step, (void)err;
    return SEQLSTM_OK;
}

#endif
