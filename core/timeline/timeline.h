/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording (base/system/trace.h) of a training says: where the time of an update went, and what limits it.
 *
 * The activities of the thread that trains form a tree by their times. Its root is the update; what lies directly below
 * are the parts of an update, and what of the root belongs to none of them is not attributed. Operations are counted by
 * measure/flops.h. Bytes are those that a call must move at least: its parameters, inputs and outputs once. Both are
 * compared with what this machine reaches at most.
 *
 * Where a device launches steps as captures, their calls can only be seen without. Then there are two recordings: call
 * by call, of which `parts` tells, and as the training runs, in `captured`.
 */
#ifndef SL_TIMELINE_TIMELINE_H
#define SL_TIMELINE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/memory/arena.h"
#include "base/system/trace.h"
#include "dispatch/plan/plan.h"
#include "timeline/part.h"

/* What this machine reaches at most, on all threads of the training; 0: unknown. */
struct sl_timeline_peaks {
    double gflops;       /* float32, in registers */
    double tiles_gflops; /* bfloat16, on the tiles of AMX; 0: the machine has none */
    double gbytes;       /* GB/s, from and to memory */
};

/* By recording, as shares of the time without; NaN: unknown. */
struct sl_timeline_slowdown {
    double share, low, high; /* low, high: 95 % confidence interval; NaN: too few rounds */
};

struct sl_timeline_request {
    const struct sl_trace *trace; /* must outlive the profile */
    const struct sl_plan *plan;   /* of the training; likewise */
    struct sl_timeline_peaks peaks;
    int32_t optimizer_states; /* buffers that the optimizer keeps */
    struct sl_timeline_slowdown slowdown;
    struct {
        const struct sl_trace *trace; /* of the training as it runs, in captures; NULL: it has none */
        struct sl_timeline_slowdown slowdown;
    } captured;
};

/* Products in bfloat16 for one product on tiles: numbers are split into two or three parts. */
enum { SL_TIMELINE_TF32_PRODUCTS = 3, SL_TIMELINE_FLOAT32_PRODUCTS = 6 };

/* A thread, or a device. */
struct sl_timeline_track {
    const char *name;
    bool is_device, trains;
    double busy_ns; /* while updates ran; of the thread that trains without waiting */
};

/* Kernels of one name on the devices. */
struct sl_timeline_kernel {
    const char *name;
    int64_t count;
    double ns;
};

struct sl_timeline {
    struct sl_arena arena;
    struct sl_timeline_request request;
    int64_t updates, rows; /* rows: real steps */
    int64_t begin_ns, end_ns;
    double ns;                      /* from the first update to the end of the last one */
    double unattributed_ns;         /* of it */
    double cpu_share;               /* processor time of the process in `ns`, per second */
    struct sl_timeline_part *parts; /* [0] is the root; parents before their children */
    int32_t part_count;
    const int32_t *order; /* the parts of an update, longest first */
    int32_t order_count;
    struct sl_timeline_track *tracks;
    int32_t track_count;
    struct sl_timeline_kernel *kernels; /* longest first */
    int32_t kernel_count;
    const char *kernels_missing;  /* why there are none; NULL: there are, or there is no device */
    int64_t dropped;              /* activities for which there was no room */
    int64_t memory_bytes;         /* most that the process held */
    struct sl_timeline *captured; /* of the training as it runs, in captures; NULL: as it is recorded here */
};

/* A change that was tried out, with what it brought. */
struct sl_timeline_advice {
    char change[96];  /* as a flag: "--threads 2" */
    char note[160];   /* what else changes with it; "": nothing */
    double speed;     /* real steps per second, compared with the profiled training */
    double low, high; /* of the rounds */
    bool helps;       /* faster in every round, and by 5 % or more */
};

struct sl_timeline_advices {
    struct sl_timeline_advice items[16];
    int32_t count; /* best first */
};

/* NO_MEMORY; NOT_FOUND: no update was recorded. */
seqlstm_status sl_timeline_create(const struct sl_timeline_request *request, struct sl_timeline **out_timeline,
                                  struct seqlstm_error *err);
void sl_timeline_destroy(struct sl_timeline *timeline);

#endif
