/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the real cuDNN as far as that is possible without a device: it opens and has every function that the plugin
 * calls, and its descriptors accept and refuse the same as those of fake_cudnn.h. Skipped without cuDNN.
 *
 *   test_cudnn_library FAKE.so */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "library.h"

static struct cdn_functions fake;
static long compared, different;

static int load_fake(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol;
    int missing = library == NULL;
#define FIND(function)                                                                                                 \
    symbol = library != NULL ? dlsym(library, "cudnn" #function) : NULL;                                               \
    missing |= symbol == NULL;                                                                                         \
    memcpy(&fake.function, &symbol, sizeof symbol);
    CDN_FUNCTIONS(FIND)
#undef FIND
    return missing;
}

static void compare(cudnnStatus_t real, cudnnStatus_t ours, const char *what, const int values[7])
{
    compared++;
    if (CUDNN_STATUS_CATEGORY((int)real) == CUDNN_STATUS_CATEGORY((int)ours) || different++ >= 20)
        return;
    printf("# %s(%d, %d, %d, %d, %d, %d, %d): cuDNN says %s, the fake %s\n", what, values[0], values[1], values[2],
           values[3], values[4], values[5], values[6], cdn.GetErrorString(real), fake.GetErrorString(ours));
}

static cudnnStatus_t set_network(const struct cdn_functions *f, cudnnRNNDescriptor_t rnn, const int v[7])
{
    return f->SetRNNDescriptor_v8(rnn, (cudnnRNNAlgo_t)v[0], (cudnnRNNMode_t)v[1], CUDNN_RNN_DOUBLE_BIAS,
                                  (cudnnDirectionMode_t)v[2], CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                                  v[3] ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH, 7, 16, v[4], v[5], NULL, (uint32_t)v[6]);
}

/* Algorithm, cell, elements, sums, math, projection of 16. */
static void compare_types(void)
{
    static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16,
                                CUDNN_DATA_INT8};
    static const int maths[] = {CUDNN_DEFAULT_MATH, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
                                CUDNN_FMA_MATH};
    cudnnRNNDescriptor_t a, b;
    cdn.CreateRNNDescriptor(&a);
    fake.CreateRNNDescriptor(&b);
    for (int k = 0; k < 4 * 4 * 5 * 5 * 4 * 2; k++) {
        const int v[7] = {
            k % 4, k / 4 % 4, types[k / 16 % 5], types[k / 80 % 5], maths[k / 400 % 4], k / 1600 % 2 ? 5 : 16, 0};
        const struct cdn_functions *const both[] = {&cdn, &fake};
        cudnnStatus_t status[2];
        for (int f = 0; f < 2; f++)
            status[f] = both[f]->SetRNNDescriptor_v8(
                f == 0 ? a : b, (cudnnRNNAlgo_t)v[0], (cudnnRNNMode_t)v[1], CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL,
                CUDNN_LINEAR_INPUT, (cudnnDataType_t)v[2], (cudnnDataType_t)v[3], (cudnnMathType_t)v[4], 7, 16, v[5], 1,
                NULL, CUDNN_RNN_PADDED_IO_DISABLED);
        compare(status[0], status[1], "SetRNNDescriptor_v8, types", v);
    }
    cdn.DestroyRNNDescriptor(a);
    fake.DestroyRNNDescriptor(b);
}

/* Algorithm, cell, direction, math, projection of 16, layers, padded layouts. */
static void compare_networks(void)
{
    static const int projections[] = {16, 5, 0, 17};
    cudnnRNNDescriptor_t a, b;
    cdn.CreateRNNDescriptor(&a);
    fake.CreateRNNDescriptor(&b);
    for (int k = 0; k < 4 * 4 * 2 * 2 * 4 * 2 * 2; k++) {
        const int v[7] = {k % 4,      k / 4 % 4, k / 16 % 2, k / 32 % 2, projections[k / 64 % 4], 1 + k / 256 % 2 * 2,
                          k / 512 % 2};
        const cudnnStatus_t status = set_network(&cdn, a, v);
        compare(status, set_network(&fake, b, v), "SetRNNDescriptor_v8", v);
        for (int limit = -1; status == CUDNN_STATUS_SUCCESS && v[1] == CUDNN_LSTM && limit <= 1; limit++)
            compare(cdn.RNNSetClip_v9(a, CUDNN_RNN_CLIP_MINMAX, -limit, limit),
                    fake.RNNSetClip_v9(b, CUDNN_RNN_CLIP_MINMAX, -limit, limit), "RNNSetClip_v9", v);
    }
    cdn.DestroyRNNDescriptor(a);
    fake.DestroyRNNDescriptor(b);
}

/* Layout, steps, width, four lengths. */
static void compare_data(void)
{
    static const int lengths[][4] = {{4, 4, 4, 4}, {4, 3, 1, 1}, {3, 3, 2, 1},
                                     {4, 3, 2, 0}, {1, 2, 3, 4}, {5, 4, 4, 4}};
    cudnnRNNDataDescriptor_t a, b;
    cdn.CreateRNNDataDescriptor(&a);
    fake.CreateRNNDataDescriptor(&b);
    for (int k = 0; k < 2 * 2 * 6; k++) {
        const int *l = lengths[k / 4 % 6];
        const int v[7] = {k % 2, 4, k / 2 % 2 * 9, l[0], l[1], l[2], l[3]};
        compare(cdn.SetRNNDataDescriptor(a, CUDNN_DATA_FLOAT, (cudnnRNNDataLayout_t)v[0], v[1], 4, v[2], l, NULL),
                fake.SetRNNDataDescriptor(b, CUDNN_DATA_FLOAT, (cudnnRNNDataLayout_t)v[0], v[1], 4, v[2], l, NULL),
                "SetRNNDataDescriptor", v);
    }
    cdn.DestroyRNNDataDescriptor(a);
    fake.DestroyRNNDataDescriptor(b);
}

int main(int argc, char **argv)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = cdn_library_load("auto", &err);
    if (status != SEQLSTM_OK && strstr(err.message, "cannot be loaded") != NULL) {
        printf("1..0 # SKIP %s\n", err.message);
        return 0;
    }
    printf("1..2\n%s 1 - cuDNN %s %s\n", status == SEQLSTM_OK ? "ok" : "not ok", cdn_library_version(),
           status == SEQLSTM_OK ? "has every function" : err.message);
    if (status != SEQLSTM_OK)
        return 1;
    const int missing = argc < 2 || load_fake(argv[1]);
    if (!missing) {
        compare_networks();
        compare_types();
        compare_data();
    }
    const int fine = !missing && different == 0 && compared > 4000;
    printf("%s 2 - descriptors: %ld compared, %ld different\n", fine ? "ok" : "not ok", compared, different);
    return !fine;
}
