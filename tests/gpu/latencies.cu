/* SPDX-License-Identifier: Apache-2.0 */
/* The latencies of a device that a recurrent kernel is made of. Prints one JSON object per line: what was measured, and
 * its median in microseconds. Takes about a second. Measurements that the device cannot run are left out. */
#include <algorithm>
#include <cooperative_groups.h>
#include <cstdio>
#include <ctime>
#include <vector>

#include "exchange.h"

enum { ROUNDS = 1000, REPEATS = 5, COUNTER_BYTES = 4096 };

static int failed;

static bool works(cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return true;
    cudaGetLastError(); /* so that the next measurement starts without it */
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
    failed = 1;
    return false;
}

static void print(const char *what, int size, int threads, double us)
{
    printf("{\"what\": \"%s\", \"size\": %d, \"threads\": %d, \"us\": %.3f}\n", what, size, threads, us);
    fflush(stdout);
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static __global__ void empty(float *out)
{
    if (out != nullptr && threadIdx.x == 9999)
        *out = 1;
}

/* Starts before the kernel before it has ended, as far as it needs nothing of it. */
static __global__ void empty_early(float *out)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    if (out != nullptr && threadIdx.x == 9999)
        *out = 1;
}

static __device__ __forceinline__ unsigned load_acquire(const unsigned *at)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

/* One flag per block; every block polls all of them. */
static __global__ void barrier_flags(unsigned *flags, int rounds)
{
    for (int round = 1; round <= rounds; round++) {
        __syncthreads();
        if (threadIdx.x == 0)
            asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(&flags[blockIdx.x]), "r"(round) : "memory");
        for (unsigned block = threadIdx.x; block < gridDim.x; block += blockDim.x)
            while (load_acquire(&flags[block]) < (unsigned)round) {
            }
        __syncthreads();
    }
}

/* One atomic counter. */
static __global__ void barrier_counter(unsigned *counter, int rounds)
{
    for (int round = 1; round <= rounds; round++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
            while (load_acquire(counter) < round * gridDim.x) {
            }
        }
        __syncthreads();
    }
}

static __global__ void barrier_groups(unsigned *unused, int rounds)
{
    (void)unused;
    auto grid = cooperative_groups::this_grid();
    for (int round = 0; round < rounds; round++)
        grid.sync();
}

static __global__ void barrier_cluster(int rounds)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    for (int round = 0; round < rounds; round++)
        asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    (void)rounds;
#endif
}

static __global__ void barrier_block(int rounds, float *out)
{
    __shared__ float shared[1024];
    float value = (float)threadIdx.x;
    for (int round = 0; round < rounds; round++) {
        shared[threadIdx.x] = value;
        __syncthreads();
        value += shared[(threadIdx.x + 33) & (blockDim.x - 1)];
        __syncthreads();
    }
    if (value == 0.1234f)
        *out = value;
}

/* Each load needs the value of the one before. */
static __global__ void chase(const unsigned *next, int rounds, unsigned *out)
{
    unsigned at = 0;
    for (int round = 0; round < rounds; round++)
        at = __ldcg(&next[at]);
    *out = at;
}

/* ---- measurements ------------------------------------------------------------------------------------------------ */

/* The median time of `launch`, in microseconds per round; negative if it fails. */
template <typename LAUNCH> static double measure(const char *what, LAUNCH launch)
{
    cudaEvent_t begin, end;
    std::vector<float> times;
    if (!works(cudaEventCreate(&begin), what) || !works(cudaEventCreate(&end), what) || !works(launch(), what) ||
        !works(cudaDeviceSynchronize(), what))
        return -1;
    for (int k = 0; k < REPEATS; k++) {
        float ms = 0;
        cudaEventRecord(begin);
        launch();
        cudaEventRecord(end);
        if (!works(cudaEventSynchronize(end), what))
            return -1;
        cudaEventElapsedTime(&ms, begin, end);
        times.push_back(ms);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    std::sort(times.begin(), times.end());
    return (double)times[REPEATS / 2] * 1e3 / ROUNDS;
}

static void start_node(cudaStream_t stream, int blocks, int threads, bool early)
{
    if (!early) {
        empty<<<blocks, threads, 0, stream>>>(nullptr);
        return;
    }
    cudaLaunchAttribute attribute[1];
    cudaLaunchConfig_t config = {};
    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)threads);
    config.stream = stream;
    config.attrs = attribute;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, empty_early, (float *)nullptr);
}

