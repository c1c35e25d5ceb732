/* SPDX-License-Identifier: Apache-2.0 */
/* The packer against the batches of base/batch: for all lengths of up to four sequences from 0 to 3, the batch is
 * sound, in the documented order, and says that it is uniform exactly where it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "predict/packer.h"
#include "oom.h"

enum { MOST = 4, STEPS = 3 };

/* Where sequence i of the input belongs: behind all longer ones, and equal ones before it. */
static int64_t find_place(const int64_t *lengths, int64_t count, int64_t i)
{
    int64_t place = 0;
    for (int64_t k = 0; k < count; k++)
        place += lengths[k] > lengths[i] || (lengths[k] == lengths[i] && k < i);
    return place;
}

static void check(const struct sl_packer *packer, const int64_t *lengths, int64_t count)
{
    const struct sl_batch *batch = &packer->batch;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int64_t rows = 0, alive = 0, longest = 0;
    bool uniform = true;
    if (sl_batch_check(batch, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = find_place(lengths, count, i);
        assert_int_equal(packer->order[k], i);
        assert_int_equal(packer->begins[i], rows);
        assert_int_equal(packer->ids[k], i);
        assert_int_equal(packer->positions[k], 0);
        rows += lengths[i];
        alive += lengths[i] > 0;
        longest = lengths[i] > longest ? lengths[i] : longest;
    }
    for (int64_t i = 0; i < count; i++)
        uniform = uniform && (lengths[i] == 0 || lengths[i] == longest);
    assert_int_equal(batch->sequences, count);
    assert_int_equal(batch->axis.sequences, alive);
    assert_int_equal(batch->axis.steps, longest);
    assert_int_equal(batch->axis.rows, rows);
    if (alive > 0)
        assert_int_equal((batch->axis.flags & SEQLSTM_BIT_AXIS_UNIFORM) != 0, uniform);
}

static void all_small_batches(void **state)
{
    (void)state;
    const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 1},
                                        .has_steps = true};
    const struct sl_envelope envelope = {.sequences = MOST, .steps = STEPS, .rows = MOST * STEPS};
    struct sl_packer packer;
    int64_t all = 1;
    assert_int_equal(sl_packer_init(&packer, &facts, &envelope, NULL), SEQLSTM_OK);
    for (int64_t count = 1; count <= MOST; count++) {
        all *= STEPS + 1;
        for (int64_t code = 0; code < all; code++) { /* each after whatever was there before */
            int64_t lengths[MOST];
            for (int64_t i = 0, rest = code; i < count; i++, rest /= STEPS + 1)
                lengths[i] = rest % (STEPS + 1);
            sl_packer_lay_out(&packer, lengths, count);
            check(&packer, lengths, count);
            for (int64_t i = 0; i < MOST; i++)
                packer.positions[i] = 77;
        }
    }
    sl_packer_deinit(&packer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_small_batches),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
