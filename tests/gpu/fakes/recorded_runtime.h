/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA runtime and a driver that write down what they are asked, and fail when they are told to. The program is
 * linked with --wrap of dlopen, dlsym and dlerror, and includes cmocka.h before this. */
#ifndef SEQLSTM_TESTS_GPU_RECORDED_RUNTIME_H
#define SEQLSTM_TESTS_GPU_RECORDED_RUNTIME_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

static char said[512]; /* the calls so far, each with a blank behind it */
static int calls, failing_call;
static cudaError_t failure;
static int driver_version = CUDART_VERSION, device_count = 1;
static cudaError_t count_code;
static struct cudaDeviceProp properties[4];
static cudaError_t property_codes[4];
static enum cudaStreamCaptureStatus capture_status;
static int reaches_peers = 1;
static cudaError_t access_code;

/* Writes a call down; the call with the number `failing_call` fails. */
static cudaError_t say(const char *format, ...)
{
    const size_t at = strlen(said);
    va_list args;
    va_start(args, format);
    vsnprintf(said + at, sizeof said - at, format, args);
    va_end(args);
    return ++calls == failing_call ? failure : cudaSuccess;
}

static void *const some_memory = (void *)64, *const some_stream = (void *)128, *const some_event = (void *)192,
                   *const other_event = (void *)256, *const some_graph = (void *)320, *const some_capture = (void *)384;

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t code)
{
    return code == cudaErrorNoDevice ? "no device" : "a reason";
}

const char *cudaGetErrorName(cudaError_t code)
{
    (void)code;
    return "cudaErrorName";
}

cudaError_t cudaSetDevice(int device)
{
    return say("use %d ", device);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = device_count;
    return count_code;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
    *out = properties[device];
    return property_codes[device];
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    *value = attribute == cudaDevAttrCooperativeLaunch ? 10 + device : 0;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    *out = some_memory;
    return say("malloc %zu ", bytes);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    *out = some_memory;
    return say("host_alloc %zu %u ", bytes, flags);
}

cudaError_t cudaFree(void *pointer)
{
    return say("free %zu ", (size_t)pointer);
}

cudaError_t cudaFreeHost(void *pointer)
{
    return say("free_host %zu ", (size_t)pointer);
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *left = 3000000;
    *all = 5000000;
    return say("memory ");
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return say("copy %zu %zu %zu %d %zu ", (size_t)to, (size_t)from, bytes, (int)kind, (size_t)stream);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream)
{
    return say("peer_copy %zu %d %zu %d %zu %zu ", (size_t)to, to_device, (size_t)from, from_device, bytes,
               (size_t)stream);
}

cudaError_t cudaDeviceCanAccessPeer(int *out, int device, int peer)
{
    *out = reaches_peers;
    return say("can_reach %d %d ", device, peer);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    const cudaError_t code = say("reach %d %u ", peer, flags);
    return code == cudaSuccess ? access_code : code;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    return say("fill %zu %d %zu %zu ", (size_t)to, value, bytes, (size_t)stream);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    *out = (cudaStream_t)some_stream;
    return say("stream %u ", flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return say("end_stream %zu ", (size_t)stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return say("finish %zu ", (size_t)stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    return say("wait %zu %zu %u ", (size_t)stream, (size_t)event, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    *out = (cudaEvent_t)some_event;
    return say("event ");
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return say("end_event %zu ", (size_t)event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return say("record %zu %zu ", (size_t)event, (size_t)stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return say("finish_event %zu ", (size_t)event);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return say("query %zu ", (size_t)event);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    *ms = 1.5f;
    return say("elapsed %zu %zu ", (size_t)begin, (size_t)end);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *out)
{
    *out = capture_status;
    return say("capturing %zu ", (size_t)stream);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    return say("capture %zu %d ", (size_t)stream, (int)mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    *out = (cudaGraph_t)some_graph;
    return say("end_capture %zu ", (size_t)stream);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    *out = (cudaGraphExec_t)some_capture;
    return say("instantiate %zu %llu ", (size_t)graph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return say("end_graph %zu ", (size_t)graph);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t capture, cudaStream_t stream)
{
    return say("launch %zu %zu ", (size_t)capture, (size_t)stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t capture)
{
    return say("end_launches %zu ", (size_t)capture);
}

static int get_version(int *out)
{
    *out = driver_version;
    return driver_version < 0;
}

void *__wrap_dlopen(const char *file, int flags);
void *__wrap_dlopen(const char *file, int flags)
{
    (void)flags;
    assert_string_equal(file, "libcuda.so.1");
    return driver_version == 0 ? NULL : some_memory;
}

void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name)
{
    int (*function)(int *) = get_version;
    void *symbol;
    assert_ptr_equal(library, some_memory);
    assert_string_equal(name, "cuDriverGetVersion");
    memcpy(&symbol, &function, sizeof symbol);
    return symbol;
}

char *__wrap_dlerror(void);
char *__wrap_dlerror(void)
{
    static char reason[] = "it is not there";
    return reason;
}

static void forget(int failing, cudaError_t code)
{
    said[0] = '\0';
    calls = 0;
    failing_call = failing;
    failure = code;
}

#endif
