/* SPDX-License-Identifier: Apache-2.0 */
/* What signals do. */
#include <signal.h>
#include <string.h>

#include "cli/cli.h"

static struct sl_interrupt interrupt_flags; /* the one thing a signal handler may touch */

static volatile sig_atomic_t saves; /* this command saves before it exits */

void cli_save_on_signals(void)
{
    saves = 1;
}

/* First SIGINT, SIGTERM or SIGHUP: finish the update, save, exit. Second: exit at once. SIGUSR1: save and continue.
 * SIGQUIT keeps the action of the system, which ends the program at once: the way out where saving hangs. */
static void on_signal(int number)
{
    if (number == SIGUSR1) {
        atomic_store(&interrupt_flags.save, 1);
        return;
    }
    int before = 0;
    if (!saves || !atomic_compare_exchange_strong(&interrupt_flags.stop, &before, number))
        cli_leave(128 + number);
}

/* A signal that is ignored when the program starts stays ignored: that of `nohup`, those of a job in the background. */
static void handle(int number, const struct sigaction *action)
{
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, action, NULL);
}

void cli_handle_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    handle(SIGINT, &action);
    handle(SIGTERM, &action);
    handle(SIGHUP, &action);
    handle(SIGUSR1, &action);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* writing beyond `ulimit -f` then fails with an error, as on a full disk */
    signal(SIGCHLD, SIG_DFL); /* while it is ignored, children leave no exit status */
}

struct sl_interrupt *cli_get_interrupt(void)
{
    return &interrupt_flags;
}
