/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of CUPTI, NVIDIA's library for profilers, that the CUDA plugins use. The library is opened at run time and
 * its headers are not needed to build. Records begin like this in all versions since CUDA 9; a test compares it with
 * the headers, where they are. */
#ifndef GPU_CUPTI_H
#define GPU_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum { CUPTI_SUCCESS_ = 0, CUPTI_MAX_LIMIT_REACHED_ = 12, CUPTI_FLUSH_FORCED_ = 1 };
enum { CUPTI_KIND_MEMCPY_ = 1, CUPTI_KIND_MEMSET_ = 2, CUPTI_KIND_CONCURRENT_KERNEL_ = 10 };
enum { CUPTI_COPY_TO_DEVICE_ = 1, CUPTI_COPY_TO_HOST_ = 2 }; /* others: within a device, or between devices */

/* What each record begins with. */
struct cupti_record {
    int32_t kind;
};

struct cupti_kernel {
    int32_t kind;
    uint8_t settings[12];
    uint64_t start, end; /* ns; 0: unknown */
    uint64_t completed;
    uint32_t device;
    uint32_t context, stream;
    int32_t grid[3], block[3];
    int32_t shared_bytes[2];
    uint32_t local_bytes[2];
    uint32_t correlation;
    int64_t grid_id;
    const char *name; /* mangled */
};

struct cupti_memcpy {
    int32_t kind;
    uint8_t copy_kind, from, to, flags;
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device;
};

struct cupti_memset {
    int32_t kind;
    uint32_t value;
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device;
};

typedef void cupti_request_fn(uint8_t **out_buffer, size_t *out_bytes, size_t *out_records_most);
typedef void cupti_complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);

/* Its functions, named without their prefix `cupti`. */
#define CUPTI_FUNCTIONS(X)                                                                                             \
    X(int, ActivityEnable, (int kind))                                                                                 \
    X(int, ActivityDisable, (int kind))                                                                                \
    X(int, ActivityRegisterCallbacks, (cupti_request_fn * request, cupti_complete_fn * complete))                      \
    X(int, ActivityFlushAll, (uint32_t flag))                                                                          \
    X(int, ActivityGetNextRecord, (uint8_t * buffer, size_t valid_bytes, struct cupti_record * *record))               \
    X(int, GetTimestamp, (uint64_t * out_ns))                                                                          \
    X(int, GetResultString, (int result, const char **out_text))

#endif
