/* SPDX-License-Identifier: Apache-2.0 */
/* See access.h. */
#include "serve/http/access.h"

#include <string.h>
#include <strings.h>

bool sl_access_is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0 || strcmp(address, "localhost") == 0;
}

bool sl_access_is_equal(const char *sent, const char *token)
{
    const size_t sent_bytes = strlen(sent), token_bytes = strlen(token);
    unsigned char differs = sent_bytes != token_bytes;
    for (size_t i = 0; i < sent_bytes; i++)
        differs |= (unsigned char)(sent[i] ^ token[token_bytes > 0 ? i % token_bytes : 0]);
    return differs == 0;
}

int sl_access_find_token(const struct seqlstm_http_module *http, const struct seqlstm_http_request *request,
                         const char *const *tokens)
{
    static const char scheme[] = "Bearer ";
    const char *header = http->find_header(request, "Authorization");
    int found = -1;
    if (header == NULL || strncasecmp(header, scheme, sizeof scheme - 1) != 0)
        return -1;
    for (int k = 0; tokens[k]; k++)
        found = sl_access_is_equal(header + sizeof scheme - 1, tokens[k]) ? k : found;
    return found;
}

bool sl_access_names_loopback(const struct seqlstm_http_module *http, const struct seqlstm_http_request *request)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *host = http->find_header(request, "Host");
    for (int k = 0; host && k < 3; k++) {
        const size_t bytes = strlen(names[k]);
        if (strncasecmp(host, names[k], bytes) == 0 && (host[bytes] == '\0' || host[bytes] == ':'))
            return true;
    }
    return false;
}
