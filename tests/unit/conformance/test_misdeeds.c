/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend may not do to its buffers and between its calls, in each buffer and at both ends; and what the level
 * load says of a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include <seqlstm/bind_check.h>
#include <seqlstm/ext/footprint.h>

#include "offender.h"
#include "conformance/level.h"

enum { MORE = 64 };

static const struct seqlstm_backend *inner;
static const struct seqlstm_host *host;
static const char *fault;
static union seqlstm_any_desc desc; /* of the newest operation */
static struct seqlstm_binding *bindings[8];
static uint32_t modes[8]; /* of the bindings */
static struct {
    bool begins_within, ends_within; /* the steps of the axis */
} cuts[8];                           /* of the bindings */
static int binding_count, calls, at; /* calls of forward; at: the one with the fault, where it is one */
static const void *seen;             /* the workspace of the forward before */
static int wrong_rows, parts; /* bindings whose rows are not what backend.h says; and those of a part of the steps */
static uint64_t workspace_bytes, reserve_bytes;

static bool is(const char *name)
{
    return strcmp(fault, name) == 0;
}

static seqlstm_status offend_open(const struct seqlstm_host *services, const struct seqlstm_setting *settings,
                                  uint32_t count, struct seqlstm_instance **out, struct seqlstm_error *err)
{
    host = services;
    return inner->open(services, settings, count, out, err);
}

static void *kept[64];
static int kept_count;

static seqlstm_status offend_op_create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *d,
                                       const char *variant, struct seqlstm_op **out, struct seqlstm_error *err)
{
    memset(&desc, 0, sizeof desc);
    memcpy(&desc, d, d->struct_size < sizeof desc ? d->struct_size : sizeof desc);
    void *more = host->allocate(host->context, 8);
    if (!more)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory");
    const seqlstm_status status = inner->op_create(instance, device, d, variant, out, err);
    if (status != SEQLSTM_OK && is("a failed operation keeps memory"))
        kept[kept_count++ % 64] = more;
    else
        host->release(host->context, more);
    return status != SEQLSTM_OK && is("a failed operation has another status") ? SEQLSTM_DEVICE : status;
}

static seqlstm_status offend_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                      struct seqlstm_error *err)
{
    const seqlstm_status status = inner->op_sizes(op, sizes, err);
    sizes->workspace_bytes += MORE;
    sizes->reserve_bytes += desc.head.mode == SEQLSTM_MODE_TRAINING ? MORE : 0;
    sizes->packed_bytes = is("forward writes behind the packed weights") || is("nothing packs weights") ? MORE : 0;
    workspace_bytes = sizes->workspace_bytes;
    reserve_bytes = sizes->reserve_bytes;
    return status;
}

static seqlstm_status offend_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *bind, struct seqlstm_binding **out,
                                     struct seqlstm_error *err)
{
    const seqlstm_status status = inner->op_bind(op, queue, bind, out, err);
    const int64_t first = bind->axis ? bind->axis->row_offsets[bind->t0] : 0;
    if (!seqlstm_has_rows_in(&desc))
        wrong_rows += bind->rows_in != bind->rows;
    if (bind->axis && !(bind->flags & SEQLSTM_BIT_BIND_ON_SEQUENCES))
        wrong_rows += bind->rows != bind->axis->row_offsets[bind->t1] - first;
    parts += bind->axis && bind->t1 - bind->t0 < bind->axis->steps;
    if (binding_count < 8) {
        modes[binding_count] = desc.head.mode;
        cuts[binding_count].begins_within = bind->axis && bind->t0 > 0;
        cuts[binding_count].ends_within = bind->axis && bind->t1 < bind->axis->steps;
        bindings[binding_count++] = *out;
    }
    return status;
}

static int find_binding(const struct seqlstm_binding *binding)
{
    int k = 0;
    while (k < binding_count && bindings[k] != binding)
        k++;
    assert_in_range(k, 0, binding_count - 1);
    return k;
}

