/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the functions in a plugin's tables of memory and streams: they are noted while they run. Private to
 * core/registry. */
#ifndef SL_REGISTRY_DEVICE_CALL_H
#define SL_REGISTRY_DEVICE_CALL_H

#include "registry/plugin.h"

#define SL_DEVICE_RUN(table, function, expression)                                                                     \
    do {                                                                                                               \
        struct sl_running running_;                                                                                    \
        sl_running_begin(&running_, (table)->id, (function));                                                          \
        expression;                                                                                                    \
        sl_running_end(&running_);                                                                                     \
    } while (0)

/* *out_status: what the function gave, as a status of the host. */
#define SL_DEVICE_CALL(table, function, expression, out_status, err)                                                   \
    do {                                                                                                               \
        SL_DEVICE_RUN(table, function, *(out_status) = expression);                                                    \
        *(out_status) = sl_plugin_check_status((table), (function), *(out_status), (err));                             \
    } while (0)

/* Returns from the calling function if it fails. */
#define SL_DEVICE_TRY(table, function, expression, err)                                                                \
    do {                                                                                                               \
        seqlstm_status status_;                                                                                        \
        SL_DEVICE_CALL(table, function, expression, &status_, err);                                                    \
        SEQLSTM_TRY(status_);                                                                                          \
    } while (0)

#endif
