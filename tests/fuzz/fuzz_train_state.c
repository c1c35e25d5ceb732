/* SPDX-License-Identifier: Apache-2.0 */
/* The state of training inside a checkpoint: a text is refused with a message, or is written as one that reads back to
 * the same bytes. */
#include "fuzz.h"
#include "train/checkpoint/train_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_train_state state, again;
    struct sl_buf first = {0}, second = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = sl_train_state_read((const char *)data, size, &state, &err);
    fuzz_require(status == SEQLSTM_OK || fuzz_failed_well(status, &err, SEQLSTM_CORRUPT_DATA, SEQLSTM_CORRUPT_DATA));
    if (status != SEQLSTM_OK)
        return 0;
    sl_train_state_write(&state, &first);
    fuzz_require(sl_train_state_read(first.data, first.length_bytes, &again, &err) == SEQLSTM_OK);
    sl_train_state_write(&again, &second);
    fuzz_require(fuzz_equal(&first, &second));
    return 0;
}
