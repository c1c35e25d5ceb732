/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which a plugin may end the program, or replace it by another one, with status 0: `exit`, `_exit`, the
 * functions of the family `exec`, and `pthread_exit` in a thread of the program. The program defines functions of these
 * names, which the dynamic linker prefers to those of libc for all plugins and their libraries. In another process, as
 * between fork and exec, and in the plugin's own threads where that is allowed, each does what libc's does. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <threads.h>
#include <unistd.h>

#include "cli/cli.h"
#include "registry/objects.h"
#include "registry/watch/running.h"

#define TRAPS  __attribute__((visibility("default"), used))
#define CALLER __builtin_return_address(0)

enum { ARGUMENTS_MOST = 1024 };

/* ---- the end of the process ------------------------------------------------------------------------------------- */

static _Noreturn void end(int code, const char *what, const void *caller)
{
    if (cli_trap_is_program())
        cli_trap_end(what, caller);
    cli_leave(code);
}

TRAPS _Noreturn void _exit(int code)
{
    end(code, " called _exit()", CALLER);
}

TRAPS _Noreturn void _Exit(int code)
{
    end(code, " called _Exit()", CALLER);
}

TRAPS _Noreturn void quick_exit(int code)
{
    end(code, " called quick_exit()", CALLER);
}

/* The program itself ends by cli_exit(), or by returning from main, which calls libc's. */
TRAPS _Noreturn void exit(int code)
{
    if (cli_trap_is_program())
        cli_trap_end(" called exit()", CALLER);
    cli_exit(code);
}

_Noreturn void cli_exit(int code)
{
    ((void (*)(int))sl_objects_find_hidden("exit"))(code);
    cli_leave(code);
}

/* ---- the end of a thread ---------------------------------------------------------------------------------------- */

TRAPS _Noreturn void pthread_exit(void *result)
{
    if (sl_running_get())
        cli_trap_end(" called pthread_exit()", CALLER);
    ((void (*)(void *))sl_objects_find_hidden("pthread_exit"))(result);
    cli_leave(CLI_FAILURE);
}

TRAPS _Noreturn void thrd_exit(int result)
{
    if (sl_running_get())
        cli_trap_end(" called thrd_exit()", CALLER);
    ((void (*)(int))sl_objects_find_hidden("thrd_exit"))(result);
    cli_leave(CLI_FAILURE);
}

/* ---- another program -------------------------------------------------------------------------------------------- */

TRAPS int execve(const char *path, char *const arguments[], char *const environment[])
{
    if (cli_trap_is_program())
        cli_trap_end(" called a function of the family exec()", CALLER);
    return ((int (*)(const char *, char *const[], char *const[]))sl_objects_find_hidden("execve"))(path, arguments,
                                                                                                   environment);
}

TRAPS int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    if (cli_trap_is_program())
        cli_trap_end(" called a function of the family exec()", CALLER);
    return ((int (*)(const char *, char *const[], char *const[]))sl_objects_find_hidden("execvpe"))(file, arguments,
                                                                                                    environment);
}

TRAPS int fexecve(int file, char *const arguments[], char *const environment[])
{
    if (cli_trap_is_program())
        cli_trap_end(" called a function of the family exec()", CALLER);
    return ((int (*)(int, char *const[], char *const[]))sl_objects_find_hidden("fexecve"))(file, arguments,
                                                                                           environment);
}

TRAPS int execv(const char *path, char *const arguments[])
{
    if (cli_trap_is_program())
        cli_trap_end(" called a function of the family exec()", CALLER);
    return ((int (*)(const char *, char *const[], char *const[]))sl_objects_find_hidden("execve"))(path, arguments,
                                                                                                   environ);
}

TRAPS int execvp(const char *file, char *const arguments[])
{
    if (cli_trap_is_program())
        cli_trap_end(" called a function of the family exec()", CALLER);
    return ((int (*)(const char *, char *const[], char *const[]))sl_objects_find_hidden("execvpe"))(file, arguments,
                                                                                                    environ);
}

/* The arguments of execl and its like, which end with NULL; false: there are too many. */
static bool collect(char *arguments[ARGUMENTS_MOST], const char *first, va_list rest)
{
    arguments[0] = (char *)first;
    for (int k = 0; arguments[k]; k++) {
        if (k + 1 == ARGUMENTS_MOST) {
            errno = E2BIG;
            return false;
        }
        arguments[k + 1] = va_arg(rest, char *);
    }
    return true;
}

#define COLLECT(arguments, first)                                                                                      \
    char *arguments[ARGUMENTS_MOST];                                                                                   \
    va_list rest_;                                                                                                     \
    if (cli_trap_is_program())                                                                                         \
        cli_trap_end(" called a function of the family exec()", CALLER);                                               \
    va_start(rest_, first);                                                                                            \
    bool fit_ = collect(arguments, first, rest_)

TRAPS int execl(const char *path, const char *first, ...)
{
    COLLECT(arguments, first);
    va_end(rest_);
    return fit_ ? execv(path, arguments) : -1;
}

TRAPS int execlp(const char *file, const char *first, ...)
{
    COLLECT(arguments, first);
    va_end(rest_);
    return fit_ ? execvp(file, arguments) : -1;
}

TRAPS int execle(const char *path, const char *first, ...)
{
    COLLECT(arguments, first);
    char *const *environment = fit_ ? va_arg(rest_, char *const *) : NULL;
    va_end(rest_);
    return fit_ ? execve(path, arguments, environment) : -1;
}
