/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and numbers as fields of CSV and JSON. */
#ifndef SL_CLI_OUTPUT_FIELDS_H
#define SL_CLI_OUTPUT_FIELDS_H

#include "base/value/buf.h"

/* RFC 4180: quoted only if necessary. */
void cli_write_csv_text(struct sl_buf *buf, const char *text, size_t bytes);
/* In text and CSV: nan, inf and -inf, as programs that read tables expect. */
void cli_write_number(struct sl_buf *buf, float value);
/* JSON has no NaN and no infinity: null. */
void cli_write_json_number(struct sl_buf *buf, float value);

#endif
