/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for the user that are not errors: the core hands them to a sink that the program owns. The core itself never
 * prints. A sink may be called from any thread, also from several at once. */
#ifndef SL_BASE_SYSTEM_LOG_H
#define SL_BASE_SYSTEM_LOG_H

#include <stdarg.h>
#include <stdbool.h>

#include <seqlstm/status.h>

enum sl_log_level {
    SL_LOG_ERROR = 0,
    SL_LOG_WARN = 1,
    SL_LOG_INFO = 2,
    SL_LOG_DEBUG = 3,
    SL_LOG_TRACE = 4,
    SL_LOG_STATUS = 5 /* what the program is doing, until the next message; on where INFO is on */
};

/* `message` is one line without the newline, borrowed for the call. */
typedef void sl_log_write_fn(void *context, enum sl_log_level level, const char *message);

struct sl_log {
    sl_log_write_fn *write; /* NULL: silent */
    void *context;
    enum sl_log_level level; /* messages above it are dropped before they are formatted */
};

/* True if a message of this level would be written; `log` may be NULL. */
bool sl_log_is_on(const struct sl_log *log, enum sl_log_level level);

/* Formats as in the C locale; longer than 1023 bytes is cut. `log` may be NULL. */
void sl_log_printf(const struct sl_log *log, enum sl_log_level level, const char *format, ...) SEQLSTM_PRINTF(3, 4);
void sl_log_vprintf(const struct sl_log *log, enum sl_log_level level, const char *format, va_list args)
    SEQLSTM_PRINTF(3, 0);

/* "error", "warning", "info", "debug", "trace", "status". */
const char *sl_log_level_name(enum sl_log_level level);

#endif
