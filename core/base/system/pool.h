/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's threads: a fixed team that runs one task at a time.
 *
 * A pool of `members` has members - 1 threads of its own; the thread that calls is member 0. With one member everything
 * runs inline. Between uses the threads spin for about as long as a wake-up takes (0.2 ms) and then sleep; on a machine
 * with fewer free cores than members, and for some time where another program wants their processor, they sleep almost
 * at once.
 *
 * One caller at a time per pool. Inside a team or a parallel_for the same pool may be used again: it then runs inline
 * on the calling member (members = 1 for that call). Floating-point modes of the threads are those of the thread that
 * made the pool, at that moment.
 */
#ifndef SL_BASE_SYSTEM_POOL_H
#define SL_BASE_SYSTEM_POOL_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "base/system/cpu.h"

enum { SL_POOL_MEMBERS_MOST = 1024 };

struct sl_pool;

/* Works on items [begin, end). Same types as in struct seqlstm_queue_services. */
typedef void sl_pool_range_fn(void *context, int64_t begin, int64_t end);

/* One of `members` concurrent entries. All of them are running at the same time, so that they may meet at
 * sl_pool_barrier. */
typedef void sl_pool_team_fn(void *context, int32_t member, int32_t members);

/* 1 <= members <= 1024; 0 means sl_cpu_count(). Threads are named seqlstm-N, block all signals and are not pinned.
 * Errors: SEQLSTM_NO_MEMORY, SEQLSTM_INVALID_ARGUMENT, SEQLSTM_IO (no thread). */
seqlstm_status sl_pool_create(int32_t members, struct sl_pool **out_pool, struct seqlstm_error *err);
void sl_pool_destroy(struct sl_pool *pool);

int32_t sl_pool_get_members(const struct sl_pool *pool);

/* Runs fn over [0, count), each item exactly once, and returns when all are done. Each member gets at most one range,
 * of at least `grain` items (the last one excepted; 0 counts as 1). Ranges go to members in order and differ by one
 * grain at most: the same count, grain and members give the same ranges to the same members. Members without a range
 * stay idle. */
void sl_pool_parallel_for(struct sl_pool *pool, int64_t count, int64_t grain, sl_pool_range_fn *fn, void *context);

/* Enters fn exactly `members` times at once and returns when all have returned. */
void sl_pool_team(struct sl_pool *pool, sl_pool_team_fn *fn, void *context);

/* Inside fn of sl_pool_team: waits until every member has arrived; what they wrote before is then visible to all.
 * Bounded spin, then sleep. Every member must call it equally often. */
void sl_pool_barrier(struct sl_pool *pool);

/* Between begin and end the pool's threads sleep, so that a vendor's own threads have the cores. The pool still works
 * in between, only slower to wake. Pairs do not nest. */
void sl_pool_lease_begin(struct sl_pool *pool);
void sl_pool_lease_end(struct sl_pool *pool);

#endif
