/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of plugins/cpu-blas/rowmath/rowmath.h, in every instruction set of this machine, on rows of any length:
 * none reads or writes before or behind what it is given, where no page is, and where the rows lie changes no bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu-blas/recurrent/kernels/kernels.h"
#include "cpu-blas/rowmath/rowmath.h"

enum { LONGEST = 70, ROWS = 7, ARRAYS = 6, PAGE = 4096, ROOM = PAGE, UNTOUCHED = 0x7F };

/* Memory between two pages that cannot be touched. */
static unsigned char *rooms[ARRAYS];
static bool at_end;          /* the arrays of a call end with their room; or begin with it */
static const char *function; /* the one that is called */
static const struct blas_rowmath *math;
static const struct blas_recurrent_kernels *kernels;

/* What a call has left. */
struct result {
    unsigned char bytes[ARRAYS][LONGEST * ROWS * sizeof(double)];
    double value;
};

static struct {
    void *at;
    size_t bytes;
} arrays[ARRAYS];
static int array_count;

static void *take(size_t bytes)
{
    unsigned char *room = rooms[array_count];
    memset(room, UNTOUCHED, ROOM);
    arrays[array_count].at = at_end ? room + ROOM - bytes : room;
    arrays[array_count].bytes = bytes;
    return arrays[array_count++].at;
}

