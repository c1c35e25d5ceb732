/* SPDX-License-Identifier: Apache-2.0 */
/* See json_tree.h. */
#include "base/value/json_tree.h"

#include <string.h>

#include "base/value/buf.h"
#include "base/value/text.h"

static json_t *keep(json_t *whole, bool fine)
{
    if (fine)
        return whole;
    json_decref(whole);
    return NULL;
}

json_t *sl_json_add(json_t *array, json_t *value)
{
    return keep(array, json_array_append_new(array, value) == 0);
}

json_t *sl_json_put(json_t *object, const char *key, json_t *value)
{
    return keep(object, json_object_set_new(object, key, value) == 0);
}

json_t *sl_json_text(const char *text)
{
    json_t *same = text ? json_string(text) : json_null();
    if (same)
        return same;
    struct sl_buf fit = {0};
    for (size_t at = 0, bytes = strlen(text); at < bytes;) {
        uint32_t code_point;
        const size_t length = sl_text_utf8_decode(text + at, bytes - at, &code_point);
        sl_buf_append(&fit, length ? text + at : "\xef\xbf\xbd", length ? length : 3);
        at += length ? length : 1;
    }
    json_t *string = fit.failed ? NULL : json_string(sl_buf_text(&fit));
    sl_buf_deinit(&fit);
    return string;
}
