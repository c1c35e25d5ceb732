/* SPDX-License-Identifier: Apache-2.0 */
/* data.json of a run: a text is refused with a message, or gives a state that works and is written as one that reads
 * back to the same bytes. */
#include <stdlib.h>

#include "data/dataset/state.h"
#include "fuzz.h"

enum { FEATURES_MAX = 100000 };

static void check_round_trip(const struct sl_data_state *state)
{
    struct sl_buf first = {0}, second = {0};
    struct sl_data_state *again = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    fuzz_require(sl_data_state_write(state, &first, &err) == SEQLSTM_OK);
    fuzz_require(sl_data_state_read("again", first.data, first.length_bytes, &again, &err) == SEQLSTM_OK);
    fuzz_require(sl_data_state_write(again, &second, &err) == SEQLSTM_OK);
    fuzz_require(fuzz_equal(&first, &second));
    sl_data_state_destroy(again);
}

static void check_text(const struct sl_data_state *state)
{
    static const char text[] = "a b c 1 2 the don't \xC3\xA9 zz";
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf out = {0};
    int32_t *ids = NULL;
    int64_t count = 0;
    if (sl_data_state_encode(state, text, sizeof text - 1, true, &ids, &count, &err) != SEQLSTM_OK) {
        fuzz_require(err.message[0] != 0);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        fuzz_require(ids[i] >= 0 && ids[i] < sl_vocabulary_get_size(sl_data_state_find_vocabulary(state)));
    sl_data_state_decode(state, ids, count, &out);
    sl_buf_deinit(&out);
    free(ids);
}

static void check_targets(const struct sl_data_state *state)
{
    const int64_t features = sl_data_state_get_facts(state)->target.features;
    if (features < 0 || features > FEATURES_MAX)
        return;
    float *values = calloc((size_t)features * 2 + 1, sizeof *values);
    fuzz_require(values != NULL);
    sl_data_state_undo_targets(state, values, 2);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_data_state *state = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = sl_data_state_read("data.json", (const char *)data, size, &state, &err);
    /* UNAVAILABLE: pieces without the module that cuts text into them */
    fuzz_require(status == SEQLSTM_OK || fuzz_failed_well(status, &err, SEQLSTM_CORRUPT_DATA, SEQLSTM_UNAVAILABLE));
    if (status != SEQLSTM_OK)
        return 0;
    check_round_trip(state);
    check_text(state);
    check_targets(state);
    sl_data_state_destroy(state);
    return 0;
}