/* The last number of a buffer with this many bytes. */
static float *last_of(void *buffer, uint64_t bytes)
{
    return (float *)buffer + bytes / sizeof(float) - 1;
}

/* All cases here are of a dense layer with 2 inputs and 3 outputs on 5 rows, or of an optimizer. */
enum { ROWS = 5, IN = 2, OUT = 3 };

static seqlstm_status offend_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    const seqlstm_status status = inner->forward(binding, queue, args, err);
    const bool is_dense = desc.head.op == SEQLSTM_OP_DENSE;
    float *y = args->slots[is_dense ? SEQLSTM_SLOT_DENSE_Y : 0];
    calls++;
    if (is("one call changes the umask") && calls == at)
        umask(umask(0) ^ 011);
    if (is("the second operation computes something else") && binding_count > 1 && binding == bindings[1])
        y[0] += 1e-3f;
    if (is("inference computes something else") && binding == bindings[1] && modes[1] == SEQLSTM_MODE_INFERENCE)
        y[1] += 1;
    if (is("forward writes behind the workspace"))
        ((char *)args->workspace)[workspace_bytes + 2] = 0;
    if (is("forward writes before the workspace"))
        ((char *)args->workspace)[-20] = 0;
    if (is("forward writes behind the reserve"))
        ((char *)args->reserve)[reserve_bytes] = 0;
    if (is("forward writes before the reserve"))
        ((char *)args->reserve)[-1] = 0;
    if (is("forward writes behind the packed weights"))
        ((char *)(uintptr_t)args->packed)[MORE + 4] = 0;
    if (is("the workspace is not idle"))
        ((char *)args->workspace)[workspace_bytes - MORE + 3] = 0;
    if (is("inference does not leave the workspace idle") && desc.head.mode == SEQLSTM_MODE_INFERENCE)
        ((char *)args->workspace)[workspace_bytes - MORE] = 0;
    if (is("the first byte of the workspace is not idle"))
        ((char *)args->workspace)[0] = 1;
    if (is("the first byte of the reserve is not idle") && args->reserve)
        ((char *)args->reserve)[0] = 1;
    if (is("the last byte of the workspace is not idle"))
        ((char *)args->workspace)[workspace_bytes - 1] = 0;
    if (is("the reserve is not idle") && args->reserve)
        ((char *)args->reserve)[reserve_bytes - 1] = 0;
    if ((is("one member computes something else") && queue->members == 1) ||
        (is("two members compute something else") && queue->members == 2) ||
        (is("three members compute something else") && queue->members == 3))
        y[0] += 1;
    if (is("forward writes before the input"))
        ((char *)args->slots[SEQLSTM_SLOT_DENSE_X])[-17] = 0;
    if (is("backward relies on the workspace"))
        *last_of(args->workspace, workspace_bytes) = 7;
    if (is("forward relies on the workspace")) {
        y[0] += calls > 1 && *last_of(args->workspace, workspace_bytes) != 7 ? 1 : 0;
        *last_of(args->workspace, workspace_bytes) = 7;
    }
    if (is("a part relies on the workspace of the part before")) {
        if (seen == args->workspace && *last_of(args->workspace, workspace_bytes) != 7)
            ((float *)args->slots[SEQLSTM_SLOT_RECURRENT_Y])[0] += 1;
        *last_of(args->workspace, workspace_bytes) = 7;
        seen = args->workspace;
    }
    if (is("forward writes before a state between parts") && cuts[find_binding(binding)].ends_within)
        ((char *)args->slots[SEQLSTM_SLOT_RECURRENT_STATE(0, 3)])[-2] = 0;
    if (is("a later part writes behind the reserve") && cuts[find_binding(binding)].begins_within)
        ((char *)args->reserve)[reserve_bytes + 1] = 0;
    if (is("an optimizer counts its calls"))
        ((float *)args->slots[SEQLSTM_SLOT_OPTIMIZER_PARAM])[0] += (float)calls * 1e-3f;
    if (is("an optimizer changes the gradient"))
        ((float *)args->slots[SEQLSTM_SLOT_OPTIMIZER_GRAD])[2] += 1;
    return status;
}

