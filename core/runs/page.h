/* SPDX-License-Identifier: Apache-2.0 */
/* A page that shows several runs beside each other: their curves in common charts, and what differs between them. */
#ifndef SL_RUNS_PAGE_H
#define SL_RUNS_PAGE_H

#include "base/value/buf.h"
#include "base/value/chart.h"
#include "runs/comparison.h"

/* Writes the page for the runs of the comparison, at most SL_CHART_LINES. It needs neither a network nor a script. */
void sl_runs_page_write(struct sl_buf *out, const struct sl_run_facts *const *runs,
                        const struct sl_run_comparison *comparison);

#endif
