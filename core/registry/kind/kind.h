/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of plugins: what the loader must know of one, so that all are found, checked and mapped in one way. */
#ifndef SL_REGISTRY_KIND_KIND_H
#define SL_REGISTRY_KIND_KIND_H

#include <stddef.h>
#include <stdint.h>

#include <seqlstm/backend.h>
#include <seqlstm/collectives.h>

/* The members with which the table of every kind begins. */
struct sl_plugin_head {
    uint32_t struct_size, magic, abi_major, abi_minor_needed;
    const char *id, *version, *vendor, *license, *build;
    uint32_t sanitizers;
};

typedef void sl_query_fn(void); /* a query function of some kind; cast back before it is called */

struct sl_plugin_kind {
    const char *noun;        /* "backend": completes "the file is named after …" */
    const char *symbol;      /* the one function that a plugin exports */
    const char *symbol_stem; /* without the number of the ABI */
    const char *file_stem;   /* "libseqlstm_backend_", before the id */
    uint32_t abi_major, abi_minor;
    uint32_t required_bytes; /* of the table */
    uint32_t table_bytes;    /* of the host's whole table */
    const void *(*ask)(sl_query_fn *query, uint32_t host_minor);
    /* The name of the first required function that is NULL; NULL: none is. `table` has table_bytes. */
    const char *(*find_missing)(const void *table);
    /* What is wrong with the lists in the table, as a sentence; NULL: nothing. */
    const char *(*find_bad_list)(const void *table);
};

extern const struct sl_plugin_kind sl_backend_kind;
extern const struct sl_plugin_kind sl_collectives_kind;

/* What is wrong with a list of options, as a sentence; NULL: nothing. */
const char *sl_kind_find_bad_option(const struct seqlstm_option *options, uint32_t count);

/* Checks at compile time that the table of a kind begins with the members of struct sl_plugin_head. */
#define SL_KIND_SAME_PLACE(table, member)                                                                              \
    _Static_assert(offsetof(struct sl_plugin_head, member) == offsetof(table, member), #member)
#define SL_KIND_CHECK_HEAD(table)                                                                                      \
    SL_KIND_SAME_PLACE(table, struct_size);                                                                            \
    SL_KIND_SAME_PLACE(table, magic);                                                                                  \
    SL_KIND_SAME_PLACE(table, abi_major);                                                                              \
    SL_KIND_SAME_PLACE(table, abi_minor_needed);                                                                       \
    SL_KIND_SAME_PLACE(table, id);                                                                                     \
    SL_KIND_SAME_PLACE(table, version);                                                                                \
    SL_KIND_SAME_PLACE(table, vendor);                                                                                 \
    SL_KIND_SAME_PLACE(table, license);                                                                                \
    SL_KIND_SAME_PLACE(table, build);                                                                                  \
    SL_KIND_SAME_PLACE(table, sanitizers)

#endif
