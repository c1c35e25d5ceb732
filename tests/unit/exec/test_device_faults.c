/* SPDX-License-Identifier: Apache-2.0 */
/* A device whose n-th call fails, and the same for memory of the host: from the making of an executor to its fifth
 * step, with a batch that is staged, states that are carried and, in turn, a profile, captures and calls on the host.
 * Either the error reaches the caller, or everything is as without it; what was taken of the device is given back. The
 * device is the reference in memory of its own, so that a copy which was not made shows. */
#include "exec_world.h"

#include <seqlstm/ext/draft/memory.h>

#include "base/system/trace.h"
#include "exec/params/params_mirror.h"
#include "oom.h"

enum { B = 3, STEPS = 5, ROWS = 9, V = 6, STEPS_MADE = 5, TRIES_MOST = 20000 };

static const char data[] = "seqlstm: 1\ndata: {type: text, train: {file: a}, tokenizer: {type: char},"
                           " batching: {unit: stream, bptt: 5}}\n";
static const char layers[] =
    "model: [{type: embedding, name: emb, dim: 4}, {type: lstm, name: a, units: 4, return_sequences: true},"
    " {type: rnn, name: b, units: 4, return_sequences: true}, {type: add, name: c, from: [a, b]},"
    " {type: concat, name: d, from: [a, c]}, {type: output, activation: softmax, kernel_regularizer: {l2: 0.01}}]\n"
    "train: {loss: cross_entropy, task: language_model, epochs: 1, clip_value: 0.5, optimizer: {type: adam}}";
static const struct sl_data_facts facts = {
    .input = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = V},
    .target = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = V},
    .has_steps = true,
    .envelope = {.sequences = B, .steps = STEPS, .rows = ROWS}};

/* ---- the device -------------------------------------------------------------------------------------------------- */

static int blocks, streams, events; /* that are there */
static int fails_at = -1;           /* the number of the call that fails; below 0: none, or it has failed */
static double now_ns;
static bool is_full;
static bool offers_captures; /* and then is not able to make one */
static uint64_t card_bytes;  /* 0: it does not say */

static seqlstm_status give(struct seqlstm_error *err)
{
    if (fails_at < 0 || fails_at-- > 0)
        return SEQLSTM_OK;
    SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "the card is gone");
}

static seqlstm_status take(uint64_t bytes, int *count, void **out, struct seqlstm_error *err)
{
    SEQLSTM_TRY(give(err));
    if (is_full || (*out = sl_memory_alloc(NULL, bytes)) == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory on the card");
    memset(*out, 0x55, bytes);
    ++*count;
    return SEQLSTM_OK;
}

static seqlstm_status allocate(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, uint64_t bytes,
                               void **out_pointer, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)kind;
    return take(bytes, &blocks, out_pointer, err);
}

static void release(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, void *pointer)
{
    (void)instance, (void)device, (void)kind;
    blocks--;
    sl_memory_free(NULL, pointer);
}

static seqlstm_status copy(struct seqlstm_instance *instance, uint32_t device, void *stream, uint32_t direction,
                           void *to, const void *from, uint64_t bytes, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream, (void)direction;
    SEQLSTM_TRY(give(err));
    memcpy(to, from, bytes);
    return SEQLSTM_OK;
}

static seqlstm_status fill(struct seqlstm_instance *instance, uint32_t device, void *stream, void *to, uint32_t value,
                           uint64_t bytes, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream;
    SEQLSTM_TRY(give(err));
    memset(to, (int)value, bytes);
    return SEQLSTM_OK;
}

static seqlstm_status create_stream(struct seqlstm_instance *instance, uint32_t device, void **out_stream,
                                    struct seqlstm_error *err)
{
    (void)instance, (void)device;
    return take(1, &streams, out_stream, err);
}

