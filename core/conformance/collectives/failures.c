/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when a rank does not come, dies, leaves or aborts: the others are told, and in time. */
#include <signal.h>
#include <time.h>

#include "base/system/clock.h"
#include "conformance/collectives/cases.h"

enum { SECOND_NS = 1000000000 };

static seqlstm_status meet(struct sl_trial *trial, int64_t timeout_ns, struct seqlstm_error *err)
{
    const struct seqlstm_exchange barrier = {
        .kind = SEQLSTM_COLLECTIVE_BARRIER, .dtype = SEQLSTM_DTYPE_UINT8, .timeout_ns = timeout_ns};
    return sl_connection_run(trial->connection, 0, barrier, err);
}

static bool is_last(const struct sl_trial *trial)
{
    return trial->rank == trial->ranks - 1;
}

/* The exchange failed with this status, blames this rank (-1: any other), and so does the next one. */
static void check_failure(struct sl_trial *trial, seqlstm_status status, seqlstm_status expected, int32_t blamed,
                          const struct seqlstm_error *err)
{
    struct seqlstm_error again = SEQLSTM_ERROR_INIT;
    sl_trial_check(trial, status == expected, "the exchange gave status %d, expected %d: %s", (int)status,
                   (int)expected, err->message);
    sl_trial_check(trial,
                   blamed >= 0 ? err->native_code == 1 + blamed
                               : err->native_code >= 1 && err->native_code <= trial->ranks &&
                                     err->native_code != 1 + trial->rank,
                   "native_code is %d, expected 1 + %d: %s", err->native_code, blamed, err->message);
    sl_trial_check(trial, meet(trial, SECOND_NS, &again) != SEQLSTM_OK, "after a failure the next exchange succeeds");
}

void sl_trial_time_out(struct sl_trial *trial)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct timespec pause = {.tv_sec = 2};
    if (is_last(trial))
        nanosleep(&pause, NULL);
    else
        check_failure(trial, meet(trial, SECOND_NS / 2, &err), SEQLSTM_DEVICE, -1, &err);
}

/* Only the last rank is late, and no other is blamed: by rank 0, which waits for it in a group where it has another
 * number, nor by rank 1, which waits for it among all. The ranks between do nothing. */
void sl_trial_late_peer(struct sl_trial *trial)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct timespec pause = {.tv_sec = 2};
    const int32_t pair[] = {0, trial->ranks - 1};
    const bool grouped = trial->rank == 0 && trial->ranks > 2 && trial->transport->groups > 1;
    float value;
    struct seqlstm_exchange receive = {.kind = SEQLSTM_COLLECTIVE_RECEIVE,
                                       .dtype = SEQLSTM_DTYPE_FLOAT32,
                                       .peer = grouped ? 1 : trial->ranks - 1,
                                       .elems = 1,
                                       .to = &value,
                                       .timeout_ns = SECOND_NS / 2};
    if ((trial->rank == 0 || is_last(trial)) && trial->ranks > 2 && trial->transport->groups > 1)
        sl_trial_check(trial, sl_connection_add_group(trial->connection, 1, pair, 2, &err) == SEQLSTM_OK, "group 1: %s",
                       err.message);
    if (trial->rank > 1 || is_last(trial))
        nanosleep(&pause, NULL);
    else if (!trial->failed)
        check_failure(trial, sl_connection_run(trial->connection, grouped, receive, &err), SEQLSTM_DEVICE,
                      trial->ranks - 1, &err);
}

/* The others notice within 5 seconds, although their exchange may last ten minutes. */
void sl_trial_death(struct sl_trial *trial)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int k = 0; k < 10; k++)
        sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_BARRIER, SEQLSTM_DTYPE_UINT8, 0, 0, NULL, NULL, 0);
    if (is_last(trial) && !trial->failed) {
        sl_trial_note_death(trial);
        raise(SIGKILL);
    }
    const int64_t begin = sl_clock_ns();
    const seqlstm_status status = meet(trial, (int64_t)600 * SECOND_NS, &err);
    sl_trial_check(trial, sl_clock_ns() - begin < (int64_t)5 * SECOND_NS, "the death of a rank was noticed too late");
    check_failure(trial, status, SEQLSTM_CANCELLED, -1, &err);
}

void sl_trial_leaving(struct sl_trial *trial)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_BARRIER, SEQLSTM_DTYPE_UINT8, 0, 0, NULL, NULL, 0);
    if (is_last(trial)) {
        sl_connection_close(trial->connection);
        trial->connection = NULL;
    } else {
        check_failure(trial, meet(trial, (int64_t)600 * SECOND_NS, &err), SEQLSTM_CANCELLED, -1, &err);
    }
}

void sl_trial_abort(struct sl_trial *trial)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct timespec pause = {.tv_nsec = 50000000};
    sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_BARRIER, SEQLSTM_DTYPE_UINT8, 0, 0, NULL, NULL, 0);
    sl_trial_check(trial, sl_connection_poll(trial->connection, &err) == SEQLSTM_OK, "poll: %s", err.message);
    if (is_last(trial)) {
        nanosleep(&pause, NULL);
        sl_connection_abort(trial->connection);
        sl_trial_check(trial, sl_connection_poll(trial->connection, &err) == SEQLSTM_CANCELLED, "poll after abort");
        sl_trial_check(trial, meet(trial, SECOND_NS, &err) == SEQLSTM_CANCELLED, "an exchange after abort");
    } else {
        check_failure(trial, meet(trial, (int64_t)600 * SECOND_NS, &err), SEQLSTM_CANCELLED, trial->ranks - 1, &err);
    }
}
