/* SPDX-License-Identifier: Apache-2.0 */
/* Level load: properties of a backend that do not need any computation. The loader has already checked the file
 * itself: exports, magic, sizes, slots, floating-point mode, locale, handlers. */
#include <string.h>

#include "base/system/clock.h"
#include "base/operation/op_signature.h"
#include "base/value/text.h"
#include "conformance/level.h"

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
    int64_t start = sl_clock_process_cpu_ns(); /* processor time: another program must not make the plugin fail */
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

static void check_output(struct sl_workbench *w, struct sl_check_result *r)
{
    if (!w->said[0])
        return;
    r->verdict = SL_VERDICT_FAIL;
    sl_text_snprintf(r->detail, sizeof r->detail, "being loaded and opened it %s", w->said);
}

static void check_warning(struct sl_workbench *w, struct sl_check_result *r)
{
    if (w->record.warning)
        fail(r, w->record.warning);
}

static const char *const names[] = {"load:dependencies", "load:query", "load:output", "load:process",
                                    "load:operations"};

const char *sl_level_load_get_name(uint32_t index)
{
    return index < sizeof names / sizeof *names ? names[index] : NULL;
}

void sl_level_load_check(struct sl_workbench *w, const struct sl_conformance_request *request, uint32_t index,
                         struct sl_check_result *out_result)
{
    memset(out_result, 0, sizeof *out_result);
    if (index == 0)
        check_dependencies(w, out_result);
    else if (index == 1)
        check_query(w, request, out_result);
    else if (index == 2)
        check_output(w, out_result);
    else if (index == 3)
        check_warning(w, out_result);
    else
        check_operations(w, out_result);
}
