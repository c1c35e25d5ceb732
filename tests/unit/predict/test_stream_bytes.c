/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a saved stream: all states and the position come back, and what is damaged, cut, of another model or of
 * another version is told apart. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ok.h"
#include "oom.h"

#include "base/value/hash.h"
#include "predict/predictor_private.h"
#include "predict/stream.h"
#include "predict/stream_bytes.h"

enum { STATES = 5, BYTES = 8 + 4 + 4 + 8 + 8 + 4 * STATES + 8 };

static const float states[STATES] = {0.5f, -1e-30f, 3e38f, -0.0f, 7};

struct saved {
    struct sl_predictor predictor;
    unsigned char bytes[BYTES];
};

static void save(struct saved *saved, int64_t position)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    float values[STATES];
    memcpy(values, states, sizeof values);
    *saved = (struct saved){.predictor = {.state_elems = STATES, .identity = UINT64_C(0xfedcba9876543210)}};
    const struct sl_stream stream = {.predictor = &saved->predictor, .position = position, .values = values};
    size_t size = 0;
    ok(sl_stream_save(&stream, NULL, &size, &err), &err);
    assert_int_equal(size, BYTES);
    size = BYTES - 1;
    assert_int_equal(sl_stream_save(&stream, saved->bytes, &size, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "room for 59 bytes, and the state of the stream has 60");
    assert_int_equal(size, BYTES);
    ok(sl_stream_save(&stream, saved->bytes, &size, &err), &err);
}

static seqlstm_status load(const struct sl_predictor *predictor, const unsigned char *bytes, size_t size,
                           float values[STATES], int64_t *out_position)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_stream stream = {.predictor = predictor, .position = -1, .values = values};
    for (int k = 0; k < STATES; k++)
        values[k] = NAN;
    const seqlstm_status status = sl_stream_load(&stream, bytes, size, &err);
    *out_position = stream.position;
    return status;
}

/* The checksum of the changed bytes, so that it is not what refuses them. */
static void seal(unsigned char bytes[BYTES])
{
    const uint64_t sum = sl_crc64(0, bytes, BYTES - 8);
    for (int k = 0; k < 8; k++)
        bytes[BYTES - 8 + k] = (unsigned char)(sum >> 8 * k);
}

static void what_is_saved_comes_back(void **state)
{
    (void)state;
    static const int64_t positions[] = {0, 1, INT64_C(1) << 33, INT64_MAX};
    for (size_t p = 0; p < sizeof positions / sizeof *positions; p++) {
        struct saved saved;
        float values[STATES];
        int64_t position;
        save(&saved, positions[p]);
        assert_int_equal(load(&saved.predictor, saved.bytes, BYTES, values, &position), SEQLSTM_OK);
        assert_memory_equal(values, states, sizeof states);
        assert_true(position == positions[p]);
    }
}

/* Any bit that changes is noticed, and any other size; nothing of it is taken. */
static void damage_is_noticed(void **state)
{
    (void)state;
    struct saved saved;
    float values[STATES];
    int64_t position;
    save(&saved, 12);
    for (int bit = 0; bit < 8 * BYTES; bit++) {
        saved.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_not_equal(load(&saved.predictor, saved.bytes, BYTES, values, &position), SEQLSTM_OK);
        assert_true(isnan(values[0]) && isnan(values[STATES - 1]) && position == -1);
        saved.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t size = 0; size < BYTES; size++)
        assert_int_equal(load(&saved.predictor, saved.bytes, size, values, &position), SEQLSTM_CORRUPT_DATA);
    assert_int_equal(load(&saved.predictor, saved.bytes, BYTES, values, &position), SEQLSTM_OK);
}

static void others_are_refused(void **state)
{
    (void)state;
    struct saved saved;
    float values[STATES];
    int64_t position;
    save(&saved, 12);
    struct sl_predictor other = saved.predictor;
    other.identity++;
    assert_int_equal(load(&other, saved.bytes, BYTES, values, &position), SEQLSTM_INVALID_ARGUMENT);
    other = saved.predictor;
    other.state_elems--;
    assert_int_equal(load(&other, saved.bytes, BYTES, values, &position), SEQLSTM_INVALID_ARGUMENT);
    saved.bytes[31] ^= 0x80; /* a negative position */
    seal(saved.bytes);
    assert_int_equal(load(&saved.predictor, saved.bytes, BYTES, values, &position), SEQLSTM_INVALID_ARGUMENT);
    saved.bytes[31] ^= 0x80;
    saved.bytes[8]++; /* the version */
    seal(saved.bytes);
    assert_int_equal(load(&saved.predictor, saved.bytes, BYTES, values, &position), SEQLSTM_INVALID_ARGUMENT);
    saved.bytes[8] = 0; /* also an older one */
    seal(saved.bytes);
    assert_int_equal(load(&saved.predictor, saved.bytes, BYTES, values, &position), SEQLSTM_INVALID_ARGUMENT);
    saved.bytes[8] = 1;
    seal(saved.bytes);
    assert_int_equal(load(&saved.predictor, saved.bytes, BYTES, values, &position), SEQLSTM_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_comes_back),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
