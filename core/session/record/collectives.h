/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives that are linked into the library. */
#ifndef SL_SESSION_RECORD_COLLECTIVES_H
#define SL_SESSION_RECORD_COLLECTIVES_H

#include "registry/collectives/connection.h"

extern const struct sl_collectives_builtin sl_collectives_builtins[1];

#endif
