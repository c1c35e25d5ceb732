/* SPDX-License-Identifier: Apache-2.0 */
/* The vector operations of simd_avx512.h in the compiler's own vectors of four floats, for any processor. */
#ifndef BLAS_SIMD_PORTABLE_H
#define BLAS_SIMD_PORTABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VW         4
#define NN_ROWS    2
#define NN_VECTORS 4

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vm __attribute__((vector_size(16)));

static inline vf v_set(float x)
{
    return (vf){x, x, x, x};
}
static inline vf v_zero(void)
{
    return v_set(0.0f);
}
static inline vf v_constant(float x)
{
    return v_set(x);
}
static inline vf v_load(const float *p)
{
    vf a;
    memcpy(&a, p, sizeof a);
    return a;
}
static inline vf v_load_once(const float *p)
{
    return v_load(p);
}
static inline void v_store(float *p, vf a)
{
    memcpy(p, &a, sizeof a);
}
static inline vf v_add(vf a, vf b)
{
    return a + b;
}
static inline vf v_sub(vf a, vf b)
{
    return a - b;
}
static inline vf v_mul(vf a, vf b)
{
    return a * b;
}
static inline vf v_div(vf a, vf b)
{
    return a / b;
}
static inline vf v_fma(vf a, vf b, vf c)
{
    return a * b + c;
}
static inline vf v_fnma(vf a, vf b, vf c)
{
    return c - a * b;
}
static inline vm v_gt(vf a, vf b)
{
    return (vm)(a > b);
}
static inline vm v_ge(vf a, vf b)
{
    return (vm)(a >= b);
}
static inline vm v_le(vf a, vf b)
{
    return (vm)(a <= b);
}
static inline vm v_both(vm a, vm b)
{
    return a & b;
}
static inline vf v_select(vm m, vf a, vf b)
{
    return (vf)((m & (vm)a) | (~m & (vm)b));
}
static inline vf v_min(vf a, vf b)
{
    return v_select((vm)(a < b), a, b);
}
static inline vf v_max(vf a, vf b)
{
    return v_select((vm)(a > b), a, b);
}
static inline vf v_abs(vf a)
{
    return (vf)((vm)a & 0x7FFFFFFF);
}
static inline vf v_reciprocal(vf a)
{
    return v_set(1.0f) / a;
}
static inline vf v_pow2_pushed(vf pushed)
{
    typedef uint32_t bits_of __attribute__((vector_size(16)));
    return (vf)((bits_of)pushed << 23);
}
static inline vf v_mark(vm m, vf a)
{
    return (vf)(((vm)a & ~1) | (m & 1));
}
static inline vm v_marked(vf a)
{
    return -((vm)a & 1);
}
static inline vm v_bits(uint32_t bits)
{
    vm m;
    for (int i = 0; i < VW; i++)
        m[i] = -(int32_t)((bits >> i) & 1u);
    return m;
}
static inline vf v_first(vf a, int n)
{
    for (int i = 0; i < VW; i++)
        a[i] = i < n ? a[i] : 0.0f;
    return a;
}
static inline vf v_load_first(const float *p, int n)
{
    vf a = v_zero();
    for (int i = 0; i < VW && i < n; i++)
        a[i] = p[i];
    return a;
}
static inline void v_store_first(float *p, vf a, int n)
{
    for (int i = 0; i < VW && i < n; i++)
        p[i] = a[i];
}
static inline void v_put(bool stream, float *p, vf a)
{
    (void)stream, v_store(p, a);
}
static inline void v_stream_end(void)
{
}
static inline float v_sum(vf a)
{
    return (a[0] + a[2]) + (a[1] + a[3]);
}
static inline void v_transpose16(bool stream, const float *in, int64_t in_row, int rows, int columns, float *out,
                                 int64_t out_row)
{
    (void)stream;
    for (int c = 0; c < 16; c++)
        for (int r = 0; r < 16; r++)
            out[c * out_row + r] = r < rows && c < columns ? in[r * in_row + c] : 0.0f;
}

#endif
