/* SPDX-License-Identifier: Apache-2.0 */
/* plan.json of a run: a text is refused with a message, or gives choices with what they promise. */
#include <unistd.h>

#include "fuzz.h"
#include "session/run_folder/stored_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_stored_plan plan = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[FUZZ_PATH_BYTES];
    const int fd = fuzz_open_memory(data, size, path);
    sl_arena_init(&plan.arena);
    const seqlstm_status status = sl_stored_plan_read(path, &plan, &err);
    fuzz_require(status == SEQLSTM_OK || fuzz_failed_well(status, &err, SEQLSTM_CORRUPT_DATA, SEQLSTM_INVALID_CONFIG));
    if (status == SEQLSTM_OK) {
        sl_stored_plan_find_whole_steps(&plan, SL_PHASE_TRAIN);
        sl_stored_plan_find_whole_steps(&plan, SL_PHASE_EVALUATE);
        fuzz_require(plan.threads >= 0);
        for (int64_t i = 1; i < plan.edge_count; i++)
            fuzz_require(plan.edges[i] > plan.edges[i - 1]);
    }
    sl_arena_deinit(&plan.arena);
    close(fd);
    return 0;
}
