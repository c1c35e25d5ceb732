/* SPDX-License-Identifier: Apache-2.0 */
/* The backend path: the folders in which plugins are looked for, and the files in them. */
#ifndef SL_REGISTRY_SEARCH_H
#define SL_REGISTRY_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/memory/arena.h"
#include "registry/kind/kind.h"

struct sl_search {
    const char **folders; /* absolute, in order, each once */
    uint32_t folder_count;
};

/* The folders of the request. Then, unless only_folders, those of the environment, the user, the build tree, the prefix
 * in which the program or libseqlstm.so lies, and the prefix that it was built for.
 * Errors: INVALID_ARGUMENT (a relative folder in the request), NO_MEMORY. */
seqlstm_status sl_search_init(struct sl_search *search, struct sl_arena *arena, const char *const *folders,
                              uint32_t folder_count, bool only_folders, struct seqlstm_error *err);

/* The files of the plugin `id` of this kind in all folders, in order; *out_count may be 0. id NULL: of all ids, sorted
 * by folder and then by name. Errors: NO_MEMORY. */
seqlstm_status sl_search_find(const struct sl_search *search, struct sl_arena *arena, const struct sl_plugin_kind *kind,
                              const char *id, const char ***out_files, uint32_t *out_count, struct seqlstm_error *err);

/* The id in the name of a file that sl_search_find has found ("…/libseqlstm_backend_cpu-blas.so" gives "cpu-blas").
 * NULL: no memory. */
const char *sl_search_copy_id(struct sl_arena *arena, const struct sl_plugin_kind *kind, const char *file);

#endif
