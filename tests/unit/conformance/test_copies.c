/* SPDX-License-Identifier: Apache-2.0 */
/* The check of copies between devices names an offender against each of its rules, for each pair of devices, size and
 * round: the reference, which says that it works on cards, whose memory is that of the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <seqlstm/ext/draft/memory.h>

#include "offender.h"

enum { LARGE = 4194309 };

static const struct seqlstm_backend *inner;
static struct {
    const char *fault;
    uint32_t from, to, devices; /* the pair in which it stands */
    uint64_t bytes;             /* the size at which it stands; 1: at each */
    int round;                  /* of a size */
    seqlstm_status status;      /* of the function that fails */
    bool is_short, is_null;     /* the table has no copy_across */
} told;
static int live_blocks, live_streams, copies; /* copies of the size before */
static int calls, failing_call;               /* of memory and streams; the one of this number fails, 0: none */
static bool failed_to_wait;                   /* it was one that waits, as at the end of a domain */
static uint64_t size_before;

/* Work that was put off until the next copy to the host, or until after a copy. */
static struct work {
    void *to;
    const void *from;
    unsigned char *kept; /* of `from` */
    int value;
    uint64_t bytes;
} late[1], early[1];

static bool is(const char *fault)
{
    return told.fault && strcmp(told.fault, fault) == 0;
}

static void run_work(struct work *work)
{
    if (work->to && work->from)
        memmove(work->to, work->from, work->bytes);
    else if (work->to)
        memset(work->to, work->value, work->bytes);
    free(work->kept);
    *work = (struct work){0};
}

static seqlstm_status fail_as_told(const char *function, struct seqlstm_error *err)
{
    if (++calls == failing_call)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "call %d, %s, fails", calls, function);
    if (is(function))
        SEQLSTM_FAIL(err, told.status, "%s does not work here", function);
    return SEQLSTM_OK;
}

static seqlstm_status card_allocate(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, uint64_t bytes,
                                    void **out_pointer, struct seqlstm_error *err)
{
    (void)instance, (void)kind;
    if (device != told.to || !is("allocate"))
        SEQLSTM_TRY(fail_as_told("allocate", err));
    *out_pointer = aligned_alloc(SEQLSTM_ALIGNMENT, bytes);
    assert_non_null(*out_pointer);
    live_blocks++;
    return SEQLSTM_OK;
}

static void card_release(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, void *pointer)
{
    (void)instance, (void)device, (void)kind;
    run_work(late);
    live_blocks -= pointer != NULL;
    free(pointer);
}

static seqlstm_status card_copy(struct seqlstm_instance *instance, uint32_t device, void *stream, uint32_t direction,
                                void *to, const void *from, uint64_t bytes, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream;
    SEQLSTM_TRY(fail_as_told(direction == SEQLSTM_COPY_TO_HOST ? "download" : "upload", err));
    if (direction == SEQLSTM_COPY_TO_HOST)
        run_work(late);
    if (direction == SEQLSTM_COPY_TO_DEVICE && is("the source is not waited for")) {
        run_work(early);
        *early = (struct work){.to = to, .kept = malloc(bytes), .bytes = bytes};
        early->from = memcpy(early->kept, from, bytes);
    } else {
        memcpy(to, from, bytes);
    }
    return SEQLSTM_OK;
}

static seqlstm_status card_fill(struct seqlstm_instance *instance, uint32_t device, void *stream, void *to,
                                uint32_t value, uint64_t bytes, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream;
    if (value != 0)
        SEQLSTM_TRY(fail_as_told("fill", err));
    else if (bytes == 3)
        SEQLSTM_TRY(fail_as_told("clear", err));
    if (value != 0 && is("the target is not waited for")) {
        run_work(early);
        *early = (struct work){.to = to, .value = (int)value, .bytes = bytes};
    } else {
        memset(to, (int)value, bytes);
    }
    return SEQLSTM_OK;
}

