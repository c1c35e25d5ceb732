/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of devices, by functions of the test on memory of the host: what is needed of a device, and what is left where
 * a call fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/ext/draft/memory.h>

#include "ok.h"
#include "oom.h"
#include "registry/domain.h"

enum { DEVICE = 2 };

static int blocks, streams_open, synchronized;
static seqlstm_status fill_status, copy_status;
static uint64_t last_bytes;
static uint32_t kind_asked = SEQLSTM_MEMORY_DEVICE;
static char stream;

static seqlstm_status allocate(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, uint64_t bytes,
                               void **out_pointer, struct seqlstm_error *err)
{
    (void)instance, (void)err;
    assert_true(device == DEVICE && kind == kind_asked);
    last_bytes = bytes;
    *out_pointer = malloc(bytes);
    blocks++;
    return SEQLSTM_OK;
}

static void release(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, void *pointer)
{
    (void)instance;
    assert_true(device == DEVICE && kind == kind_asked);
    free(pointer);
    blocks--;
}

static seqlstm_status copy(struct seqlstm_instance *instance, uint32_t device, void *on, uint32_t direction, void *to,
                           const void *from, uint64_t bytes, struct seqlstm_error *err)
{
    (void)instance;
    assert_true(device == DEVICE && on == &stream && direction >= SEQLSTM_COPY_TO_DEVICE);
    if (copy_status != SEQLSTM_OK)
        return seqlstm_error_set(err, copy_status, "d.c", 1, "direction %u", direction);
    memcpy(to, from, bytes);
    return SEQLSTM_OK;
}

static seqlstm_status fill(struct seqlstm_instance *instance, uint32_t device, void *on, void *to, uint32_t value,
                           uint64_t bytes, struct seqlstm_error *err)
{
    (void)instance;
    assert_true(device == DEVICE && on == &stream);
    if (fill_status != SEQLSTM_OK)
        return seqlstm_error_set(err, fill_status, "d.c", 1, "no fill");
    memset(to, (int)value, bytes);
    return SEQLSTM_OK;
}

static seqlstm_status create(struct seqlstm_instance *instance, uint32_t device, void **out_stream,
                             struct seqlstm_error *err)
{
    (void)instance, (void)err;
    assert_int_equal(device, DEVICE);
    streams_open++;
    *out_stream = &stream;
    return SEQLSTM_OK;
}

static void destroy(struct seqlstm_instance *instance, uint32_t device, void *on)
{
    (void)instance, (void)device;
    assert_ptr_equal(on, &stream);
    streams_open--;
}

static seqlstm_status synchronize(struct seqlstm_instance *instance, uint32_t device, void *on,
                                  struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)err;
    assert_ptr_equal(on, &stream);
    synchronized++;
    return SEQLSTM_OK;
}

static struct seqlstm_memory memory;
static struct seqlstm_streams streams;
static struct seqlstm_backend table = {.id = "card", .memory = &memory, .streams = &streams};

static void reset(void)
{
    memory = (struct seqlstm_memory){
        .struct_size = sizeof memory, .allocate = allocate, .release = release, .copy = copy, .fill = fill};
    streams = (struct seqlstm_streams){
        .struct_size = sizeof streams, .create = create, .destroy = destroy, .synchronize = synchronize};
    fill_status = copy_status = SEQLSTM_OK;
    table.memory = &memory;
    table.streams = &streams;
}

static seqlstm_status open_domain(struct sl_domain *domain, struct seqlstm_error *err)
{
    return sl_domain_open(domain, &table, NULL, DEVICE, "card:2", err);
}

