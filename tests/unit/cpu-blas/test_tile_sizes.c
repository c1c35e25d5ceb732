/* SPDX-License-Identifier: Apache-2.0 */
/* Members that share the rows of a product have scratch memory beside each other: none reaches into that of the next,
 * and the last one ends within what the operation asks for. Where one did, two threads would have to meet in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu-blas/recurrent/tile_sizes.h"

enum { MEMBERS = 5, ROWS_MORE = 70 };

static const struct blas_tile_kernels kernels = {.tile_k = BLAS_TILE_K};

static struct blas_recurrent make_op(int32_t panels, int32_t parts)
{
    return (struct blas_recurrent){.tile_kernels = &kernels,
                                   .bf16_parts = parts,
                                   .members_max = MEMBERS,
                                   .panels = panels,
                                   .units = 16 * panels,
                                   .out_pad = 16 * panels,
                                   .layer_count = 1,
                                   .layers = {{.input = 16, .input_pad = 16}},
                                   .weights_large = true};
}

static void members_have_room_of_their_own(void **state)
{
    static const int32_t panels[] = {8, 40, 200}; /* all at once, a part, one */
    (void)state;
    for (size_t p = 0; p < sizeof panels / sizeof *panels; p++)
        for (int32_t parts = 1; parts <= 3; parts++) {
            const struct blas_recurrent op = make_op(panels[p], parts);
            for (int32_t members = 2; members <= MEMBERS; members++)
                for (int64_t rows = 64 * members; rows < 64 * members + ROWS_MORE; rows++)
                    for (int32_t m = 0; m < members; m++) {
                        int64_t first, last;
                        blas_share(rows, m, members, &first, &last);
                        const int64_t own = blas_tiles_own(&op, m, members, rows);
                        const int64_t needed = blas_tiles_own(&op, 1, 1, last - first);
                        const int64_t end = m + 1 < members ? blas_tiles_own(&op, m + 1, members, rows)
                                                            : blas_tiles_backward_floats(&op, 1, rows);
                        if (own + needed > end)
                            fail_msg(
                                "%d panels in %d parts: member %d of %d, which share %d rows, has %lld floats of %lld",
                                (int)op.panels, (int)parts, (int)m, (int)members, (int)rows, (long long)(end - own),
                                (long long)needed);
                    }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_have_room_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