static seqlstm_status card_copy_across(struct seqlstm_instance *instance, uint32_t to_device, void *to_stream, void *to,
                                       uint32_t from_device, void *from_stream, const void *from, uint64_t bytes,
                                       struct seqlstm_error *err)
{
    (void)instance;
    unsigned char *target = to;
    const unsigned char *source = from;
    const uint64_t unseen = is("overlaps of one byte") ? 1 : 0;
    const bool is_front = target < source && source < target + bytes - unseen;
    const bool is_back = source <= target && target < source + bytes - unseen;
    if (!(is_front && is("overlaps in front")) && !(is_back && is("overlaps behind")) && (is_front || is_back))
        SEQLSTM_FAIL(err, is("overlaps have another status") ? SEQLSTM_UNSUPPORTED : SEQLSTM_INVALID_ARGUMENT,
                     "they overlap");
    assert_true(to_stream != NULL && from_stream != NULL);
    copies = size_before == bytes ? copies + 1 : 1;
    size_before = bytes;
    const bool stands = from_device == told.from && to_device == told.to && (told.bytes == 1 || told.bytes == bytes) &&
                        (told.round == 0 || told.round == copies);
    if (stands)
        SEQLSTM_TRY(fail_as_told("copy_across", err));
    if (stands && is("the copy is late")) {
        run_work(late);
        *late = (struct work){.to = to, .from = from, .bytes = bytes};
        return SEQLSTM_OK;
    }
    memmove(to, from, bytes);
    if (stands && is("the last byte is left out") && bytes > 0)
        target[bytes - 1] = 0xA5;
    if (stands && is("the first byte is wrong") && bytes > 0)
        target[0] ^= 1;
    if (stands && is("one byte more is written"))
        target[bytes] = 0;
    if (stands && is("the last guard is written"))
        target[bytes + 63] = 0;
    run_work(early);
    return SEQLSTM_OK;
}

static seqlstm_status card_create(struct seqlstm_instance *instance, uint32_t device, void **out_stream,
                                  struct seqlstm_error *err)
{
    (void)instance, (void)device;
    SEQLSTM_TRY(fail_as_told("create", err));
    *out_stream = malloc(1);
    live_streams++;
    return SEQLSTM_OK;
}

static void card_destroy(struct seqlstm_instance *instance, uint32_t device, void *stream)
{
    (void)instance, (void)device;
    live_streams -= stream != NULL;
    free(stream);
}

static seqlstm_status card_synchronize(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                       struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream;
    failed_to_wait = failed_to_wait || calls + 1 == failing_call;
    return fail_as_told("synchronize", err);
}

static seqlstm_status card_device_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                        struct seqlstm_error *err)
{
    (void)instance, (void)err;
    *out_count = told.devices;
    return SEQLSTM_OK;
}

static seqlstm_status card_device_info(struct seqlstm_instance *instance, uint32_t device,
                                       struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    SEQLSTM_TRY(inner->device_info(instance, 0, info, err));
    if (!is("the host"))
        snprintf(info->domain, sizeof info->domain, "card:%u", device);
    return SEQLSTM_OK;
}

static const struct seqlstm_backend *card_query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    static struct seqlstm_memory memory;
    static const struct seqlstm_streams streams = {
        .struct_size = sizeof streams, .create = card_create, .destroy = card_destroy, .synchronize = card_synchronize};
    memory = (struct seqlstm_memory){.struct_size =
                                         told.is_short ? offsetof(struct seqlstm_memory, copy_across) : sizeof memory,
                                     .allocate = card_allocate,
                                     .release = card_release,
                                     .copy = card_copy,
                                     .fill = card_fill,
                                     .copy_across = told.is_null ? NULL : card_copy_across};
    inner = seqlstm_reference_query_v0(host_minor);
    table = *inner;
    table.device_count = card_device_count;
    table.device_info = card_device_info;
    table.memory = &memory;
    table.streams = &streams;
    return &table;
}

