/* SPDX-License-Identifier: Apache-2.0 */
/* The activations of cells on clusters and of small layers, which are shorter than those of the C library, against
 * float64: over all of float32's range, with a small relative error also near 0. */
#include <cmath>
#include <cstdio>

#include "cuda-generic/recurrent/cluster/cluster_cell.h"
#include "cuda-generic/recurrent/kernels/small_lane.h"
#include "emulated_tests.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Both signs of sizes from 2^-60 to 100, a thousandth apart. Where the exact value is below `least`, its size counts as
 * that: a value near 0 is there a difference of larger ones. */
static bool check(const char *name, float (*got)(float), double (*exact)(double), double relative, double least)
{
    double worst = 0;
    float where = 0;
    for (double size = 0x1p-60; size < 100; size *= 1.001)
        for (int sign = -1; sign <= 1; sign += 2) {
            const float x = (float)(sign * size);
            const double y = exact((double)x), off = fabs((double)got(x) - y) / fmax(fabs(y), least);
            if (!(off <= worst)) {
                worst = off;
                where = x;
            }
        }
    if (!(worst <= relative))
        printf("# %s at %g: %g, off by %g of it\n", name, (double)where, (double)got(where), worst);
    return worst <= relative && got(0.0f) == (float)exact(0) && std::isnan(got(NAN));
}

int main()
{
    const double exponent = 1e-5; /* the error of e^x grows with x */
    return run_tests({
        {"tanh on clusters", [] { return check("tanh", cg_cluster_tanh, tanh, 1e-6, 0); }},
        {"sigmoid on clusters", [&] { return check("sigmoid", cg_cluster_sigmoid, sigmoid, exponent, 0x1p-100); }},
        {"tanh of small layers", [] { return check("tanh", cg_small_tanh, tanh, 1e-6, 0); }},
        {"sigmoid of small layers", [&] { return check("sigmoid", cg_small_sigmoid, sigmoid, exponent, 0x1p-100); }},
        {"tanh with the other gates",
         [] {
             return check(
                 "tanh", [](float x) { return cg_small_gate(x, true); }, tanh, 1e-6, 0);
         }},
        {"sigmoid with the candidate",
         [&] {
             return check(
                 "gate", [](float x) { return cg_small_gate(x, false); }, sigmoid, exponent, 0x1p-100);
         }},
    });
}