static void destroy_stream(struct seqlstm_instance *instance, uint32_t device, void *stream)
{
    (void)instance, (void)device;
    streams--;
    sl_memory_free(NULL, stream);
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
    return take(sizeof(double), &events, out_event, err);
}

static void destroy_event(struct seqlstm_instance *instance, uint32_t device, void *event)
{
    (void)instance, (void)device;
    events--;
    sl_memory_free(NULL, event);
}

static seqlstm_status record_event(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                   struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream;
    SEQLSTM_TRY(give(err));
    *(double *)event = now_ns += 1000;
    return SEQLSTM_OK;
}

static seqlstm_status get_elapsed(struct seqlstm_instance *instance, uint32_t device, void *begin, void *end,
                                  double *out_ns, struct seqlstm_error *err)
{
    (void)instance, (void)device;
    SEQLSTM_TRY(give(err));
    *out_ns = *(double *)end - *(double *)begin;
    return SEQLSTM_OK;
}

static seqlstm_status describe_device(struct seqlstm_instance *instance, uint32_t device,
                                      struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    SEQLSTM_TRY(seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR)->device_info(instance, device, info, err));
    snprintf(info->domain, sizeof info->domain, "card:0");
    info->memory_bytes = card_bytes;
    return SEQLSTM_OK;
}

/* The host waits for all it asks for. */
static seqlstm_status wait_event(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                 struct seqlstm_error *err)
{
    (void)stream;
    return finish(instance, device, event, err);
}

static seqlstm_status begin_capture(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                    struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream;
    SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "no captures today");
}

static seqlstm_status end_capture(struct seqlstm_instance *instance, uint32_t device, void *stream, void **out_capture,
                                  struct seqlstm_error *err)
{
    *out_capture = NULL;
    return begin_capture(instance, device, stream, err);
}

static seqlstm_status launch_capture(struct seqlstm_instance *instance, uint32_t device, void *capture, void *stream,
                                     struct seqlstm_error *err)
{
    (void)capture;
    return begin_capture(instance, device, stream, err);
}

static void destroy_capture(struct seqlstm_instance *instance, uint32_t device, void *capture)
{
    (void)instance, (void)device, (void)capture;
}

static seqlstm_status pass_frame(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                 const struct seqlstm_frame *frame, struct seqlstm_error *err)
{
    (void)frame;
    return begin_capture(instance, device, stream, err);
}

static seqlstm_status size(const struct seqlstm_op *op, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    const seqlstm_status status = seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR)->op_sizes(op, sizes, err);
    sizes->capture = SEQLSTM_CAPTURE_ANY_SHAPE;
    sizes->packed_bytes = 1 << 16; /* enough to be seen in a message */
    return status;
}

static seqlstm_status pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots, void *packed,
                           const struct seqlstm_step *step, struct seqlstm_error *err)
{
    (void)op, (void)queue, (void)slots, (void)packed, (void)step;
    return give(err);
}

static const struct seqlstm_backend *query(uint32_t host_minor)
{
    static const struct seqlstm_memory memory = {
        .struct_size = sizeof memory, .allocate = allocate, .release = release, .copy = copy, .fill = fill};
    static const struct seqlstm_streams own_streams = {.struct_size = sizeof own_streams,
                                                       .create = create_stream,
                                                       .destroy = destroy_stream,
                                                       .synchronize = finish,
                                                       .event_create = create_event,
                                                       .event_destroy = destroy_event,
                                                       .event_record = record_event,
                                                       .event_elapsed = get_elapsed};
    static struct seqlstm_streams with_captures;
    static struct seqlstm_backend table;
    with_captures = own_streams;
    with_captures.event_wait = wait_event;
    with_captures.event_synchronize = finish;
    with_captures.capture_begin = begin_capture;
    with_captures.capture_end = end_capture;
    with_captures.capture_launch = launch_capture;
    with_captures.capture_destroy = destroy_capture;
    with_captures.frame_begin = with_captures.frame_end = pass_frame;
    table = *seqlstm_reference_query_v0(host_minor);
    table.device_info = describe_device;
    table.memory = &memory;
    table.streams = offers_captures ? &with_captures : &own_streams;
    table.op_sizes = size;
    table.weights_pack = pack;
    return &table;
}