static seqlstm_status offend_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                      const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    const bool is_left = is("backward relies on the workspace") && *last_of(args->workspace, workspace_bytes) >= 7;
    const seqlstm_status status = inner->backward(binding, queue, args, err);
    const bool is_dense = desc.head.op == SEQLSTM_OP_DENSE;
    float *dw = is_dense ? args->grads[SEQLSTM_SLOT_DENSE_W] : NULL;
    float *dx = is_dense ? args->grads[SEQLSTM_SLOT_DENSE_X] : NULL;
    seen = NULL;
    if (is("backward relies on the workspace") && dw && !is_left)
        dw[0] += 1;
    if (is("backward writes before a state's gradient between parts") && cuts[find_binding(binding)].begins_within)
        ((char *)args->grads[SEQLSTM_SLOT_RECURRENT_STATE(0, 1)])[-4] = 0;
    if (is("backward counts its calls") && dw)
        dw[0] += (float)calls * 1e-3f;
    if (is("backward writes behind a gradient of weights") && dw)
        dw[OUT * IN] = 0;
    if (is("backward writes before a gradient of inputs") && dx)
        ((char *)dx)[-3] = 0;
    if (is("backward writes behind the reserve"))
        ((char *)args->reserve)[reserve_bytes + 8] = 0;
    if (is("backward writes unasked gradients of weights") && dw && !(args->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS))
        dw[OUT * IN - 1] = 1;
    if (is("backward writes unasked gradients of inputs") && dx && !(args->parts & SEQLSTM_BIT_BACKWARD_INPUTS))
        dx[0] = 1;
    if (is("backward changes a parameter"))
        ((float *)args->slots[SEQLSTM_SLOT_DENSE_W])[1] += 1;
    if (is("backward changes the input"))
        ((float *)args->slots[SEQLSTM_SLOT_DENSE_X])[ROWS * IN - 1] += 1;
    return status;
}

static seqlstm_status offend_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                  void *packed, const struct seqlstm_step *step, struct seqlstm_error *err)
{
    (void)op, (void)queue, (void)slots, (void)step, (void)err;
    memset(packed, 0, MORE);
    return SEQLSTM_OK;
}

/* Two ranges at the end of each buffer are idle, it says, and its first byte, where the fault is there. */
static seqlstm_status offend_idle_ranges(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                         const struct seqlstm_axis *axis, struct seqlstm_idle *idle,
                                         struct seqlstm_error *err)
{
    (void)op, (void)axis, (void)err;
    if (is("the first byte of the workspace is not idle"))
        idle->workspace.at[idle->workspace.count++] = (struct seqlstm_range){0, 1};
    if (is("the first byte of the reserve is not idle"))
        idle->reserve.at[idle->reserve.count++] = (struct seqlstm_range){0, 1};
    idle->workspace.at[idle->workspace.count++] =
        (struct seqlstm_range){sizes->workspace_bytes - MORE, sizes->workspace_bytes - MORE / 2};
    idle->workspace.at[idle->workspace.count++] =
        (struct seqlstm_range){sizes->workspace_bytes - 1, sizes->workspace_bytes};
    if (sizes->reserve_bytes > 0)
        idle->reserve.at[idle->reserve.count++] =
            (struct seqlstm_range){sizes->reserve_bytes - MORE + 2, sizes->reserve_bytes - MORE / 2 - 1};
    if (sizes->reserve_bytes > 0)
        idle->reserve.at[idle->reserve.count++] =
            (struct seqlstm_range){sizes->reserve_bytes - MORE / 2, sizes->reserve_bytes};
    return SEQLSTM_OK;
}

static const void *offend_get_extension(struct seqlstm_instance *instance, const char *id)
{
    static const struct seqlstm_footprint footprint = {.struct_size = sizeof footprint,
                                                       .idle_ranges = offend_idle_ranges};
    return strcmp(id, SEQLSTM_FOOTPRINT_EXTENSION) == 0 ? &footprint : inner->get_extension(instance, id);
}

