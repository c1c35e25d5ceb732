/* SPDX-License-Identifier: Apache-2.0 */
/* Level contract: every kind of host, structs of every size, failing memory, and calls that the ABI allows but few
 * hosts make. */
#include <string.h>

#include <seqlstm/ext/footprint.h>
#include <seqlstm/ext/recorder.h>
#include <seqlstm/bind_check.h>

#include "base/operation/op_signature.h"
#include "base/value/text.h"
#include "registry/answer.h"
#include "registry/instance.h"
#include "registry/plugin.h"
#include "registry/watch/watch.h"
#include "judge/data.h"
#include "conformance/copies_check.h"
#include "conformance/recorder_check.h"
#include "conformance/level.h"

struct contract {
    struct sl_workbench *w;
    const struct sl_conformance_request *request;
    struct sl_check_result *result;
};

typedef void contract_fn(struct contract *c);

static void fail(struct contract *c, const char *detail)
{
    if (c->result->verdict == SL_VERDICT_FAIL)
        return;
    c->result->verdict = SL_VERDICT_FAIL;
    sl_text_snprintf(c->result->detail, sizeof c->result->detail, "%s", detail);
}

static const char *const small_cases[] = {
    "lstm:bwd:T3B2I3H5:f32:ragged",  "gru:bwd:T3B2I3H5:f32:ragged",  "dense:bwd:R5I3O4:f32:flat",
    "embedding:bwd:R5V3E4:f32:flat", "activation:bwd:R5C3:f32:flat", "loss:bwd:R5C3:f32:flat",
    "dropout:bwd:T3B2C5:f32:ragged", "optimizer:fwd:N9:f32:flat",    "vector:fwd:N9:f32:flat"};
enum { SMALL_CASES = sizeof small_cases / sizeof *small_cases };

static bool accepts(const struct contract *c, const struct seqlstm_desc *desc, struct seqlstm_answer *answer)
{
    return sl_table_supports(&c->w->table, c->w->record.devices[0].device_class, desc, answer, NULL) == SEQLSTM_OK &&
           answer->accepted;
}

/* Makes a small case of the first operation that the backend accepts; false: there is none. */
static bool find_case(const struct contract *c, struct sl_case *out_case)
{
    struct seqlstm_answer answer;
    for (int i = 0; i < SMALL_CASES; i++)
        if (sl_case_parse(small_cases[i], out_case, NULL) == SEQLSTM_OK && accepts(c, &out_case->desc.head, &answer))
            return true;
    return false;
}

/* Runs the small case on another instance. */
static void run_small(struct contract *c, struct seqlstm_instance *instance, struct sl_host *host,
                      struct seqlstm_queue *queue)
{
    struct sl_case small;
    struct sl_bench bench = c->w->bench;
    if (!find_case(c, &small))
        return;
    bench.subject.instance = instance;
    bench.subject.queue = queue;
    bench.host = host;
    struct sl_domain domain = {.name = ""};
    if (bench.domains) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        if (sl_domain_open(&domain, &c->w->table, instance, 0, bench.subject.domain->name, &err) != SEQLSTM_OK) {
            fail(c, err.message);
            return;
        }
        bench.subject.domain = &domain;
        bench.subject.queue = &domain.queue.queue;
        bench.domains = NULL;
        bench.queue_count = 0;
    }
    struct sl_check_result result;
    sl_check_case(&bench, &small, &result);
    sl_domain_close(&domain);
    if (result.verdict == SL_VERDICT_FAIL)
        fail(c, result.detail);
}

static struct seqlstm_instance *open_with(struct contract *c, struct sl_host *host, struct sl_arena *arena)
{
    struct sl_backend_record record = {0};
    struct seqlstm_instance *instance = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_instance_open(arena, &c->w->table, &host->services, c->request->settings, c->request->setting_count, &record,
                         &instance, &err) != SEQLSTM_OK)
        fail(c, "out of memory");
    else if (!instance)
        fail(c, record.reason);
    else if (record.warning)
        fail(c, record.warning);
    return instance;
}

