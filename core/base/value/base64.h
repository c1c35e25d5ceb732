/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text: base64 of RFC 4648, section 4, with padding. [any thread] */
#ifndef SL_BASE_VALUE_BASE64_H
#define SL_BASE_VALUE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/value/buf.h"

/* Appends; failure is the buffer's. */
void sl_base64_write(const void *data, size_t bytes, struct sl_buf *out);
/* Appends the bytes. False where the text is not what sl_base64_write writes. */
bool sl_base64_read(const char *text, size_t length, struct sl_buf *out);

#endif
