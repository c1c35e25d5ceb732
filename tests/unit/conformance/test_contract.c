/* SPDX-License-Identifier: Apache-2.0 */
/* The level contract and the pass claim name an offender against each of their rules, for each operation, instance and
 * field: the reference, in which one thing is wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include <seqlstm/ext/draft/float64.h>
#include <seqlstm/ext/footprint.h>
#include <seqlstm/ext/recorder.h>

#include "offender.h"

static const struct seqlstm_backend *inner;
static const struct seqlstm_host *host;
static const char *fault;
static uint32_t fault_op; /* in which it stands */
static int opens;         /* the first is the workbench's */
static void *kept[64];    /* memory that a fault never releases */
static int kept_count;
static union seqlstm_any_desc desc; /* of the newest operation */
static char nothing;                /* a binding */

static bool is(const char *name)
{
    return strcmp(fault, name) == 0;
}

static void keep_some(const struct seqlstm_host *of)
{
    kept[kept_count++ % 64] = of->allocate(of->context, 8);
}

static seqlstm_status offend_open(const struct seqlstm_host *services, const struct seqlstm_setting *settings,
                                  uint32_t count, struct seqlstm_instance **out, struct seqlstm_error *err)
{
    const int n = ++opens;
    host = n == 1 ? services : host;
    if ((is("the second open keeps memory") && n == 2) || (is("the third open keeps memory") && n == 3))
        keep_some(services);
    if (is("a further open changes the umask") && n > 1)
        umask(umask(0) ^ 011);
    if (is("no open is the last to fail") && n > 1)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "never enough");
    void *more = services->allocate(services->context, 8);
    const seqlstm_status status = more ? inner->open(services, settings, count, out, err) : SEQLSTM_NO_MEMORY;
    if (!more)
        seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory");
    if (status != SEQLSTM_OK && is("a failed open keeps memory") && more)
        kept[kept_count++ % 64] = more;
    else
        services->release(services->context, more);
    return status != SEQLSTM_OK && is("a failed open has another status") ? SEQLSTM_DEVICE : status;
}

static seqlstm_status offend_device_info(struct seqlstm_instance *instance, uint32_t device,
                                         struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    const bool is_long = info->struct_size > sizeof *info;
    if (device == 1 && is("a question changes the umask"))
        umask(umask(0) ^ 011);
    if (device == 1 && is("there is one device more"))
        device = 0;
    if (err && err->struct_size == 8) {
        if (is("errors are written into small records"))
            ((unsigned char *)err)[8] = 0;
        if (is("errors are written behind small records"))
            ((unsigned char *)err)[sizeof *err + 63] = 0;
    }
    if (is_long && is("long structs are refused"))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "too long");
    const seqlstm_status status = inner->device_info(instance, device, info, err);
    if (is_long && is("the first byte behind a struct is written"))
        ((unsigned char *)info)[sizeof *info] = 1;
    if (is_long && is("the last byte behind a struct is written"))
        ((unsigned char *)info)[info->struct_size - 1] = 1;
    if (is_long && is("a device changes its name"))
        info->name[0]++;
    return status;
}

/* The field of a descriptor that the fault knows better than anybody: at this offset is its right value. */
static struct {
    size_t offset;
    uint32_t unknown, right;
} field;

