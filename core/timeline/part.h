/* SPDX-License-Identifier: Apache-2.0 */
/* A part of an update: what it cost, and what limits it. */
#ifndef SL_TIMELINE_PART_H
#define SL_TIMELINE_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/system/trace.h"

/* What a part is limited by. */
enum sl_timeline_limit {
    SL_LIMIT_NONE,    /* it has neither products nor much memory, or its peaks are not known */
    SL_LIMIT_COMPUTE, /* at least half of the peak of arithmetic */
    SL_LIMIT_MEMORY,  /* at least half of the peak of memory */
    SL_LIMIT_CACHE,   /* it moves more than the memory could: its data stay in the caches */
    SL_LIMIT_SIZE,    /* neither, and a call takes less than 0.1 ms: it is too small */
    SL_LIMIT_NEITHER
};

/* A node of the tree: activities of one kind and name below the same parent. */
struct sl_timeline_part {
    enum sl_activity_kind kind;
    const char *name;    /* of the layer or operation; NULL: the kind says all */
    const char *backend; /* NULL: the core itself */
    const char *variant; /* NULL: it has none */
    bool on_device;
    int32_t parent, depth; /* -1, 0: the root */
    int64_t count, amount;
    double ns;        /* of the thread that trains, in all updates together */
    double self_ns;   /* without the parts below */
    double device_ns; /* that the device worked; 0: it is not on one, or unknown */
    double flop, bytes;
    double peak_gflops;    /* of what it computes on; 0: unknown */
    double gflops, gbytes; /* per second of device_ns, or else of ns */
    double of_peak;        /* share of the peak that `limit` is about; else the larger one */
    enum sl_timeline_limit limit;
};

/* Is it a call of a backend for a layer? */
static inline bool sl_timeline_part_is_call(const struct sl_timeline_part *part)
{
    return part->kind == SL_ACTIVITY_FORWARD || part->kind == SL_ACTIVITY_BACKWARD || part->kind == SL_ACTIVITY_PACK;
}

/* What the part costs: of the device where that is known, in nanoseconds of all updates together. */
double sl_timeline_part_get_cost(const struct sl_timeline_part *part);
/* "lstm_1 backward"; "optimizer: squared_norm". */
void sl_timeline_part_format(const struct sl_timeline_part *part, char *out, size_t capacity_bytes);
/* "compute-bound, 83 % of peak"; "" where nothing is known. */
void sl_timeline_part_format_limit(const struct sl_timeline_part *part, char *out, size_t capacity_bytes);

#endif
