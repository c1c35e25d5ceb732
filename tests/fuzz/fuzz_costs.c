/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of measured costs: it opens whatever the file contains, and keeps what is added. */
#include <stdio.h>
#include <string.h>

#include "dispatch/cost/cost_cache.h"
#include "fuzz.h"

static const char *folder;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    folder = fuzz_make_folder();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sl_cost_record added = {.key = {{1, 2}}, .forward_ns = 3, .backward_ns = 4, .label = "x:y/z"};
    struct sl_cost_cache *cache = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[600];
    snprintf(path, sizeof path, "%s/costs", folder);
    fuzz_write_file(path, data, size);
    fuzz_require(sl_cost_cache_open(folder, &cache, &err) == SEQLSTM_OK);
    fuzz_require(sl_cost_cache_add(cache, &added, &err) == SEQLSTM_OK);
    fuzz_require(sl_cost_cache_save(cache, &err) == SEQLSTM_OK);
    sl_cost_cache_close(cache);
    fuzz_require(sl_cost_cache_open(folder, &cache, &err) == SEQLSTM_OK);
    const struct sl_cost_record *found = sl_cost_cache_find(cache, &added.key);
    fuzz_require(found && found->forward_ns == 3 && found->backward_ns == 4 && !found->bound && !found->refused &&
                 strcmp(found->label, added.label) == 0);
    sl_cost_cache_close(cache);
    return 0;
}
