/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "recorder/1": what a device does while a profile is taken, with the device's own times.
 *
 * get_extension(instance, SEQLSTM_RECORDER_EXTENSION) returns this table. The host uses it for `seqlstm profile` and
 * `run --profile` only, and only while updates are recorded: it affects no result. Without this extension the host
 * measures how long the device works on each call, by two events around it (ext/draft/memory.h). A backend on CPUs does
 * not need it: it names the parts of a call by `trace_begin` and `trace_end` of its host, which measures them.
 *
 * Of the backends that share a domain, the host asks the one that provides its memory and streams. That one reports
 * everything that the device does for this process.
 */
#ifndef SEQLSTM_EXT_RECORDER_H
#define SEQLSTM_EXT_RECORDER_H

#include <seqlstm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEQLSTM_RECORDER_EXTENSION "recorder/1"

enum { SEQLSTM_ACTIVITY_KERNEL = 1, SEQLSTM_ACTIVITY_COPY = 2, SEQLSTM_ACTIVITY_FILL = 3 };

/* Something that the device did. Times are nanoseconds since `start` returned: 0 <= begin_ns <= end_ns. */
struct seqlstm_activity {
    uint32_t struct_size;
    uint32_t kind;    /* SEQLSTM_ACTIVITY_… */
    const char *name; /* not empty: "gemm_kernel". Read until the call returns */
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t bytes; /* COPY, FILL: so many; 0: unknown */
};

/* A value of the device now, such as the memory that is in use. */
struct seqlstm_counter {
    uint32_t struct_size;
    uint32_t reserved0;
    const char *name; /* not empty, with its unit: "memory in use, bytes". Read until the call returns */
    double value;     /* finite */
};

/* Where a backend reports to. Of the host. */
struct seqlstm_report {
    uint32_t struct_size;
    uint32_t reserved0;
    void *context; /* first argument of both */
    void (*activity)(void *context, const struct seqlstm_activity *activity);
    void (*counter)(void *context, const struct seqlstm_counter *counter);
};

struct seqlstm_recorder {
    uint32_t struct_size;
    uint32_t reserved0;
    /* From now on what the device does is recorded. The host calls it when the device has nothing to do, and not again
     * before `stop`. UNAVAILABLE: activities cannot be recorded, and err says why and what helps; `report` then gives
     * counters only. [control] */
    seqlstm_status (*start)(struct seqlstm_instance *instance, uint32_t device, struct seqlstm_error *err);
    /* Reports each activity that has ended once, in any order, and counters as they are now. Between start and stop,
     * when the host has waited for all of its work. NO_MEMORY, DEVICE. [control] */
    seqlstm_status (*report)(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_report *to,
                             struct seqlstm_error *err);
    /* Records no more, and forgets what was not reported. From then on the backend is as fast as before. [control] */
    void (*stop)(struct seqlstm_instance *instance, uint32_t device);
};

#ifdef __cplusplus
}
#endif

#endif
