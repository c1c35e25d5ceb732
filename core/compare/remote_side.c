/* SPDX-License-Identifier: Apache-2.0 */
/* See remote_side.h.
 *
 *   request   head {what, a, b, bytes} | payload
 *   reply     head {status, 0, 0, bytes} | payload, or the error
 *
 * Invariants:
 *  1. One request is under way at a time, and each has one reply.
 *  2. A child is waited for when its side is closed.
 */
#include "compare/remote_side.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/value/text.h"

extern char **environ;

enum { ARGUMENTS_MOST = 256, MAPPED_MOST = 64 };

enum what { ASK_FACTS, ASK_PLAN, ASK_JUDGE, ASK_START, ASK_STOP, ASK_TURN, ASK_FILES };

struct head {
    int32_t what; /* of a reply: the status */
    int32_t a, b;
    int32_t reserved;
    int64_t bytes;
};

struct started {
    double loss;
    int64_t elems, ns;
};

struct mapped {
    char path[512];
    char soname[128];
    char build_id[48];
};

struct remote {
    struct sl_compare_side side;
    char name; /* 'A' or 'B' */
    pid_t pid;
    int socket;
    int32_t units, calls;
    void *room; /* of the last reply */
    int64_t room_bytes;
};

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

/* ---- the child process -------------------------------------------------------------------------------------- */

static seqlstm_status spawn(const char *const *worker, const char *role, pid_t *out_pid, int *out_socket,
                            struct seqlstm_error *err)
{
    const char *argv[ARGUMENTS_MOST];
    int count = 0, ends[2] = {-1, -1};
    posix_spawn_file_actions_t actions;
    for (; worker[count] && count < ARGUMENTS_MOST - 2; count++)
        argv[count] = worker[count];
    argv[count++] = role;
    argv[count] = NULL;
    if (posix_spawn_file_actions_init(&actions) != 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "no socket for a process of a side: %s", strerror(errno));
    int far = fcntl(ends[1], F_DUPFD_CLOEXEC, 16); /* beyond the child's number, whatever was free */
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

/* Waits for the child; the status of waitpid. */
static int wait_for_child(struct remote *r)
{
    int status = 0;
    if (r->socket >= 0)
        close(r->socket);
    r->socket = -1;
    while (r->pid > 0 && waitpid(r->pid, &status, 0) < 0 && errno == EINTR) {
    }
    r->pid = 0;
    return status;
}

static seqlstm_status fail_dead(struct remote *r, struct seqlstm_error *err)
{
    int status = wait_for_child(r);
    if (WIFSIGNALED(status))
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the process of side %c died of signal %d (%s)", r->name, WTERMSIG(status),
                     strsignal(WTERMSIG(status)));
    SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the process of side %c ended with exit status %d", r->name,
                 WEXITSTATUS(status));
}

/* One request and its reply, which then stands in r->room. */
static seqlstm_status ask(struct remote *r, struct head head, const void *payload, int64_t expected_least,
                          struct seqlstm_error *err)
{
    struct head reply;
    if (!send_all(r->socket, &head, sizeof head) || !send_all(r->socket, payload, (size_t)head.bytes) ||
        !receive_all(r->socket, &reply, sizeof reply))
        return fail_dead(r, err);
    if (reply.bytes > r->room_bytes) {
        free(r->room);
        r->room_bytes = 0;
        r->room = malloc((size_t)reply.bytes);
        if (!r->room)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the answer of side %c", r->name);
        r->room_bytes = reply.bytes;
    }
    if (!receive_all(r->socket, r->room, (size_t)reply.bytes))
        return fail_dead(r, err);
    if (reply.what != SEQLSTM_OK) {
        if (err && reply.bytes == (int64_t)sizeof *err)
            memcpy(err, r->room, sizeof *err);
        return reply.what;
    }
    if (reply.bytes < expected_least)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "side %c answered %lld bytes, expected %lld", r->name,
                     (long long)reply.bytes, (long long)expected_least);
    return SEQLSTM_OK;
}

/* ---- the side ---------------------------------------------------------------------------------------------- */

