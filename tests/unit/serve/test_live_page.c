/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run while it grows: who gets it, what they get, and that nothing else is answered. The module that
 * serves HTTP and the page itself are the test's. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include <cmocka.h>

#include "base/value/buf.h"
#include "ok.h"
#include "oom.h"
#include "serve/http/http.h"
#include "serve/live/live_page.h"

enum { PORT = 4711 };

struct seqlstm_http_request {
    const char *method, *path, *host; /* NULL: it names none */
    int answers;
    int32_t status;
    struct sl_buf answer; /* a line for each header, an empty one, the body */
};

static struct {
    struct seqlstm_http_options options; /* of the last server */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool fails_to_open, no_memory; /* for a server; for the page */
    bool no_module, no_numbers, no_thread;
    bool runs, stopped, blocks_signals;
    int opened, closed;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- the module ---------------------------------------------------------------------------------------------- */

static int32_t open_server(const struct seqlstm_http_options *options, struct seqlstm_http **out,
                           struct seqlstm_error *err)
{
    if (world.fails_to_open)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "port %d is in use", options->port);
    world.options = *options;
    world.runs = world.stopped = false;
    world.opened++;
    *out = (void *)&world;
    return SEQLSTM_OK;
}

static uint16_t get_port(const struct seqlstm_http *http)
{
    (void)http;
    return PORT;
}

static int32_t run_server(struct seqlstm_http *http, struct seqlstm_error *err)
{
    sigset_t blocked;
    (void)http, (void)err;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    pthread_mutex_lock(&world.lock);
    world.blocks_signals = sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGTERM) == 1;
    for (world.runs = true; !world.stopped;)
        pthread_cond_wait(&world.changed, &world.lock);
    world.runs = false;
    pthread_mutex_unlock(&world.lock);
    return SEQLSTM_OK;
}

static void stop_server(struct seqlstm_http *http)
{
    (void)http;
    pthread_mutex_lock(&world.lock);
    world.stopped = true;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.lock);
}

static void close_server(struct seqlstm_http *http)
{
    (void)http;
    assert_false(world.runs);
    world.closed++;
}

static const char *get_method(const struct seqlstm_http_request *request)
{
    return request->method;
}

static const char *get_path(const struct seqlstm_http_request *request)
{
    return request->path;
}

static const char *find_header(const struct seqlstm_http_request *request, const char *name)
{
    return strcasecmp(name, "Host") == 0 ? request->host : NULL;
}

static int32_t reply(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     const void *body, uint64_t bytes, struct seqlstm_error *err)
{
    (void)err;
    request->answers++;
    request->status = status;
    for (; headers->name; headers++)
        sl_buf_printf(&request->answer, "%s: %s\n", headers->name, headers->value);
    sl_buf_append_char(&request->answer, '\n');
    sl_buf_append(&request->answer, body, bytes);
    return SEQLSTM_OK;
}

static const struct seqlstm_http_module http = {.struct_size = sizeof http,
                                                .open = open_server,
                                                .get_port = get_port,
                                                .run = run_server,
                                                .stop = stop_server,
                                                .close = close_server,
                                                .get_method = get_method,
                                                .get_path = get_path,
                                                .find_header = find_header,
                                                .reply = reply};

seqlstm_status __wrap_sl_http_find(const struct seqlstm_http_module **out_module, struct seqlstm_error *err);
void __wrap_sl_report_write_growing(const char *folder, struct sl_buf *out);

seqlstm_status __wrap_sl_http_find(const struct seqlstm_http_module **out_module, struct seqlstm_error *err)
{
    if (world.no_module)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "there is no module");
    *out_module = &http;
    return SEQLSTM_OK;
}

/* ---- the system ---------------------------------------------------------------------------------------------- */

ssize_t __real_getrandom(void *bytes, size_t count, unsigned int flags);
ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags);
int __real_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *context);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *context);

ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags)
{
    return __real_getrandom(bytes, world.no_numbers ? count - 1 : count, flags);
}

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
    return world.no_thread ? EAGAIN : __real_pthread_create(out, attributes, run, context);
}

/* ---- the page ------------------------------------------------------------------------------------------------ */

void __wrap_sl_report_write_growing(const char *folder, struct sl_buf *out)
{
    sl_buf_printf(out, "the page of %s\n", folder);
    out->failed = out->failed || world.no_memory;
}

