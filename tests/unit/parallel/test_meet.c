/* SPDX-License-Identifier: Apache-2.0 */
/* Who may join a job: each process that says something wrong about itself is refused, by name and at once, and rank 0
 * does not wait for those that are missing. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "registry/collectives/connection.h"
#include "oom.h"

const struct seqlstm_collectives *seqlstm_comm_shm_query_v0(uint32_t host_minor);

enum { RANKS = 3 };

static seqlstm_status join(const char *job, int32_t rank, int32_t ranks, struct seqlstm_error *err)
{
    static const struct sl_collectives_builtin builtin = {"comm-shm", seqlstm_comm_shm_query_v0};
    const struct sl_connection_request request = {.name = "comm-shm",
                                                  .builtins = &builtin,
                                                  .builtin_count = 1,
                                                  .rank = rank,
                                                  .ranks = ranks,
                                                  .job = job,
                                                  .timeout_ns = INT64_C(60000000000)};
    struct sl_connection *connection = NULL;
    const seqlstm_status status = sl_connection_open(&request, &connection, err);
    sl_connection_close(connection);
    return status;
}

/* Rank 0 of three, and two processes that call themselves as given. */
static void check(const char *name, const int32_t rank[2], const int32_t ranks[2], const char *message)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    pid_t others[2];
    char job[64];
    snprintf(job, sizeof job, "meet-%s-%d", name, (int)getpid());
    for (int k = 0; k < 2; k++) {
        others[k] = fork();
        if (others[k] == 0) {
            join(job, rank[k], ranks[k], NULL);
            _exit(0);
        }
    }
    const seqlstm_status status = join(job, 0, RANKS, &err);
    for (int k = 0; k < 2; k++) { /* they wait for a rank 0 */
        kill(others[k], SIGKILL);
        waitpid(others[k], NULL, 0);
    }
    assert_int_equal(status, message ? SEQLSTM_INVALID_CONFIG : SEQLSTM_OK);
    if (message && !strstr(err.message, message))
        fail_msg("`%s` does not say `%s`", err.message, message);
}

static void each_rank_joins_once(void **state)
{
    (void)state;
    static const int32_t right[] = {1, 2}, twice[] = {1, 1}, beyond[] = {3, 3}, same[] = {RANKS, RANKS},
                         more[] = {4, 4};
    check("right", right, same, NULL);
    check("twice", twice, same, "a process calls itself rank 1 of 3, in a job of 3 ranks");
    check("more", right, more, "of 4, in a job of 3 ranks");
    check("beyond", beyond, more, "a process calls itself rank 3 of 4, in a job of 3 ranks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_joins_once),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