static const struct seqlstm_backend *query_host(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    table = *seqlstm_reference_query_v0(host_minor);
    table.id = "beside";
    return &table;
}

/* Where the calls run; with CAPTURES the card is asked for some, which it refuses; with SPREAD every other call runs on
 * the host, with SPREAD_TOO those between. */
enum way { ALONE, CAPTURES, SPREAD, SPREAD_TOO };

/* A plan of the world for this, with the registry that it needs. */
static void spread(struct world *w, int first)
{
    static const struct sl_registry_entry entries[] = {{.name = "reference"}, {.name = "beside"}};
    static const struct sl_backend_builtin builtins[] = {{"reference", query}, {"beside", query_host}};
    const struct sl_registry_request registry = {
        .entries = entries, .entry_count = 2, .builtins = builtins, .builtin_count = 2, .only_folders = true};
    struct sl_plan_choice choices[16];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_plan *plan;
    assert_true(w->plan->call_count > 4 && w->plan->call_count <= 16);
    for (int32_t c = 0; c < w->plan->call_count; c++)
        choices[c] = (struct sl_plan_choice){w->plan->calls[c].node->name, entries[(c + first) % 2].name,
                                             w->plan->calls[c].variant, SL_PHASE_TRAIN};
    struct sl_registry *both;
    ok(sl_registry_create(&registry, &both, &err), &err);
    const struct sl_plan_request request = {.graph = w->graph,
                                            .registry = both,
                                            .optimizer_states = 2,
                                            .stored = choices,
                                            .stored_count = w->plan->call_count};
    ok(sl_plan_create(&request, &plan, &err), &err);
    sl_params_destroy(w->params);
    sl_plan_destroy(w->plan);
    sl_registry_destroy(w->registry);
    w->params = NULL;
    w->plan = plan;
    w->registry = both;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Later ones have a sequence less. */
static struct sl_batch *make_batch(uint64_t ordinal)
{
    static const int32_t lengths[] = {5, 3, 1};
    struct sl_batch *batch = make_token_batch(lengths, ordinal > 0 ? B - 1 : B);
    for (int32_t r = 0; r < batch->axis.rows; r++) {
        ((int32_t *)(uintptr_t)batch->input.ids)[r] = (r * 5 + (int32_t)ordinal) % V;
        ((int32_t *)(uintptr_t)batch->target.ids)[r] = (r * 2 + (int32_t)ordinal) % V;
    }
    batch->ordinal = ordinal;
    batch->carry_state = ordinal > 0;
    return batch;
}

/* What the caller sees of the steps, and of what watches them and follows. */
struct seen {
    double loss[STEPS_MADE], squares[STEPS_MADE], watched;
    _Alignas(64) float sums[2][64];
    bool is_clear;
    float states[3 * 16 * B], output[(ROWS - 1) * V];
    float values[1024];
};

/* Adds up what each call writes. */
static seqlstm_status watch(void *context, struct sl_exec *exec, const struct sl_node *node, struct seqlstm_error *err)
{
    struct seen *seen = context;
    const struct sl_graph *graph = sl_exec_get_graph(exec);
    for (int32_t s = 0; s < node->slot_count; s++) {
        const int32_t t = node->slots[s];
        const float *values;
        int64_t count;
        if (t < 0 || graph->tensors[t].role != SL_TENSOR_ACTIVATION)
            continue;
        SEQLSTM_TRY(sl_exec_read(exec, t, &values, &count, err));
        for (int64_t e = 0; e < count; e++)
            seen->watched += (double)values[e];
    }
    return SEQLSTM_OK;
}

/* Vectors of the host, each longer than the one before; and a step without a sequence. */
static seqlstm_status go_on(struct sl_exec *exec, struct sl_params *params, struct seen *seen,
                            struct seqlstm_error *err)
{
    static _Alignas(64) float ones[64];
    for (int e = 0; e < 64; e++) {
        ones[e] = 1;
        seen->sums[0][e] = seen->sums[1][e] = (float)e;
    }
    for (int k = 0; k < 2; k++)
        SEQLSTM_TRY(sl_exec_vector(exec, SEQLSTM_KIND_VECTOR_AXPY, seen->sums[k], ones, 32 + 32 * k, 0.5f, err));
    SEQLSTM_TRY(sl_exec_run_empty(exec, &(struct sl_exec_step){.normaliser = 1}, err));
    seen->is_clear = true;
    for (int64_t e = 0; e < params->elems; e++)
        seen->is_clear = seen->is_clear && params->grads[e] == 0;
    return SEQLSTM_OK;
}

static seqlstm_status make_steps(struct sl_exec *exec, struct sl_params *params, struct sl_batch *const batches[2],
                                 struct seen *seen, struct seqlstm_error *err)
{
    for (uint64_t k = 0; k < STEPS_MADE; k++) {
        const struct sl_exec_update update = {.count = k + 1, .learning_rate = 0.1};
        const struct sl_exec_step step = {
            .normaliser = 1, .update = &update, .accumulate = k == 4, .next = k == 0 ? batches[1] : NULL};
        struct sl_exec_result result;
        sl_exec_watch(exec, k == 1 ? watch : NULL, seen);
        SEQLSTM_TRY(sl_exec_run(exec, batches[k > 0], &step, &result, err));
        seen->loss[k] = result.loss_sum;
        seen->squares[k] = result.squares;
    }
    float *states;
    int64_t count;
    SEQLSTM_TRY(sl_exec_get_state(exec, &states, &count, err));
    assert_true(count * (int64_t)sizeof *states <= (int64_t)sizeof seen->states);
    memcpy(seen->states, states, (size_t)count * sizeof *states);
    memcpy(seen->output, sl_exec_get_output(exec).values, sizeof seen->output);
    SEQLSTM_TRY(sl_params_pull(params, err));
    assert_true(params->elems * (int64_t)sizeof(float) <= (int64_t)sizeof seen->values);
    memcpy(seen->values, params->values, (size_t)params->elems * sizeof(float));
    return go_on(exec, params, seen, err);
}

static bool ends_first;   /* the executor, before the profile */
static bool armed;        /* a call of the device fails */
static char refusal[256]; /* of the last executor's captures */

/* With parameters of its own; everything is closed again. */
static seqlstm_status live(const struct world *w, struct sl_batch *const batches[2], bool profiles, struct seen *seen,
                           struct seqlstm_error *err)
{
    struct sl_params *params = NULL;
    struct sl_exec *exec = NULL;
    struct sl_trace trace = {.track_count = 0};
    memset(seen, 0, sizeof *seen);
    seqlstm_status status = sl_params_create(w->graph, true, 2, NULL, &params, err);
    if (status == SEQLSTM_OK)
        status = sl_params_init(params, w->graph, 7, NULL, err);
    const struct sl_exec_request request = {.plan = w->plan, .params = params, .seed = 5};
    if (status == SEQLSTM_OK)
        status = sl_exec_create(&request, &exec, err);
    if (status == SEQLSTM_OK && armed && fails_at < 0)
        fail_msg("an executor was made although a call of the device failed");
    if (status == SEQLSTM_OK && profiles)
        status = sl_trace_start(SL_TRACE_CALLS, 1000, err);
    if (status == SEQLSTM_OK)
        status = make_steps(exec, params, batches, seen, err);
    snprintf(refusal, sizeof refusal, "%s", exec ? sl_exec_get_captures(exec)->refusal : "");
    if (!ends_first)
        sl_trace_stop(&trace);
    sl_exec_destroy(exec);
    sl_params_destroy(params);
    if (ends_first)
        sl_trace_stop(&trace);
    sl_trace_deinit(&trace);
    return status;
}

static void live_on_host(struct sl_batch *const batches[2], struct seen *seen)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    world_query = seqlstm_reference_query_v0;
    open_world(&w, data, layers, &facts, true);
    ok(live(&w, batches, false, seen, &err), &err);
    close_world(&w);
    world_query = query;
}

