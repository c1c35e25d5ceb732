/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors files, weights and checkpoints: the bytes are refused with a message, or every entry can be found and
 * read. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "interop/safetensors.h"

static void read_entry(const struct sl_safetensors *file, const struct sl_safetensors_entry *entry)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int64_t elems = sl_safetensors_count_elems(entry);
    fuzz_require(elems >= 0 && sl_safetensors_find(file, entry->name) == entry);
    float *values = calloc((size_t)elems + 1, sizeof *values);
    fuzz_require(values != NULL);
    const seqlstm_status status = sl_safetensors_read_float32(entry, values, elems, &err);
    fuzz_require(status == SEQLSTM_OK || fuzz_failed_well(status, &err, SEQLSTM_CORRUPT_DATA, SEQLSTM_CORRUPT_DATA));
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_safetensors *file = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    void *copy = malloc(size ? size : 1); /* of exactly this size, for the address sanitizer */
    fuzz_require(copy != NULL);
    memcpy(copy, data, size);
    seqlstm_status status = sl_safetensors_open_bytes("file", copy, size, &file, &err);
    fuzz_require(status == SEQLSTM_OK || fuzz_failed_well(status, &err, SEQLSTM_CORRUPT_DATA, SEQLSTM_CORRUPT_DATA));
    for (int32_t k = 0; file && k < sl_safetensors_get_count(file); k++)
        read_entry(file, sl_safetensors_get_entry(file, k));
    if (status == SEQLSTM_OK) {
        status = sl_safetensors_verify(file, &err);
        fuzz_require(status == SEQLSTM_OK ||
                     fuzz_failed_well(status, &err, SEQLSTM_CORRUPT_DATA, SEQLSTM_CORRUPT_DATA));
        const char *text = sl_safetensors_find_text(file, "format");
        fuzz_require(text == NULL || strlen(text) < size);
    }
    sl_safetensors_close(file);
    free(copy);
    return 0;
}
