/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm conformance`: tests one backend case by case against the float64 reference.
 *
 * Cases run in worker processes (the program, started again), so that a crash or a hang is the verdict of one case;
 * the next worker continues after it. Without a worker command they run in this process, for use in a debugger. */
#ifndef SL_CONFORMANCE_CONFORMANCE_H
#define SL_CONFORMANCE_CONFORMANCE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "base/value/buf.h"
#include "conformance/case_bench.h"
#include "conformance/request.h"

struct sl_conformance_report;

/* Errors: UNAVAILABLE, NOT_FOUND or INVALID_ARGUMENT if the backend does not load (with the record's message),
 * CANCELLED, NO_MEMORY. Cases that fail are results, not errors. */
seqlstm_status sl_conformance_run(const struct sl_conformance_request *request,
                                  struct sl_conformance_report **out_report, struct seqlstm_error *err);
void sl_conformance_report_destroy(struct sl_conformance_report *report);

uint32_t sl_conformance_report_get_count(const struct sl_conformance_report *report, enum sl_verdict verdict);
/* Why no case ran with the variant of the request: the reason of a case that was skipped. NULL: some case ran, all were
 * refused, or there were none. */
const char *sl_conformance_report_find_untested(const struct sl_conformance_report *report);
/* Number of verdicts that are bad. */
uint32_t sl_conformance_report_count_bad(const struct sl_conformance_report *report);
uint32_t sl_conformance_report_get_size(const struct sl_conformance_report *report);
const struct sl_conformance_result *sl_conformance_report_get(const struct sl_conformance_report *report,
                                                              uint32_t index);
const struct sl_backend_record *sl_conformance_report_get_record(const struct sl_conformance_report *report);

/* Times for the JSON, borrowed. There are none if no case that was to be timed passed. */
void sl_conformance_report_set_times(struct sl_conformance_report *report, const struct sl_case_time *times,
                                     uint32_t count);
bool sl_conformance_report_is_timed(const struct sl_conformance_report *report);
const struct sl_case_time *sl_conformance_report_get_times(const struct sl_conformance_report *report,
                                                           uint32_t *out_count);

/* "seqlstm.conformance/1". */
void sl_conformance_report_print_json(const struct sl_conformance_report *report, struct sl_buf *out);
void sl_conformance_report_print_junit(const struct sl_conformance_report *report, struct sl_buf *out);

/* Writes the names of the cases that a request selects, one per line. Loads nothing. */
seqlstm_status sl_conformance_list(const struct sl_conformance_request *request, struct sl_buf *out,
                                   struct seqlstm_error *err);

/* Runs a worker: reads names of cases from descriptor `in`, one per line, and answers each with one line on `out`,
 * until the end of the file. */
seqlstm_status sl_conformance_work(const struct sl_conformance_request *request, int in, int out,
                                   struct seqlstm_error *err);

#endif