static const struct seqlstm_backend *offend_query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    inner = seqlstm_reference_query_v0(host_minor);
    table = *inner;
    table.open = offend_open;
    table.op_create = offend_op_create;
    table.op_sizes = offend_op_sizes;
    table.op_bind = offend_op_bind;
    table.forward = offend_forward;
    table.backward = offend_backward;
    table.weights_pack = is("nothing packs weights") ? NULL : offend_pack;
    table.get_extension = offend_get_extension;
    return &table;
}

/* Runs the case with the fault in force. NULL: it passes. */
static void expect(const char *name, const char *with, const char *detail)
{
    fault = with;
    binding_count = calls = 0;
    offender_expect(offend_query, name, with, detail, false);
}

static void damage_is_named_by_buffer_and_end(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"backward changes a parameter", "backward: it changed element 1 of the input w"},
        {"forward writes behind the workspace", "backward: it wrote 3 bytes behind the end of the workspace"},
        {"forward writes before the workspace", "backward: it wrote 20 bytes before the workspace"},
        {"forward writes behind the reserve", "backward: it wrote 1 byte behind the end of the reserve"},
        {"forward writes before the reserve", "backward: it wrote 1 byte before the reserve"},
        {"forward writes before the input", "backward: it wrote 17 bytes before x (40 bytes)"},
        {"forward writes behind the packed weights", "backward: it wrote 5 bytes behind the end of the packed weights"},
        {"backward writes behind a gradient of weights", "backward: it wrote 1 byte behind the end of dw (24 bytes)"},
        {"backward writes before a gradient of inputs", "backward: it wrote 3 bytes before dx (40 bytes)"},
        {"backward writes behind the reserve", "backward: it wrote 9 bytes behind the end of the reserve"},
        {"backward changes the input", "backward: it changed element 9 of the input x"},
        {"backward writes unasked gradients of weights", "dx alone: it wrote dw, which was not asked for"},
        {"backward writes unasked gradients of inputs", "dh0 and dc0 alone: it wrote dx, which was not asked for"},
        {"nothing packs weights", "creating the operation returned status 13: op_sizes asks for packed weights, and "
                                  "the table has no weights_pack"},
        {"backward relies on the workspace", "backward: dw[0, 0] is "},
        {"forward relies on the workspace", "dx alone: y[0, 0] is "},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        expect("dense:bwd:R5I2O3:f32:flat", cases[k][0], cases[k][1]);
    expect("dense:bwd:R5I2O3:f32:flat", "", NULL);
}

/* What a part of the steps hands to the next one, and in the backward pass to the one before. */
static void damage_between_parts_is_named(void **state)
{
    (void)state;
    static const char name[] = "lstm:ranges:T7B5I6H9:f32:ragged:initial,final";
    expect(name, "forward writes before a state between parts",
           "three segments against the whole: it wrote 2 bytes before a state between segments (180 bytes)");
    expect(name, "backward writes before a state's gradient between parts",
           "three segments against the whole: it wrote 4 bytes before a state's gradient between segments");
    expect(name, "a later part writes behind the reserve",
           "three segments against the whole: it wrote 2 bytes behind the end of the reserve (");
    expect(name, "", NULL);
}

/* In a program only some calls are watched; here each is, but for those beside one of another thread. */
static void what_one_call_does_to_the_process_is_named(void **state)
{
    (void)state;
    static const char *const names[] = {"dense:bwd:R5I2O3:f32:flat", "lstm:ranges:T7B5I6H9:f32:ragged:initial,final"};
    for (size_t k = 0; k < 2; k++) {
        expect(names[k], "", NULL);
        const int all = calls;
        assert_in_range(all, 3, 100);
        for (at = 1; at <= all; at++)
            expect(names[k], "one call changes the umask",
                   "the backend reference misbehaves: its forward changed the mask of file permissions");
    }
}