static seqlstm_status offend_supports(const char *device_class, const struct seqlstm_desc *d,
                                      struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    union seqlstm_any_desc known;
    uint32_t value;
    if (strcmp(device_class, "quantum:q9") == 0) {
        if (is("no device is unknown"))
            device_class = "cpu";
        else if (is("an unknown device is an error"))
            SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "what is that");
        else {
            snprintf(answer->reason, sizeof answer->reason, "no such device");
            answer->code = SEQLSTM_BIT_REFUSED_DEVICE;
            return SEQLSTM_OK;
        }
    }
    if (is("supports takes memory"))
        host->release(host->context, host->allocate(host->context, 8));
    memset(&known, 0, sizeof known);
    memcpy(&known, d, d->struct_size < sizeof known ? d->struct_size : sizeof known);
    if (is("a longer descriptor is refused") && known.head.struct_size > inner->desc_bytes[d->op]) {
        snprintf(answer->reason, sizeof answer->reason, "it is longer");
        answer->code = SEQLSTM_BIT_REFUSED_ABI;
        return SEQLSTM_OK;
    }
    if (is("a field may have any value") && field.offset + sizeof value <= sizeof known) {
        memcpy(&value, (unsigned char *)&known + field.offset, sizeof value);
        if (value == field.unknown)
            memcpy((unsigned char *)&known + field.offset, &field.right, sizeof value);
    }
    if (is("an unknown option has no code") && known.head.op == SEQLSTM_OP_DENSE && known.dense.options & 0x40000000) {
        snprintf(answer->reason, sizeof answer->reason, "what is that");
        return SEQLSTM_OK;
    }
    return inner->supports(device_class, &known.head, answer, err);
}

static seqlstm_status offend_op_create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *d,
                                       const char *variant, struct seqlstm_op **out, struct seqlstm_error *err)
{
    memset(&desc, 0, sizeof desc);
    memcpy(&desc, d, d->struct_size < sizeof desc ? d->struct_size : sizeof desc);
    if (strcmp(variant, "no_such_variant") == 0 && is("every variant is there"))
        variant = NULL;
    if (strcmp(variant ? variant : "", "no_such_variant") == 0 && is("an unknown variant is refused without a reason"))
        return SEQLSTM_UNSUPPORTED;
    if (is("an operation is refused"))
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "not with this library");
    return inner->op_create(instance, device, d, variant, out, err);
}

static seqlstm_status offend_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *bind, struct seqlstm_binding **out,
                                     struct seqlstm_error *err)
{
    const bool more_rows = bind->rows > desc.head.max_rows;
    const bool more_sequences = bind->axis && bind->axis->sequences > desc.head.max_sequences;
    const bool more_steps = bind->axis && bind->t1 - bind->t0 > desc.head.max_steps;
    if (desc.head.op == fault_op && ((is("more rows fit") && more_rows && !more_sequences && !more_steps) ||
                                     (is("more sequences fit") && more_sequences && !more_rows && !more_steps) ||
                                     (is("more steps fit") && more_steps && !more_rows && !more_sequences))) {
        *out = (struct seqlstm_binding *)(void *)&nothing;
        return SEQLSTM_OK;
    }
    const seqlstm_status status = inner->op_bind(op, queue, bind, out, err);
    if (status != SEQLSTM_OK && is("a binding is refused without a reason"))
        err->message[0] = '\0';
    return status;
}

static void offend_binding_destroy(struct seqlstm_binding *binding)
{
    if ((void *)binding != (void *)&nothing)
        inner->binding_destroy(binding);
}

/* ---- the recorder of a device ------------------------------------------------------------------------------------ */

static struct {
    bool there, lacks_stop, repeats;
    int wrong_round; /* in which the activity and the counter are these */
    struct seqlstm_activity activity;
    struct seqlstm_counter counter;
    seqlstm_status start, report;
    const char *start_words;
    bool reports_without_start;
} told;
static int rounds, reports, stops;

static const struct seqlstm_activity good = {
    .struct_size = sizeof good, .kind = SEQLSTM_ACTIVITY_FILL, .name = "fill", .end_ns = 1};

static seqlstm_status recorder_start(struct seqlstm_instance *instance, uint32_t device, struct seqlstm_error *err)
{
    (void)instance, (void)device;
    rounds++;
    reports = 0;
    if (told.start != SEQLSTM_OK && told.start_words)
        SEQLSTM_FAIL(err, told.start, "%s", told.start_words);
    return told.start;
}

