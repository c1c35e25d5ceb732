/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request may be answered. */
#ifndef SL_SERVE_HTTP_ACCESS_H
#define SL_SERVE_HTTP_ACCESS_H

#include <stdbool.h>

#include "serve/http/http.h"

/* Only this machine can reach the address: "127.0.0.1", "::1", "localhost". */
bool sl_access_is_loopback(const char *address);

/* Is what was sent the token? The time that this takes does not depend on where they differ. */
bool sl_access_is_equal(const char *sent, const char *token);

/* Number of the token that the request carries, -1: none of them ("Authorization: Bearer TOKEN"). */
int sl_access_find_token(const struct seqlstm_http_module *http, const struct seqlstm_http_request *request,
                         const char *const *tokens);

/* Does it name this machine as its Host? A page of another site that a browser shows does not (DNS rebinding). */
bool sl_access_names_loopback(const struct seqlstm_http_module *http, const struct seqlstm_http_request *request);

#endif
