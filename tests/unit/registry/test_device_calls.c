/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of the functions of a device: to which function it goes, with which stream, addresses and sizes, and that
 * what the function fails with is what the caller gets. Which device of a backend another backend's memory lies on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/ext/draft/memory.h>

#include "ok.h"
#include "oom.h"
#include "registry/domain.h"
#include "registry/lane.h"

enum { DEVICE = 3 };

static char letters[26]; /* addresses, shown as a to z */
static char said[300];   /* the calls, one after the other */
static seqlstm_status given;

static char show(const void *address)
{
    return address ? (char)('a' + ((const char *)address - letters)) : '-';
}

#define AT(letter) ((void *)&letters[(letter) - 'a'])

static SEQLSTM_PRINTF(3, 4) void add(struct seqlstm_instance *instance, uint32_t device, const char *format, ...)
{
    va_list args;
    assert_ptr_equal(instance, AT('i'));
    assert_int_equal(device, DEVICE);
    va_start(args, format);
    vsnprintf(said + strlen(said), sizeof said - strlen(said), format, args);
    va_end(args);
}

static seqlstm_status give(struct seqlstm_error *err)
{
    return given == SEQLSTM_OK ? given : seqlstm_error_set(err, given, "d.c", 1, "the card is gone");
}

/* ---- the device ------------------------------------------------------------------------------------------------- */

static seqlstm_status allocate(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, uint64_t bytes,
                               void **out_pointer, struct seqlstm_error *err)
{
    add(instance, device, "allocate %s %llu; ", kind == SEQLSTM_MEMORY_PINNED ? "pinned" : "device",
        (unsigned long long)bytes);
    *out_pointer = AT('m');
    return give(err);
}

static void release(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, void *pointer)
{
    add(instance, device, "release %s %c; ", kind == SEQLSTM_MEMORY_PINNED ? "pinned" : "device", show(pointer));
}

static seqlstm_status copy(struct seqlstm_instance *instance, uint32_t device, void *stream, uint32_t direction,
                           void *to, const void *from, uint64_t bytes, struct seqlstm_error *err)
{
    add(instance, device, "copy on %c, direction %u, to %c from %c, %llu; ", show(stream), direction, show(to),
        show(from), (unsigned long long)bytes);
    return give(err);
}

static seqlstm_status fill(struct seqlstm_instance *instance, uint32_t device, void *stream, void *to, uint32_t value,
                           uint64_t bytes, struct seqlstm_error *err)
{
    add(instance, device, "fill on %c, %c with %u, %llu; ", show(stream), show(to), value, (unsigned long long)bytes);
    return give(err);
}

static seqlstm_status copy_across(struct seqlstm_instance *instance, uint32_t device, void *to_stream, void *to,
                                  uint32_t from_device, void *from_stream, const void *from, uint64_t bytes,
                                  struct seqlstm_error *err)
{
    add(instance, device, "copy on %c to %c from %c of device %u on %c, %llu; ", show(to_stream), show(to), show(from),
        from_device, show(from_stream), (unsigned long long)bytes);
    return give(err);
}

static seqlstm_status create(struct seqlstm_instance *instance, uint32_t device, void **out_stream,
                             struct seqlstm_error *err)
{
    add(instance, device, "create; ");
    *out_stream = AT('l');
    return give(err);
}

static void destroy(struct seqlstm_instance *instance, uint32_t device, void *stream)
{
    add(instance, device, "destroy %c; ", show(stream));
}

static seqlstm_status synchronize(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                  struct seqlstm_error *err)
{
    add(instance, device, "synchronize %c; ", show(stream));
    return give(err);
}

static seqlstm_status event_create(struct seqlstm_instance *instance, uint32_t device, void **out_event,
                                   struct seqlstm_error *err)
{
    add(instance, device, "create event; ");
    *out_event = AT('e');
    return give(err);
}

static void event_destroy(struct seqlstm_instance *instance, uint32_t device, void *event)
{
    add(instance, device, "destroy event %c; ", show(event));
}

static seqlstm_status event_record(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                   struct seqlstm_error *err)
{
    add(instance, device, "record %c on %c; ", show(event), show(stream));
    return give(err);
}

static seqlstm_status event_wait(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                 struct seqlstm_error *err)
{
    add(instance, device, "wait for %c on %c; ", show(event), show(stream));
    return give(err);
}