static cudaGraphExec_t make_graph(cudaStream_t stream, int nodes, int blocks, int threads, bool early)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    for (int k = 0; k < nodes; k++)
        start_node(stream, blocks, threads, early);
    if (works(cudaStreamEndCapture(stream, &graph), "capture"))
        works(cudaGraphInstantiate(&executable, graph, 0), "graph");
    cudaGraphDestroy(graph);
    return executable;
}

static void measure_nodes(cudaStream_t stream, int multiprocessors, bool early)
{
    const char *what = early ? "graph node, programmatic launch" : "graph node";
    const int sizes[] = {1, multiprocessors};
    for (int blocks : sizes) {
        const cudaGraphExec_t graph = make_graph(stream, ROUNDS, blocks, 256, early);
        const double us = graph ? measure(what, [&] { return cudaGraphLaunch(graph, nullptr); }) : -1;
        if (us >= 0)
            print(what, blocks, 256, us);
        cudaGraphExecDestroy(graph);
    }
}

static double read_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* What one update costs the host: a copy to the device, a graph of ten nodes, a copy back, and the wait. */
static void measure_host(cudaStream_t stream, unsigned *device)
{
    enum { UPDATES = 500 };
    unsigned *pinned = nullptr;
    const cudaGraphExec_t graph = make_graph(stream, 10, 1, 32, false);
    if (graph == nullptr || !works(cudaMallocHost(&pinned, 64), "pinned memory"))
        return;
    for (int copies = 1; copies >= 0; copies--)
        for (int warm = 1; warm >= 0; warm--) {
            const double begin = read_clock();
            for (int k = 0; k < UPDATES; k++) {
                if (copies)
                    cudaMemcpyAsync(device, pinned, 64, cudaMemcpyHostToDevice, stream);
                cudaGraphLaunch(graph, stream);
                if (copies)
                    cudaMemcpyAsync(pinned, device, 16, cudaMemcpyDeviceToHost, stream);
                cudaStreamSynchronize(stream);
            }
            if (!warm)
                print(copies ? "copy, graph of 10, copy, wait" : "graph of 10, wait", 10, 32,
                      (read_clock() - begin) / UPDATES);
        }
    cudaGraphExecDestroy(graph);
    cudaFreeHost(pinned);
}

static void measure_grid(const char *what, void (*kernel)(unsigned *, int), unsigned *device, int blocks)
{
    int rounds = ROUNDS;
    void *arguments[] = {&device, &rounds};
    const double us = measure(what, [&] {
        cudaMemsetAsync(device, 0, COUNTER_BYTES);
        return cudaLaunchCooperativeKernel((const void *)kernel, dim3((unsigned)blocks), dim3(256), arguments, 0,
                                           nullptr);
    });
    if (us >= 0)
        print(what, blocks, 256, us);
}