static void fail_once(enum way way, bool profiles, bool device)
{
    struct sl_batch *const batches[] = {make_batch(0), make_batch(1)};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static struct seen expected, seen;
    struct world w;
    world_query = query;
    offers_captures = way == CAPTURES;
    open_world(&w, data, layers, &facts, true);
    sl_exec_destroy(w.exec);
    w.exec = NULL;
    static struct seen host;
    live_on_host(batches, &host);
    if (way >= SPREAD)
        spread(&w, way == SPREAD_TOO);
    armed = false;
    ok(live(&w, batches, false, &expected, &err), &err);
    assert_memory_equal(expected.loss, host.loss, sizeof host.loss);
    assert_memory_equal(expected.states, host.states, sizeof host.states); /* the third sequence keeps its own */
    assert_memory_equal(expected.output, host.output, sizeof host.output);
    assert_memory_equal(expected.values, host.values, sizeof host.values);
    assert_string_equal(refusal, way == CAPTURES ? "no captures today" : "");
    armed = device;
    assert_true(expected.is_clear && expected.sums[0][31] == 31.5f && expected.sums[1][63] == 63.5f);
    const int before[] = {blocks, streams, events};
    int failures = 0, n = 1;
    for (bool failed = true; failed; n++) {
        assert_true(n < TRIES_MOST);
        err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
        if (device)
            fails_at = n - 1;
        else
            oom_fail_at(n);
        const seqlstm_status status = live(&w, batches, profiles, &seen, &err);
        failed = device ? fails_at < 0 : oom_disarm();
        fails_at = -1;
        if (status != SEQLSTM_OK) {
            failures++;
            assert_int_equal(status, device ? SEQLSTM_DEVICE : SEQLSTM_NO_MEMORY);
            if (!strstr(err.message, device ? "the card is gone" : "no memory"))
                fail_msg("failure %d: %s", n, err.message);
        } else if (memcmp(&seen, &expected, sizeof seen) != 0) {
            fail_msg("failure %d is not told, and the results are others", n);
        }
        if (blocks != before[0] || streams != before[1] || events != before[2])
            fail_msg("failure %d leaves %d blocks, %d streams, %d events", n, blocks - before[0], streams - before[1],
                     events - before[2]);
    }
    assert_true(failures > 40);
    armed = false;
    close_world(&w);
    world_query = seqlstm_reference_query_v0;
    offers_captures = false;
    assert_int_equal(blocks, 0);
    assert_int_equal(streams, 0);
    assert_int_equal(events, 0);
    sl_batch_destroy(batches[0]);
    sl_batch_destroy(batches[1]);
}

