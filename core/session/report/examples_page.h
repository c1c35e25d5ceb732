/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a report that shows what a model answered. */
#ifndef SL_SESSION_REPORT_EXAMPLES_PAGE_H
#define SL_SESSION_REPORT_EXAMPLES_PAGE_H

#include "base/value/buf.h"
#include "session/report/examples.h"

/* Rules for a page with examples. */
extern const char sl_examples_style[];

/* Of classes: a matrix of up to 20, or the pairs that are confused most; of values: a plot of predicted against actual
 * ones. Then the rows where the answer was most wrong. Nothing if there are no rows. */
void sl_examples_write(const struct sl_examples *examples, struct sl_buf *out);

#endif