static void bindings_of_a_part_have_its_rows(void **state)
{
    (void)state;
    static const char *const names[] = {"lstm:ranges:T7B5I6H9:f32:ragged:initial,final",
                                        "dropout:ranges:T7B5C9:f32:ragged", "pool:bwd:T7B5C9:f32:ragged:kind=max",
                                        "dropout:bwd:T3B2C5:f32:ragged:on_sequences"};
    wrong_rows = parts = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        expect(names[k], "", NULL);
    assert_in_range(parts, 4, 100);
    assert_int_equal(wrong_rows, 0);
}

static void what_differs_from_call_to_call_is_named(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"dense:repeat:R5I2O3:f32:flat", "the second operation computes something else",
         "a second operation of the same descriptor gave other bits"},
        {"optimizer:repeat:N9:f32:flat", "an optimizer counts its calls",
         "the same call on the same binding gave other bits the second time"},
        {"dense:repeat:R5I2O3:f32:flat", "backward counts its calls",
         "the same call on the same binding gave other bits the second time"},
        {"optimizer:fwd:N9:f32:flat", "an optimizer counts its calls", "forward: param[0, 0] is "},
        {"optimizer:fwd:N9:f32:flat", "an optimizer changes the gradient",
         "forward: it changed element 2 of the input grad"},
        {"dense:same:R5I2O3:f32:flat", "inference computes something else",
         "training with all rates 0 against inference: y[0, 1] is "},
        {"dense:threads:R5I2O3:f32:flat", "one member computes something else", "1 member: y[0, 0] is "},
        {"dense:threads:R5I2O3:f32:flat", "two members compute something else", "2 members: y[0, 0] is "},
        {"dense:threads:R5I2O3:f32:flat", "three members compute something else", "3 members: y[0, 0] is "},
        {"lstm:ranges:T7B5I6H9:f32:ragged:initial,final", "a part relies on the workspace of the part before", ""},
        {"dense:memory:R5I2O3:f32:flat", "a failed operation keeps memory", "when allocation 1 failed it kept 1 block"},
        {"dense:memory:R5I2O3:f32:flat", "a failed operation has another status",
         "when allocation 1 failed it returned status "},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        expect(cases[k][0], cases[k][1], cases[k][2]);
        expect(cases[k][0], "", NULL);
    }
}

static void bytes_of_both_buffers_stay_idle(void **state)
{
    (void)state;
    static const char name[] = "dense:idle:R5I2O3:f32:flat";
    char detail[160];
    expect("dense:bwd:R5I2O3:f32:flat", "", NULL); /* which tells the sizes in training */
    const unsigned long long workspace = workspace_bytes, reserve = reserve_bytes;
    expect(name, "", NULL);
    snprintf(detail, sizeof detail,
             "training: calls touched byte %llu of workspace: idle_ranges said that %llu to %llu of its %llu are idle",
             workspace - MORE + 3, workspace - MORE, workspace - MORE / 2, workspace);
    expect(name, "the workspace is not idle", detail);
    snprintf(detail, sizeof detail,
             "training: calls touched byte %llu of workspace: idle_ranges said that %llu to %llu of its %llu are idle",
             workspace - 1, workspace - 1, workspace, workspace);
    expect(name, "the last byte of the workspace is not idle", detail);
    snprintf(detail, sizeof detail,
             "training: calls touched byte %llu of reserve: idle_ranges said that %llu to %llu of its %llu are idle",
             reserve - 1, reserve - MORE / 2, reserve, reserve);
    expect(name, "the reserve is not idle", detail);
    snprintf(detail, sizeof detail,
             "training: calls touched byte 0 of workspace: idle_ranges said that 0 to 1 of its %llu are idle",
             workspace);
    expect(name, "the first byte of the workspace is not idle", detail);
    snprintf(detail, sizeof detail,
             "training: calls touched byte 0 of reserve: idle_ranges said that 0 to 1 of its %llu are idle", reserve);
    expect(name, "the first byte of the reserve is not idle", detail);
    expect(name, "inference does not leave the workspace idle", "inference: calls touched byte ");
}

