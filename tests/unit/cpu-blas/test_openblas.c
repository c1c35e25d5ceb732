/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS and its kernels (plugins/cpu-blas/gemm/openblas.h): which are asked for where the library does not know the
 * processor, that the environment stays what it was, and that one process has one library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cpu-blas/gemm/openblas.h"

static void better_than_a_fallback(void **state)
{
    (void)state;
    assert_string_equal(blas_openblas_better("Prescott", BLAS_ISA_AVX512), "SKYLAKEX");
    assert_string_equal(blas_openblas_better("PRESCOTT", BLAS_ISA_AVX2), "HASWELL");
    assert_null(blas_openblas_better("Prescott", BLAS_ISA_PORTABLE));
    assert_null(blas_openblas_better("Zen", BLAS_ISA_AVX512));
    assert_null(blas_openblas_better("Sandybridge", BLAS_ISA_AVX2));
}

/* The whole of what a program sees: the processor's kernels, an untouched environment, sums that are right. */
static void loads_once(void **state)
{
    (void)state;
    struct seqlstm_error err = {.struct_size = sizeof err};
    assert_int_equal(setenv("OPENBLAS_CORETYPE", "Prescott", 1), 0); /* meant for other programs */
    char **before = environ;
    assert_int_equal(blas_openblas_load("auto", &err), SEQLSTM_OK);
    assert_ptr_equal(environ, before);
    assert_string_equal(getenv("OPENBLAS_CORETYPE"), "Prescott");
    assert_true(*blas_openblas_core() != '\0');
    if (blas_isa_detect() != BLAS_ISA_PORTABLE)
        assert_true(strcasecmp(blas_openblas_core(), "Prescott") != 0);
    const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
    float c[4] = {0};
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1.0f, a, 2, b, 2, 0.0f, c, 2);
    assert_true(c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50);
    assert_int_equal(blas_openblas_load(blas_openblas_core(), &err), SEQLSTM_OK);
    assert_int_equal(blas_openblas_load("ATHLON", &err), SEQLSTM_UNAVAILABLE);
    assert_non_null(strstr(err.message, "ATHLON"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(better_than_a_fallback), cmocka_unit_test(loads_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
