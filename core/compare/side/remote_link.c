/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/side/remote_link.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare/side/remote_side.h"

extern char **environ;

/* ---- bytes -------------------------------------------------------------------------------------------------- */

static bool send_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool receive_all(int fd, void *data, size_t bytes)
{
    char *at = data;
    while (bytes > 0) {
        ssize_t n = recv(fd, at, bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* ---- the parent's end --------------------------------------------------------------------------------------- */

static seqlstm_status spawn(const char *const *worker, const char *role, pid_t *out_pid, int *out_socket,
                            struct seqlstm_error *err)
{
    const char *argv[SL_REMOTE_ARGUMENTS_MOST];
    int count = 0, ends[2] = {-1, -1};
    posix_spawn_file_actions_t actions;
    for (; worker[count] && count < SL_REMOTE_ARGUMENTS_MOST - 2; count++)
        argv[count] = worker[count];
    if (worker[count])
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the process of a side takes at most %d arguments",
                     SL_REMOTE_ARGUMENTS_MOST - 2);
    argv[count++] = role;
    argv[count] = NULL;
    int reason = posix_spawn_file_actions_init(&actions);
    if (reason == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        reason = errno;
    if (reason != 0)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "no socket for a process of a side: %s", strerror(reason));
    int far = fcntl(ends[1], F_DUPFD_CLOEXEC, 16); /* a number above the child's, whatever was free */
    bool fine = far >= 0 && posix_spawn_file_actions_adddup2(&actions, far, SL_REMOTE_SOCKET) == 0 &&
                posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO) == 0 &&
                posix_spawn(out_pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    if (far >= 0)
        close(far);
    close(ends[1]);
    if (!fine) {
        close(ends[0]);
        SEQLSTM_FAIL(err, SEQLSTM_IO, "the process of a side cannot be started: %s", argv[0]);
    }
    *out_socket = ends[0];
    return SEQLSTM_OK;
}

/* Waits for the child; returns the status of waitpid. */
static int wait_for_child(struct sl_remote_link *link)
{
    int status = 0;
    if (link->socket >= 0)
        close(link->socket);
    link->socket = -1;
    while (link->pid > 0 && waitpid(link->pid, &status, 0) < 0 && errno == EINTR) {
    }
    link->pid = 0;
    return status;
}

static seqlstm_status fail_dead(struct sl_remote_link *link, struct seqlstm_error *err)
{
    int status = wait_for_child(link);
    if (WIFSIGNALED(status))
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the process of side %c died of signal %d (%s)", link->name,
                     WTERMSIG(status), strsignal(WTERMSIG(status)));
    SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the process of side %c ended with exit status %d", link->name,
                 WEXITSTATUS(status));
}

seqlstm_status sl_remote_link_open(const char *const *worker, const char *role, char name,
                                   struct sl_remote_link *out_link, struct seqlstm_error *err)
{
    struct sl_remote_link link = {.name = name, .socket = -1};
    SEQLSTM_TRY(spawn(worker, role, &link.pid, &link.socket, err));
    *out_link = link;
    return SEQLSTM_OK;
}

void sl_remote_link_close(struct sl_remote_link *link)
{
    if (link->pid > 0)
        wait_for_child(link);
    free(link->room);
    *link = (struct sl_remote_link){.socket = -1};
}

seqlstm_status sl_remote_link_ask(struct sl_remote_link *link, struct sl_remote_head head, const void *payload,
                                  int64_t expected_least, struct seqlstm_error *err)
{
    struct sl_remote_head reply;
    if (!send_all(link->socket, &head, sizeof head) || !send_all(link->socket, payload, (size_t)head.bytes) ||
        !receive_all(link->socket, &reply, sizeof reply))
        return fail_dead(link, err);
    if (reply.bytes > link->room_bytes) {
        free(link->room);
        link->room_bytes = 0;
        link->room = malloc((size_t)reply.bytes);
        if (!link->room)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the answer of side %c", link->name);
        link->room_bytes = reply.bytes;
    }
    link->reply_bytes = reply.bytes;
    if (!receive_all(link->socket, link->room, (size_t)reply.bytes))
        return fail_dead(link, err);
    if (reply.what != SEQLSTM_OK) {
        if (err && reply.bytes == (int64_t)sizeof *err)
            memcpy(err, link->room, sizeof *err);
        return reply.what;
    }
    if (reply.bytes < expected_least)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "side %c answered %lld bytes, expected %lld", link->name,
                     (long long)reply.bytes, (long long)expected_least);
    return SEQLSTM_OK;
}

/* ---- the child's end ---------------------------------------------------------------------------------------- */

bool sl_remote_receive(void *data, size_t bytes)
{
    return receive_all(SL_REMOTE_SOCKET, data, bytes);
}

bool sl_remote_reply(seqlstm_status status, const void *first, size_t first_bytes, const void *second,
                     size_t second_bytes, const struct seqlstm_error *err)
{
    struct sl_remote_head head = {.what = status, .bytes = (int64_t)(first_bytes + second_bytes)};
    if (status != SEQLSTM_OK) {
        head.bytes = err ? (int64_t)sizeof *err : 0;
        return send_all(SL_REMOTE_SOCKET, &head, sizeof head) && (!err || send_all(SL_REMOTE_SOCKET, err, sizeof *err));
    }
    return send_all(SL_REMOTE_SOCKET, &head, sizeof head) && send_all(SL_REMOTE_SOCKET, first, first_bytes) &&
           send_all(SL_REMOTE_SOCKET, second, second_bytes);
}