static seqlstm_status recorder_report(struct seqlstm_instance *instance, uint32_t device,
                                      const struct seqlstm_report *to, struct seqlstm_error *err)
{
    (void)instance, (void)device;
    const bool is_first = reports++ == 0;
    if (told.report != SEQLSTM_OK)
        SEQLSTM_FAIL(err, told.report, "the device is lost");
    if ((is_first || told.repeats) && (told.start == SEQLSTM_OK || told.reports_without_start))
        to->activity(to->context, told.wrong_round == rounds && told.activity.struct_size ? &told.activity : &good);
    if (told.wrong_round == rounds && told.counter.struct_size)
        to->counter(to->context, &told.counter);
    return SEQLSTM_OK;
}

static void recorder_stop(struct seqlstm_instance *instance, uint32_t device)
{
    (void)instance, (void)device;
    stops++;
}

static const void *offend_get_extension(struct seqlstm_instance *instance, const char *id)
{
    static struct seqlstm_recorder recorder = {
        .struct_size = sizeof recorder, .start = recorder_start, .report = recorder_report};
    static const char *const known[] = {SEQLSTM_FLOAT64_EXTENSION, SEQLSTM_FOOTPRINT_EXTENSION,
                                        SEQLSTM_RECORDER_EXTENSION};
    recorder.stop = told.lacks_stop ? NULL : recorder_stop;
    for (int k = 0; k < 3; k++)
        if (is(known[k]) && strncmp(id, known[k], strlen(known[k])) == 0 && strlen(id) > strlen(known[k]))
            return &nothing;
    if (is("every extension is there") && strncmp(id, "org.example.", 12) == 0)
        return &nothing;
    if (told.there && strcmp(id, SEQLSTM_RECORDER_EXTENSION) == 0)
        return &recorder;
    return inner->get_extension(instance, id);
}

static const struct seqlstm_backend *offend_query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    inner = seqlstm_reference_query_v0(host_minor);
    table = *inner;
    table.open = offend_open;
    table.device_info = offend_device_info;
    table.supports = offend_supports;
    table.op_create = offend_op_create;
    table.op_bind = offend_op_bind;
    table.binding_destroy = offend_binding_destroy;
    table.get_extension = offend_get_extension;
    return &table;
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

/* Runs the check with the fault in force. NULL: it passes. */
static void expect(const char *name, const char *with, const char *detail)
{
    fault = with;
    opens = rounds = stops = 0;
    offender_expect(offend_query, name, with, detail, true);
}

