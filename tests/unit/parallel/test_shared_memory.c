/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks of a host share, in a job of one rank: regions, where they are found, and the places in the segment, none
 * of which overlaps another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm-shm/segment.h"
#include "oom.h"

static void *allocate(void *context, uint64_t bytes)
{
    (void)context;
    return malloc(bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static const struct seqlstm_host host = {.struct_size = sizeof host, .allocate = allocate, .release = release};

static void open_alone(struct host_ranks *r, uint64_t bytes)
{
    static int jobs;
    char job[64];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(job, sizeof job, "shared-%d-%d", (int)getpid(), jobs++);
    const struct seqlstm_rendezvous rendezvous = {.struct_size = (uint32_t)sizeof rendezvous,
                                                  .rank = 0,
                                                  .ranks = 1,
                                                  .local_ranks = 1,
                                                  .job = job,
                                                  .timeout_ns = INT64_C(60000000000)};
    memset(r, 0, sizeof *r);
    if (host_ranks_open(r, &host, &rendezvous, bytes, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
}

static void regions_are_zero_and_lie_apart(void **state)
{
    (void)state;
    struct host_ranks r;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    unsigned char *own[HOST_RANKS_REGIONS];
    void *more = &r;
    open_alone(&r, 5000);
    memset((char *)r.memory + host_ranks_head_bytes(1), 0xEE, 5000 - (size_t)host_ranks_head_bytes(1));
    for (int k = 0; k < HOST_RANKS_REGIONS; k++) { /* 0, 4096, 4097, 4095, 8192, … bytes */
        const uint64_t bytes = k == 0 ? 0 : (uint64_t)(HOST_RANKS_PAGE * ((k + 2) / 3) + k % 3 - 1);
        void *memory = NULL;
        assert_int_equal(host_ranks_share(&r, bytes, INT64_MAX, &memory, &err), SEQLSTM_OK);
        own[k] = memory;
        assert_int_equal((uintptr_t)memory % HOST_RANKS_PAGE, 0);
        for (uint64_t i = 0; i < bytes; i++)
            assert_int_equal(own[k][i], 0);
        memset(own[k], k + 1, (size_t)bytes);
    }
    for (int k = 1; k < HOST_RANKS_REGIONS; k++) {
        const uint64_t bytes = (uint64_t)(HOST_RANKS_PAGE * ((k + 2) / 3) + k % 3 - 1);
        uint64_t offset = 99;
        assert_true(own[k][0] == k + 1 && own[k][bytes - 1] == k + 1);
        const struct host_ranks_region *region = host_ranks_find(&r, own[k], bytes, &offset);
        assert_true(region && (unsigned char *)region->base == own[k] && offset == 0);
        assert_true(region->bytes >= bytes && region->bytes < bytes + HOST_RANKS_PAGE);
    }
    assert_int_equal(host_ranks_share(&r, 1, INT64_MAX, &more, &err), SEQLSTM_NO_MEMORY);
    assert_ptr_equal(more, &r);
    host_ranks_close(&r);
    open_alone(&r, 5000);
    assert_int_equal(host_ranks_share(&r, UINT64_MAX - 5, INT64_MAX, &more, &err), SEQLSTM_NO_MEMORY);
    assert_int_equal(host_ranks_share(&r, UINT64_C(1) << 60, INT64_MAX, &more, &err), SEQLSTM_NO_MEMORY);
    host_ranks_close(&r);
}

/* Of rank 1 of three, in two regions. */
static void only_own_bytes_are_found(void **state)
{
    (void)state;
    static char memory[2][3 * 256];
    const struct host_ranks r = {
        .rank = 1, .ranks = 3, .region_count = 2, .regions = {{memory[0], 256}, {memory[1], 128}}};
    const struct {
        const char *from;
        uint64_t bytes;
        int region; /* -1: none */
        uint64_t offset;
    } cases[] = {{memory[0] + 256, 256, 0, 0},  {memory[0] + 256, 257, -1, 0}, {memory[0] + 255, 1, -1, 0},
                 {memory[0] + 300, 212, 0, 44}, {memory[0] + 300, 213, -1, 0}, {memory[0] + 511, 1, 0, 255},
                 {memory[0] + 512, 0, 0, 256},  {memory[0] + 512, 1, -1, 0},   {memory[0], 1, -1, 0},
                 {memory[1] + 128, 128, 1, 0},  {memory[1] + 160, 96, 1, 32},  {memory[1] + 160, 97, -1, 0},
                 {memory[1] + 127, 1, -1, 0},   {(const char *)&r, 1, -1, 0},  {memory[1] + 300, UINT64_MAX, -1, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint64_t offset = 0;
        const struct host_ranks_region *region = host_ranks_find(&r, cases[k].from, cases[k].bytes, &offset);
        assert_ptr_equal(region, cases[k].region < 0 ? NULL : &r.regions[cases[k].region]);
        assert_int_equal(offset, cases[k].offset);
    }
}

static void deadlines_do_not_overflow(void **state)
{
    (void)state;
    const int64_t before = host_ranks_now_ns(), deadline = host_ranks_deadline_ns(1000000000),
                  after = host_ranks_now_ns();
    assert_true(deadline >= before + 1000000000 && deadline <= after + 1000000000);
    assert_true(host_ranks_deadline_ns(INT64_MAX) == INT64_MAX);
}

static void blame_names_the_rank(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct host_ranks r;
    assert_int_equal(host_ranks_blame(3, SEQLSTM_DEVICE, "is late", &err), SEQLSTM_DEVICE);
    assert_string_equal(err.message, "rank 3 is late");
    assert_int_equal(err.native_code, 4);
    assert_int_equal(host_ranks_blame(0, SEQLSTM_CANCELLED, "is late", NULL), SEQLSTM_CANCELLED);
    open_alone(&r, 4096);
    assert_false(host_ranks_is_over(&r));
    assert_int_equal(host_ranks_check(&r, &err), SEQLSTM_OK);
    host_ranks_abort(&r);
    assert_true(host_ranks_is_over(&r));
    assert_int_equal(host_ranks_check(&r, &err), SEQLSTM_CANCELLED);
    assert_string_equal(err.message, "rank 0 has ended the job");
    assert_int_equal(err.native_code, 1);
    assert_false(host_ranks_has_left(&r, 0));
    host_ranks_leave(&r);
    assert_true(host_ranks_has_left(&r, 0));
    host_ranks_close(&r);
}

/* Counts the bytes of each place in a map of the segment. */
static void claim(uint8_t *map, uint64_t all, const char *segment, const void *place, uint64_t bytes)
{
    const uint64_t at = (uint64_t)((const char *)place - segment);
    assert_true(at >= host_ranks_head_bytes(1) && at % 64 == 0 && at + bytes <= all);
    for (uint64_t i = at; i < at + bytes; i += 64)
        assert_int_equal(map[i / 64]++, 0);
}

static void boxes_and_mailboxes_do_not_overlap(void **state)
{
    (void)state;
    for (int32_t ranks = 1; ranks <= 5; ranks += 2) {
        const uint64_t all = shm_segment_bytes(ranks);
        char *segment = aligned_alloc(64, (size_t)(all + 63) / 64 * 64);
        uint8_t *map = calloc(1, (size_t)all / 64 + 1);
        uint64_t claimed = host_ranks_head_bytes(ranks);
        assert_true(segment && map);
        for (uint64_t i = 0; i < claimed; i += 64)
            map[i / 64]++;
        for (uint32_t g = 0; g < SHM_GROUPS; g++)
            for (int32_t r = 0; r < ranks; r++, claimed += sizeof(struct shm_box))
                claim(map, all, segment, shm_segment_box(segment, ranks, g, r), sizeof(struct shm_box));
        for (int32_t from = 0; from < ranks; from++)
            for (int32_t to = 0; to < ranks; to++, claimed += sizeof(struct shm_mailbox))
                claim(map, all, segment, shm_segment_mailbox(segment, ranks, from, to), sizeof(struct shm_mailbox));
        assert_int_equal(claimed, all);
        free(segment);
        free(map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_zero_and_lie_apart),     cmocka_unit_test(only_own_bytes_are_found),
        cmocka_unit_test(deadlines_do_not_overflow),          cmocka_unit_test(blame_names_the_rank),
        cmocka_unit_test(boxes_and_mailboxes_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
