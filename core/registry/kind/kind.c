/* SPDX-License-Identifier: Apache-2.0 */
/* See kind.h. */
#include "registry/kind/kind.h"

#include "registry/watch/plugin_text.h"

enum { OPTIONS_MAX = 1024 };

const char *sl_kind_find_bad_option(const struct seqlstm_option *options, uint32_t count)
{
    if (count > OPTIONS_MAX || (count > 0 && !options))
        return "its list of options is missing or too long";
    for (uint32_t i = 0; i < count; i++)
        if (!options[i].key || !options[i].type || !options[i].help)
            return "an option has no key, type or help";
        else if (!sl_plugin_text_is_clean(options[i].key) || !sl_plugin_text_is_clean(options[i].type) ||
                 !sl_plugin_text_is_clean(options[i].help))
            return "a text of an option has control characters or is no UTF-8";
    return NULL;
}
