/* SPDX-License-Identifier: Apache-2.0 */
/* What is predicted of the library's buffers, as numbers of bytes: of each cell, in training and
 * inference, for float32 and for two bytes, and of widths at which rows get longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cpu-onednn/recurrent/parts.h"

enum { SLACK = 65536, SECOND = 1 };

/* A layer whose sizes all differ. */
struct layer {
    const char *name;
    struct {
        enum odn_cell cell;
        int32_t gates;
        bool training;
        uint32_t bytes; /* of an element */
        int64_t hidden, output, inputs[2];
    } form;
    struct odn_need need;
    struct odn_parts parts;
    struct odn_places places;
    struct odn_scratch scratch[ODN_PASSES]; /* of forward, of backward; `small` without the slack */
};

static const struct layer layers[] = {
    {"lstm",
     {ODN_LSTM, 4, true, 4, 5, 5, {3, 40}},
     {.kind = 0, .n = 2, .steps = 3},
     {768, 384, 1024, 320, 1024, 1024, 320, 0},
     {4096, 8192, 12288, 20480, 28672, 32768, 36864},
     {{0, 768, 3840, 1280}, {0, 768, 3840, 1280}}},
    {"lstm, inference",
     {ODN_LSTM, 4, false, 4, 5, 5, {3, 40}},
     {.kind = 0, .n = 2, .steps = 3},
     {768, 384, 1024, 320, 1024, 1024, 320, 0},
     {4096, 8192, 12288, 20480, 28672, 32768, 36864},
     {{3392, 768, 7232, 640}, {3392, 768, 7232, 640}}},
    {"lstm, second kind",
     {ODN_LSTM, 4, true, 4, 5, 5, {3, 40}},
     {.kind = SECOND, .n = 2, .steps = 3},
     {768, 384, 3072, 320, 3072, 3072, 320, 0},
     {4096, 8192, 12288, 20480, 28672, 32768, 36864},
     {{0, 768, 3840, 1280}, {0, 768, 3840, 1280}}},
    {"lstm, projection",
     {ODN_LSTM, 4, false, 4, 70, 20, {3, 20}},
     {.kind = 0, .n = 3, .steps = 2},
     {6912, 1920, 2304, 5040, 5760, 5760, 5040, 0},
     {8192, 12288, 16384, 24576, 40960, 49152, 57344},
     {{11952, 6912, 46512, 4800}, {11952, 6912, 46512, 4800}}},
    {"lstm, two bytes",
     {ODN_LSTM, 4, true, 2, 33, 33, {20, 33}},
     {.kind = 0, .n = 2, .steps = 5},
     {3200, 1280, 3072, 3168, 4608, 4608, 3168, 0},
     {4096, 8192, 12288, 20480, 32768, 40960, 45056},
     {{0, 5760, 28800, 2688}, {0, 3200, 9600, 2688}}},
    {"lstm, two bytes, inference",
     {ODN_LSTM, 4, false, 2, 33, 33, {20, 33}},
     {.kind = 0, .n = 2, .steps = 5},
     {3200, 1280, 3072, 3168, 4608, 4608, 3168, 0},
     {4096, 8192, 12288, 20480, 32768, 40960, 45056},
     {{12384, 5760, 41184, 768}, {12384, 3200, 21984, 768}}},
    {"gru",
     {ODN_GRU, 3, true, 4, 17, 17, {50, 17}},
     {.kind = 0, .n = 3, .steps = 2},
     {1536, 768, 4608, 0, 4608, 4608, 0, 0},
     {4096, 8192, 16384, 32768, 40960, 49152, 49152},
     {{0, 1536, 7680, 7680}, {0, 1536, 7680, 7680}}},
    {"gru, inference",
     {ODN_GRU, 3, false, 4, 17, 17, {50, 17}},
     {.kind = 0, .n = 3, .steps = 2},
     {1536, 768, 4608, 0, 4608, 4608, 0, 0},
     {4096, 8192, 16384, 32768, 40960, 49152, 49152},
     {{13824, 1536, 21504, 5760}, {13824, 1536, 21504, 5760}}},
    {"gru, second kind",
     {ODN_GRU, 3, false, 4, 17, 17, {50, 17}},
     {.kind = SECOND, .n = 3, .steps = 2},
     {1536, 768, 2304, 0, 2304, 2304, 0, 0},
     {4096, 8192, 12288, 20480, 24576, 28672, 28672},
     {{6912, 1536, 14592, 3840}, {6912, 1536, 14592, 3840}}},
    {"gru, reset after",
     {ODN_GRU_RESET_AFTER, 3, true, 4, 17, 17, {50, 17}},
     {.kind = 0, .n = 3, .steps = 2},
     {1536, 768, 4608, 0, 4608, 4608, 0, 1632},
     {4096, 8192, 16384, 32768, 40960, 49152, 50784},
     {{0, 1536, 7680, 7680}, {0, 1536, 7680, 7680}}},
    {"gru, reset after, inference",
     {ODN_GRU_RESET_AFTER, 3, false, 4, 17, 17, {50, 17}},
     {.kind = 0, .n = 3, .steps = 2},
     {1536, 768, 4608, 0, 4608, 4608, 0, 1632},
     {4096, 8192, 16384, 32768, 40960, 49152, 50784},
     {{13824, 1536, 21504, 5760}, {13824, 1536, 21504, 5760}}},
    {"rnn",
     {ODN_RNN, 1, true, 4, 17, 17, {50, 17}},
     {.kind = 0, .n = 3, .steps = 2},
     {768, 768, 4608, 0, 4608, 4608, 0, 0},
     {4096, 8192, 16384, 32768, 40960, 49152, 49152},
     {{0, 768, 3840, 3840}, {0, 768, 3840, 3840}}},
    {"rnn, long rows",
     {ODN_RNN, 1, false, 4, 256, 256, {250, 256}},
     {.kind = 0, .n = 1, .steps = 1},
     {1088, 1088, 4352, 0, 4352, 4352, 0, 0},
     {4096, 8192, 16384, 32768, 40960, 49152, 49152},
     {{13056, 1088, 18496, 5440}, {13056, 1088, 18496, 5440}}},
};

