/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the tables of the collectives in this repository share, and the exported function. */
#ifndef COMMON_COLLECTIVES_TABLE_H
#define COMMON_COLLECTIVES_TABLE_H

#include <seqlstm/collectives.h>

#include "common/table.h"

/* The first members of a struct seqlstm_collectives. */
#define COLLECTIVES_HEAD(plugin_id, plugin_version, plugin_build)                                                      \
    .struct_size = sizeof(struct seqlstm_collectives), .magic = SEQLSTM_MAGIC, .abi_major = SEQLSTM_COLLECTIVES_MAJOR, \
    .abi_minor_needed = SEQLSTM_COLLECTIVES_MINOR, .id = plugin_id, .version = plugin_version, .vendor = "seqlstm",    \
    .license = "Apache-2.0", .build = plugin_build, .sanitizers = TABLE_SANITIZERS

/* The entry point of the plugin. Use it without a semicolon. */
#define COLLECTIVES_EXPORT(table)                                                                                      \
    SEQLSTM_EXPORT const struct seqlstm_collectives *seqlstm_collectives_query_v0(uint32_t host_minor);                \
    SEQLSTM_EXPORT const struct seqlstm_collectives *seqlstm_collectives_query_v0(uint32_t host_minor)                 \
    {                                                                                                                  \
        (void)host_minor;                                                                                              \
        return &(table);                                                                                               \
    }

#endif