/* ---- helpers ------------------------------------------------------------------------------------------------- */

static struct sl_live_page *open_page(uint16_t port)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_live_page *page = NULL;
    ok(sl_live_page_open(port, &page, &err), &err);
    return page;
}

/* The path of the page: what follows the port in its address. */
static const char *get_page_path(const struct sl_live_page *page)
{
    char head[40];
    const char *address = sl_live_page_get_address(page);
    snprintf(head, sizeof head, "http://127.0.0.1:%d", PORT);
    assert_int_equal(strncmp(address, head, strlen(head)), 0);
    return address + strlen(head);
}

static void expect_answer(const char *method, const char *path, const char *host, int32_t status, const char *answer)
{
    struct seqlstm_http_request request = {.method = method, .path = path, .host = host};
    world.options.on_request(world.options.context, &request);
    if (request.status != status || strcmp(sl_buf_text(&request.answer), answer) != 0)
        fail_msg("%s %s of %s: %d %s", method, path, host ? host : "no one", (int)request.status,
                 sl_buf_text(&request.answer));
    assert_int_equal(request.answers, 1);
    sl_buf_deinit(&request.answer);
}

#define SAFE "Cache-Control: no-store\nReferrer-Policy: no-referrer\nX-Content-Type-Options: nosniff\n"
#define PAGE "Content-Type: text/html; charset=utf-8\n" SAFE
#define NONE "Content-Type: text/plain; charset=utf-8\n" SAFE "\nthere is no such page\n"

/* ---- tests --------------------------------------------------------------------------------------------------- */

static void only_this_machine_and_the_token_get_the_page(void **state)
{
    static const char *const methods[] = {"GET", "HEAD", "POST"};
    static const struct {
        const char *name;
        bool here;
    } hosts[] = {{"localhost", true},
                 {"LocalHost:4711", true},
                 {"127.0.0.1:4711", true},
                 {"127.0.0.1", true},
                 {"[::1]", true},
                 {"[::1]:80", true},
                 {"127.0.0.10", false},
                 {"localhost.com", false},
                 {"example.com:80", false},
                 {"", false},
                 {NULL, false}};
    (void)state;
    struct sl_live_page *page = open_page(8123);
    const char *own = get_page_path(page);
    char other[5][64];
    snprintf(other[0], sizeof other[0], "%s", own);
    snprintf(other[1], sizeof other[1], "/");
    snprintf(other[2], sizeof other[2], "%.*s", (int)strlen(own) - 1, own);
    snprintf(other[3], sizeof other[3], "%s/", own);
    snprintf(other[4], sizeof other[4], "%s", own);
    other[4][20] = other[4][20] == '0' ? '1' : '0';
    for (int m = 0; m < 3; m++)
        for (size_t h = 0; h < sizeof hosts / sizeof *hosts; h++)
            for (int p = 0; p < 5; p++) {
                const bool may = m < 2 && hosts[h].here && p == 0;
                expect_answer(methods[m], other[p], hosts[h].name, may ? 200 : 404,
                              may ? PAGE "Refresh: 5\n\n<!doctype html><title>seqlstm</title><p>The run reads its data "
                                         "and makes its plan.</p>\n"
                                  : NONE);
            }
    sl_live_page_close(page);
}

/* It listens on this machine alone, on the port that was asked for, and takes no bodies. */
static void it_listens_on_this_machine(void **state)
{
    (void)state;
    for (uint16_t port = 0; port < 9000; port += 8999) {
        struct sl_live_page *page = open_page(port);
        assert_int_equal(world.options.struct_size, sizeof world.options);
        assert_int_equal(world.options.port, port);
        assert_string_equal(world.options.address, "127.0.0.1");
        assert_int_equal(world.options.body_bytes, 1);
        sl_live_page_close(page);
    }
}

static void it_shows_the_run_from_when_its_folder_is_known(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_live_page *page = open_page(0);
    char folder[] = "runs/m";
    (void)state;
    ok(sl_live_page_show(page, folder, &err), &err);
    folder[5] = 'x'; /* it has a copy */
    expect_answer("GET", get_page_path(page), "localhost", 200, PAGE "Refresh: 5\n\nthe page of runs/m\n");
    expect_answer("GET", "/", "localhost", 404, NONE);
    world.no_memory = true; /* no page, and so none to be asked for again */
    expect_answer("GET", get_page_path(page), "localhost", 500, PAGE "\n");
    world.no_memory = false;
    expect_answer("HEAD", get_page_path(page), "localhost", 200, PAGE "Refresh: 5\n\nthe page of runs/m\n");
    sl_live_page_close(page);
}