static void remote_close(struct sl_compare_side *side)
{
    struct remote *r = (struct remote *)side;
    if (!r)
        return;
    wait_for_child(r);
    free(r->room);
    free(r);
}

static seqlstm_status remote_get_facts(struct sl_compare_side *side, struct sl_arena *arena,
                                       struct sl_compare_side_facts *out_facts, struct seqlstm_error *err)
{
    struct remote *r = (struct remote *)side;
    int64_t units = r->units * (int64_t)sizeof *out_facts->units;
    SEQLSTM_TRY(ask(r, (struct head){.what = ASK_FACTS}, NULL, (int64_t)sizeof *out_facts + units, err));
    memcpy(out_facts, r->room, sizeof *out_facts);
    out_facts->units = SL_ARENA_ARRAY(arena, struct sl_compare_side_unit, (size_t)r->units);
    if (!out_facts->units)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the offers of a backend");
    memcpy(out_facts->units, (char *)r->room + sizeof *out_facts, (size_t)units);
    return SEQLSTM_OK;
}

static seqlstm_status remote_plan(struct sl_compare_side *side, const struct sl_compare_side_choice *choices,
                                  int32_t count, struct seqlstm_error *err)
{
    struct remote *r = (struct remote *)side;
    r->calls = count;
    return ask(r, (struct head){.what = ASK_PLAN, .a = count, .bytes = count * (int64_t)sizeof *choices}, choices, 0,
               err);
}

static seqlstm_status remote_judge(struct sl_compare_side *side, struct sl_compare_side_verdict *out_verdicts,
                                   struct seqlstm_error *err)
{
    struct remote *r = (struct remote *)side;
    int64_t bytes = r->units * (int64_t)sizeof *out_verdicts;
    SEQLSTM_TRY(ask(r, (struct head){.what = ASK_JUDGE}, NULL, bytes, err));
    memcpy(out_verdicts, r->room, (size_t)bytes);
    return SEQLSTM_OK;
}

static seqlstm_status remote_start(struct sl_compare_side *side, int32_t batch,
                                   struct sl_compare_side_result *out_result, int64_t *out_ns,
                                   struct seqlstm_error *err)
{
    struct remote *r = (struct remote *)side;
    struct started started;
    SEQLSTM_TRY(ask(r, (struct head){.what = ASK_START, .a = batch}, NULL, sizeof started, err));
    memcpy(&started, r->room, sizeof started);
    *out_result = (struct sl_compare_side_result){.loss = started.loss,
                                                  .elems = started.elems,
                                                  .values = (const float *)((const char *)r->room + sizeof started)};
    *out_ns = started.ns;
    return SEQLSTM_OK;
}

static seqlstm_status remote_stop(struct sl_compare_side *side, struct seqlstm_error *err)
{
    return ask((struct remote *)side, (struct head){.what = ASK_STOP}, NULL, 0, err);
}

static seqlstm_status remote_take_turn(struct sl_compare_side *side, int32_t lead, int32_t steps, double *out_ns,
                                       struct seqlstm_error *err)
{
    struct remote *r = (struct remote *)side;
    int64_t bytes = (1 + r->calls) * (int64_t)sizeof *out_ns;
    SEQLSTM_TRY(ask(r, (struct head){.what = ASK_TURN, .a = lead, .b = steps}, NULL, bytes, err));
    memcpy(out_ns, r->room, (size_t)bytes);
    return SEQLSTM_OK;
}

static const struct sl_compare_side_table table = {
    .close = remote_close,
    .get_facts = remote_get_facts,
    .plan = remote_plan,
    .judge = remote_judge,
    .start = remote_start,
    .stop = remote_stop,
    .take_turn = remote_take_turn,
};

static seqlstm_status open_role(const char *const *worker, const char *role, char name, int32_t units,
                                struct remote **out_remote, struct seqlstm_error *err)
{
    struct remote *r = calloc(1, sizeof *r);
    if (!r)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a side of the comparison");
    *r = (struct remote){.side.table = &table, .name = name, .socket = -1, .units = units};
    seqlstm_status status = spawn(worker, role, &r->pid, &r->socket, err);
    if (status != SEQLSTM_OK) {
        free(r);
        return status;
    }
    *out_remote = r;
    return SEQLSTM_OK;
}