static void minimal_host(struct contract *c)
{
    struct sl_arena arena = {0};
    struct sl_host host;
    sl_host_init_minimal(&host, c->w->table.id, NULL);
    struct seqlstm_instance *instance = open_with(c, &host, &arena);
    if (instance) {
        run_small(c, instance, &host, &c->w->queues[0].queue);
        sl_plugin_close(&c->w->table, instance);
        if (host.memory.live_blocks != 0)
            fail(c, "memory of the host is still held after close");
    }
    sl_arena_deinit(&arena);
}

static void two_instances(struct contract *c)
{
    struct sl_arena arena = {0};
    struct sl_host hosts[2];
    sl_host_init(&hosts[0], c->w->table.id, NULL, NULL);
    sl_host_init(&hosts[1], c->w->table.id, NULL, NULL);
    struct seqlstm_instance *a = open_with(c, &hosts[0], &arena), *b = open_with(c, &hosts[1], &arena);
    if (a && b) {
        run_small(c, a, &hosts[0], &c->w->queues[0].queue);
        sl_plugin_close(&c->w->table, a);
        a = NULL;
        run_small(c, b, &hosts[1], &c->w->queues[1].queue);
    }
    if (a)
        sl_plugin_close(&c->w->table, a);
    if (b)
        sl_plugin_close(&c->w->table, b);
    if (hosts[0].memory.live_blocks != 0 || hosts[1].memory.live_blocks != 0)
        fail(c, "memory of the host is still held after close");
    sl_arena_deinit(&arena);
}

static void fail_open(struct contract *c, const char *change)
{
    char detail[sizeof c->result->detail];
    sl_text_snprintf(detail, sizeof detail, "open with failing memory %s", change);
    fail(c, detail);
}

static void memory_in_open(struct contract *c)
{
    const struct seqlstm_backend *table = &c->w->table;
    for (int64_t n = 0; n < 100; n++) {
        struct sl_host host;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_instance *instance = NULL;
        sl_host_init(&host, table->id, NULL, NULL);
        host.fail_after = n;
        struct sl_watched_code code;
        sl_watch_begin_code(&code);
        seqlstm_status rc =
            sl_plugin_open(table, &host.services, c->request->settings, c->request->setting_count, &instance, &err);
        if (sl_watch_end_code(&code, table->id, SL_FUNCTION_OPEN) != 0)
            fail_open(c, code.change);
        if (rc == SEQLSTM_OK)
            sl_plugin_close(table, instance);
        else if (rc != SEQLSTM_NO_MEMORY)
            fail(c, "open with failing memory returned another status than NO_MEMORY");
        if (host.memory.live_blocks != 0)
            fail(c, "open with failing memory, or the close after it, kept some of it");
        if (rc == SEQLSTM_OK)
            return;
    }
    fail(c, "open still failed when 100 allocations had been allowed");
}

static void null_arguments(struct contract *c)
{
    sl_plugin_close(&c->w->table, NULL);
    sl_plugin_destroy_op(&c->w->table, NULL);
    sl_plugin_destroy_binding(&c->w->table, NULL);
}

static void unknown_extension(struct contract *c)
{
    const struct seqlstm_backend *table = &c->w->table;
    if (sl_plugin_get_extension(table, c->w->instance, "org.example.no-such-extension/7"))
        fail(c, "get_extension returned a table for an id that does not exist");
    if (sl_plugin_get_extension(table, c->w->instance, SEQLSTM_FLOAT64_EXTENSION "x") ||
        sl_plugin_get_extension(table, c->w->instance, SEQLSTM_FOOTPRINT_EXTENSION "x") ||
        sl_plugin_get_extension(table, c->w->instance, SEQLSTM_RECORDER_EXTENSION "x"))
        fail(c, "get_extension took an id with something behind it for the id itself");
}

