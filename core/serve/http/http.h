/* SPDX-License-Identifier: Apache-2.0 */
/* core/serve: predictions over HTTP.
 *
 *   connection ─ module `http` ─ server (paths, tokens, limits) ─ infer_read → job ─ queue ─ worker ─ infer_write →
 * reply
 *
 * One thread runs the loop of the module: it reads requests and makes jobs of them. Workers take the jobs that wait for
 * one model, compute them as one packed batch, and answer. Nothing waits for a batch to fill, and nothing is padded.
 *
 * This file: finds the module that serves HTTP. */
#ifndef SL_SERVE_HTTP_HTTP_H
#define SL_SERVE_HTTP_HTTP_H

#include <seqlstm/ext/draft/http.h>

/* UNAVAILABLE: the module is not there; the message says what to install. [any thread] */
seqlstm_status sl_http_find(const struct seqlstm_http_module **out_module, struct seqlstm_error *err);

/* Answers with a JSON object {"error": message}; below /v1/ in OpenAI's form. [any thread] */
void sl_http_fail(const struct seqlstm_http_module *http, struct seqlstm_http_request *request, int status,
                  const char *message);

/* Answers with a body of this type. [any thread] */
void sl_http_reply(const struct seqlstm_http_module *http, struct seqlstm_http_request *request, const char *type,
                   const void *body, size_t bytes);

#endif
