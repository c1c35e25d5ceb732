/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of one case: one function per pass, one verdict. */
#ifndef SL_CONFORMANCE_CHECKS_CHECKS_H
#define SL_CONFORMANCE_CHECKS_CHECKS_H

#include "judge/check.h"

/* Runs the case with each variant that the backend names and creates. UNSUPPORTED if it creates none. Errors become
 * verdicts. */
void sl_check_case(struct sl_bench *bench, const struct sl_case *c, struct sl_check_result *out_result);

/* One pass each, for one variant; called by sl_check_case. Errors such as NO_MEMORY are returned. */
void sl_check_numbers(struct sl_check *check);
void sl_check_ranges(struct sl_check *check);
void sl_check_differences(struct sl_check *check);
void sl_check_repeat(struct sl_check *check);
void sl_check_same(struct sl_check *check);
void sl_check_memory(struct sl_check *check);
void sl_check_threads(struct sl_check *check);
void sl_check_alternate(struct sl_check *check);
void sl_check_claim(struct sl_check *check);
void sl_check_idle(struct sl_check *check);

#endif