static seqlstm_status event_elapsed(struct seqlstm_instance *instance, uint32_t device, void *begin, void *end,
                                    double *out_ns, struct seqlstm_error *err)
{
    add(instance, device, "elapsed %c to %c; ", show(begin), show(end));
    *out_ns = 1.5;
    return give(err);
}

static seqlstm_status capture_begin(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                    struct seqlstm_error *err)
{
    add(instance, device, "capture on %c; ", show(stream));
    return give(err);
}

static seqlstm_status capture_end(struct seqlstm_instance *instance, uint32_t device, void *stream, void **out_capture,
                                  struct seqlstm_error *err)
{
    add(instance, device, "end capture on %c; ", show(stream));
    *out_capture = AT('c');
    return give(err);
}

static seqlstm_status capture_launch(struct seqlstm_instance *instance, uint32_t device, void *capture, void *stream,
                                     struct seqlstm_error *err)
{
    add(instance, device, "launch %c on %c; ", show(capture), show(stream));
    return give(err);
}

static void capture_destroy(struct seqlstm_instance *instance, uint32_t device, void *capture)
{
    add(instance, device, "destroy capture %c; ", show(capture));
}

static seqlstm_status event_synchronize(struct seqlstm_instance *instance, uint32_t device, void *event,
                                        struct seqlstm_error *err)
{
    add(instance, device, "synchronize event %c; ", show(event));
    return give(err);
}

static seqlstm_status frame_begin(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                  const struct seqlstm_frame *frame, struct seqlstm_error *err)
{
    add(instance, device, "begin frame %c on %c; ", show(frame), show(stream));
    return give(err);
}

static seqlstm_status frame_end(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                const struct seqlstm_frame *frame, struct seqlstm_error *err)
{
    add(instance, device, "end frame %c on %c; ", show(frame), show(stream));
    return give(err);
}

static struct seqlstm_memory memory = {.struct_size = sizeof memory,
                                       .allocate = allocate,
                                       .release = release,
                                       .copy = copy,
                                       .fill = fill,
                                       .copy_across = copy_across};
static const struct seqlstm_streams streams = {.struct_size = sizeof streams,
                                               .create = create,
                                               .destroy = destroy,
                                               .synchronize = synchronize,
                                               .event_create = event_create,
                                               .event_destroy = event_destroy,
                                               .event_record = event_record,
                                               .event_wait = event_wait,
                                               .event_elapsed = event_elapsed,
                                               .capture_begin = capture_begin,
                                               .capture_end = capture_end,
                                               .capture_launch = capture_launch,
                                               .capture_destroy = capture_destroy,
                                               .event_synchronize = event_synchronize,
                                               .frame_begin = frame_begin,
                                               .frame_end = frame_end};

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static struct sl_domain domain, other;
static struct sl_lane lane;
static void *made; /* what a call gives; NULL: nothing */

#define CALL(name, expression)                                                                                         \
    static seqlstm_status name(struct seqlstm_error *err)                                                              \
    {                                                                                                                  \
        return expression;                                                                                             \
    }

CALL(upload, sl_domain_upload(&domain, AT('t'), AT('f'), 5, err))
CALL(download, sl_domain_download(&domain, AT('t'), AT('f'), 6, err))
CALL(copy_within, sl_domain_copy(&domain, AT('t'), AT('f'), 7, err))
CALL(copy_from_other, sl_domain_copy_across(&domain, AT('t'), &other, 9, AT('f'), 8, err))
CALL(clear, sl_domain_clear(&domain, AT('t'), 9, err))
CALL(pin_few, sl_domain_allocate_pinned(&domain, 3, &made, err))
CALL(pin_many, sl_domain_allocate_pinned(&domain, 300, &made, err))
CALL(begin_capture, sl_domain_begin_capture(&domain, err))
CALL(end_capture, sl_domain_end_capture(&domain, &made, err))
CALL(launch, sl_domain_launch(&domain, AT('c'), err))
CALL(begin_frame, sl_domain_begin_frame(&domain, AT('g'), err))
CALL(end_frame, sl_domain_end_frame(&domain, AT('g'), err))
CALL(finish, sl_domain_finish(&domain, err))
CALL(open_lane, sl_lane_open(&lane, &domain, err))
CALL(upload_on_lane, sl_lane_upload(&lane, AT('t'), AT('f'), 4, err))
CALL(finish_lane, sl_lane_finish(&lane, err))
CALL(create_event, sl_event_create(&domain, &made, err))
CALL(record, sl_event_record(&domain, AT('e'), err))
CALL(record_on_lane, sl_event_record_lane(&lane, AT('e'), err))
CALL(wait_for, sl_event_wait(&domain, AT('e'), err))
CALL(synchronize_event, sl_event_synchronize(&domain, AT('e'), err))

