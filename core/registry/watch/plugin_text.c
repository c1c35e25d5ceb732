/* SPDX-License-Identifier: Apache-2.0 */
/* See plugin_text.h. */
#include "registry/watch/plugin_text.h"

#include <string.h>

#include "base/value/printable.h"

enum { SHOWN_BYTES = 4096 }; /* longer texts are cut */

bool sl_plugin_text_is_clean(const char *text)
{
    char shown[SHOWN_BYTES];
    return sl_printable_copy(shown, sizeof shown, text, strlen(text), "") < sizeof shown && strcmp(text, shown) == 0;
}

void sl_plugin_text_clean(char *text, size_t capacity_bytes)
{
    char shown[SHOWN_BYTES];
    text[capacity_bytes - 1] = 0;
    sl_printable_copy(shown, capacity_bytes < sizeof shown ? capacity_bytes : sizeof shown, text, strlen(text), "");
    strcpy(text, shown);
}

void sl_plugin_error_clean(struct seqlstm_error *err)
{
    if (!err || err->struct_size < sizeof *err) /* the record of an older host */
        return;
    sl_plugin_text_clean(err->message, sizeof err->message);
    sl_plugin_text_clean(err->where, sizeof err->where);
}
