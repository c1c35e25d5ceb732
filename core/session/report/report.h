/* SPDX-License-Identifier: Apache-2.0 */
/* report.html of a run. */
#ifndef SL_SESSION_RUN_FOLDER_REPORT_H
#define SL_SESSION_RUN_FOLDER_REPORT_H

struct sl_session;
struct sl_run_result;

/* Rules for a page with the curves of a run. */
extern const char sl_report_style[];

/* Writes the report. A failure is logged and is no error. */
void sl_report_write(const struct sl_session *session, const struct sl_run_result *result);

#endif