static void open_all(const struct seqlstm_backend *table)
{
    given = SEQLSTM_OK;
    domain = (struct sl_domain){.name = "card:3", .table = table, .instance = AT('i'), .device = DEVICE};
    domain.queue.queue.native_stream = AT('q');
    other = domain;
    other.queue.queue.native_stream = AT('o');
    lane = (struct sl_lane){&domain, AT('l')};
    made = NULL;
    said[0] = 0;
}

static void every_call_says_what_the_device_says(void **state)
{
    (void)state;
    static const struct seqlstm_backend table = {.id = "card", .memory = &memory, .streams = &streams};
    static const struct {
        const char *name;
        seqlstm_status (*call)(struct seqlstm_error *err);
        const char *said;
        char made;
    } rows[] = {
        {"upload", upload, "copy on q, direction 1, to t from f, 5; ", '-'},
        {"download", download, "copy on q, direction 2, to t from f, 6; ", '-'},
        {"copy within", copy_within, "copy on q, direction 3, to t from f, 7; ", '-'},
        {"copy across", copy_from_other, "copy on q to t from f of device 9 on o, 8; ", '-'},
        {"clear", clear, "fill on q, t with 0, 9; ", '-'},
        {"pin few bytes", pin_few, "allocate pinned 64; ", 'm'},
        {"pin many bytes", pin_many, "allocate pinned 300; ", 'm'},
        {"begin a capture", begin_capture, "capture on q; ", '-'},
        {"end a capture", end_capture, "end capture on q; ", 'c'},
        {"launch", launch, "launch c on q; ", '-'},
        {"begin a frame", begin_frame, "begin frame g on q; ", '-'},
        {"end a frame", end_frame, "end frame g on q; ", '-'},
        {"finish", finish, "synchronize q; ", '-'},
        {"open a lane", open_lane, "create; ", '-'},
        {"upload on a lane", upload_on_lane, "copy on l, direction 1, to t from f, 4; ", '-'},
        {"finish a lane", finish_lane, "synchronize l; ", '-'},
        {"create an event", create_event, "create event; ", 'e'},
        {"record", record, "record e on q; ", '-'},
        {"record on a lane", record_on_lane, "record e on l; ", '-'},
        {"wait for an event", wait_for, "wait for e on q; ", '-'},
        {"synchronize with an event", synchronize_event, "synchronize event e; ", '-'},
    };
    static const seqlstm_status statuses[] = {SEQLSTM_OK, SEQLSTM_DEVICE, SEQLSTM_NO_MEMORY};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (size_t s = 0; s < sizeof statuses / sizeof *statuses; s++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            open_all(&table);
            given = statuses[s];
            const seqlstm_status got = rows[k].call(&err);
            if (got != given || strcmp(said, rows[k].said) != 0)
                fail_msg("%s: %s, status %d of %d", rows[k].name, said, (int)got, (int)given);
            assert_string_equal(err.message, given == SEQLSTM_OK ? "" : "the card is gone");
            if (given == SEQLSTM_OK)
                assert_int_equal(show(made), rows[k].made);
        }
}

/* Times of calls are not taken while a step is captured; a capture that could not begin is none. */
static void a_domain_captures_between_begin_and_end(void **state)
{
    (void)state;
    static const struct seqlstm_backend table = {.id = "card", .memory = &memory, .streams = &streams};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    open_all(&table);
    given = SEQLSTM_DEVICE;
    assert_int_equal(begin_capture(&err), SEQLSTM_DEVICE);
    assert_false(domain.is_capturing);
    given = SEQLSTM_OK;
    ok(begin_capture(&err), &err);
    assert_true(domain.is_capturing);
    given = SEQLSTM_DEVICE;
    assert_int_equal(end_capture(&err), SEQLSTM_DEVICE);
    assert_false(domain.is_capturing);
}

