/* SPDX-License-Identifier: Apache-2.0 */
/* A condition on runs: `test.loss<0.1`, `train.optimizer.type=adam`. */
#ifndef SL_RUNS_CONDITION_H
#define SL_RUNS_CONDITION_H

#include <stdbool.h>

#include <seqlstm/status.h>

struct sl_arena;
struct sl_run_value;

enum sl_condition_op { SL_IS_LESS, SL_IS_AT_MOST, SL_IS_GREATER, SL_IS_AT_LEAST, SL_IS_EQUAL, SL_IS_NOT_EQUAL };

struct sl_run_condition {
    const char *key; /* see run_value.h */
    enum sl_condition_op op;
    const char *text; /* the right side */
    double number;    /* the same as a number; NaN: it is none */
};

/* Reads `KEY OP VALUE` with <, <=, >, >=, =, == or !=; blanks around the operator do not count. Errors:
 * INVALID_CONFIG (the message says what is wrong), NO_MEMORY. */
seqlstm_status sl_run_condition_read(struct sl_arena *arena, const char *text, struct sl_run_condition *out,
                                     struct seqlstm_error *err);

/* Does the value of the condition's key fulfil it? A run without the value fulfils none, `!=` neither. Numbers are
 * compared with numbers only; text is equal or not, and has no order. */
bool sl_run_condition_holds(const struct sl_run_condition *condition, const struct sl_run_value *value);

#endif
