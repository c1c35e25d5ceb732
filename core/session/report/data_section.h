/* SPDX-License-Identifier: Apache-2.0 */
/* The training data in a report: a histogram of lengths, and how often each class occurs. */
#ifndef SL_SESSION_REPORT_DATA_SECTION_H
#define SL_SESSION_REPORT_DATA_SECTION_H

#include "base/value/buf.h"

struct sl_session;

/* Writes nothing where the data have neither steps nor classes. `sl_data_section_style` goes into the page's style. */
void sl_data_section_write(const struct sl_session *session, struct sl_buf *out);
extern const char sl_data_section_style[];

#endif
