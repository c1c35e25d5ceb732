/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/named_check.h"

#include <string.h>

#include "base/value/text.h"
#include "conformance/checks/allocations.h"
#include "conformance/level.h"

void sl_named_check(struct sl_workbench *w, const struct sl_conformance_request *request, const char *name,
                    struct sl_check_result *out_result)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_case c;
    const char *known;
    for (uint32_t i = 0; (known = sl_level_load_get_name(i)) != NULL; i++)
        if (strcmp(known, name) == 0) {
            sl_level_load_check(w, request, i, out_result);
            return;
        }
    for (uint32_t i = 0; (known = sl_level_contract_get_name(i)) != NULL; i++)
        if (strcmp(known, name) == 0) {
            sl_level_contract_check(w, request, i, out_result);
            return;
        }
    memset(out_result, 0, sizeof *out_result);
    if (sl_case_parse(name, &c, &err) == SEQLSTM_OK) {
        sl_check_case(&w->bench, &c, out_result);
        for (const char *library; (library = sl_allocations_take_library()) != NULL;)
            sl_log_printf(w->outlet.inner, SL_LOG_INFO, "note: %s allocates in forward or backward", library);
        return;
    }
    out_result->verdict = SL_VERDICT_FAIL;
    sl_text_snprintf(out_result->detail, sizeof out_result->detail, "%.500s", err.message);
}
