/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the CUDA runtime that the CUDA plugins use: devices, memory, streams, events and captures.
 *
 * cuda_runtime.c implements it with the runtime library, which is linked statically;
 * tests/gpu/emulation/emulated_runtime.cc without a device. This header does not need CUDA's headers, and so neither
 * does the host code of a plugin.
 *
 * The primary context of each device is used and never reset. A device that failed (for example, at an illegal
 * address) stays failed: the first call that notices returns DEVICE with the vendor's code and message, and later
 * calls return the same without asking the device again. */
#ifndef GPU_CUDA_RUNTIME_H
#define GPU_CUDA_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>
#include <seqlstm/ext/draft/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GPU_DEVICES_MAX = 16 };

struct gpu_device {
    int32_t ordinal;      /* CUDA's number of the device */
    int32_t major, minor; /* compute capability */
    int32_t multiprocessors;
    int32_t cooperative;  /* whether all blocks of a launch can wait for each other */
    int64_t shared_bytes; /* the most shared memory of one block */
    uint64_t memory_bytes;
    char name[64];
    char uuid[40]; /* "8f1c2a9e-…" */
};

/* Loads the driver and lists the devices for which this build has code. UNAVAILABLE, with the reason: no driver or
 * too old a driver, no device, or none that is new enough. [control] */
seqlstm_status gpu_runtime_open(struct gpu_device *devices, uint32_t *out_count, struct seqlstm_error *err);

/* The functions of struct seqlstm_memory and struct seqlstm_streams for a device with this number of CUDA. */
seqlstm_status gpu_allocate(int32_t ordinal, uint32_t kind, uint64_t bytes, void **out_pointer,
                            struct seqlstm_error *err);
void gpu_release(int32_t ordinal, uint32_t kind, void *pointer);
/* Memory of the device that all processes use. */
seqlstm_status gpu_memory_in_use(int32_t ordinal, uint64_t *out_bytes, struct seqlstm_error *err);
seqlstm_status gpu_copy(int32_t ordinal, void *stream, uint32_t direction, void *to, const void *from, uint64_t bytes,
                        struct seqlstm_error *err);
/* Copies between two devices on a stream of the first; directly, where their hardware can. */
seqlstm_status gpu_copy_peer(int32_t ordinal, void *stream, void *to, int32_t peer, const void *from, uint64_t bytes,
                             struct seqlstm_error *err);
seqlstm_status gpu_fill(int32_t ordinal, void *stream, void *to, uint32_t value, uint64_t bytes,
                        struct seqlstm_error *err);
seqlstm_status gpu_stream_create(int32_t ordinal, void **out_stream, struct seqlstm_error *err);
void gpu_stream_destroy(int32_t ordinal, void *stream);
seqlstm_status gpu_stream_synchronize(int32_t ordinal, void *stream, struct seqlstm_error *err);
seqlstm_status gpu_event_create(int32_t ordinal, void **out_event, struct seqlstm_error *err);
void gpu_event_destroy(int32_t ordinal, void *event);
seqlstm_status gpu_event_record(int32_t ordinal, void *event, void *stream, struct seqlstm_error *err);
seqlstm_status gpu_event_wait(int32_t ordinal, void *event, void *stream, struct seqlstm_error *err);
seqlstm_status gpu_event_synchronize(int32_t ordinal, void *event, struct seqlstm_error *err);
/* Has the event happened? Waits for nothing. [any] */
seqlstm_status gpu_event_query(int32_t ordinal, void *event, bool *out_happened, struct seqlstm_error *err);
seqlstm_status gpu_event_elapsed(int32_t ordinal, void *begin, void *end, double *out_ns, struct seqlstm_error *err);

/* Captures. Work started on the stream between begin and end does not run, but is recorded. The capture can then be
 * launched any number of times, on any stream of the device. Nothing else may use the stream in the meantime. If end
 * fails, there is no capture. [queue] */
bool gpu_is_capturing(int32_t ordinal, void *stream);
seqlstm_status gpu_capture_begin(int32_t ordinal, void *stream, struct seqlstm_error *err);
seqlstm_status gpu_capture_end(int32_t ordinal, void *stream, void **out_capture, struct seqlstm_error *err);
seqlstm_status gpu_capture_launch(int32_t ordinal, void *capture, void *stream, struct seqlstm_error *err);
void gpu_capture_destroy(int32_t ordinal, void *capture); /* NULL is fine */

/* Makes the device the current one of this thread. Call it before launching kernels. */
seqlstm_status gpu_use(int32_t ordinal, struct seqlstm_error *err);

/* The status of a launch that returned `code` (cudaError_t). */
seqlstm_status gpu_check_launch(int32_t ordinal, int code, const char *what, struct seqlstm_error *err);

#ifdef __cplusplus
}
#endif

#endif