/* Afterwards no memory and no stream is left. NULL: it passes. */
static void expect(const char *fault, const char *detail)
{
    told.fault = fault;
    size_before = 7;
    offender_expect(card_query, "contract:copies_across", fault, detail, true);
    assert_int_equal(live_blocks, 0);
    assert_int_equal(live_streams, 0);
    run_work(late);
    run_work(early);
}

/* Every pair: between two streams of the first, and between both in each direction. */
static void each_pair_of_devices_is_tried(void **state)
{
    (void)state;
    static const uint32_t pairs[][2] = {{0, 0}, {1, 0}, {0, 1}};
    char detail[160];
    for (size_t k = 0; k < 3; k++) {
        told.devices = 2;
        told.from = pairs[k][0];
        told.to = pairs[k][1];
        told.bytes = 3;
        told.status = SEQLSTM_DEVICE;
        snprintf(detail, sizeof detail,
                 "copy_across from device %u to device %u, 3 bytes: copy_across does not work here", told.from,
                 told.to);
        expect("copy_across", detail);
    }
}

/* The first byte, the last one, and what lies behind them, at each size. */
static void each_size_is_compared_to_its_ends(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 3, SEQLSTM_ALIGNMENT, 100003, LARGE};
    static const char *const wrong = "the bytes that were copied are not those which the source had in the order of "
                                     "both streams";
    char detail[200];
    memset(&told, 0, sizeof told);
    told.devices = 1;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const char *const cases[][2] = {{"the last byte is left out", wrong},
                                        {"the first byte is wrong", wrong},
                                        {"one byte more is written", "it writes behind its target"},
                                        {"the last guard is written", "it writes behind its target"}};
        told.bytes = (uint64_t)sizes[s];
        for (size_t k = sizes[s] == 0 ? 2 : 0; k < (sizes[s] == LARGE ? 1 : 4); k++) {
            if (sizes[s] == 1 && k < 2)
                continue; /* `bytes` of 1 stands for each */
            snprintf(detail, sizeof detail, "copy_across from device 0 to device 0, %lld bytes: %s",
                     (long long)(sizes[s] == 1 ? 0 : sizes[s]), cases[k][1]);
            expect(cases[k][0], detail);
        }
    }
}

/* The first of the copies of a size, one in the middle, and the last. */
static void each_of_several_copies_counts(void **state)
{
    (void)state;
    memset(&told, 0, sizeof told);
    told.devices = 1;
    told.bytes = 100003;
    for (told.round = 1; told.round <= 6; told.round += told.round == 1 ? 2 : 3)
        expect("the last byte is left out",
               "copy_across from device 0 to device 0, 100003 bytes: the bytes that were copied are not those which "
               "the source had in the order of both streams");
}

static void copies_keep_the_order_of_both_streams(void **state)
{
    (void)state;
    static const char *const faults[] = {"the source is not waited for", "the target is not waited for",
                                         "the copy is late"};
    memset(&told, 0, sizeof told);
    told.devices = 1;
    told.bytes = 3;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        expect(faults[k], k < 2 ? "copy_across from device 0 to device 0, 1 bytes: the bytes that were copied are not "
                                  "those which the source had in the order of both streams"
                                : "copy_across from device 0 to device 0, 3 bytes: the bytes that were copied are not "
                                  "those which the source had in the order of both streams");
}

/* After six copies of the largest size: one there, and one back, which is that of device 1 to device 0. */
static void what_goes_there_comes_back(void **state)
{
    (void)state;
    memset(&told, 0, sizeof told);
    told.devices = 1;
    told.bytes = LARGE;
    for (told.round = 7; told.round <= 8; told.round++)
        expect("the first byte is wrong",
               "copy_across from device 0 to device 0, 4194309 bytes: what is copied there and back is not the same");
    told.round = 8;
    expect("the copy is late",
           "copy_across from device 0 to device 0, 4194309 bytes: what is copied there and back is not the same");
}