static void a_call_of_the_device_fails(void **state)
{
    (void)state;
    for (enum way way = ALONE; way <= SPREAD_TOO; way++)
        fail_once(way, false, true);
}

static void a_call_of_the_device_fails_in_a_profile(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        ends_first = first;
        fail_once(ALONE, true, true);
    }
    ends_first = false;
}

static void the_host_has_no_memory(void **state)
{
    (void)state;
    for (enum way way = ALONE; way <= SPREAD_TOO; way++)
        fail_once(way, false, false);
    fail_once(ALONE, true, false);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* An executor on a card without memory. */
static void expect_message(struct world *w, const char *expected)
{
    const struct sl_exec_request request = {.plan = w->plan, .params = w->params, .seed = 5};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec *exec = NULL;
    is_full = true;
    assert_int_equal(sl_exec_create(&request, &exec, &err), SEQLSTM_NO_MEMORY);
    is_full = false;
    assert_null(exec);
    assert_string_equal(err.message, expected);
}

/* A tenth of a card is kept free, and beside training there is evaluation, with half of its buffers. */
static void a_full_card_says_which_batch_fits(void **state)
{
    (void)state;
    static const struct {
        double sequences; /* for which the card has room; below 0: not even for the parameters */
        const char *said;
    } rows[] = {{-1, "the parameters alone do not fit"},       {0.95, "not one sequence fits"},
                {1.95, "a batch of at most 1 sequence fits"},  {2.05, "a batch of at most 2 sequences fits"},
                {3.05, "a batch of at most 2 sequences fits"}, /* the present one, of 3, does not */
                {9, "a batch of at most 2 sequences fits"}};
    struct world w;
    world_query = query;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char expected[300];
        card_bytes = 0;
        open_world(&w, data, layers, &facts, true);
        const struct sl_plan_memory *memory = &w.plan->memory;
        const double fixed = (double)(memory->weights_bytes + memory->gradients_bytes + memory->optimizer_bytes +
                                      w.plan->packed_bytes),
                     varying = (double)(memory->activations_bytes + memory->workspace_bytes - w.plan->packed_bytes +
                                        memory->batches_bytes);
        assert_true(w.plan->packed_bytes > 0);
        expect_message(&w, "no memory for the activations (card:0): the plan needs 0 MB");
        close_world(&w);
        card_bytes =
            (uint64_t)((rows[k].sequences < 0 ? fixed / 2 : fixed + 1.5 * varying * rows[k].sequences / B) / 0.9);
        open_world(&w, data, layers, &facts, true);
        snprintf(expected, sizeof expected,
                 "no memory on the device (card:0): the plan needs %.2f MB there for a batch of %d sequences, of which "
                 "%.2f MB do not depend on the batch; the device has %.2f MB: %s",
                 (fixed + varying) / 1e6, B, fixed / 1e6, (double)card_bytes / 1e6, rows[k].said);
        expect_message(&w, expected);
        close_world(&w);
    }
    card_bytes = 0;
    world_query = seqlstm_reference_query_v0;
}

