/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that crashes, or that ends the process: the message names it and its function, and the exit status is never
 * that of a success. Only the program does this; libseqlstm leaves signals and exits to the program that uses it.
 *
 * exit() runs what atexit() registered, which catches those of libc itself. The other ways to end a process, and to end
 * it from a thread of the plugin's own, are functions of trap_exits.c. A system call that a plugin makes itself cannot
 * be caught. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/cli.h"
#include "registry/objects.h"
#include "registry/watch/watch.h"

enum { STACK_BYTES = 64 << 10, FAR = 200 };

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
enum { FATAL = sizeof fatal / sizeof *fatal };

static struct sigaction previous[FATAL];
static int messages = STDERR_FILENO; /* a descriptor of ours: a plugin may have closed or led away stderr */
static bool terminal;                /* on which a progress line may stand */
static pid_t program;

_Noreturn void cli_leave(int code)
{
    for (;;)
        syscall(SYS_exit_group, code);
}

static void append(char *text, size_t capacity_bytes, const char *more)
{
    size_t length = strlen(text);
    for (; *more && length + 1 < capacity_bytes; more++)
        text[length++] = *more;
    text[length] = 0;
}

/* Writes "error[E0613]: the backend X <what> in its <function>". False: no plugin runs. Safe in a signal handler. */
static bool blame(const char *what)
{
    bool here;
    char text[600] = "";
    const struct sl_running *running = sl_running_find(&here);
    if (!running)
        return false;
    sl_watch_spill(messages);
    dup2(messages, STDERR_FILENO); /* for what is said after us, such as the report of a sanitizer */
    append(text, sizeof text, terminal ? "\nerror[E0613]: the backend " : "error[E0613]: the backend ");
    append(text, sizeof text, running->plugin);
    append(text, sizeof text, what);
    append(text, sizeof text, here ? " in its function " : " while another thread ran its function ");
    append(text, sizeof text, sl_plugin_function_name(running->function));
    append(text, sizeof text,
           "\n  = help: this is a fault of the backend: `seqlstm conformance` tests it; "
           "--set backends=[...] runs the model without it\n");
    (void)!write(messages, text, strlen(text));
    return true;
}

static const char *name_signal(int number)
{
    switch (number) {
    case SIGSEGV:
        return " crashed (SIGSEGV)";
    case SIGBUS:
        return " crashed (SIGBUS)";
    case SIGFPE:
        return " crashed (SIGFPE)";
    case SIGILL:
        return " crashed (SIGILL)";
    case SIGABRT:
        return " crashed (SIGABRT)";
    default:
        return " crashed";
    }
}

/* Names the plugin, and lets the signal do what it did before: a debugger, a core file or a sanitizer see the crash. */
static void on_crash(int number, siginfo_t *info, void *context)
{
    int error = errno;
    (void)context;
    for (int k = 0; k < FATAL; k++)
        if (fatal[k] == number)
            sigaction(number, &previous[k], NULL);
    blame(name_signal(number));
    errno = error;
    if (info->si_code <= 0 || number == SIGABRT) /* sent by a process: returning would not repeat it */
        raise(number);
}

static void on_exit_of_plugin(void)
{
    if (getpid() == program && blame(" called exit()"))
        cli_leave(CLI_FAILURE);
}

bool cli_trap_is_program(void)
{
    return program != 0 && getpid() == program;
}

void cli_trap_end(const char *what, const void *caller)
{
    const char *file = sl_objects_find_path(caller);
    char text[600] = "";
    if (blame(what))
        cli_leave(CLI_FAILURE);
    append(text, sizeof text, terminal ? "\nerror[E0613]: " : "error[E0613]: ");
    append(text, sizeof text, file ? file : "a library");
    append(text, sizeof text, what);
    append(text, sizeof text,
           " while no function of a backend ran\n  = help: a backend that started a thread of its own may do that: "
           "`seqlstm conformance` tests it; --set backends=[...] runs the model without it\n");
    (void)!write(messages, text, strlen(text));
    cli_leave(CLI_FAILURE);
}

static void end_copy(void)
{
    blame(" copied the program by fork(), and the copy ends: it returned");
    cli_leave(CLI_FAILURE);
}

static void on_fork(void)
{
    if (sl_running_get()) {
        sl_running_on_return(end_copy);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it may wait for threads that it does not have */
    }
}

/* Memory is damaged: whatever else was done now, even an orderly end, could crash or save nonsense. */
static void on_damage(const char *message)
{
    if (fcntl(messages, F_GETFD) < 0)
        messages = STDERR_FILENO;
    (void)!write(messages, "error[E0613]: ", 14);
    (void)!write(messages, message, strlen(message));
    (void)!write(messages, "\n", 1);
    cli_leave(CLI_FAILURE);
}

void cli_trap_plugins(void)
{
    static char stack[STACK_BYTES];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action;
    program = getpid();
    int far = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, FAR);
    messages = far >= 0 ? far : STDERR_FILENO;
    terminal = isatty(messages);
    sigaltstack(&own, NULL); /* for a stack that is full */
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int k = 0; k < FATAL; k++)
        sigaction(fatal[k], &action, &previous[k]);
    atexit(on_exit_of_plugin);
    pthread_atfork(NULL, NULL, on_fork);
    sl_watch_capture_output(true);
    sl_watch_on_damage(on_damage);
}
