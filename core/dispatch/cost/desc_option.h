/* SPDX-License-Identifier: Apache-2.0 */
/* The same operation without one of its options. Private to core/dispatch. */
#ifndef SL_DISPATCH_COST_DESC_OPTION_H
#define SL_DISPATCH_COST_DESC_OPTION_H

#include <stdbool.h>

#include <seqlstm/any_desc.h>

/* Sets the option (SEQLSTM_OPTION_…) to what every backend runs: off, or the usual activation. False, and nothing is
 * changed: the operation has no such option, or it has that value already, or nothing stands for its absence (shapes,
 * dtypes, losses). [any thread] */
bool sl_desc_remove_option(union seqlstm_any_desc *desc, uint32_t option);

#endif
