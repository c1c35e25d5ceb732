/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `seqlstm predict --attention --html`: a heat map for each text and attention layer. */
#ifndef SL_CLI_OUTPUT_ATTENTION_PAGE_H
#define SL_CLI_OUTPUT_ATTENTION_PAGE_H

#include "base/value/buf.h"
#include "session/session.h"

/* Head, a section for each prediction, and the end, in this order: together one self-contained page. */
void cli_attention_page_begin(struct sl_buf *out, const char *model);
void cli_attention_page_add(struct sl_buf *out, const struct sl_prediction *prediction);
void cli_attention_page_end(struct sl_buf *out);

#endif
