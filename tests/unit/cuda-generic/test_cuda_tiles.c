/* SPDX-License-Identifier: Apache-2.0 */
/* The maps of a step's tiles (tile_map.h): every gate of every unit has one place, tiles own whole groups of units, and
 * together they own each unit once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cuda-generic/gemm/tile_map.h"

static void each_gate_of_each_unit_has_a_place(void **state)
{
    (void)state;
    static unsigned char taken[4 * 208];
    for (int64_t gates = 1; gates <= 4; gates++)
        for (int64_t hidden = 1; hidden <= 200; hidden++) {
            const int64_t places = cg_tile_places(gates, hidden);
            assert_true(places >= gates * hidden && places < gates * (hidden + 8) && places <= (int64_t)sizeof taken);
            memset(taken, 0, sizeof taken);
            for (int64_t gate = 0; gate < gates; gate++)
                for (int64_t unit = 0; unit < hidden; unit++) {
                    const int64_t place = cg_tile_place(gates, gate, unit);
                    assert_true(place >= 0 && place < places && taken[place]++ == 0);
                    assert_true(cg_tile_gate(gates, place) == gate && cg_tile_unit(gates, place) == unit);
                }
        }
}

/* As step_tile.cu has its blocks: from unit0 on, the place of a unit within the tile is that of its distance. */
static void tiles_own_each_unit_once(void **state)
{
    (void)state;
    static const int64_t columns[] = {32, 128};
    for (int64_t gates = 1; gates <= 4; gates++)
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
            const int64_t units = cg_tile_units(gates, columns[c]);
            assert_true(units > 0 && units % 8 == 0 && units * gates <= columns[c]);
            assert_true((units + 8) * gates > columns[c]);
            for (int64_t unit0 = 0; unit0 < 5 * units; unit0 += units)
                for (int64_t gate = 0; gate < gates; gate++)
                    for (int64_t k = 0; k < units; k++) {
                        const int64_t inside = cg_tile_place(gates, gate, k);
                        assert_true(inside < columns[c]);
                        assert_true(cg_tile_place(gates, 0, unit0) + inside == cg_tile_place(gates, gate, unit0 + k));
                    }
        }
}

static void rows_are_whole_slices(void **state)
{
    (void)state;
    for (int64_t depth = 1; depth < 300; depth++)
        for (int64_t per_word = 1; per_word <= 2; per_word++) {
            const int64_t words = cg_tile_words(depth, per_word);
            assert_true(words % 16 == 0 && words * per_word >= depth && (words - 16) * per_word < depth);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gate_of_each_unit_has_a_place),
        cmocka_unit_test(tiles_own_each_unit_once),
        cmocka_unit_test(rows_are_whole_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
