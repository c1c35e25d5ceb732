/* SPDX-License-Identifier: Apache-2.0 */
/* See condition.h. */
#include "runs/condition.h"

#include <math.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/value/text.h"
#include "runs/run_value.h"

static const struct {
    const char *sign;
    enum sl_condition_op op;
} ops[] = {{"<=", SL_IS_AT_MOST}, {">=", SL_IS_AT_LEAST}, {"==", SL_IS_EQUAL}, {"!=", SL_IS_NOT_EQUAL},
           {"<", SL_IS_LESS},     {">", SL_IS_GREATER},   {"=", SL_IS_EQUAL}};

static char *copy_trimmed(struct sl_arena *arena, const char *text, size_t bytes)
{
    for (; bytes > 0 && *text == ' '; text++)
        bytes--;
    while (bytes > 0 && text[bytes - 1] == ' ')
        bytes--;
    return sl_arena_strndup(arena, text, bytes);
}

seqlstm_status sl_run_condition_read(struct sl_arena *arena, const char *text, struct sl_run_condition *out,
                                     struct seqlstm_error *err)
{
    const size_t key_bytes = strcspn(text, "<>=!");
    size_t k = 0;
    while (k < sizeof ops / sizeof *ops && strncmp(text + key_bytes, ops[k].sign, strlen(ops[k].sign)) != 0)
        k++;
    if (k == sizeof ops / sizeof *ops)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "`%s` is no condition: use KEY<VALUE, with <, <=, >, >=, = or !=", text);
    const char *right = text + key_bytes + strlen(ops[k].sign);
    *out = (struct sl_run_condition){.key = copy_trimmed(arena, text, key_bytes),
                                     .op = ops[k].op,
                                     .text = copy_trimmed(arena, right, strlen(right)),
                                     .number = NAN};
    if (out->key == NULL || out->text == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a condition");
    if (out->key[0] == '\0' || out->text[0] == '\0')
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "`%s` lacks its %s: use KEY<VALUE, as in test.loss<0.1", text,
                     out->key[0] ? "value" : "key");
    sl_text_parse_float64(out->text, strlen(out->text), &out->number);
    if (isnan(out->number) && out->op != SL_IS_EQUAL && out->op != SL_IS_NOT_EQUAL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "`%s` compares with `%s`, which is no number: use = or !=", text,
                     out->text);
    return SEQLSTM_OK;
}

bool sl_run_condition_holds(const struct sl_run_condition *condition, const struct sl_run_value *value)
{
    const bool numbers = value->kind == SL_RUN_VALUE_NUMBER && !isnan(condition->number);
    if (value->kind == SL_RUN_VALUE_NONE)
        return false;
    switch (condition->op) {
    case SL_IS_LESS:
        return numbers && value->number < condition->number;
    case SL_IS_AT_MOST:
        return numbers && value->number <= condition->number;
    case SL_IS_GREATER:
        return numbers && value->number > condition->number;
    case SL_IS_AT_LEAST:
        return numbers && value->number >= condition->number;
    default:
        break;
    }
    const bool equal = numbers ? value->number == condition->number : strcmp(value->text, condition->text) == 0;
    return equal == (condition->op == SL_IS_EQUAL);
}
