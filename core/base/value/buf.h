/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte buffer for text and small files.
 *
 * Failure is sticky: after an allocation failed every append does nothing, and sl_buf_take returns NULL, so that a
 * writer checks once at the end. The content is always followed by a NUL byte that does not count. [one thread at a
 * time]
 */
#ifndef SL_BASE_VALUE_BUF_H
#define SL_BASE_VALUE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <seqlstm/status.h>

struct sl_buf {
    char *data; /* NULL until something is appended */
    size_t length_bytes;
    size_t capacity_bytes;
    bool failed; /* memory ran out, or the length overflowed */
};

/* Allocates nothing; a zeroed struct sl_buf is an initialised one. */
void sl_buf_init(struct sl_buf *buf);
void sl_buf_deinit(struct sl_buf *buf);

void sl_buf_append(struct sl_buf *buf, const void *data, size_t bytes);
void sl_buf_append_text(struct sl_buf *buf, const char *text);
void sl_buf_append_char(struct sl_buf *buf, char c);
void sl_buf_fill(struct sl_buf *buf, char c, size_t count);

/* Formatted text; numbers are printed as in the C locale, whatever the program's locale is. */
void sl_buf_printf(struct sl_buf *buf, const char *format, ...) SEQLSTM_PRINTF(2, 3);
void sl_buf_vprintf(struct sl_buf *buf, const char *format, va_list args) SEQLSTM_PRINTF(2, 0);

/* Room for `bytes` more at the end, uninitialised; the caller writes them and they count at once. NULL after a failure.
 * Valid until the next append. */
void *sl_buf_grow(struct sl_buf *buf, size_t bytes);

/* Removes what follows the first `length_bytes`; nothing where the content is shorter. Keeps the memory. */
void sl_buf_truncate(struct sl_buf *buf, size_t length_bytes);

/* The content as a string, borrowed until the next append; "" when empty or failed. */
const char *sl_buf_text(const struct sl_buf *buf);
/* Its bytes: those of the content, none after a failure. */
size_t sl_buf_text_bytes(const struct sl_buf *buf);

/* Transfers the memory: NUL-terminated, to be freed with free(). NULL after a failure. The buffer is then as after
 * sl_buf_init. `out_bytes` may be NULL. */
char *sl_buf_take(struct sl_buf *buf, size_t *out_bytes);

#endif
