/* SPDX-License-Identifier: Apache-2.0 */
/* Removes an option from the description of an operation. Private to core/dispatch. */
#ifndef SL_DISPATCH_COST_DESC_OPTION_H
#define SL_DISPATCH_COST_DESC_OPTION_H

#include <stdbool.h>

#include <seqlstm/any_desc.h>

/* Sets the option (SEQLSTM_OPTION_…) to the value that every backend supports: off, or the usual activation. False, and
 * nothing is changed: the operation has no such option, or has that value already, or the option cannot be removed
 * (shapes, dtypes, losses). [any thread] */
bool sl_desc_remove_option(union seqlstm_any_desc *desc, uint32_t option);

#endif