static void device_out_of_range(struct contract *c)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_device_info info = {.struct_size = sizeof info};
    uint32_t count = c->w->record.device_count;
    if (sl_plugin_describe_device(&c->w->table, c->w->instance, count, &info, &err) == SEQLSTM_OK)
        fail(c, "device_info succeeded for a device beyond device_count");
}

/* Did the plugin say why it failed? Where it does not, the host says so in its place. */
static bool has_reason(const struct seqlstm_error *err)
{
    return err->message[0] != 0 && strstr(err->message, " and gave no reason") == NULL;
}

static void unknown_variant(struct contract *c)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    struct sl_case small;
    if (!find_case(c, &small))
        return;
    if (sl_plugin_create_op(&c->w->table, c->w->instance, 0, &small.desc.head, "no_such_variant", &op, &err) ==
        SEQLSTM_OK) {
        fail(c, "op_create succeeded with a variant that supports never named");
        sl_plugin_destroy_op(&c->w->table, op);
    } else if (!has_reason(&err)) {
        fail(c, "op_create refused an unknown variant without a reason");
    }
}

/* Error records of other hosts: one that is too small to be written, and NULL. */
static void foreign_error(struct contract *c)
{
    struct {
        struct seqlstm_error err;
        unsigned char behind[64];
    } small;
    struct seqlstm_device_info info = {.struct_size = sizeof info};
    memset(&small, 0x5A, sizeof small);
    small.err.struct_size = 8;
    sl_plugin_describe_device(&c->w->table, c->w->instance, c->w->record.device_count, &info, &small.err);
    for (size_t i = 8; i < sizeof small; i++)
        if (((unsigned char *)&small)[i] != 0x5A) {
            fail(c, "an error record that says it has 8 bytes was written beyond them");
            return;
        }
    sl_plugin_describe_device(&c->w->table, c->w->instance, c->w->record.device_count, &info, NULL);
}

/* Structs of a later host are longer, with members that this plugin does not know. The plugin must not change those. */
static void long_structs(struct contract *c)
{
    struct {
        struct seqlstm_device_info info;
        unsigned char behind[64];
    } device;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memset(&device, 0, sizeof device);
    memset(device.behind, 0x5A, sizeof device.behind);
    device.info.struct_size = (uint32_t)sizeof device;
    if (sl_plugin_describe_device(&c->w->table, c->w->instance, 0, &device.info, &err) != SEQLSTM_OK)
        fail(c, "device_info failed because its struct is longer than expected");
    for (size_t i = 0; i < sizeof device.behind; i++)
        if (device.behind[i] != 0x5A)
            fail(c, "device_info wrote behind the members that it knows");
    if (strcmp(device.info.name, c->w->record.devices[0].name) != 0)
        fail(c, "device_info gave another name the second time");
}

static void unknown_device_class(struct contract *c)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_case small;
    struct seqlstm_answer answer;
    if (!find_case(c, &small))
        return;
    if (sl_table_supports(&c->w->table, "quantum:q9", &small.desc.head, &answer, &err) != SEQLSTM_OK)
        fail(c, "supports failed when asked about an unknown class of device, expected a no");
    else if (answer.accepted)
        fail(c, "supports says yes for the device class quantum:q9");
}

/* A binding of all of `data`, for an operation that was created for less. */
static void bind_too_much(struct contract *c, const struct sl_data *data, const union seqlstm_any_desc *desc,
                          const char *what)
{
    const struct seqlstm_backend *table = &c->w->table;
    const struct seqlstm_axis *axis = data->axis.steps > 0 ? &data->axis : NULL;
    const struct seqlstm_bind bind = {
        .struct_size = sizeof bind, .rows = data->rows, .rows_in = data->rows_in, .axis = axis, .t1 = data->axis.steps};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_answer answer;
    struct seqlstm_binding *binding = NULL;
    struct seqlstm_op *op = NULL;
    if (!accepts(c, &desc->head, &answer) ||
        sl_plugin_create_op(table, c->w->instance, 0, &desc->head, answer.variants[0], &op, &err) != SEQLSTM_OK)
        return;
    char detail[160];
    if (sl_plugin_bind(table, op, c->w->bench.subject.queue, &bind, &binding, &err) == SEQLSTM_OK) {
        sl_text_snprintf(detail, sizeof detail, "op_bind took %s than the descriptor allows (%s)", what, data->c.text);
        fail(c, detail);
        sl_plugin_destroy_binding(table, binding);
    } else if (!has_reason(&err)) {
        fail(c, "op_bind refused a binding without a reason");
    }
    sl_plugin_destroy_op(table, op);
}

