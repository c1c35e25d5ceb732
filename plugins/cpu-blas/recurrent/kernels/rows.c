/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and sums of rows. */
#include <stddef.h>

#include "cpu-blas/recurrent/kernels/unit.h"

void kernel_copy(const struct blas_rows *c)
{
    for (int64_t r = 0; r < c->rows; r++) {
        const float *x = c->x + r * c->x_row, *m = c->m ? c->m + r * c->m_row : NULL;
        float *y = c->y + r * c->y_row;
        int64_t i = 0;
        for (; i + VW <= c->n; i += VW) {
            vf a = v_load(x + i);
            v_store(y + i, m ? v_mul(a, v_load(m + i)) : a);
        }
        if (i < c->n) {
            int left = (int)(c->n - i);
            vf a = v_load_first(x + i, left);
            v_store_first(y + i, m ? v_mul(a, v_load_first(m + i, left)) : a, left);
        }
    }
}

void kernel_add(const struct blas_rows *c)
{
    for (int64_t r = 0; r < c->rows; r++) {
        const float *x = c->x + r * c->x_row, *m = c->m ? c->m + r * c->m_row : NULL;
        float *y = c->y + r * c->y_row;
        int64_t i = 0;
        for (; i + VW <= c->n; i += VW) {
            const vf a = v_load(x + i);
            v_store(y + i, v_add(v_load(y + i), m ? v_mul(a, v_load(m + i)) : a));
        }
        if (i < c->n) {
            const int left = (int)(c->n - i);
            vf a = v_load_first(x + i, left);
            if (m)
                a = v_mul(a, v_load_first(m + i, left));
            v_store_first(y + i, v_add(v_load_first(y + i, left), a), left);
        }
    }
}