static void every_offender_against_the_contract_is_named(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"contract:minimal_host", "the second open keeps memory", "memory of the host is still held after close"},
        {"contract:two_instances", "the second open keeps memory", "memory of the host is still held after close"},
        {"contract:two_instances", "the third open keeps memory", "memory of the host is still held after close"},
        {"contract:minimal_host", "a further open changes the umask",
         "its open changed the mask of file permissions (umask 022 to 033); seqlstm undid it"},
        {"contract:two_instances", "a further open changes the umask",
         "its open changed the mask of file permissions (umask 022 to 033); seqlstm undid it"},
        {"contract:memory_in_open", "a further open changes the umask",
         "open with failing memory changed the mask of file permissions (umask 022 to 033)"},
        {"contract:memory_in_open", "a failed open has another status",
         "open with failing memory returned another status than NO_MEMORY"},
        {"contract:memory_in_open", "a failed open keeps memory",
         "open with failing memory, or the close after it, kept some of it"},
        {"contract:memory_in_open", "no open is the last to fail",
         "open still failed when 100 allocations had been allowed"},
        {"contract:unknown_extension", "every extension is there",
         "get_extension returned a table for an id that does not exist"},
        {"contract:unknown_extension", SEQLSTM_FLOAT64_EXTENSION,
         "get_extension took an id with something behind it for the id itself"},
        {"contract:unknown_extension", SEQLSTM_FOOTPRINT_EXTENSION,
         "get_extension took an id with something behind it for the id itself"},
        {"contract:unknown_extension", SEQLSTM_RECORDER_EXTENSION,
         "get_extension took an id with something behind it for the id itself"},
        {"contract:device_out_of_range", "there is one device more",
         "device_info succeeded for a device beyond device_count"},
        {"contract:unknown_variant", "every variant is there",
         "op_create succeeded with a variant that supports never named"},
        {"contract:unknown_variant", "an unknown variant is refused without a reason",
         "op_create refused an unknown variant without a reason"},
        {"contract:bounds_of_bindings", "a binding is refused without a reason",
         "op_bind refused a binding without a reason"},
        {"contract:foreign_error", "errors are written into small records",
         "an error record that says it has 8 bytes was written beyond them"},
        {"contract:foreign_error", "errors are written behind small records",
         "an error record that says it has 8 bytes was written beyond them"},
        {"contract:long_structs", "long structs are refused",
         "device_info failed because its struct is longer than expected"},
        {"contract:long_structs", "the first byte behind a struct is written",
         "device_info wrote behind the members that it knows"},
        {"contract:long_structs", "the last byte behind a struct is written",
         "device_info wrote behind the members that it knows"},
        {"contract:long_structs", "a device changes its name", "device_info gave another name the second time"},
        {"contract:unknown_device_class", "no device is unknown", "supports says yes for the device class quantum:q9"},
        {"contract:unknown_device_class", "an unknown device is an error",
         "supports failed when asked about an unknown class of device, expected a no"},
        {"dense:claim:R5I3O4:f32:flat", "supports takes memory", "supports allocated memory"},
        {"dense:claim:R5I3O4:f32:flat", "a longer descriptor is refused",
         "it refuses a longer descriptor whose further bytes are zero (off): it is longer"},
        {"dense:claim:R5I3O4:f32:flat", "an unknown option has no code",
         "asked about an unknown options: reference is faulty: asked about dense it answered no, without a "
         "known code"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        expect(cases[k][0], cases[k][1], cases[k][2]);
        expect(cases[k][0], "", NULL);
    }
    expect("dense:claim:R5I3O4:f32:flat", "an operation is refused", NULL); /* with a reason, it may be */
}

