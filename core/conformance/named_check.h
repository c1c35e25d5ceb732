/* SPDX-License-Identifier: Apache-2.0 */
/* A check of a level, or a case, by its name. */
#ifndef SL_CONFORMANCE_NAMED_CHECK_H
#define SL_CONFORMANCE_NAMED_CHECK_H

#include "conformance/workbench.h"

/* Runs the check or case of this name. */
void sl_named_check(struct sl_workbench *w, const struct sl_conformance_request *request, const char *name,
                    struct sl_check_result *out_result);

#endif
