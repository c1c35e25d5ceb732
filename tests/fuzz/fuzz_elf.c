/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a plugin's file before it is mapped: the bytes are a plugin, or there is a reason why not. */
#include <unistd.h>

#include "fuzz.h"
#include "registry/kind/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[FUZZ_PATH_BYTES];
    const int fd = fuzz_open_memory(data, size, path);
    const seqlstm_status status = sl_elf_check_plugin(path, &sl_backend_kind, &err);
    fuzz_require(status == SEQLSTM_OK || fuzz_failed_well(status, &err, SEQLSTM_ABI_MISMATCH, SEQLSTM_IO));
    close(fd);
    return 0;
}
