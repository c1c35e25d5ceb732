/* SPDX-License-Identifier: Apache-2.0 */
/* What the launches of cuda-generic's device.h ask of CUDA's runtime, which is replaced here: the stream of the call,
 * blocks, threads, shared memory, clusters and arguments; and whether its refusals come back. TAP on stdout. */
#include <cstdio>
#include <cstring>

#include <cuda_runtime_api.h>

extern "C" int start(int kind, void *stream, int number, float *to);

static struct {
    int launches, number;
    float *to;
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    bool cooperative;
    unsigned cluster;                    /* 0: none asked for */
    int shared_most, beyond_eight;       /* what the kernel was allowed before the launch */
    cudaError_t of_attribute, of_launch; /* what the runtime answers */
} seen;

static cudaError_t launch(dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
    seen.launches++;
    seen.grid = grid;
    seen.block = block;
    seen.number = *static_cast<int *>(arguments[0]);
    seen.to = *static_cast<float **>(arguments[1]);
    seen.shared = shared;
    seen.stream = stream;
    return seen.of_launch;
}

static struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed;

extern "C" {
/* What the code that nvcc makes of <<<>>> calls; CUDA 12 and 13. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
    pushed = {grid, block, shared, stream};
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    *static_cast<cudaStream_t *>(stream) = pushed.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *entry)
{
    *kernel = static_cast<cudaKernel_t>(const_cast<void *>(entry));
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream)
{
    return launch(grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernel(const void *, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
    return launch(grid, block, arguments, shared, stream);
}
void **__cudaRegisterFatBinary(void *)
{
    static void *module;
    return &module;
}
void __cudaRegisterFatBinaryEnd(void **)
{
}
void __cudaUnregisterFatBinary(void **)
{
}
char __cudaInitModule(void **)
{
    return 1;
}
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *, dim3 *, dim3 *, int *)
{
}

cudaError_t cudaGetLastError(void)
{
    return seen.of_launch;
}
cudaError_t cudaFuncSetAttribute(const void *, enum cudaFuncAttribute attribute, int value)
{
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
        seen.shared_most = value;
    if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
        seen.beyond_eight = value;
    return seen.of_attribute;
}
cudaError_t cudaLaunchCooperativeKernel(const void *, dim3 grid, dim3 block, void **arguments, size_t shared,
                                        cudaStream_t stream)
{
    seen.cooperative = true;
    return launch(grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *, void **arguments)
{
    for (unsigned k = 0; k < config->numAttrs; k++)
        if (config->attrs[k].id == cudaLaunchAttributeClusterDimension)
            seen.cluster = config->attrs[k].val.clusterDim.x * config->attrs[k].val.clusterDim.y *
                           config->attrs[k].val.clusterDim.z;
    return launch(config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream);
}
}

static float target;

static bool is_as_asked(int kind)
{
    static const unsigned clusters[] = {0, 0, 0, 2, 16};
    int streams[2];
    for (int &stream : streams) {
        seen = {};
        if (start(kind, &stream, 7, &target) != 0 || seen.launches != 1 || seen.number != 7 || seen.to != &target)
            return false;
        if (static_cast<void *>(seen.stream) != &stream || seen.shared != 256 || seen.block.x != 64 ||
            seen.block.y != 1 || seen.grid.x != 6 || seen.grid.y != 2 || seen.grid.z != 1)
            return false;
        if (seen.cooperative != (kind == 2) || seen.cluster != clusters[kind] ||
            seen.shared_most != (kind == 0 ? 0 : 256) || seen.beyond_eight != (clusters[kind] > 8))
            return false;
    }
    return true;
}

static bool is_refused(int kind)
{
    seen = {};
    seen.of_launch = cudaErrorLaunchOutOfResources;
    if (start(kind, &target, 7, &target) != cudaErrorLaunchOutOfResources || seen.launches != 1)
        return false;
    seen = {};
    seen.of_attribute = cudaErrorInvalidValue;
    return kind == 0 || (start(kind, &target, 7, &target) == cudaErrorInvalidValue && seen.launches == 0);
}

int main()
{
    static const char *const kinds[] = {"usual", "with much shared memory", "all blocks at once", "clusters of 2",
                                        "clusters of 16"};
    const int count = sizeof kinds / sizeof *kinds;
    bool good = true;
    printf("1..%d\n", 2 * count);
    for (int kind = 0; kind < count; kind++) {
        const bool asked = is_as_asked(kind), refused = is_refused(kind);
        printf("%sok %d - %s: to the stream of the call, as asked\n", asked ? "" : "not ", 2 * kind + 1, kinds[kind]);
        printf("%sok %d - %s: a refusal comes back\n", refused ? "" : "not ", 2 * kind + 2, kinds[kind]);
        good = good && asked && refused;
    }
    return good ? 0 : 1;
}
