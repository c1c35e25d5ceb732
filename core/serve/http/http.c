/* SPDX-License-Identifier: Apache-2.0 */
/* See http.h. */
#include "serve/http/http.h"

#include <string.h>

#include "base/system/module.h"
#include "base/value/buf.h"
#include "base/value/json_write.h"

seqlstm_status sl_http_find(const struct seqlstm_http_module **out_module, struct seqlstm_error *err)
{
    const void *table = NULL;
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_module_open("http", SEQLSTM_HTTP_SYMBOL, &table, &why);
    if (status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, status,
                     "serving needs a module that is not here: %s. Install the package libevent-dev and build again",
                     why.message);
    const struct seqlstm_http_module *module = table;
    if (module->struct_size != sizeof *module)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "the module that serves HTTP is of another version: build and install it with this program");
    *out_module = module;
    return SEQLSTM_OK;
}

static void reply(const struct seqlstm_http_module *http, struct seqlstm_http_request *request, int status,
                  const char *type, const void *body, size_t bytes)
{
    const struct seqlstm_http_header headers[] = {
        {"Content-Type", type}, {status == 429 ? "Retry-After" : NULL, "1"}, {NULL, NULL}};
    http->reply(request, status, headers, body, bytes, NULL); /* without memory it answers 503 itself */
}

void sl_http_fail(const struct seqlstm_http_module *http, struct seqlstm_http_request *request, int status,
                  const char *message)
{
    const bool openai = strncmp(http->get_path(request), "/v1/", 4) == 0;
    struct sl_buf body = {0};
    sl_buf_append_text(&body, openai ? "{\"error\": {\"message\": " : "{\"error\": ");
    sl_json_append_string(&body, message);
    if (openai)
        sl_buf_printf(&body, ", \"type\": \"%s\", \"param\": null, \"code\": null}",
                      status < 500 ? "invalid_request_error" : "server_error");
    sl_buf_append_text(&body, "}\n");
    reply(http, request, status, "application/json", sl_buf_text(&body), body.failed ? 0 : body.length_bytes);
    sl_buf_deinit(&body);
}

void sl_http_reply(const struct seqlstm_http_module *http, struct seqlstm_http_request *request, const char *type,
                   const void *body, size_t bytes)
{
    reply(http, request, 200, type, body, bytes);
}
