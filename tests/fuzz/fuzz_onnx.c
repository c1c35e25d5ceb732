/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX files: whatever the bytes are, reading ends with a message or with a value for each parameter. The first byte of
 * the input chooses a network (subjects.h), the rest is the file. */
#include <unistd.h>

#include "fuzz.h"
#include "interop/onnx.h"
#include "subjects.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    open_subjects();
    for (int s = 0; s < SUBJECTS; s++) {
        write_subject_seed(s, "model.onnx", s);
        write_subject_seed(s, "torch.onnx", s + SUBJECTS);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_buf notes = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[FUZZ_PATH_BYTES];
    if (size < 1)
        return 0;
    const struct subject *subject = &subjects[data[0] % SUBJECTS];
    const int fd = fuzz_open_memory(data + 1, size - 1, path);
    const seqlstm_status status = sl_onnx_read(subject->graph, path, subject->values, &notes, &err);
    fuzz_require(status == SEQLSTM_OK || fuzz_failed_well(status, &err, SEQLSTM_CORRUPT_DATA, SEQLSTM_INVALID_CONFIG));
    sl_buf_deinit(&notes);
    close(fd);
    return 0;
}
