/* SPDX-License-Identifier: Apache-2.0 */
/* Level load: what can be said about a backend before anything is computed. That the file loaded at all
 * (exports, magic, sizes, slots, floating-point mode, locale, handlers) has been proven by then. */
#include <string.h>

#include "base/system/clock.h"
#include "base/operation/op_signature.h"
#include "base/value/text.h"
#include "conformance/workbench.h"

static void fail(struct sl_check_result *r, const char *detail)
{
    r->verdict = SL_VERDICT_FAIL;
    sl_text_snprintf(r->detail, sizeof r->detail, "%s", detail);
}

static void check_dependencies(struct sl_workbench *w, struct sl_check_result *r)
{
    for (uint32_t i = 1; i < w->record.file_count; i++) {
        const char *slash = strrchr(w->record.files[i].path, '/');
        if (slash && strncmp(slash + 1, "libseqlstm.so", 13) == 0)
            fail(r, "it depends on libseqlstm; a backend sees the contract's headers alone");
    }
    if (w->record.file_count > 0 && w->record.files[0].build_id[0] == 0)
        fail(r, "the file has no Build-ID: plans and caches cannot name it (link with --build-id)");
}

static void check_query(struct sl_workbench *w, const struct sl_conformance_request *request, struct sl_check_result *r)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int64_t start = sl_clock_process_cpu_ns(); /* a busy machine is not the plugin's fault */
    struct sl_workbench again = {0};
    if (sl_workbench_load(&again, request, &err) != SEQLSTM_OK || again.record.status != SL_BACKEND_OK)
        fail(r, "loading the file a second time failed");
    else if (memcmp(&again.table, &w->table, sizeof w->table) != 0)
        fail(r, "loading the file a second time gave another table");
    else if (sl_clock_process_cpu_ns() - start > INT64_C(500000000))
        fail(r, "loading it a second time took more than 500 ms of processor time: query must not do any work");
    sl_arena_deinit(&again.arena);
}

static void check_operations(struct sl_workbench *w, struct sl_check_result *r)
{
    uint32_t offered = 0;
    for (uint32_t op = 1; op < SEQLSTM_OP_COUNT && op < w->table.desc_count; op++) {
        uint32_t known = w->table.desc_bytes[op];
        offered += known != 0;
        if (known > sl_op_desc_bytes(op)) {
            r->verdict = SL_VERDICT_FAIL;
            sl_text_snprintf(r->detail, sizeof r->detail,
                             "it claims to read %u bytes of the descriptor of %s, which has %u in this ABI", known,
                             sl_op_name(op), sl_op_desc_bytes(op));
        }
    }
    if (offered == 0)
        fail(r, "it offers no operation");
}

void sl_level_load_run(struct sl_workbench *w, const struct sl_conformance_request *request, sl_level_fn *each,
                       void *context)
{
    struct sl_check_result r = {0};
    check_dependencies(w, &r);
    each(context, "load:dependencies", &r);
    memset(&r, 0, sizeof r);
    check_query(w, request, &r);
    each(context, "load:query", &r);
    memset(&r, 0, sizeof r);
    if (w->said[0]) {
        r.verdict = SL_VERDICT_FAIL;
        sl_text_snprintf(r.detail, sizeof r.detail, "being loaded and opened it %s", w->said);
    }
    each(context, "load:output", &r);
    memset(&r, 0, sizeof r);
    check_operations(w, &r);
    each(context, "load:operations", &r);
}
