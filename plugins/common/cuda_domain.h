/* SPDX-License-Identifier: Apache-2.0 */
/* The memory domain of CUDA devices, shared by the CUDA plugins: its devices, numbered by the host, and the tables of
 * ext/draft/memory.h.
 *
 * The struct seqlstm_instance of such a plugin begins with a struct gpu_domain. */
#ifndef GPU_CUDA_DOMAIN_H
#define GPU_CUDA_DOMAIN_H

#include "common/cuda_runtime.h"

#ifndef GPU_CUPTI_DEFAULT
#define GPU_CUPTI_DEFAULT "auto"
#endif

struct gpu_domain {
    struct seqlstm_host host;
    uint32_t device_count;
    struct gpu_device devices[GPU_DEVICES_MAX];
    char cupti[512]; /* the option `cupti` */
};

/* The option `capture` of a CUDA backend, for its table. */
#define GPU_OPTION_CAPTURE                                                                                             \
    {                                                                                                                  \
        "capture", "bool", "true", "let the host record calls into the capture of a training step"                     \
    }

/* The option `cupti`, and what to do with its value. */
#define GPU_OPTION_CUPTI                                                                                               \
    {                                                                                                                  \
        "cupti", "string", GPU_CUPTI_DEFAULT,                                                                          \
            "file of CUPTI, with which profiles show single kernels, a folder that contains it, or none"               \
    }

/* Allocates an instance of `bytes` bytes, which begins with a struct gpu_domain and is otherwise zero; copies the
 * host's services and the option `cupti`, and lists the devices. Release it with host_release. Errors: NO_MEMORY, those
 * of gpu_runtime_open. */
seqlstm_status gpu_domain_create(const struct seqlstm_host *host, uint64_t bytes, const char *id, const char *cupti,
                                 struct seqlstm_instance **out_instance, struct seqlstm_error *err);

/* INVALID_ARGUMENT, naming the backend, if the queue has no CUDA stream. */
seqlstm_status gpu_domain_check_queue(const struct seqlstm_queue *queue, const char *id, struct seqlstm_error *err);

/* Functions for the backend's table. */
seqlstm_status gpu_domain_device_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                       struct seqlstm_error *err);
seqlstm_status gpu_domain_device_info(struct seqlstm_instance *instance, uint32_t device,
                                      struct seqlstm_device_info *info, struct seqlstm_error *err);
const void *gpu_domain_get_extension(struct seqlstm_instance *instance, const char *id);
extern const struct seqlstm_memory gpu_domain_memory;
extern const struct seqlstm_streams gpu_domain_streams;

/* "cuda:sm_90" -> 90; 0 if it is not a class of CUDA devices. */
int32_t gpu_parse_class(const char *device_class);

#endif
