/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the levels load and contract, which are not cases. */
#ifndef SL_CONFORMANCE_LEVEL_H
#define SL_CONFORMANCE_LEVEL_H

#include "conformance/workbench.h"

/* Names by index, NULL after the last. */
const char *sl_level_load_get_name(uint32_t index);
const char *sl_level_contract_get_name(uint32_t index);
/* Runs the check with that index. */
void sl_level_load_check(struct sl_workbench *w, const struct sl_conformance_request *request, uint32_t index,
                         struct sl_check_result *out_result);
void sl_level_contract_check(struct sl_workbench *w, const struct sl_conformance_request *request, uint32_t index,
                             struct sl_check_result *out_result);

#endif
