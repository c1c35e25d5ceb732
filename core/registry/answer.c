/* SPDX-License-Identifier: Apache-2.0 */
/* See answer.h. */
#include "registry/answer.h"

#include <stdbool.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "base/value/text.h"
#include "registry/plugin.h"
#include "registry/watch/plugin_text.h"

static seqlstm_status refuse(struct seqlstm_answer *answer, uint32_t code, uint32_t option, const char *value,
                             const char *reason)
{
    memset(answer, 0, sizeof *answer);
    answer->struct_size = (uint32_t)sizeof *answer;
    answer->code = code;
    answer->option = option;
    sl_text_snprintf(answer->value, sizeof answer->value, "%s", value);
    sl_text_snprintf(answer->reason, sizeof answer->reason, "%s", reason);
    return SEQLSTM_OK;
}

static bool is_terminated(const char *text, size_t capacity)
{
    return memchr(text, 0, capacity) != NULL;
}

/* Why an answer makes no sense; NULL: it does. */
static const char *nonsense(const struct seqlstm_answer *a)
{
    if (a->accepted > 1)
        return "neither yes nor no";
    if (!is_terminated(a->value, sizeof a->value) || !is_terminated(a->reason, sizeof a->reason) ||
        !is_terminated(a->hint, sizeof a->hint))
        return "a text without an end";
    if (a->accepted) {
        if (a->variant_count == 0 || a->variant_count > SEQLSTM_MAX_VARIANTS)
            return "yes, without a proper number of variants";
        for (uint32_t i = 0; i < a->variant_count; i++) {
            if (!is_terminated(a->variants[i], sizeof a->variants[i]) || a->variants[i][0] == 0)
                return "a variant without a name";
            if (!sl_plugin_text_is_clean(a->variants[i]))
                return "a variant with control characters in its name";
            for (uint32_t k = 0; k < i; k++)
                if (strcmp(a->variants[i], a->variants[k]) == 0)
                    return "one variant twice";
        }
        return NULL;
    }
    if (a->code == 0 || (a->code & ~(2u * SEQLSTM_BIT_REFUSED_DEPENDENCY - 1u)) != 0)
        return "no, without a known code";
    if (a->option >= SEQLSTM_OPTION_COUNT)
        return "no, for an unknown option";
    if (a->reason[0] == 0)
        return "no, without a reason";
    return NULL;
}

static void clean(struct seqlstm_answer *answer)
{
    sl_plugin_text_clean(answer->value, sizeof answer->value);
    sl_plugin_text_clean(answer->reason, sizeof answer->reason);
    sl_plugin_text_clean(answer->hint, sizeof answer->hint);
}

seqlstm_status sl_table_supports(const struct seqlstm_backend *table, const char *device_class,
                                 const struct seqlstm_desc *desc, struct seqlstm_answer *out_answer,
                                 struct seqlstm_error *err)
{
    char text[256];
    const char *name = sl_op_name(desc->op);
    uint32_t known = desc->op < table->desc_count ? table->desc_bytes[desc->op] : 0;
    if (known == 0) {
        sl_text_snprintf(text, sizeof text, "%s does not offer the operation %s", table->id, name);
        return refuse(out_answer, SEQLSTM_BIT_REFUSED_OPERATION, SEQLSTM_OPTION_NONE, name, text);
    }
    const unsigned char *bytes = (const unsigned char *)desc;
    for (uint32_t i = known; i < desc->struct_size; i++)
        if (bytes[i] != 0) {
            sl_text_snprintf(text, sizeof text,
                             "%s reads %u bytes of the descriptor of %s; byte %u of %u is set and could "
                             "not be honoured",
                             table->id, known, name, i, desc->struct_size);
            return refuse(out_answer, SEQLSTM_BIT_REFUSED_ABI, SEQLSTM_OPTION_NONE, name, text);
        }
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct seqlstm_answer answer;
    memset(&answer, 0, sizeof answer);
    answer.struct_size = (uint32_t)sizeof answer;
    seqlstm_status rc = sl_plugin_supports(table, device_class, desc, &answer, &why);
    if (rc != SEQLSTM_OK) {
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "backend %s failed (status %d) when asked about %s: %.500s", table->id,
                     (int)rc, name, why.message[0] ? why.message : "it gave no reason");
    }
    const char *wrong = nonsense(&answer);
    if (wrong) {
        sl_text_snprintf(text, sizeof text, "%s is faulty: asked about %s it answered %s", table->id, name, wrong);
        return refuse(out_answer, SEQLSTM_BIT_REFUSED_ABI, SEQLSTM_OPTION_NONE, "", text);
    }
    answer.struct_size = (uint32_t)sizeof answer;
    clean(&answer);
    *out_answer = answer;
    return SEQLSTM_OK;
}