/* n numbers in [-2, 2), others in each array. */
static float *floats(int64_t n)
{
    uint64_t random = (uint64_t)array_count + 3;
    float *x = take((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(random >> 40) / 4194304.0f - 2.0f;
    }
    return x;
}

static void check_around(int64_t n)
{
    for (int k = 0; k < array_count; k++) {
        const unsigned char *begin = arrays[k].at, *room = rooms[k];
        for (const unsigned char *p = room; p < room + ROOM; p++)
            if ((p < begin || p >= begin + arrays[k].bytes) && *p != UNTOUCHED)
                fail_msg("%s of %d elements, %d lanes: array %d was written %s", function, (int)n, math->lanes, k,
                         p < begin ? "before its begin" : "behind its end");
    }
}

/* ---- the functions ----------------------------------------------------------------------------------------------- */

typedef double call_fn(int64_t n, uint32_t kind);

static double act_forward(int64_t n, uint32_t kind)
{
    const struct seqlstm_activation act = {.kind = kind, .alpha = 0.3f, .beta = 0.6f};
    const float *x = floats(n);
    math->act_forward(&act, n, x, floats(n));
    return 0;
}

static double act_backward(int64_t n, uint32_t kind)
{
    const struct seqlstm_activation act = {.kind = kind, .alpha = 0.3f, .beta = 0.6f};
    const float *x = floats(n), *y = floats(n), *dy = floats(n);
    math->act_backward(&act, n, x, y, dy, floats(n));
    return 0;
}

static double softmax(int64_t n, uint32_t kind)
{
    const float *x = floats(n);
    math->softmax(n, x, floats(n), kind != 0);
    return 0;
}

static double softmax_backward(int64_t n, uint32_t kind)
{
    const float *y = floats(n), *dy = floats(n);
    math->softmax_backward(n, y, dy, floats(n), kind != 0);
    return 0;
}

static double elementwise(int64_t n, uint32_t kind)
{
    const float *x = floats(n), *m = floats(n);
    float *y = floats(n);
    if (kind == 0)
        math->add(n, x, y);
    else if (kind == 1)
        math->multiply(n, x, m, y);
    else if (kind == 2)
        math->maximum(n, x, y);
    else if (kind == 3)
        math->scale_shift(n, 0.7f, 0.2f, y);
    else if (kind == 4)
        math->softmax_grad(n, x, 0.5f, 0.25f, 0.1f, y);
    else
        math->mask_row(11, 3, 5, 0.4f, n, kind == 5 ? x : NULL, y);
    return 0;
}

static double loss(int64_t n, uint32_t kind)
{
    const float *x = floats(n), *target = floats(n);
    math->loss_backward(kind, 0.7f, 0.5f, n, x, target, floats(n));
    return math->loss(kind, 0.7f, n, x, target);
}

static double statistics(int64_t n, uint32_t kind)
{
    struct blas_row_stats stats = {0};
    const float *bias = floats(n);
    float *x = floats(n);
    if (kind == 0)
        math->row_stats(n, x, &stats);
    else
        math->exp_row(n, kind == 1 ? NULL : bias, x, &stats);
    return (double)stats.largest + 3 * (double)stats.exp_sum + 7 * (double)stats.sum;
}

static double scalars(int64_t n, uint32_t kind)
{
    const float *x = floats(n);
    return kind == 0   ? math->squared_norm(n, x)
           : kind == 1 ? (double)math->finite(n, x)
                       : (double)math->find_above(n, x, kind == 2 ? 0 : n - 1, kind == 2 ? 3.0f : 1.0f);
}

static double columns(int64_t n, uint32_t kind)
{
    float stats[2 * ROWS];
    const float *x = floats(ROWS * n), *dy = floats(ROWS * n);
    for (int i = 0; i < 2 * ROWS; i++)
        stats[i] = 0.5f + 0.1f * (float)i;
    if (kind == 0)
        math->column_sums(ROWS, n, n, x, floats(n));
    else
        math->norm_gain_sums(ROWS, n, n, x, dy, stats, floats(n));
    return 0;
}

static double norm(int64_t n, uint32_t kind)
{
    float stats[2] = {0.1f, 0.8f};
    const float *x = floats(n), *gain = floats(n), *bias = floats(n), *dy = floats(n);
    if (kind < 2)
        math->norm_forward(n, x, kind ? gain : NULL, kind ? bias : NULL, 1e-3f, floats(n), stats);
    else
        math->norm_backward(n, x, kind == 2 ? gain : NULL, dy, stats, floats(n));
    return (double)stats[0] + 3 * (double)stats[1];
}

/* n is one after another the number of products, of columns and of rows. */
static double products(int64_t n, uint32_t kind)
{
    const int64_t few = n % ROWS + 1, rows = kind % 3 == 2 ? n : few, wide = kind % 3 == 1 ? n : few,
                  deep = kind % 3 == 0 ? n : few;
    const float *a = floats(rows * deep), *b = floats(wide * deep);
    float *c = floats(rows * wide);
    const bool add = kind / 3 % 2;
    if (kind < 6)
        math->product_dots(rows, wide, deep, a, deep, b, deep, add, c, wide);
    else if (kind < 12)
        math->product_rows(rows, wide, deep, a, deep, 1, b, wide, add, c, wide);
    else
        math->product_rows(rows, wide, deep, a, 1, rows, b, wide, add, c, wide);
    return 0;
}

static double vector(int64_t n, uint32_t kind)
{
    const float *x = floats(n);
    math->vector(kind, 0.3f, n, kind == SEQLSTM_KIND_VECTOR_FILL ? NULL : x, floats(n));
    return 0;
}

static double update(int64_t n, uint32_t kind)
{
    const struct blas_update u = {.kind = kind,
                                  .learning_rate = 0.1f,
                                  .grad_scale = 0.5f,
                                  .decay = 0.01f,
                                  .momentum = 0.9f,
                                  .beta_1 = 0.9f,
                                  .rest_1 = 0.1f,
                                  .beta_2 = 0.99f,
                                  .rest_2 = 0.01f,
                                  .correct_1 = 2,
                                  .correct_2 = 3,
                                  .epsilon = 5};
    float *param = floats(n), *grad = floats(n), *state_1 = floats(n), *state_2 = floats(n), *state_3 = floats(n);
    for (int64_t i = 0; i < n; i++)
        state_1[i] = fabsf(state_1[i]), state_2[i] = fabsf(state_2[i]), state_3[i] = fabsf(state_3[i]);
    math->update(&u, n, param, grad, state_1, state_2, state_3);
    return 0;
}

static size_t bytes_of(uint32_t dtype)
{
    return dtype == SEQLSTM_DTYPE_FLOAT64 ? 8 : dtype == SEQLSTM_DTYPE_FLOAT32 ? 4 : 2;
}

static double cast(int64_t n, uint32_t kind)
{
    static const uint32_t types[] = {SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_BFLOAT16, SEQLSTM_DTYPE_FLOAT16,
                                     SEQLSTM_DTYPE_FLOAT64};
    const uint32_t from = types[kind / 4], to = types[kind % 4];
    void *x = take((size_t)n * bytes_of(from)), *y = take((size_t)n * bytes_of(to));
    memset(x, 0x3C, (size_t)n * bytes_of(from));
    math->cast(from, to, n, x, y);
    return 0;
}

static double scores(int64_t n, uint32_t kind)
{
    float grads[ROWS] = {1, -1, 0.5f, 0, 2, 1, -2}, out[ROWS] = {0};
    const float *query = floats(n), *keys = floats(ROWS * n), *score = floats(n);
    if (kind == 0)
        math->tanh_scores(ROWS, n, query, keys, score, out);
    else {
        float *dquery = floats(n), *dkeys = floats(ROWS * n);
        math->tanh_scores_back(ROWS, n, query, keys, score, grads, dquery, dkeys, floats(n));
    }
    return (double)out[0] + 3 * (double)out[ROWS - 1];
}

static double copied_rows(int64_t n, uint32_t kind)
{
    const float *x = floats(ROWS * n), *m = floats(ROWS * n);
    const struct blas_rows rows = {.rows = ROWS,
                                   .n = n,
                                   .x = x,
                                   .x_row = n,
                                   .m = kind % 2 ? m : NULL,
                                   .m_row = n,
                                   .y = floats(ROWS * n),
                                   .y_row = n};
    (kind < 2 ? kernels->copy : kernels->add)(&rows);
    return 0;
}

/* One word beyond the last bits may be read. */
static double masked_row(int64_t n, uint32_t kind)
{
    const int64_t first = kind;
    const size_t bytes = (size_t)((first + n + 15) / 16 + 1) * sizeof(uint16_t);
    uint16_t *bits = take(bytes);
    memset(bits, 0x5B, bytes);
    const float *x = floats(n);
    kernels->mask_apply(x, bits, first, 1.5f, n, floats(n));
    return 0;
}

static double folded_rows(int64_t n, uint32_t kind)
{
    (void)kind;
    const int64_t rows = n % 50 + 1;
    const float *x = floats(16 * rows);
    kernels->fold(rows, x, 0.5f, floats(rows));
    return 0;
}

static double turned_block(int64_t n, uint32_t kind)
{
    const int rows = (int)(n % 16) + 1, columns = (int)kind + 1;
    const float *x = floats((int64_t)rows * columns);
    kernels->transpose16(x, columns, rows, columns, floats(256), 16);
    return 0;
}

static const struct {
    const char *name;
    call_fn *call;
    uint32_t first, end; /* kinds */
} functions[] = {
    {"act_forward", act_forward, 0, SEQLSTM_ACT_SOFTMAX},
    {"act_backward", act_backward, 0, SEQLSTM_ACT_SOFTMAX},
    {"softmax", softmax, 0, 2},
    {"softmax_backward", softmax_backward, 0, 2},
    {"an elementwise function", elementwise, 0, 7},
    {"loss", loss, SEQLSTM_KIND_LOSS_MSE, SEQLSTM_KIND_LOSS_CROSS_ENTROPY},
    {"statistics", statistics, 0, 3},
    {"a scalar", scalars, 0, 4},
    {"sums of columns", columns, 0, 2},
    {"norm", norm, 0, 4},
    {"product", products, 0, 18},
    {"vector", vector, SEQLSTM_KIND_VECTOR_FILL, SEQLSTM_KIND_VECTOR_COPY + 1},
    {"update", update, SEQLSTM_KIND_OPTIMIZER_SGD, SEQLSTM_KIND_OPTIMIZER_ADADELTA + 1},
    {"cast", cast, 0, 16},
    {"scores", scores, 0, 2},
    {"copied rows", copied_rows, 0, 4},
    {"a masked row", masked_row, 0, 17},
    {"folded rows", folded_rows, 0, 1},
    {"a turned block", turned_block, 0, 16},
};

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void call(size_t f, int64_t n, uint32_t kind, struct result *out)
{
    array_count = 0;
    function = functions[f].name;
    out->value = functions[f].call(n, kind);
    check_around(n);
    for (int k = 0; k < array_count; k++) {
        assert_true(arrays[k].bytes <= sizeof out->bytes[k]);
        memcpy(out->bytes[k], arrays[k].at, arrays[k].bytes);
    }
}

static void try_all(enum blas_isa isa)
{
    static struct result first, last;
    if (isa > blas_isa_detect())
        return;
    math = blas_rowmath_get(isa);
    kernels = &blas_recurrent_kernels_portable;
#ifdef BLAS_HAVE_X86_KERNELS
    if (isa != BLAS_ISA_PORTABLE)
        kernels = isa == BLAS_ISA_AVX512 ? &blas_recurrent_kernels_avx512 : &blas_recurrent_kernels_avx2;
#endif
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        for (uint32_t kind = functions[f].first; kind < functions[f].end; kind++)
            for (int64_t n = 1; n <= LONGEST; n++) {
                at_end = false;
                call(f, n, kind, &first);
                at_end = true;
                call(f, n, kind, &last);
                bool equal = memcmp(&first.value, &last.value, sizeof first.value) == 0;
                for (int k = 0; k < array_count; k++)
                    equal = equal && memcmp(first.bytes[k], last.bytes[k], arrays[k].bytes) == 0;
                if (!equal)
                    fail_msg("%s %u of %d elements, %d lanes: other bits elsewhere", function, kind, (int)n,
                             math->lanes);
            }
}

static void portable_rows(void **state)
{
    (void)state;
    try_all(BLAS_ISA_PORTABLE);
}

static void rows_of_avx2(void **state)
{
    (void)state;
    try_all(BLAS_ISA_AVX2);
}

static void rows_of_avx512(void **state)
{
    (void)state;
    try_all(BLAS_ISA_AVX512);
}

static int make_rooms(void **state)
{
    (void)state;
    for (int k = 0; k < ARRAYS; k++) {
        unsigned char *pages = mmap(NULL, ROOM + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED || mprotect(pages + PAGE, ROOM, PROT_READ | PROT_WRITE) != 0)
            return -1;
        rooms[k] = pages + PAGE;
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_rows),
        cmocka_unit_test(rows_of_avx2),
        cmocka_unit_test(rows_of_avx512),
    };
    return cmocka_run_group_tests(tests, make_rooms, NULL);
}
