/* SPDX-License-Identifier: Apache-2.0 */
/* The paragraphs of `seqlstm explain E0203`: one per code that a diagnostic may carry. */
#ifndef SL_MODEL_EXPLAIN_H
#define SL_MODEL_EXPLAIN_H

#include <stddef.h>

#include <seqlstm/status.h>

struct sl_explanation {
    const char *code;  /* "E0203" */
    const char *title; /* "unknown key" */
    const char *text;  /* plain text, lines at most 80 characters, ends with a newline */
};

/* The code of an error that has none of its own: that of its status. Static. [any thread] */
const char *sl_explain_get_code(seqlstm_status status);

/* NULL: no such code. Case is ignored. Static. [any thread] */
const struct sl_explanation *sl_explain_find(const char *code);

/* All of them, sorted by code; static. */
const struct sl_explanation *sl_explain_get_all(size_t *out_count);

#endif
