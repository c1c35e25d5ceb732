/* SPDX-License-Identifier: Apache-2.0 */
/* The growable buffer. Invariants: (1) data is NULL, or capacity_bytes > length_bytes and data[length_bytes] is NUL;
 * (2) after `failed` the content stays as it was. */
#include "base/value/buf.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/checked.h"
#include "base/value/text.h"

void sl_buf_init(struct sl_buf *buf)
{
    *buf = (struct sl_buf){0};
}

void sl_buf_deinit(struct sl_buf *buf)
{
    free(buf->data);
    *buf = (struct sl_buf){0};
}

/* Room for `bytes` more and the NUL. */
static bool reserve(struct sl_buf *buf, size_t bytes)
{
    if (buf->failed)
        return false;
    size_t needed_bytes;
    if (!sl_checked_add_size(buf->length_bytes, bytes, &needed_bytes) ||
        !sl_checked_add_size(needed_bytes, 1, &needed_bytes)) {
        buf->failed = true;
        return false;
    }
    if (needed_bytes <= buf->capacity_bytes)
        return true;
    size_t capacity_bytes = buf->capacity_bytes ? buf->capacity_bytes : 64;
    while (capacity_bytes < needed_bytes)
        if (!sl_checked_mul_size(capacity_bytes, 2, &capacity_bytes))
            capacity_bytes = needed_bytes;
    char *data = realloc(buf->data, capacity_bytes);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity_bytes = capacity_bytes;
    buf->data[buf->length_bytes] = '\0';
    return true;
}

void *sl_buf_grow(struct sl_buf *buf, size_t bytes)
{
    if (!reserve(buf, bytes))
        return NULL;
    char *room = buf->data + buf->length_bytes;
    buf->length_bytes += bytes;
    buf->data[buf->length_bytes] = '\0';
    return room;
}

void sl_buf_append(struct sl_buf *buf, const void *data, size_t bytes)
{
    if (bytes == 0)
        return;
    void *room = sl_buf_grow(buf, bytes);
    if (room)
        memcpy(room, data, bytes);
}

void sl_buf_append_text(struct sl_buf *buf, const char *text)
{
    sl_buf_append(buf, text, strlen(text));
}

void sl_buf_append_char(struct sl_buf *buf, char c)
{
    sl_buf_append(buf, &c, 1);
}

void sl_buf_fill(struct sl_buf *buf, char c, size_t count)
{
    void *room = sl_buf_grow(buf, count);
    if (room)
        memset(room, c, count);
}

void sl_buf_vprintf(struct sl_buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = sl_text_vsnprintf(NULL, 0, format, args);
    if (length < 0) {
        buf->failed = true;
    } else if (reserve(buf, (size_t)length)) {
        sl_text_vsnprintf(buf->data + buf->length_bytes, (size_t)length + 1, format, again);
        buf->length_bytes += (size_t)length;
    }
    va_end(again);
}

void sl_buf_printf(struct sl_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sl_buf_vprintf(buf, format, args);
    va_end(args);
}

void sl_buf_truncate(struct sl_buf *buf, size_t length_bytes)
{
    if (length_bytes < buf->length_bytes) {
        buf->length_bytes = length_bytes;
        buf->data[length_bytes] = '\0';
    }
}

const char *sl_buf_text(const struct sl_buf *buf)
{
    return buf->data && !buf->failed ? buf->data : "";
}

size_t sl_buf_text_bytes(const struct sl_buf *buf)
{
    return buf->failed ? 0 : buf->length_bytes;
}

char *sl_buf_take(struct sl_buf *buf, size_t *out_bytes)
{
    if (!reserve(buf, 0)) {
        sl_buf_deinit(buf);
        return NULL;
    }
    char *data = buf->data;
    if (out_bytes)
        *out_bytes = buf->length_bytes;
    *buf = (struct sl_buf){0};
    return data;
}