static void ranges_that_overlap_must_be_refused(void **state)
{
    (void)state;
    static const char *const faults[] = {"overlaps in front", "overlaps behind", "overlaps of one byte",
                                         "overlaps have another status"};
    memset(&told, 0, sizeof told);
    told.devices = 1;
    for (size_t k = 0; k < 4; k++)
        expect(faults[k], "copy_across from device 0 to device 0, 1000 bytes: it takes ranges that overlap, expected "
                          "INVALID_ARGUMENT");
}

/* The words of the function that fails; what was allocated before is released. */
static void failures_have_the_words_of_the_plugin(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"allocate", "copy_across from device 1 to device 0, 0 bytes: allocate does not work here"},
        {"fill", "copy_across from device 0 to device 0, 0 bytes: fill does not work here"},
        {"upload", "copy_across from device 0 to device 0, 1 bytes: upload does not work here"},
        {"clear", "copy_across from device 0 to device 0, 3 bytes: clear does not work here"},
        {"download", "copy_across from device 0 to device 0, 0 bytes: download does not work here"}};
    memset(&told, 0, sizeof told);
    told.devices = 2;
    told.status = SEQLSTM_DEVICE;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        told.to = 0;
        expect(cases[k][0], cases[k][1]);
    }
}

static void without_such_copies_nothing_is_checked(void **state)
{
    (void)state;
    memset(&told, 0, sizeof told);
    told.devices = 2;
    told.status = SEQLSTM_DEVICE;
    told.is_null = true;
    expect("allocate", NULL);
    told.is_null = false;
    told.is_short = true;
    expect("allocate", NULL);
    told.is_short = false;
    expect("the host", NULL);
    expect("nothing", NULL);
}

/* A case on a card of which the n-th call fails; false: there are fewer calls. It does not pass then, unless that
 * call is one of those at the end of a domain, and no memory and no stream is left. */
static bool fail_on_the_card(const char *name, int n)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_conformance_report *report = NULL;
    calls = 0;
    failed_to_wait = false;
    failing_call = n;
    const seqlstm_status status = offender_run(card_query, name, &report, &err);
    const bool failed = n > 0 && calls >= n;
    const struct sl_check_result *result = status == SEQLSTM_OK ? &sl_conformance_report_get(report, 0)->check : NULL;
    const char *words = result ? result->detail : err.message;
    const bool passed = result && result->verdict == SL_VERDICT_PASS;
    if ((passed == failed && !failed_to_wait) || (!passed && failed && words[0] == '\0'))
        fail_msg("%s, call %d of %d: %s, '%s'", name, n, calls, result ? sl_verdict_name(result->verdict) : "no report",
                 words);
    sl_conformance_report_destroy(report);
    if (live_blocks || live_streams)
        fail_msg("%s, call %d: %d blocks and %d streams are left", name, n, live_blocks, live_streams);
    return failed;
}

static void nothing_is_left_on_a_card(void **state)
{
    static const char *const cases[] = {
        "contract:minimal_host",          "contract:two_instances",
        "contract:bounds_of_bindings",    "contract:recordings",
        "dense:bwd:R5I3O4:f32:flat",      "lstm:ranges:T3B2I3H5:f32:ragged:initial,final",
        "dense:memory:R5I3O4:f32:flat",   "dense:threads:R5I3O4:f32:flat",
        "dense:alternate:R5I3O4:f32:flat"};
    (void)state;
    memset(&told, 0, sizeof told);
    told.devices = 1;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fail_on_the_card(cases[k], 0);
        for (int n = 1; fail_on_the_card(cases[k], n);)
            n += 1 + n / 4;
    }
    failing_call = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pair_of_devices_is_tried),
        cmocka_unit_test(each_size_is_compared_to_its_ends),
        cmocka_unit_test(each_of_several_copies_counts),
        cmocka_unit_test(copies_keep_the_order_of_both_streams),
        cmocka_unit_test(what_goes_there_comes_back),
        cmocka_unit_test(ranges_that_overlap_must_be_refused),
        cmocka_unit_test(failures_have_the_words_of_the_plugin),
        cmocka_unit_test(without_such_copies_nothing_is_checked),
        cmocka_unit_test(nothing_is_left_on_a_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
