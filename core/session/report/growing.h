/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run that still goes on. */
#ifndef SL_SESSION_REPORT_GROWING_H
#define SL_SESSION_REPORT_GROWING_H

#include "base/value/buf.h"

/* The curves so far, from metrics.jsonl; report.html if the run has ended and has one. Reads files only: any process
 * may call it. [any thread] */
void sl_report_write_growing(const char *folder, struct sl_buf *out);

#endif
