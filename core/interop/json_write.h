/* SPDX-License-Identifier: Apache-2.0 */
/* JSON by hand: strings with their escapes, numbers that read back as the same bits. */
#ifndef SL_INTEROP_JSON_WRITE_H
#define SL_INTEROP_JSON_WRITE_H

#include "base/buf.h"

/* Appends valid UTF-8 as a JSON string with its quotes. */
void sl_json_write_text(struct sl_buf *out, const char *text);

/* Appends a finite number; NaN and infinities as null. -0 is written as -0.0, which stays a float. */
void sl_json_write_number(struct sl_buf *out, double value);

/* NaN and infinities as the strings "nan", "inf", "-inf" instead: for what must come back exactly. */
void sl_json_write_exact(struct sl_buf *out, double value);

#endif
