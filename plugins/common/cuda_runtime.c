/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime behind cuda_runtime.h. The runtime library is linked statically and opens the driver itself. This
 * file looks for the driver first, so that a missing driver gives a clear message and not just an error code. */
#include "common/cuda_runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

/* ---- errors --------------------------------------------------------------------------------------------- */

/* The first unrecoverable failure of each device. */
static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;
static struct seqlstm_error failures[GPU_DEVICES_MAX];

static bool is_sticky(cudaError_t code)
{
    switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorDevicesUnavailable:
        return true;
    default:
        return false;
    }
}

static seqlstm_status fail(int32_t ordinal, cudaError_t code, const char *what, struct seqlstm_error *err)
{
    struct seqlstm_error made = SEQLSTM_ERROR_INIT;
    seqlstm_status status = code == cudaErrorMemoryAllocation ? SEQLSTM_NO_MEMORY : SEQLSTM_DEVICE;
    seqlstm_error_set(&made, status, __FILE__, __LINE__, "%s failed on CUDA device %d: %s (%s, %d)", what, (int)ordinal,
                      cudaGetErrorString(code), cudaGetErrorName(code), (int)code);
    made.native_code = (int32_t)code;
    cudaGetLastError(); /* clears errors that are not sticky */
    if (is_sticky(code) && ordinal >= 0 && ordinal < GPU_DEVICES_MAX) {
        pthread_mutex_lock(&failure_lock);
        if (failures[ordinal].code == SEQLSTM_OK)
            failures[ordinal] = made;
        pthread_mutex_unlock(&failure_lock);
    }
    if (err && err->struct_size >= sizeof *err)
        *err = made;
    return status;
}

static seqlstm_status check(int32_t ordinal, cudaError_t code, const char *what, struct seqlstm_error *err)
{
    return code == cudaSuccess ? SEQLSTM_OK : fail(ordinal, code, what, err);
}

seqlstm_status gpu_use(int32_t ordinal, struct seqlstm_error *err)
{
    pthread_mutex_lock(&failure_lock);
    struct seqlstm_error kept = failures[ordinal];
    pthread_mutex_unlock(&failure_lock);
    if (kept.code != SEQLSTM_OK) {
        if (err && err->struct_size >= sizeof *err)
            *err = kept;
        return kept.code;
    }
    return check(ordinal, cudaSetDevice(ordinal), "choosing the device", err);
}

seqlstm_status gpu_check_launch(int32_t ordinal, int code, const char *what, struct seqlstm_error *err)
{
    return check(ordinal, (cudaError_t)code, what, err);
}

/* ---- devices ---------------------------------------------------------------------------------------------- */

/* The driver stays mapped, since the runtime library uses the same one. */
static seqlstm_status find_driver(struct seqlstm_error *err)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "this machine has no NVIDIA driver (%s)", dlerror());
    int (*get_version)(int *);
    void *symbol = dlsym(driver, "cuDriverGetVersion");
    memcpy(&get_version, &symbol, sizeof get_version);
    int version = 0;
    if (symbol == NULL || get_version(&version) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "the NVIDIA driver (libcuda.so.1) does not tell its version");
    if (version / 1000 < CUDART_VERSION / 1000)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "the NVIDIA driver is for CUDA %d.%d, and this backend was built with CUDA %d.%d: update it",
                     version / 1000, version % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    return SEQLSTM_OK;
}

static void describe(int ordinal, const struct cudaDeviceProp *properties, struct gpu_device *device)
{
    const unsigned char *u = (const unsigned char *)properties->uuid.bytes;
    *device = (struct gpu_device){.ordinal = ordinal,
                                  .major = properties->major,
                                  .minor = properties->minor,
                                  .multiprocessors = properties->multiProcessorCount,
                                  .shared_bytes = (int64_t)properties->sharedMemPerBlockOptin,
                                  .memory_bytes = properties->totalGlobalMem};
    cudaDeviceGetAttribute(&device->cooperative, cudaDevAttrCooperativeLaunch, ordinal);
    snprintf(device->name, sizeof device->name, "%.63s", properties->name);
    snprintf(device->uuid, sizeof device->uuid, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

seqlstm_status gpu_runtime_open(struct gpu_device *devices, uint32_t *out_count, struct seqlstm_error *err)
{
    SEQLSTM_TRY(find_driver(err));
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaErrorNoDevice || (code == cudaSuccess && count == 0))
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "the NVIDIA driver finds no device (is CUDA_VISIBLE_DEVICES set?)");
    if (code != cudaSuccess) {
        cudaGetLastError();
        seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__, "CUDA does not start: %s (%s, %d)",
                          cudaGetErrorString(code), cudaGetErrorName(code), (int)code);
        if (err && err->struct_size >= sizeof *err)
            err->native_code = (int32_t)code;
        return SEQLSTM_UNAVAILABLE;
    }
    struct cudaDeviceProp properties;
    uint32_t usable = 0;
    char too_old[160] = "";
    for (int k = 0; k < count && k < GPU_DEVICES_MAX; k++) {
        if (cudaGetDeviceProperties(&properties, k) != cudaSuccess) {
            cudaGetLastError();
            continue;
        }
        if (properties.major * 10 + properties.minor < GPU_CAPABILITY_MIN)
            snprintf(too_old, sizeof too_old, "%.63s has compute capability %d.%d", properties.name, properties.major,
                     properties.minor);
        else
            describe(k, &properties, &devices[usable++]);
    }
    if (usable == 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%s; this backend was built for %d.%d and later",
                     too_old[0] ? too_old : "no CUDA device tells its properties", GPU_CAPABILITY_MIN / 10,
                     GPU_CAPABILITY_MIN % 10);
    *out_count = usable;
    return SEQLSTM_OK;
}

