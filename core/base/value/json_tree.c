/* SPDX-License-Identifier: Apache-2.0 */
/* See json_tree.h. */
#include "base/value/json_tree.h"

#include <errno.h>

json_t *sl_json_load(const char *text, size_t bytes, size_t flags, json_error_t *why, bool *out_no_memory)
{
    const int before = errno;
    errno = 0;
    json_t *root = json_loadb(text, bytes, flags, why);
    *out_no_memory = root == NULL && errno == ENOMEM;
    errno = before;
    return root;
}

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
