/* SPDX-License-Identifier: Apache-2.0 */
/* What an ELF file says about itself: checked before a plugin is mapped, recorded afterwards. */
#ifndef SL_REGISTRY_ELF_H
#define SL_REGISTRY_ELF_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "base/memory/arena.h"
#include "registry/registry.h"

/* A shared object of this machine that exports a query symbol and nothing else (query symbols of several
 * ABI majors are fine). Reads the file alone, maps no code. Errors: ABI_MISMATCH with the reason,
 * IO. */
seqlstm_status sl_elf_check_plugin(const char *path, struct seqlstm_error *err);

/* The mapped object whose resolved path is `path` and everything it needs, each with its Build-ID, in
 * the order of discovery. Errors: NO_MEMORY. Not while another thread calls dlopen. */
seqlstm_status sl_elf_collect(struct sl_arena *arena, const char *path, struct sl_backend_file **out_files,
                              uint32_t *out_count, struct seqlstm_error *err);

/* Every mapped file, in the dynamic linker's order. Errors and threads as above. */
seqlstm_status sl_elf_list(struct sl_arena *arena, struct sl_backend_file **out_files, uint32_t *out_count,
                           struct seqlstm_error *err);

#endif