/* ---- memory ----------------------------------------------------------------------------------------------- */

seqlstm_status gpu_allocate(int32_t ordinal, uint32_t kind, uint64_t bytes, void **out_pointer,
                            struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_use(ordinal, err));
    cudaError_t code = kind == SEQLSTM_MEMORY_PINNED ? cudaHostAlloc(out_pointer, (size_t)bytes, cudaHostAllocDefault)
                                                     : cudaMalloc(out_pointer, (size_t)bytes);
    if (code != cudaErrorMemoryAllocation)
        return check(ordinal, code, "an allocation", err);
    size_t left = 0, all = 0;
    cudaGetLastError();
    cudaMemGetInfo(&left, &all);
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %llu bytes on CUDA device %d: %llu of %llu MB are free",
                 (unsigned long long)bytes, (int)ordinal, (unsigned long long)left / 1000000,
                 (unsigned long long)all / 1000000);
}

void gpu_release(int32_t ordinal, uint32_t kind, void *pointer)
{
    if (pointer == NULL || cudaSetDevice(ordinal) != cudaSuccess)
        return;
    if (kind == SEQLSTM_MEMORY_PINNED)
        cudaFreeHost(pointer);
    else
        cudaFree(pointer);
}

seqlstm_status gpu_memory_in_use(int32_t ordinal, uint64_t *out_bytes, struct seqlstm_error *err)
{
    size_t left = 0, all = 0;
    SEQLSTM_TRY(gpu_use(ordinal, err));
    SEQLSTM_TRY(check(ordinal, cudaMemGetInfo(&left, &all), "reading the memory in use", err));
    *out_bytes = all - left;
    return SEQLSTM_OK;
}

seqlstm_status gpu_copy(int32_t ordinal, void *stream, uint32_t direction, void *to, const void *from, uint64_t bytes,
                        struct seqlstm_error *err)
{
    const enum cudaMemcpyKind kind = direction == SEQLSTM_COPY_TO_DEVICE ? cudaMemcpyHostToDevice
                                     : direction == SEQLSTM_COPY_TO_HOST ? cudaMemcpyDeviceToHost
                                                                         : cudaMemcpyDeviceToDevice;
    SEQLSTM_TRY(gpu_use(ordinal, err));
    SEQLSTM_TRY(check(ordinal, cudaMemcpyAsync(to, from, (size_t)bytes, kind, (cudaStream_t)stream), "a copy", err));
    return direction == SEQLSTM_COPY_TO_HOST ? gpu_stream_synchronize(ordinal, stream, err) : SEQLSTM_OK;
}

/* Lets the device read the memory of the peer. Where it cannot, CUDA copies through the host by itself. */
static seqlstm_status open_peer(int32_t ordinal, int32_t peer, struct seqlstm_error *err)
{
    int can = 0;
    SEQLSTM_TRY(check(ordinal, cudaDeviceCanAccessPeer(&can, ordinal, peer), "asking for access to a peer", err));
    if (!can)
        return SEQLSTM_OK;
    cudaError_t code = cudaDeviceEnablePeerAccess(peer, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled) { /* by another library of this process */
        cudaGetLastError();
        code = cudaSuccess;
    }
    return check(ordinal, code, "access to a peer", err);
}

seqlstm_status gpu_copy_peer(int32_t ordinal, void *stream, void *to, int32_t peer, const void *from, uint64_t bytes,
                             struct seqlstm_error *err)
{
    static atomic_bool opened[GPU_DEVICES_MAX][GPU_DEVICES_MAX];
    SEQLSTM_TRY(gpu_use(ordinal, err));
    if (ordinal != peer && !atomic_load(&opened[ordinal][peer])) {
        SEQLSTM_TRY(open_peer(ordinal, peer, err));
        atomic_store(&opened[ordinal][peer], true);
    }
    return check(ordinal, cudaMemcpyPeerAsync(to, ordinal, from, peer, (size_t)bytes, (cudaStream_t)stream),
                 "a copy between devices", err);
}