/* What a backend did to the process in one check is not held against the next one, of whichever level. */
static void a_misdeed_is_that_of_its_check(void **state)
{
    (void)state;
    static const char *const names[][4] = {{"contract:null_arguments", "contract:device_out_of_range",
                                            "contract:null_arguments", "dense:bwd:R5I2O3:f32:flat"},
                                           {"dense:bwd:R5I2O3:f32:flat", "contract:device_out_of_range",
                                            "dense:bwd:R5I2O3:f32:flat", "contract:null_arguments"}};
    const struct sl_backend_builtin builtin = {"reference", offend_query};
    for (size_t order = 0; order < 2; order++) {
        const struct sl_conformance_request request = {.file = "reference",
                                                       .builtins = &builtin,
                                                       .builtin_count = 1,
                                                       .reference = seqlstm_reference_query_v0,
                                                       .cases = names[order],
                                                       .case_count = 4};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_conformance_report *report = NULL;
        fault = "a question changes the umask";
        opens = 0;
        if (sl_conformance_run(&request, &report, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        assert_int_equal(sl_conformance_report_get_size(report), 4);
        for (uint32_t k = 0; k < 4; k++) {
            const struct sl_check_result *result = &sl_conformance_report_get(report, k)->check;
            const char *name = sl_conformance_report_get(report, k)->name;
            const bool offends = strcmp(name, "contract:device_out_of_range") == 0;
            assert_string_equal(name, names[order][k]);
            if (result->verdict != (offends ? SL_VERDICT_FAIL : SL_VERDICT_PASS) ||
                (strstr(result->detail, "its device_info changed the mask of file permissions") != NULL) != offends)
                fail_msg("%s: %s '%s'", name, sl_verdict_name(result->verdict), result->detail);
        }
        sl_conformance_report_destroy(report);
    }
}

static void bounds_of_every_operation_are_tried(void **state)
{
    (void)state;
    static const struct {
        uint32_t op;
        const char *fault, *detail;
    } cases[] = {
        {SEQLSTM_OP_DENSE, "more rows fit", "more rows than the descriptor allows (dense:bwd:R5I3O4:f32:flat)"},
        {SEQLSTM_OP_LOSS, "more rows fit", "more rows than the descriptor allows (loss:bwd:R5C3:f32:flat)"},
        {SEQLSTM_OP_VECTOR, "more rows fit", "more rows than the descriptor allows (vector:fwd:N9:f32:flat)"},
        {SEQLSTM_OP_RECURRENT, "more rows fit", "more rows than the descriptor allows (lstm:bwd:T3B2I3H5:f32:ragged)"},
        {SEQLSTM_OP_RECURRENT, "more sequences fit",
         "more sequences than the descriptor allows (lstm:bwd:T3B2I3H5:f32:ragged)"},
        {SEQLSTM_OP_RECURRENT, "more steps fit",
         "more steps than the descriptor allows (lstm:bwd:T3B2I3H5:f32:ragged)"},
        {SEQLSTM_OP_DROPOUT, "more sequences fit",
         "more sequences than the descriptor allows (dropout:bwd:T3B2C5:f32:ragged)"},
        {SEQLSTM_OP_DROPOUT, "more steps fit", "more steps than the descriptor allows (dropout:bwd:T3B2C5:f32:ragged)"},
    };
    char detail[160];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fault_op = cases[k].op;
        snprintf(detail, sizeof detail, "op_bind took %s", cases[k].detail);
        expect("contract:bounds_of_bindings", cases[k].fault, detail);
    }
    expect("contract:bounds_of_bindings", "", NULL);
}

static void every_field_of_a_descriptor_is_tried(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t offset;
        uint32_t unknown;
    } cases[] = {
        {"mode", offsetof(struct seqlstm_desc, mode), 0x70000},
        {"flags", offsetof(struct seqlstm_desc, flags), 0x40000000},
        {"dtype_activation", offsetof(struct seqlstm_desc, dtype_activation), 0x70000},
        {"dtype_weight_grad", offsetof(struct seqlstm_desc, dtype_weight_grad), 0x70000},
        {"reserved0", offsetof(struct seqlstm_desc, reserved0), 1},
        {"cell", offsetof(struct seqlstm_recurrent_desc, cell), 0x70000},
        {"merge", offsetof(struct seqlstm_recurrent_desc, merge), 0x70000},
        {"options", offsetof(struct seqlstm_recurrent_desc, options), 0x40000000},
        {"activations[SEQLSTM_PLACE_CANDIDATE][0].reserved0",
         offsetof(struct seqlstm_recurrent_desc, activations[SEQLSTM_PLACE_CANDIDATE][0].reserved0), 1},
    };
    struct sl_case c;
    char detail[160];
    assert_int_equal(sl_case_parse("lstm:claim:T3B2I3H5:f32:ragged", &c, NULL), SEQLSTM_OK);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        field.offset = cases[k].offset;
        memcpy(&field.right, (const unsigned char *)&c.desc + field.offset, sizeof field.right);
        field.unknown = cases[k].unknown | (cases[k].unknown == 0x40000000 ? field.right : 0);
        snprintf(detail, sizeof detail, "it accepts %s = %#x, which no version defines", cases[k].name, field.unknown);
        expect("lstm:claim:T3B2I3H5:f32:ragged", "a field may have any value", detail);
    }
    expect("lstm:claim:T3B2I3H5:f32:ragged", "", NULL);
}

