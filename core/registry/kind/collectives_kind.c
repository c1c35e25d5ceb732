/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives, as a kind of plugin. */
#include <stdbool.h>

#include "registry/kind/kind.h"

SL_KIND_CHECK_HEAD(struct seqlstm_collectives);

static const void *ask(sl_query_fn *query, uint32_t host_minor)
{
    return ((seqlstm_collectives_query_fn)query)(host_minor);
}

static const char *find_missing(const void *table)
{
    const struct seqlstm_collectives *t = table;
    const struct {
        const char *name;
        bool present;
    } slots[] = {
        {"describe", t->describe != NULL},
        {"open", t->open != NULL},
        {"close", t->close != NULL},
        {"group_create", t->group_create != NULL},
        {"group_destroy", t->group_destroy != NULL},
        {"run", t->run != NULL},
        {"poll", t->poll != NULL},
        {"abort", t->abort != NULL},
    };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (!slots[i].present)
            return slots[i].name;
    return NULL;
}

static const char *find_bad_list(const void *table)
{
    const struct seqlstm_collectives *t = table;
    return sl_kind_find_bad_option(t->options, t->option_count);
}

const struct sl_plugin_kind sl_collectives_kind = {
    .noun = "collectives plugin",
    .symbol = SEQLSTM_COLLECTIVES_QUERY_SYMBOL,
    .symbol_stem = "seqlstm_collectives_query_v",
    .file_stem = "libseqlstm_collectives_",
    .abi_major = SEQLSTM_COLLECTIVES_MAJOR,
    .abi_minor = SEQLSTM_COLLECTIVES_MINOR,
    .required_bytes = offsetof(struct seqlstm_collectives, abort) + sizeof(((struct seqlstm_collectives *)0)->abort),
    .table_bytes = (uint32_t)sizeof(struct seqlstm_collectives),
    .ask = ask,
    .find_missing = find_missing,
    .find_bad_list = find_bad_list,
};