static void what_is_nothing_is_not_released(void **state)
{
    (void)state;
    static const struct seqlstm_backend table = {.id = "card", .memory = &memory, .streams = &streams};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    double ns = 0;
    open_all(&table);
    sl_domain_release(&domain, NULL);
    sl_domain_release_pinned(&domain, NULL);
    sl_domain_drop_capture(&domain, NULL);
    sl_event_destroy(&domain, NULL);
    ok(sl_lane_upload(&lane, AT('t'), AT('f'), 0, &err), &err);
    ok(sl_domain_copy_across(&domain, AT('t'), &other, 9, AT('f'), 0, &err), &err);
    ok(sl_domain_clear(&domain, AT('t'), 0, &err), &err);
    assert_string_equal(said, "");
    sl_domain_release(&domain, AT('m'));
    sl_domain_release_pinned(&domain, AT('p'));
    sl_domain_drop_capture(&domain, AT('c'));
    sl_event_destroy(&domain, AT('e'));
    sl_lane_close(&lane);
    sl_lane_close(&lane); /* it is closed */
    ok(sl_lane_finish(&lane, &err), &err);
    ok(sl_event_elapsed(&domain, AT('b'), AT('e'), &ns, &err), &err);
    assert_true(ns == 1.5);
    sl_domain_close(&domain);
    assert_string_equal(said, "synchronize q; release device m; release pinned p; destroy capture c; destroy event e; "
                              "destroy l; elapsed b to e; destroy q; ");
}

/* ---- peers ------------------------------------------------------------------------------------------------------ */

static int unreadable; /* the device that cannot be described; -1: none */

static seqlstm_status count_devices(struct seqlstm_instance *instance, uint32_t *out_count, struct seqlstm_error *err)
{
    (void)instance;
    *out_count = 4;
    return give(err);
}

static seqlstm_status describe(struct seqlstm_instance *instance, uint32_t device, struct seqlstm_device_info *info,
                               struct seqlstm_error *err)
{
    (void)instance;
    snprintf(info->name, sizeof info->name, "card");
    snprintf(info->device_class, sizeof info->device_class, "card-2");
    snprintf(info->domain, sizeof info->domain, "card:%u", device + 1);
    if ((int)device == unreadable)
        return seqlstm_error_set(err, SEQLSTM_DEVICE, "d.c", 1, "unreadable");
    return SEQLSTM_OK;
}

/* The first of four devices has the name card:1. */
static void a_peer_is_the_device_with_the_name_of_its_memory(void **state)
{
    (void)state;
    static const struct seqlstm_backend table = {
        .id = "card", .memory = &memory, .streams = &streams, .device_count = count_devices, .device_info = describe};
    struct sl_domain host;
    uint32_t device = 77;
    sl_domain_init_host(&host, NULL, NULL);
    open_all(&table);
    unreadable = -1;
    for (uint32_t k = 0; k < 4; k++) {
        snprintf(other.name, sizeof other.name, "card:%u", k + 1);
        assert_true(sl_domain_find_peer(&domain, &other, &device));
        assert_int_equal(device, k);
    }
    unreadable = 1;
    assert_true(sl_domain_find_peer(&domain, &other, &device)); /* the other devices count */
    unreadable = 3;
    assert_false(sl_domain_find_peer(&domain, &other, &device));
    unreadable = -1;
    snprintf(other.name, sizeof other.name, "card:5");
    assert_false(sl_domain_find_peer(&domain, &other, &device));
    snprintf(other.name, sizeof other.name, "card:2");
    assert_false(sl_domain_find_peer(&host, &other, &device));
    snprintf(host.name, sizeof host.name, "card:2"); /* the host is never a peer */
    assert_false(sl_domain_find_peer(&domain, &host, &device));
    given = SEQLSTM_DEVICE;
    assert_false(sl_domain_find_peer(&domain, &other, &device));
    given = SEQLSTM_OK;
    assert_true(sl_domain_find_peer(&domain, &other, &device));
    memory.copy_across = NULL;
    assert_false(sl_domain_find_peer(&domain, &other, &device));
    memory.copy_across = copy_across;
    memory.struct_size = offsetof(struct seqlstm_memory, copy_across); /* of an older plugin */
    assert_false(sl_domain_find_peer(&domain, &other, &device));
    memory.struct_size = sizeof memory;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_says_what_the_device_says),
        cmocka_unit_test(a_domain_captures_between_begin_and_end),
        cmocka_unit_test(what_is_nothing_is_not_released),
        cmocka_unit_test(a_peer_is_the_device_with_the_name_of_its_memory),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
