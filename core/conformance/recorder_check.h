/* SPDX-License-Identifier: Apache-2.0 */
/* The extension "recorder/1": what a backend reports of a recording. */
#ifndef SL_CONFORMANCE_RECORDER_CHECK_H
#define SL_CONFORMANCE_RECORDER_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "conformance/workbench.h"

/* Records while `run` makes calls on the device of the workbench. False: something is wrong, which out_text says. True
 * also where the backend has no such extension, or says why it cannot record. */
bool sl_recorder_check(struct sl_workbench *w, void (*run)(void *context), void *context, char *out_text,
                       size_t capacity_bytes);

#endif
