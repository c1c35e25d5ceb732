/* SPDX-License-Identifier: Apache-2.0 */
/* Failing on purpose. Every unit test is linked with oom.c, through which the linker leads malloc,
 * calloc, realloc, aligned_alloc and posix_memalign (and write, fsync, rename) of the code under test.
 *
 *   for (int n = 1;; n++) {
 *       oom_fail_at(n);
 *       status = thing_create(&thing, &err);
 *       if (!oom_disarm())
 *           break;                       n calls were not reached: the run was whole
 *       assert_int_equal(status, SEQLSTM_NO_MEMORY);
 *   }
 *
 * Under the sanitizers this finds leaks and double frees on every path of failure.
 */
#ifndef SL_TESTS_OOM_H
#define SL_TESTS_OOM_H

#include <stdbool.h>

/* The n-th allocation from now on fails, and that one alone; n >= 1. */
void oom_fail_at(int n);
/* The same, and all that follow it, until oom_disarm. */
void oom_fail_from(int n);

/* The first allocation fails for whose callers none has failed yet in this process, and that one alone: until nothing
 * fails any more, each place that allocates has failed once, however often it is come by. */
void oom_fail_anew(void);

/* Stops failing. True if a failure has happened since oom_fail_at, oom_fail_from or oom_fail_anew. */
bool oom_disarm(void);

/* Allocations since oom_fail_at or oom_count_start. */
void oom_count_start(void);
int oom_count(void);

/* The same for write, pwrite, fsync and rename together: the n-th returns -1 with errno `error_number`. With
 * `bytes` >= 0 a failing write first writes that many bytes, as a full disk does. */
void io_fail_at(int n, int error_number, int bytes);
bool io_disarm(void);

#endif