static void measure_clusters(void)
{
    cudaFuncSetAttribute(barrier_cluster, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    for (int blocks = 2; blocks <= 16; blocks *= 2) {
        cudaLaunchAttribute attribute[1];
        cudaLaunchConfig_t config = {};
        attribute[0].id = cudaLaunchAttributeClusterDimension;
        attribute[0].val.clusterDim.x = (unsigned)blocks;
        attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
        config.gridDim = dim3((unsigned)blocks);
        config.blockDim = dim3(256);
        config.attrs = attribute;
        config.numAttrs = 1;
        const double us =
            measure("cluster barrier", [&] { return cudaLaunchKernelEx(&config, barrier_cluster, (int)ROUNDS); });
        if (us >= 0)
            print("cluster barrier", blocks, 256, us);
    }
}

/* Four clusters at once, as when sequences are divided among clusters. A name has the number of stores. */
static void measure_exchange(unsigned *device)
{
    enum { CLUSTERS = 4 };
    cudaFuncSetAttribute(exchange, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    for (int blocks = 4; blocks <= EXCHANGE_BLOCKS_MOST; blocks *= 2)
        for (int stores = EXCHANGE_THREADS; stores <= 4 * EXCHANGE_THREADS; stores *= 2) {
            char what[64];
            unsigned wrong = 1;
            cudaLaunchAttribute attribute[1];
            cudaLaunchConfig_t config = {};
            attribute[0].id = cudaLaunchAttributeClusterDimension;
            attribute[0].val.clusterDim.x = (unsigned)blocks;
            attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
            config.gridDim = dim3((unsigned)(CLUSTERS * blocks));
            config.blockDim = dim3(EXCHANGE_THREADS);
            config.dynamicSmemBytes = count_exchange_bytes(stores);
            config.attrs = attribute;
            config.numAttrs = 1;
            snprintf(what, sizeof what, "exchange in a cluster, %d stores a block", stores);
            cudaMemsetAsync(device, 0, sizeof *device);
            const double us = measure(what, [&] {
                return cudaLaunchKernelEx(&config, exchange, blocks, stores, (int)ROUNDS, (uint32_t *)device);
            });
            if (us < 0 || !works(cudaMemcpy(&wrong, device, sizeof wrong, cudaMemcpyDeviceToHost), what))
                continue;
            if (wrong == 0)
                print(what, blocks, EXCHANGE_THREADS, us);
            else
                failed = fprintf(stderr, "%s: other values than those of the step\n", what) > 0;
        }
}

static void measure_loads(unsigned *device, size_t bytes, const char *what)
{
    const size_t words = bytes / sizeof(unsigned), stride = 1031 * 32;
    std::vector<unsigned> next(words);
    for (size_t k = 0, at = 0; k < words / 32; k++, at = next[at])
        next[at] = (unsigned)((at + stride) % words);
    if (!works(cudaMemcpy(device, next.data(), bytes, cudaMemcpyHostToDevice), what))
        return;
    const double us = measure(what, [&] {
        chase<<<1, 1>>>(device, ROUNDS, device + words);
        return cudaGetLastError();
    });
    if (us >= 0)
        print(what, (int)(bytes >> 10), 1, us);
}

int main()
{
    enum { LARGE = 200 << 20 };
    struct cudaDeviceProp device;
    unsigned *memory = nullptr;
    cudaStream_t stream = nullptr;
    if (!works(cudaGetDeviceProperties(&device, 0), "device") ||
        !works(cudaMalloc(&memory, LARGE + COUNTER_BYTES), "memory") ||
        !works(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream"))
        return 1;
    measure_nodes(stream, device.multiProcessorCount, false);
    if (device.major >= 9)
        measure_nodes(stream, device.multiProcessorCount, true);
    measure_host(stream, memory);
    for (int blocks : {8, 32, device.multiProcessorCount}) {
        measure_grid("grid barrier, flags", barrier_flags, memory, blocks);
        measure_grid("grid barrier, counter", barrier_counter, memory, blocks);
        measure_grid("grid barrier, cooperative groups", barrier_groups, memory, blocks);
    }
    if (device.major >= 9) {
        measure_clusters();
        measure_exchange(memory);
    }
    for (int threads = 64; threads <= 1024; threads *= 2) {
        const double us = measure("store, block barrier, load, block barrier", [&] {
            barrier_block<<<1, threads>>>(ROUNDS, (float *)memory);
            return cudaGetLastError();
        });
        if (us >= 0)
            print("store, block barrier, load, block barrier", 1, threads, us);
    }
    measure_loads(memory, (size_t)8 << 20, "load from L2");
    measure_loads(memory, LARGE, "load from memory");
    return failed;
}