seqlstm_status sl_remote_side_open(const char *const *worker, bool is_b, int32_t units,
                                   struct sl_compare_side **out_side, struct seqlstm_error *err)
{
    struct remote *r = NULL;
    SEQLSTM_TRY(open_role(worker, is_b ? "b" : "a", is_b ? 'B' : 'A', units, &r, err));
    *out_side = &r->side;
    return SEQLSTM_OK;
}

/* ---- is it needed? --------------------------------------------------------------------------------------- */

/* A library (not the plugins themselves, which come first) of one soname and two contents. */
static const char *find_conflict(struct sl_arena *arena, const struct mapped *a, int32_t a_count,
                                 const struct mapped *b, int32_t b_count)
{
    for (int32_t i = 1; i < a_count; i++)
        for (int32_t k = 1; k < b_count; k++)
            if (a[i].soname[0] && strcmp(a[i].soname, b[k].soname) == 0 && strcmp(a[i].path, b[k].path) != 0 &&
                (!a[i].build_id[0] || strcmp(a[i].build_id, b[k].build_id) != 0))
                return sl_arena_printf(arena, "A needs %s as %s, B needs %s", a[i].path, a[i].soname, b[k].path);
    return NULL;
}

seqlstm_status sl_remote_find_reason(const char *const *worker, bool forced, struct sl_arena *arena,
                                     const char **out_reason, struct seqlstm_error *err)
{
    struct remote *sides[2] = {NULL, NULL};
    struct mapped *files[2] = {NULL, NULL};
    int32_t counts[2] = {0, 0};
    seqlstm_status status = SEQLSTM_OK;
    *out_reason = forced ? "asked for" : NULL;
    for (int i = 0; i < 2 && status == SEQLSTM_OK && !forced; i++) {
        status = open_role(worker, i ? "probe-b" : "probe-a", i ? 'B' : 'A', 0, &sides[i], err);
        if (status == SEQLSTM_OK)
            status = ask(sides[i], (struct head){.what = ASK_FILES}, NULL, sizeof counts[i], err);
        if (status != SEQLSTM_OK)
            break;
        memcpy(&counts[i], sides[i]->room, sizeof counts[i]);
        files[i] = SL_ARENA_ARRAY(arena, struct mapped, MAPPED_MOST);
        if (!files[i])
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for lists of files");
        else
            memcpy(files[i], (char *)sides[i]->room + sizeof counts[i], (size_t)counts[i] * sizeof *files[i]);
    }
    if (status == SEQLSTM_OK && !forced)
        *out_reason = find_conflict(arena, files[0], counts[0], files[1], counts[1]);
    for (int i = 0; i < 2; i++)
        if (sides[i])
            remote_close(&sides[i]->side);
    return status;
}

/* ---- the child's side --------------------------------------------------------------------------------------- */

static bool reply(seqlstm_status status, const void *first, size_t first_bytes, const void *second, size_t second_bytes,
                  const struct seqlstm_error *err)
{
    struct head head = {.what = status, .bytes = (int64_t)(first_bytes + second_bytes)};
    if (status != SEQLSTM_OK) {
        head.bytes = err ? (int64_t)sizeof *err : 0;
        return send_all(SL_REMOTE_SOCKET, &head, sizeof head) && (!err || send_all(SL_REMOTE_SOCKET, err, sizeof *err));
    }
    return send_all(SL_REMOTE_SOCKET, &head, sizeof head) && send_all(SL_REMOTE_SOCKET, first, first_bytes) &&
           send_all(SL_REMOTE_SOCKET, second, second_bytes);
}

struct server {
    struct sl_compare_side *side;
    struct sl_arena arena;
    int32_t units, calls;
    struct sl_compare_side_verdict *verdicts;
    double *times;
    struct sl_compare_side_choice *choices;
    struct seqlstm_error *err;
};