seqlstm_status gpu_fill(int32_t ordinal, void *stream, void *to, uint32_t value, uint64_t bytes,
                        struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_use(ordinal, err));
    return check(ordinal, cudaMemsetAsync(to, (int)value, (size_t)bytes, (cudaStream_t)stream), "a fill", err);
}

/* ---- streams ---------------------------------------------------------------------------------------------- */

/* A non-blocking stream: it is not ordered by the legacy default stream of other libraries, which would also spoil a
 * capture. */
seqlstm_status gpu_stream_create(int32_t ordinal, void **out_stream, struct seqlstm_error *err)
{
    cudaStream_t stream = NULL;
    SEQLSTM_TRY(gpu_use(ordinal, err));
    SEQLSTM_TRY(check(ordinal, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream", err));
    *out_stream = stream;
    return SEQLSTM_OK;
}

void gpu_stream_destroy(int32_t ordinal, void *stream)
{
    if (stream == NULL || cudaSetDevice(ordinal) != cudaSuccess)
        return;
    cudaStreamSynchronize((cudaStream_t)stream);
    cudaStreamDestroy((cudaStream_t)stream);
}

seqlstm_status gpu_stream_synchronize(int32_t ordinal, void *stream, struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_use(ordinal, err));
    return check(ordinal, cudaStreamSynchronize((cudaStream_t)stream), "the work on a stream", err);
}

seqlstm_status gpu_event_create(int32_t ordinal, void **out_event, struct seqlstm_error *err)
{
    cudaEvent_t event = NULL;
    SEQLSTM_TRY(gpu_use(ordinal, err));
    SEQLSTM_TRY(check(ordinal, cudaEventCreate(&event), "creating an event", err));
    *out_event = event;
    return SEQLSTM_OK;
}

void gpu_event_destroy(int32_t ordinal, void *event)
{
    if (event && cudaSetDevice(ordinal) == cudaSuccess)
        cudaEventDestroy((cudaEvent_t)event);
}

seqlstm_status gpu_event_record(int32_t ordinal, void *event, void *stream, struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_use(ordinal, err));
    return check(ordinal, cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream), "recording an event", err);
}

seqlstm_status gpu_event_wait(int32_t ordinal, void *event, void *stream, struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_use(ordinal, err));
    return check(ordinal, cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0), "waiting for an event",
                 err);
}

seqlstm_status gpu_event_synchronize(int32_t ordinal, void *event, struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_use(ordinal, err));
    return check(ordinal, cudaEventSynchronize((cudaEvent_t)event), "the work before an event", err);
}

seqlstm_status gpu_event_query(int32_t ordinal, void *event, bool *out_happened, struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_use(ordinal, err));
    const cudaError_t code = cudaEventQuery((cudaEvent_t)event);
    *out_happened = code == cudaSuccess;
    if (code == cudaErrorNotReady) {
        cudaGetLastError();
        return SEQLSTM_OK;
    }
    return check(ordinal, code, "the work before an event", err);
}

seqlstm_status gpu_event_elapsed(int32_t ordinal, void *begin, void *end, double *out_ns, struct seqlstm_error *err)
{
    float ms = 0;
    SEQLSTM_TRY(gpu_use(ordinal, err));
    SEQLSTM_TRY(check(ordinal, cudaEventElapsedTime(&ms, (cudaEvent_t)begin, (cudaEvent_t)end), "timing", err));
    *out_ns = (double)ms * 1e6;
    return SEQLSTM_OK;
}

/* ---- captures ---------------------------------------------------------------------------------------------- */

bool gpu_is_capturing(int32_t ordinal, void *stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    (void)ordinal;
    return cudaStreamIsCapturing((cudaStream_t)stream, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone;
}

seqlstm_status gpu_capture_begin(int32_t ordinal, void *stream, struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_use(ordinal, err));
    return check(ordinal, cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeThreadLocal),
                 "the start of a capture", err);
}

seqlstm_status gpu_capture_end(int32_t ordinal, void *stream, void **out_capture, struct seqlstm_error *err)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    *out_capture = NULL;
    SEQLSTM_TRY(check(ordinal, cudaStreamEndCapture((cudaStream_t)stream, &graph), "a capture", err));
    cudaError_t code = cudaGraphInstantiateWithFlags(&executable, graph, 0);
    cudaGraphDestroy(graph);
    SEQLSTM_TRY(check(ordinal, code, "the instantiation of a capture", err));
    *out_capture = executable;
    return SEQLSTM_OK;
}

seqlstm_status gpu_capture_launch(int32_t ordinal, void *capture, void *stream, struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_use(ordinal, err));
    return check(ordinal, cudaGraphLaunch((cudaGraphExec_t)capture, (cudaStream_t)stream), "the launch of a capture",
                 err);
}

void gpu_capture_destroy(int32_t ordinal, void *capture)
{
    if (capture && cudaSetDevice(ordinal) == cudaSuccess)
        cudaGraphExecDestroy((cudaGraphExec_t)capture);
}