/* At either border; nothing is left on the card. */
static void a_stage_does_not_run_on_a_card(void **state)
{
    (void)state;
    static const struct sl_exec_stage stages[] = {{.first = 0, .end = 1}, {.first = 1}};
    struct world w;
    world_query = query;
    open_world(&w, data, layers, &facts, true);
    const int before[] = {blocks, streams, events};
    for (int k = 0; k < 2; k++) {
        const struct sl_exec_request request = {.plan = w.plan, .params = w.params, .stage = stages[k]};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_exec *exec = NULL;
        assert_int_equal(sl_exec_create(&request, &exec, &err), SEQLSTM_UNSUPPORTED);
        assert_string_equal(err.message, "`emb` runs on a device, and pieces run on the processor only");
        assert_null(exec);
        assert_true(blocks == before[0] && streams == before[1] && events == before[2]);
    }
    const struct sl_exec_update update = {.count = 1, .learning_rate = 0.1}; /* nor does its update */
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    bool owned[16] = {true};
    double squares[16];
    assert_in_range(w.params->view_count, 1, 16);
    assert_int_equal(sl_exec_begin_owned(w.exec, &update, owned, squares, &err), SEQLSTM_UNSUPPORTED);
    assert_string_equal(err.message, "the update runs on a device, and pieces run on the processor only");
    close_world(&w);
    world_query = seqlstm_reference_query_v0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_of_the_device_fails),     cmocka_unit_test(a_call_of_the_device_fails_in_a_profile),
        cmocka_unit_test(the_host_has_no_memory),         cmocka_unit_test(a_full_card_says_which_batch_fits),
        cmocka_unit_test(a_stage_does_not_run_on_a_card),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