static struct odn_recurrent make(const struct layer *l)
{
    struct odn_recurrent r = {.cell = l->form.cell,
                              .lstm = l->form.cell == ODN_LSTM,
                              .gates = l->form.gates,
                              .training = l->form.training,
                              .elem = {.bytes = l->form.bytes},
                              .hidden = l->form.hidden,
                              .output = l->form.output};
    r.kind[0].input = l->form.inputs[0];
    r.kind[1].input = l->form.inputs[1];
    return r;
}

static void each_part_has_its_bytes_and_its_place(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof layers / sizeof *layers; k++) {
        const struct layer *l = &layers[k];
        const struct odn_recurrent r = make(l);
        const struct odn_parts parts = odn_parts_of(&r, &l->need);
        const struct odn_places places = odn_places_of(&parts);
        if (memcmp(&parts, &l->parts, sizeof parts) != 0)
            fail_msg("%s: the parts have other sizes", l->name);
        if (memcmp(&places, &l->places, sizeof places) != 0)
            fail_msg("%s: the parts lie elsewhere", l->name);
        for (int32_t pass = 0; pass < ODN_PASSES; pass++) {
            struct odn_scratch scratch = odn_scratch_of(&r, &l->need, pass);
            scratch.small -= SLACK;
            if (memcmp(&scratch, &l->scratch[pass], sizeof scratch) != 0)
                fail_msg("%s: the scratch of pass %d is another: %llu, %llu, %llu, %llu", l->name, (int)pass,
                         (unsigned long long)scratch.before, (unsigned long long)scratch.gates,
                         (unsigned long long)scratch.end, (unsigned long long)scratch.small);
        }
    }
}

/* The gates of all steps but one must be more than the slack. */
static void one_step_and_all_are_told_apart_by_the_gates(void **state)
{
    (void)state;
    static const struct {
        uint64_t before, gates;
        int64_t steps;
        bool clear;
    } rows[] = {{0, 1 << 20, 1, false},         {0, 2 * SLACK, 2, false},         {0, 2 * SLACK + 2, 2, true},
                {1 << 20, 2 * SLACK, 2, false}, {0, SLACK + SLACK / 4, 5, false}, {0, SLACK + SLACK / 4 + 5, 5, true}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct odn_scratch scratch = {.before = rows[k].before, .end = rows[k].before + rows[k].gates};
        const struct odn_need need = {.steps = rows[k].steps};
        assert_int_equal(odn_scratch_is_clear(&scratch, &need), rows[k].clear);
    }
}

/* What the library requests for one pass is as predicted within the slack, to the byte; the other pass does not count.
 */
static void requests_are_known_within_the_slack(void **state)
{
    (void)state;
    struct layer l = layers[0];
    l.need.steps = 100;
    for (int32_t pass = 0; pass < ODN_PASSES; pass++)
        for (int inference = 0; inference < 2; inference++) {
            l.form.training = !inference;
            const struct odn_recurrent r = make(&l);
            const struct odn_scratch s = odn_scratch_of(&r, &l.need, pass);
            const uint64_t most = s.end + s.small;
            const struct {
                uint64_t bytes;
                bool is;
            } rows[] = {{most - SLACK - 1, false}, {most - SLACK, true}, {most, true}, {most + 1, false}, {0, false}};
            assert_true(odn_scratch_is_clear(&s, &l.need));
            for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
                struct odn_need need = l.need;
                need.scratch[pass] = rows[k].bytes;
                assert_int_equal(odn_scratch_is(&r, &need, pass), rows[k].is);
                need.scratch[1 - pass] = most;
                assert_int_equal(odn_scratch_is(&r, &need, pass), rows[k].is);
            }
            struct odn_need single = l.need;
            single.steps = 1;
            const struct odn_scratch unclear = odn_scratch_of(&r, &single, pass);
            single.scratch[pass] = unclear.end + unclear.small;
            assert_false(odn_scratch_is(&r, &single, pass));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_has_its_bytes_and_its_place),
        cmocka_unit_test(one_step_and_all_are_told_apart_by_the_gates),
        cmocka_unit_test(requests_are_known_within_the_slack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
