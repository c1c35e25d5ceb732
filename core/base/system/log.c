/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting of log messages; the sink decides where they go. */
#include "base/system/log.h"

#include <stddef.h>

#include "base/value/text.h"

#define LOG_LINE_BYTES 1024

bool sl_log_is_on(const struct sl_log *log, enum sl_log_level level)
{
    return log && log->write && (level == SL_LOG_STATUS ? SL_LOG_INFO : level) <= log->level;
}

void sl_log_vprintf(const struct sl_log *log, enum sl_log_level level, const char *format, va_list args)
{
    if (!sl_log_is_on(log, level))
        return;
    char line[LOG_LINE_BYTES];
    if (sl_text_vsnprintf(line, sizeof line, format, args) >= 0)
        log->write(log->context, level, line);
}

void sl_log_printf(const struct sl_log *log, enum sl_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sl_log_vprintf(log, level, format, args);
    va_end(args);
}

const char *sl_log_level_name(enum sl_log_level level)
{
    static const char *const names[] = {"error", "warning", "info", "debug", "trace", "status"};
    return (unsigned)level < sizeof names / sizeof *names ? names[level] : "trace";
}
