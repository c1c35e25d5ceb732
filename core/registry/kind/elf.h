/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF file of a plugin, checked before it is mapped. */
#ifndef SL_REGISTRY_KIND_ELF_H
#define SL_REGISTRY_KIND_ELF_H

#include <seqlstm/status.h>

#include "registry/kind/kind.h"

/* OK for a shared object of this machine that exports the query symbol of this kind and nothing else (query symbols of
 * several ABI majors are fine). Reads the file, and maps no code. Errors: ABI_MISMATCH with the reason, IO. */
seqlstm_status sl_elf_check_plugin(const char *path, const struct sl_plugin_kind *kind, struct seqlstm_error *err);

#endif