static void what_a_recorder_tells_is_checked_in_each_recording(void **state)
{
    (void)state;
    static const struct {
        struct seqlstm_activity activity;
        const char *detail;
    } activities[] = {
        {{.struct_size = 8, .kind = 1, .name = "a"}, "an activity whose struct_size leaves out its times"},
        {{.struct_size = sizeof good, .kind = 1}, "an activity without a name, or with control characters in it"},
        {{.struct_size = sizeof good, .kind = 1, .name = ""},
         "an activity without a name, or with control characters in it"},
        {{.struct_size = sizeof good, .kind = 1, .name = "a\tb"},
         "an activity without a name, or with control characters in it"},
        {{.struct_size = sizeof good, .kind = 0, .name = "a"}, "an activity of a kind that does not exist"},
        {{.struct_size = sizeof good, .kind = 4, .name = "a"}, "an activity of a kind that does not exist"},
        {{.struct_size = sizeof good, .kind = 2, .name = "a", .begin_ns = -1},
         "an activity that begins before the recording, or ends before it begins"},
        {{.struct_size = sizeof good, .kind = 2, .name = "a", .begin_ns = 2, .end_ns = 1},
         "an activity that begins before the recording, or ends before it begins"},
        {{.struct_size = sizeof good, .kind = 2, .name = "a", .end_ns = INT64_MAX},
         "an activity that ends in the future"},
    };
    static const struct seqlstm_counter counters[] = {
        {.struct_size = 8, .name = "memory"},
        {.struct_size = sizeof counters[0], .name = "", .value = 1},
        {.struct_size = sizeof counters[0], .value = 1},
        {.struct_size = sizeof counters[0], .name = "memory", .value = (double)INFINITY},
        {.struct_size = sizeof counters[0], .name = "memory", .value = (double)NAN},
    };
    char detail[160];
    for (int round = 1; round <= 2; round++) {
        for (size_t k = 0; k < sizeof activities / sizeof *activities; k++) {
            memset(&told, 0, sizeof told);
            told.there = true;
            told.wrong_round = round;
            told.activity = activities[k].activity;
            snprintf(detail, sizeof detail, "recorder: %s", activities[k].detail);
            expect("contract:recordings", "", detail);
            assert_int_equal(rounds, round);
        }
        for (size_t k = 0; k < sizeof counters / sizeof *counters; k++) {
            memset(&told, 0, sizeof told);
            told.there = true;
            told.wrong_round = round;
            told.counter = counters[k];
            expect("contract:recordings", "", "recorder: a counter without a name or a finite value");
        }
    }
    memset(&told, 0, sizeof told);
    told.there = true;
    expect("contract:recordings", "", NULL);
    assert_true(rounds == 2 && stops == 2);
    told.repeats = true;
    expect("contract:recordings", "", "recorder: a second report repeats activities");
    told.repeats = false;
    told.report = SEQLSTM_DEVICE;
    expect("contract:recordings", "", "recorder: the device is lost");
    told.report = SEQLSTM_OK;
    told.lacks_stop = true;
    expect("contract:recordings", "", "recorder: a table without start, report or stop");
}

static void a_recorder_that_cannot_start_says_why_and_tells_nothing(void **state)
{
    (void)state;
    memset(&told, 0, sizeof told);
    told.there = true;
    told.start = SEQLSTM_UNAVAILABLE;
    told.start_words = "another program records";
    expect("contract:recordings", "", NULL);
    told.reports_without_start = true;
    expect("contract:recordings", "", "recorder: activities although start failed");
    told.reports_without_start = false;
    told.start = SEQLSTM_DEVICE;
    expect("contract:recordings", "", "recorder: start failed with another status than UNAVAILABLE");
    told.start = SEQLSTM_UNAVAILABLE;
    told.start_words = NULL;
    expect("contract:recordings", "", "recorder: start is UNAVAILABLE without a reason");
    memset(&told, 0, sizeof told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_offender_against_the_contract_is_named),
        cmocka_unit_test(a_misdeed_is_that_of_its_check),
        cmocka_unit_test(bounds_of_every_operation_are_tried),
        cmocka_unit_test(every_field_of_a_descriptor_is_tried),
        cmocka_unit_test(what_a_recorder_tells_is_checked_in_each_recording),
        cmocka_unit_test(a_recorder_that_cannot_start_says_why_and_tells_nothing),
    };
    umask(022); /* as messages name it */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
