/* SPDX-License-Identifier: Apache-2.0 */
/* A registry of the reference and of backends that the tests build. */
#ifndef SL_TESTS_REGISTRY_FIXTURE_H
#define SL_TESTS_REGISTRY_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include "ok.h"
#include "registry/registry.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

/* entries: [count], the reference or backends of build/tests/gpu. */
static inline struct sl_registry *registry_open(const struct sl_registry_entry *entries, uint32_t count)
{
    static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};
    char folder[512];
    const char *folders[] = {folder};
    snprintf(folder, sizeof folder, "%s/tests/gpu", getenv("SEQLSTM_BUILD"));
    const struct sl_registry_request request = {.entries = entries,
                                                .entry_count = count,
                                                .builtins = builtins,
                                                .builtin_count = 1,
                                                .folders = folders,
                                                .folder_count = 1,
                                                .only_folders = true,
                                                .trust = true};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_registry *registry = NULL;
    ok(sl_registry_create(&request, &registry, &err), &err);
    assert_int_equal(sl_registry_get_backend_count(registry), count);
    return registry;
}

#endif