static bool serve_plan(struct server *s, const struct head *head)
{
    size_t count = (size_t)head->a;
    s->calls = head->a;
    s->choices = SL_ARENA_ARRAY(&s->arena, struct sl_compare_side_choice, count + 1);
    s->times = SL_ARENA_ARRAY(&s->arena, double, count + 1);
    if (!s->choices || !s->times || !receive_all(SL_REMOTE_SOCKET, s->choices, count * sizeof *s->choices))
        return false;
    return reply(s->side->table->plan(s->side, s->choices, s->calls, s->err), NULL, 0, NULL, 0, s->err);
}

static bool serve_start(struct server *s, int32_t batch)
{
    struct sl_compare_side_result result = {0};
    struct started started = {0};
    seqlstm_status status = s->side->table->start(s->side, batch, &result, &started.ns, s->err);
    started.loss = result.loss;
    started.elems = result.elems;
    return reply(status, &started, sizeof started, result.values, (size_t)result.elems * sizeof *result.values, s->err);
}

static bool serve_one(struct server *s, const struct head *head)
{
    const struct sl_compare_side_table *t = s->side->table;
    struct sl_compare_side_facts facts = {.unit_count = 0};
    seqlstm_status status;
    switch (head->what) {
    case ASK_FACTS:
        status = t->get_facts(s->side, &s->arena, &facts, s->err);
        return reply(status, &facts, sizeof facts, facts.units, (size_t)facts.unit_count * sizeof *facts.units, s->err);
    case ASK_PLAN:
        return serve_plan(s, head);
    case ASK_JUDGE:
        status = t->judge(s->side, s->verdicts, s->err);
        return reply(status, s->verdicts, (size_t)s->units * sizeof *s->verdicts, NULL, 0, s->err);
    case ASK_START:
        return serve_start(s, head->a);
    case ASK_STOP:
        return reply(t->stop(s->side, s->err), NULL, 0, NULL, 0, s->err);
    case ASK_TURN:
        status = s->times ? t->take_turn(s->side, head->a, head->b, s->times, s->err) : SEQLSTM_INVALID_ARGUMENT;
        return reply(status, s->times, (size_t)(1 + s->calls) * sizeof *s->times, NULL, 0, s->err);
    default:
        return false;
    }
}

seqlstm_status sl_remote_serve(struct sl_compare_side *side, int32_t units, seqlstm_status status,
                               struct seqlstm_error *err)
{
    struct server s = {.side = side, .units = units, .err = err};
    struct head head;
    sl_arena_init(&s.arena);
    s.verdicts = SL_ARENA_ARRAY(&s.arena, struct sl_compare_side_verdict, (size_t)units + 1);
    if (status == SEQLSTM_OK && !s.verdicts)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a side");
    while (receive_all(SL_REMOTE_SOCKET, &head, sizeof head))
        if (status != SEQLSTM_OK ? !reply(status, NULL, 0, NULL, 0, err) : !serve_one(&s, &head))
            break;
    sl_arena_deinit(&s.arena);
    return SEQLSTM_OK;
}

seqlstm_status sl_remote_answer_probe(const struct sl_backend *backend, seqlstm_status status,
                                      struct seqlstm_error *err)
{
    const struct sl_backend_record *record = backend ? sl_backend_get_record(backend) : NULL;
    struct head head;
    struct mapped *files = calloc(MAPPED_MOST, sizeof *files);
    if (!files)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for lists of files");
    int32_t count = 0;
    for (uint32_t f = 0; record && f < record->file_count && count < MAPPED_MOST; f++, count++) {
        sl_text_snprintf(files[count].path, sizeof files[count].path, "%s", record->files[f].path);
        sl_text_snprintf(files[count].soname, sizeof files[count].soname, "%s", record->files[f].soname);
        sl_text_snprintf(files[count].build_id, sizeof files[count].build_id, "%s", record->files[f].build_id);
    }
    if (receive_all(SL_REMOTE_SOCKET, &head, sizeof head))
        reply(status, &count, sizeof count, files, (size_t)count * sizeof *files, err);
    free(files);
    return SEQLSTM_OK;
}