/* Thirty-two digits, and others each time. */
static void each_page_has_a_token_of_its_own(void **state)
{
    char before[64] = "";
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct sl_live_page *page = open_page(0);
        const char *path = get_page_path(page);
        assert_int_equal(strlen(path), 34);
        assert_int_equal(strspn(path + 1, "0123456789abcdef"), 32);
        assert_true(path[0] == '/' && path[33] == '/' && strcmp(path, before) != 0);
        snprintf(before, sizeof before, "%s", path);
        sl_live_page_close(page);
    }
}

/* Signals are for the program's own thread, whose mask stays as it is. */
static void its_thread_takes_no_signals_and_ends_with_it(void **state)
{
    sigset_t before, after;
    (void)state;
    world.opened = world.closed = 0;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    struct sl_live_page *page = open_page(0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < 32; signal++)
        assert_int_equal(sigismember(&after, signal), sigismember(&before, signal));
    sl_live_page_close(page);
    assert_true(world.blocks_signals && world.stopped && world.opened == 1 && world.closed == 1);
    sl_live_page_close(NULL);
}

static void a_port_in_use_is_an_error(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_live_page *page = NULL;
    (void)state;
    world.closed = 0;
    world.fails_to_open = true;
    assert_int_equal(sl_live_page_open(8080, &page, &err), SEQLSTM_IO);
    world.fails_to_open = false;
    assert_string_equal(err.message, "port 8080 is in use");
    assert_null(page);
    assert_int_equal(world.closed, 0); /* there is nothing to close */
}

/* A page without its module, its token, its thread or memory does not begin, and nothing of it is left. */
static void what_a_page_needs_is_there_or_it_does_not_begin(void **state)
{
    const struct {
        bool *fails;
        seqlstm_status status;
        const char *message;
        int opened; /* servers that are to be closed again */
    } needs[] = {
        {&world.no_module, SEQLSTM_UNAVAILABLE, "there is no module", 0},
        {&world.no_numbers, SEQLSTM_IO, "the system gives no random numbers for the address of the page", 0},
        {&world.no_thread, SEQLSTM_IO, "cannot start the thread that serves the page: Resource temporarily unavailable",
         1},
    };
    sigset_t before, after;
    (void)state;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    for (int k = 0; k < 3; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_live_page *page = NULL;
        world.opened = world.closed = 0;
        *needs[k].fails = true;
        assert_int_equal(sl_live_page_open(0, &page, &err), needs[k].status);
        *needs[k].fails = false;
        assert_string_equal(err.message, needs[k].message);
        assert_null(page);
        assert_int_equal(world.opened, needs[k].opened);
        assert_int_equal(world.closed, needs[k].opened);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
    for (int n = 1;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_live_page *page = NULL;
        oom_fail_at(n);
        const seqlstm_status status = sl_live_page_open(0, &page, &err);
        const bool failed = oom_disarm();
        assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        sl_live_page_close(page);
        if (!failed)
            return;
    }
}

/* A page that cannot be told its folder stays the one that it was. */
static void a_folder_without_memory_is_an_error(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_live_page *page = open_page(0);
    (void)state;
    oom_fail_at(1);
    assert_int_equal(sl_live_page_show(page, "runs/m", &err), SEQLSTM_NO_MEMORY);
    assert_true(oom_disarm());
    expect_answer("GET", get_page_path(page), "localhost", 200,
                  PAGE "Refresh: 5\n\n<!doctype html><title>seqlstm</title><p>The run reads its data and makes its "
                       "plan.</p>\n");
    sl_live_page_close(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_this_machine_and_the_token_get_the_page),
        cmocka_unit_test(it_listens_on_this_machine),
        cmocka_unit_test(it_shows_the_run_from_when_its_folder_is_known),
        cmocka_unit_test(each_page_has_a_token_of_its_own),
        cmocka_unit_test(its_thread_takes_no_signals_and_ends_with_it),
        cmocka_unit_test(a_port_in_use_is_an_error),
        cmocka_unit_test(what_a_page_needs_is_there_or_it_does_not_begin),
        cmocka_unit_test(a_folder_without_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
