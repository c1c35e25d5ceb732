/* SPDX-License-Identifier: Apache-2.0 */
/* The reference under another id. It opens only with the copy of libworth.so.1 that lies next to it. */
#include <seqlstm/backend.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

int worth(void);
const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static struct seqlstm_backend table;
static const struct seqlstm_backend *inner;

static seqlstm_status needs_worth_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                       uint32_t setting_count, struct seqlstm_instance **out_instance,
                                       struct seqlstm_error *err)
{
    if (worth() != WORTH)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "the copy of libworth.so.1 is number %d, not %d", worth(), WORTH);
    return inner->open(host, settings, setting_count, out_instance, err);
}

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);
SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor)
{
    inner = seqlstm_reference_query_v0(host_minor);
    table = *inner;
    table.id = "needs-worth-" TEXT(WORTH);
    table.open = needs_worth_open;
    return &table;
}