/* Each of both tables, and each function of them. */
static void a_domain_needs_its_functions(void **state)
{
    (void)state;
    static const size_t of_memory[] = {offsetof(struct seqlstm_memory, allocate),
                                       offsetof(struct seqlstm_memory, release), offsetof(struct seqlstm_memory, copy),
                                       offsetof(struct seqlstm_memory, fill)};
    static const size_t of_streams[] = {offsetof(struct seqlstm_streams, create),
                                        offsetof(struct seqlstm_streams, destroy),
                                        offsetof(struct seqlstm_streams, synchronize)};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_domain domain;
    for (int k = 0; k < 11; k++) {
        reset();
        if (k < 4)
            memset((char *)&memory + of_memory[k], 0, sizeof memory.copy);
        else if (k < 7)
            memset((char *)&streams + of_streams[k - 4], 0, sizeof streams.create);
        else if (k == 7)
            table.memory = NULL;
        else if (k == 8)
            table.streams = NULL;
        else if (k == 9)
            memory.struct_size = offsetof(struct seqlstm_memory, fill);
        else
            streams.struct_size = offsetof(struct seqlstm_streams, event_elapsed);
        assert_int_equal(open_domain(&domain, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, "the backend card works in the domain card:2, but has no tables for memory "
                                         "and streams");
        sl_domain_close(&domain); /* nothing is open */
    }
    assert_int_equal(streams_open, 0);
}

static void blocks_are_zeros_of_the_alignment_at_least(void **state)
{
    (void)state;
    static const struct {
        int64_t asked;
        uint64_t given;
    } rows[] = {{0, SEQLSTM_ALIGNMENT},
                {1, SEQLSTM_ALIGNMENT},
                {SEQLSTM_ALIGNMENT, SEQLSTM_ALIGNMENT},
                {SEQLSTM_ALIGNMENT + 1, SEQLSTM_ALIGNMENT + 1}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_domain domain;
    reset();
    ok(open_domain(&domain, &err), &err);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        void *block = NULL;
        ok(sl_domain_allocate(&domain, rows[k].asked, &block, &err), &err);
        assert_int_equal(last_bytes, rows[k].given);
        for (uint64_t b = 0; b < rows[k].given; b++)
            assert_int_equal(((char *)block)[b], 0);
        synchronized = 0;
        sl_domain_release(&domain, block); /* after all work on it */
        assert_int_equal(synchronized, 1);
        kind_asked = SEQLSTM_MEMORY_PINNED;
        ok(sl_domain_allocate_pinned(&domain, rows[k].asked, &block, &err), &err);
        assert_int_equal(last_bytes, rows[k].given);
        sl_domain_release_pinned(&domain, block);
        kind_asked = SEQLSTM_MEMORY_DEVICE;
    }
    sl_domain_release(&domain, NULL);
    sl_domain_release_pinned(&domain, NULL);
    assert_int_equal(synchronized, 1);
    assert_int_equal(blocks, 0);
    sl_domain_close(&domain);
    assert_int_equal(streams_open, 0);
}

/* Memory that cannot be cleared is given back. */
static void a_block_that_fails_is_released(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_domain domain;
    void *block = NULL;
    reset();
    ok(open_domain(&domain, &err), &err);
    fill_status = SEQLSTM_DEVICE;
    assert_int_equal(sl_domain_allocate(&domain, 300, &block, &err), SEQLSTM_DEVICE);
    assert_string_equal(err.message, "no fill");
    assert_null(block);
    assert_int_equal(blocks, 0);
    sl_domain_close(&domain);
}

static void copies_have_a_direction(void **state)
{
    (void)state;
    static const struct {
        seqlstm_status (*copy)(struct sl_domain *domain, void *to, const void *from, int64_t bytes,
                               struct seqlstm_error *err);
        uint32_t direction;
    } rows[] = {{sl_domain_upload, SEQLSTM_COPY_TO_DEVICE},
                {sl_domain_download, SEQLSTM_COPY_TO_HOST},
                {sl_domain_copy, SEQLSTM_COPY_WITHIN}};
    struct sl_domain domain;
    reset();
    assert_int_equal(open_domain(&domain, NULL), SEQLSTM_OK);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char from[4] = "abc", to[4] = "xyz", expected[30];
        copy_status = SEQLSTM_OK;
        ok(rows[k].copy(&domain, to, from, 2, &err), &err);
        assert_string_equal(to, "abz");
        copy_status = SEQLSTM_DEVICE;
        ok(rows[k].copy(&domain, to, from, 0, &err), &err); /* nothing is not copied */
        assert_int_equal(rows[k].copy(&domain, to, from, 1, &err), SEQLSTM_DEVICE);
        snprintf(expected, sizeof expected, "direction %u", rows[k].direction);
        assert_string_equal(err.message, expected);
    }
    sl_domain_close(&domain);
}

static seqlstm_status some_status(void)
{
    return SEQLSTM_OK;
}

/* Every function that a captured step calls; the others do not matter. */
static void captures_need_every_function(void **state)
{
    (void)state;
    static const size_t needed[] = {
        offsetof(struct seqlstm_streams, capture_begin),  offsetof(struct seqlstm_streams, capture_end),
        offsetof(struct seqlstm_streams, capture_launch), offsetof(struct seqlstm_streams, capture_destroy),
        offsetof(struct seqlstm_streams, event_create),   offsetof(struct seqlstm_streams, event_destroy),
        offsetof(struct seqlstm_streams, event_record),   offsetof(struct seqlstm_streams, event_wait),
        offsetof(struct seqlstm_streams, event_elapsed),  offsetof(struct seqlstm_streams, event_synchronize),
        offsetof(struct seqlstm_streams, frame_begin),    offsetof(struct seqlstm_streams, frame_end)};
    seqlstm_status (*const some)(void) = some_status;
    struct seqlstm_streams all = {.struct_size = sizeof all};
    const struct seqlstm_backend with = {.id = "card", .streams = &all}, without = {.id = "card"};
    for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
        memcpy((char *)&all + needed[k], &some, sizeof some);
    assert_true(sl_domain_has_captures(&with));
    assert_false(sl_domain_has_captures(&without));
    for (size_t k = 0; k < sizeof needed / sizeof *needed; k++) {
        memset((char *)&all + needed[k], 0, sizeof some);
        if (sl_domain_has_captures(&with))
            fail_msg("without function %d", (int)k);
        memcpy((char *)&all + needed[k], &some, sizeof some);
    }
    all.struct_size = offsetof(struct seqlstm_streams, frame_end);
    assert_false(sl_domain_has_captures(&with));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_domain_needs_its_functions),   cmocka_unit_test(blocks_are_zeros_of_the_alignment_at_least),
        cmocka_unit_test(a_block_that_fails_is_released), cmocka_unit_test(copies_have_a_direction),
        cmocka_unit_test(captures_need_every_function),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
