/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and opens a private module, libseqlstm_NAME.so: in $SEQLSTM_MODULE_PATH (one absolute folder) if that is set,
 * else in modules/ of the build tree that the program lies in, in <libdir>/seqlstm/modules of the prefix that it is
 * installed in, or where the build said. A module stays mapped until the program ends.
 *
 * As for backends, a file is refused that all users may write, or that belongs to neither root nor the user. */
#ifndef SL_BASE_SYSTEM_MODULE_H
#define SL_BASE_SYSTEM_MODULE_H

#include <seqlstm/status.h>

/* *out_table is what `symbol` names. UNAVAILABLE: not found, or it cannot be mapped; the message lists the places
 * searched, and the reason. [any thread] */
seqlstm_status sl_module_open(const char *name, const char *symbol, const void **out_table, struct seqlstm_error *err);

#endif
