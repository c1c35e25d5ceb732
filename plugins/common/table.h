/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the tables of the backends in this repository share, and the exported function. */
#ifndef COMMON_TABLE_H
#define COMMON_TABLE_H

#include <seqlstm/backend.h>

#if defined(__has_feature)
#define TABLE_HAS_FEATURE(name) __has_feature(name)
#else
#define TABLE_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TABLE_HAS_FEATURE(address_sanitizer)
#define TABLE_SANITIZERS 1u
#elif defined(__SANITIZE_THREAD__) || TABLE_HAS_FEATURE(thread_sanitizer)
#define TABLE_SANITIZERS 2u
#else
#define TABLE_SANITIZERS 0u
#endif

/* The first members of a struct seqlstm_backend. */
#define TABLE_HEAD(backend_id, backend_version, backend_build)                                                         \
    .struct_size = sizeof(struct seqlstm_backend), .magic = SEQLSTM_MAGIC, .abi_major = SEQLSTM_ABI_MAJOR,             \
    .abi_minor_needed = SEQLSTM_ABI_MINOR, .id = backend_id, .version = backend_version, .vendor = "seqlstm",          \
    .license = "Apache-2.0", .build = backend_build, .sanitizers = TABLE_SANITIZERS, .desc_count = SEQLSTM_OP_COUNT

/* The entry point of the plugin. Use it without a semicolon. */
#define TABLE_EXPORT(table)                                                                                            \
    SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);                        \
    SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor)                         \
    {                                                                                                                  \
        (void)host_minor;                                                                                              \
        return &(table);                                                                                               \
    }

#endif