/* ---- the level load ---------------------------------------------------------------------------------------------- */

static void expect_load(struct sl_workbench *w, const char *name, const char *detail)
{
    static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};
    const struct sl_conformance_request request = {.file = "reference", .builtins = builtins, .builtin_count = 1};
    struct sl_check_result result;
    uint32_t index = 0;
    while (strcmp(sl_level_load_get_name(index), name) != 0)
        index++;
    sl_level_load_check(w, &request, index, &result);
    assert_int_equal(result.verdict, detail ? SL_VERDICT_FAIL : SL_VERDICT_PASS);
    assert_string_equal(result.detail, detail ? detail : "");
}

static void files_that_a_backend_needs_are_looked_at(void **state)
{
    (void)state;
    struct sl_backend_file files[] = {{.path = "/x/libseqlstm_backend_a.so", .build_id = "ab"},
                                      {.path = "/lib/libseqlstmx.so.1", .build_id = ""},
                                      {.path = "/lib/libm.so.6", .build_id = ""}};
    struct sl_workbench w;
    memset(&w, 0, sizeof w);
    expect_load(&w, "load:dependencies", NULL); /* built in */
    w.record.files = files;
    w.record.file_count = 3;
    expect_load(&w, "load:dependencies", NULL);
    for (uint32_t k = 1; k < 3; k++) {
        const char *path = files[k].path;
        files[k].path = "/usr/lib/libseqlstm.so.0";
        expect_load(&w, "load:dependencies", "it depends on libseqlstm; a backend sees the contract's headers alone");
        files[k].path = path;
    }
    files[0].build_id = "";
    for (uint32_t count = 1; count <= 3; count++) {
        w.record.file_count = count;
        expect_load(&w, "load:dependencies",
                    "the file has no Build-ID: plans and caches cannot name it (link with --build-id)");
    }
}

static void operations_that_a_table_offers_are_known(void **state)
{
    (void)state;
    static struct sl_workbench w;
    uint32_t bytes[SEQLSTM_OP_COUNT];
    w.table = *seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR);
    expect_load(&w, "load:query", NULL);
    expect_load(&w, "load:operations", NULL);
    memcpy(bytes, w.table.desc_bytes, sizeof bytes);
    w.table.desc_bytes = bytes;
    expect_load(&w, "load:query", "loading the file a second time gave another table");
    bytes[SEQLSTM_OP_VECTOR] = (uint32_t)sizeof(struct seqlstm_vector_desc) + 1;
    char detail[160];
    snprintf(detail, sizeof detail, "it claims to read %u bytes of the descriptor of vector, which has %u in this ABI",
             bytes[SEQLSTM_OP_VECTOR], (uint32_t)sizeof(struct seqlstm_vector_desc));
    expect_load(&w, "load:operations", detail);
    memset(bytes, 0, sizeof bytes);
    expect_load(&w, "load:operations", "it offers no operation");
    w.record.warning = "it changed the locale";
    expect_load(&w, "load:process", "it changed the locale");
    snprintf(w.said, sizeof w.said, "wrote 6 bytes");
    expect_load(&w, "load:output", "being loaded and opened it wrote 6 bytes");
    w.record.warning = NULL;
    w.said[0] = 0;
    expect_load(&w, "load:process", NULL);
    expect_load(&w, "load:output", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_is_named_by_buffer_and_end),
        cmocka_unit_test(what_one_call_does_to_the_process_is_named),
        cmocka_unit_test(bindings_of_a_part_have_its_rows),
        cmocka_unit_test(what_differs_from_call_to_call_is_named),
        cmocka_unit_test(damage_between_parts_is_named),
        cmocka_unit_test(bytes_of_both_buffers_stay_idle),
        cmocka_unit_test(files_that_a_backend_needs_are_looked_at),
        cmocka_unit_test(operations_that_a_table_offers_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