/* op_sizes answered for the bounds of the descriptor. A binding beyond these bounds must be refused. */
static void bounds_of_bindings(struct contract *c)
{
    for (int i = 0; i < SMALL_CASES; i++) {
        struct sl_arena arena = {0};
        struct sl_case small;
        struct sl_data *data = NULL;
        if (sl_case_parse(small_cases[i], &small, NULL) == SEQLSTM_OK &&
            sl_data_create(&arena, &small, 1, 1, &data, NULL) == SEQLSTM_OK) {
            union seqlstm_any_desc less = small.desc;
            less.head.max_rows = data->rows - 1;
            bind_too_much(c, data, &less, "more rows");
            less.head.max_rows = small.desc.head.max_rows;
            less.head.max_sequences = data->axis.sequences - 1;
            if (seqlstm_needs_axis(&small.desc))
                bind_too_much(c, data, &less, "more sequences");
            less.head.max_sequences = small.desc.head.max_sequences;
            less.head.max_steps = data->axis.steps - 1;
            if (seqlstm_needs_axis(&small.desc))
                bind_too_much(c, data, &less, "more steps");
        }
        sl_arena_deinit(&arena);
    }
}

/* Calls on the workbench's own instance. */
static void run_again(void *context)
{
    struct contract *c = context;
    struct sl_case small;
    struct sl_check_result result;
    if (!find_case(c, &small))
        return;
    sl_check_case(&c->w->bench, &small, &result);
    if (result.verdict == SL_VERDICT_FAIL)
        fail(c, result.detail);
}

static void recordings(struct contract *c)
{
    char text[sizeof c->result->detail];
    if (!sl_recorder_check(c->w, run_again, c, text, sizeof text))
        fail(c, text);
}

static void copies(struct contract *c)
{
    char text[sizeof c->result->detail];
    if (!sl_copies_check(c->w, text, sizeof text))
        fail(c, text);
}

static const struct {
    const char *name;
    contract_fn *fn;
} checks[] = {
    {"contract:minimal_host", minimal_host},
    {"contract:two_instances", two_instances},
    {"contract:memory_in_open", memory_in_open},
    {"contract:null_arguments", null_arguments},
    {"contract:unknown_extension", unknown_extension},
    {"contract:device_out_of_range", device_out_of_range},
    {"contract:unknown_variant", unknown_variant},
    {"contract:foreign_error", foreign_error},
    {"contract:long_structs", long_structs},
    {"contract:unknown_device_class", unknown_device_class},
    {"contract:bounds_of_bindings", bounds_of_bindings},
    {"contract:recordings", recordings},
    {"contract:copies_across", copies},
};

const char *sl_level_contract_get_name(uint32_t index)
{
    return index < sizeof checks / sizeof *checks ? checks[index].name : NULL;
}

void sl_level_contract_check(struct sl_workbench *w, const struct sl_conformance_request *request, uint32_t index,
                             struct sl_check_result *out_result)
{
    struct contract c = {w, request, out_result};
    char wrote[160];
    memset(out_result, 0, sizeof *out_result);
    w->misdeed[0] = 0;
    sl_outlet_begin(&w->outlet);
    checks[index].fn(&c);
    if (sl_outlet_end(&w->outlet, wrote, sizeof wrote))
        fail(&c, wrote);
    if (w->misdeed[0])
        fail(&c, w->misdeed);
}
