/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of PyTorch and Keras in safetensors files: whatever the bytes are, reading ends with a message or with a
 * value for each parameter. The first byte of the input chooses a network (subjects.h) and a convention of names, the
 * rest is the file. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "interop/names.h"
#include "interop/safetensors.h"
#include "subjects.h"

enum { CONVENTIONS = 2 };
static const char *const FILES[CONVENTIONS] = {"torch.safetensors", "keras.safetensors"};
static const enum sl_convention NAMES[CONVENTIONS] = {SL_CONVENTION_PYTORCH, SL_CONVENTION_KERAS};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    open_subjects();
    for (int choice = 0; choice < SUBJECTS * CONVENTIONS; choice++)
        write_subject_seed(choice / CONVENTIONS, FILES[choice % CONVENTIONS], choice);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_buf notes = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_safetensors *file = NULL;
    enum sl_convention guess;
    if (size < 1)
        return 0;
    const struct subject *subject = &subjects[data[0] / CONVENTIONS % SUBJECTS];
    void *copy = malloc(size > 1 ? size - 1 : 1); /* of exactly this size, for the address sanitizer */
    fuzz_require(copy != NULL);
    memcpy(copy, data + 1, size - 1);
    seqlstm_status status = sl_safetensors_open_bytes("file", copy, size - 1, &file, &err);
    if (status == SEQLSTM_OK) {
        sl_names_guess(file, &guess);
        status =
            sl_names_import(subject->graph, NAMES[data[0] % CONVENTIONS], file, NULL, 0, subject->values, &notes, &err);
    }
    fuzz_require(status == SEQLSTM_OK || fuzz_failed_well(status, &err, SEQLSTM_CORRUPT_DATA, SEQLSTM_INVALID_CONFIG));
    sl_safetensors_close(file);
    sl_buf_deinit(&notes);
    free(copy);
    return 0;
}
