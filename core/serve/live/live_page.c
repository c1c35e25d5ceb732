/* SPDX-License-Identifier: Apache-2.0 */
/* See live_page.h. */
#include "serve/live/live_page.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/system/file.h"
#include "base/value/buf.h"
#include "serve/http/access.h"
#include "serve/http/http.h"
#include "session/report/growing.h"

enum { TOKEN_BYTES = 16, HEADER_BYTES = 8192, IDLE_SECONDS = 30 };

struct sl_live_page {
    const struct seqlstm_http_module *module;
    struct seqlstm_http *http;
    pthread_t thread;
    bool runs;
    char *_Atomic folder;           /* NULL: the run has none yet */
    char path[2 * TOKEN_BYTES + 3]; /* "/TOKEN/" */
    char address[SL_LIVE_ADDRESS_BYTES];
};

static void reply(const struct sl_live_page *page, struct seqlstm_http_request *request, int status, const char *type,
                  const struct sl_buf *body)
{
    const struct seqlstm_http_header headers[] = {{"Content-Type", type},
                                                  {"Cache-Control", "no-store"},
                                                  {"Referrer-Policy", "no-referrer"},
                                                  {"X-Content-Type-Options", "nosniff"},
                                                  {status == 200 ? "Refresh" : NULL, "5"},
                                                  {NULL, NULL}};
    page->module->reply(request, status, headers, sl_buf_text(body), sl_buf_text_bytes(body), NULL);
}

static void answer(void *context, struct seqlstm_http_request *request)
{
    const struct sl_live_page *page = context;
    const struct seqlstm_http_module *module = page->module;
    const char *method = module->get_method(request);
    struct sl_buf body = {0};
    const bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (!reads || !sl_access_names_loopback(module, request) ||
        !sl_access_is_equal(module->get_path(request), page->path)) {
        sl_buf_append_text(&body, "there is no such page\n");
        reply(page, request, 404, "text/plain; charset=utf-8", &body);
    } else {
        const char *folder = atomic_load(&page->folder);
        if (folder)
            sl_report_write_growing(folder, &body);
        else
            sl_buf_append_text(&body, "<!doctype html><title>seqlstm</title><p>The run reads its data and makes its "
                                      "plan.</p>\n");
        reply(page, request, body.failed ? 500 : 200, "text/html; charset=utf-8", &body);
    }
    sl_buf_deinit(&body);
}

static void *run(void *context)
{
    struct sl_live_page *page = context;
    page->module->run(page->http, NULL);
    return NULL;
}

static seqlstm_status make_token(struct sl_live_page *page, struct seqlstm_error *err)
{
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "the system gives no random numbers for the address of the page");
    page->path[0] = '/';
    for (size_t k = 0; k < sizeof bytes; k++)
        snprintf(page->path + 1 + 2 * k, 3, "%02x", bytes[k]);
    strcat(page->path, "/");
    return SEQLSTM_OK;
}

/* The thread blocks all signals: the main program handles them. */
static seqlstm_status start(struct sl_live_page *page, struct seqlstm_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int code = pthread_create(&page->thread, NULL, run, page);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "cannot start the thread that serves the page: %s", strerror(code));
    page->runs = true;
    return SEQLSTM_OK;
}

static seqlstm_status open_page(struct sl_live_page *page, uint16_t port, struct seqlstm_error *err)
{
    const struct seqlstm_http_options options = {.struct_size = sizeof options,
                                                 .port = port,
                                                 .idle_seconds = IDLE_SECONDS,
                                                 .address = "127.0.0.1",
                                                 .body_bytes = 1,
                                                 .header_bytes = HEADER_BYTES,
                                                 .on_request = answer,
                                                 .context = page};
    SEQLSTM_TRY(sl_http_find(&page->module, err));
    SEQLSTM_TRY(make_token(page, err));
    SEQLSTM_TRY((seqlstm_status)page->module->open(&options, &page->http, err));
    snprintf(page->address, sizeof page->address, "http://127.0.0.1:%u%s", page->module->get_port(page->http),
             page->path);
    return start(page, err);
}

seqlstm_status sl_live_page_show(struct sl_live_page *page, const char *folder, struct seqlstm_error *err)
{
    char *copy = strdup(folder);
    if (!copy)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the page of the run");
    atomic_store(&page->folder, copy);
    return SEQLSTM_OK;
}

seqlstm_status sl_live_page_open(uint16_t port, struct sl_live_page **out_page, struct seqlstm_error *err)
{
    struct sl_live_page *page = calloc(1, sizeof *page);
    if (!page)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the page of the run");
    const seqlstm_status status = open_page(page, port, err);
    if (status != SEQLSTM_OK) {
        sl_live_page_close(page);
        return status;
    }
    *out_page = page;
    return SEQLSTM_OK;
}

const char *sl_live_page_get_address(const struct sl_live_page *page)
{
    return page->address;
}

void sl_live_page_close(struct sl_live_page *page)
{
    if (!page)
        return;
    if (page->runs) {
        page->module->stop(page->http);
        pthread_join(page->thread, NULL);
    }
    if (page->http)
        page->module->close(page->http);
    free(page->folder);
    free(page);
}
