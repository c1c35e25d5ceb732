/* SPDX-License-Identifier: Apache-2.0 */
/* Backends, as a kind of plugin. */
#include <stdbool.h>

#include "registry/kind/kind.h"

enum { OPS_MAX = 4096, DESC_BYTES_MAX = 1 << 16 };

SL_KIND_CHECK_HEAD(struct seqlstm_backend);

static const void *ask(sl_query_fn *query, uint32_t host_minor)
{
    return ((seqlstm_backend_query_fn)query)(host_minor);
}

static const char *find_missing(const void *table)
{
    const struct seqlstm_backend *t = table;
    const struct {
        const char *name;
        bool present;
    } slots[] = {
        {"open", t->open != NULL},
        {"close", t->close != NULL},
        {"device_count", t->device_count != NULL},
        {"device_info", t->device_info != NULL},
        {"supports", t->supports != NULL},
        {"op_create", t->op_create != NULL},
        {"op_sizes", t->op_sizes != NULL},
        {"op_bind", t->op_bind != NULL},
        {"forward", t->forward != NULL},
        {"binding_destroy", t->binding_destroy != NULL},
        {"op_destroy", t->op_destroy != NULL},
    };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (!slots[i].present)
            return slots[i].name;
    return NULL;
}

static const char *find_bad_list(const void *table)
{
    const struct seqlstm_backend *t = table;
    if (t->desc_count > OPS_MAX || (t->desc_count > 0 && !t->desc_bytes))
        return "its list of operations (desc_bytes) is missing or too long";
    for (uint32_t i = 0; i < t->desc_count; i++)
        if (t->desc_bytes[i] != 0 && (t->desc_bytes[i] < sizeof(struct seqlstm_desc) || t->desc_bytes[i] % 8 != 0 ||
                                      t->desc_bytes[i] > DESC_BYTES_MAX))
            return "an entry of desc_bytes cannot be the size of a descriptor";
    return sl_kind_find_bad_option(t->options, t->option_count);
}

const struct sl_plugin_kind sl_backend_kind = {
    .noun = "backend",
    .symbol = SEQLSTM_QUERY_SYMBOL,
    .symbol_stem = "seqlstm_backend_query_v",
    .file_stem = "libseqlstm_backend_",
    .abi_major = SEQLSTM_ABI_MAJOR,
    .abi_minor = SEQLSTM_ABI_MINOR,
    .required_bytes = offsetof(struct seqlstm_backend, op_destroy) + sizeof(((struct seqlstm_backend *)0)->op_destroy),
    .table_bytes = (uint32_t)sizeof(struct seqlstm_backend),
    .ask = ask,
    .find_missing = find_missing,
    .find_bad_list = find_bad_list,
};
