/* SPDX-License-Identifier: Apache-2.0 */
/* A profile for people and programs. */
#ifndef SL_TIMELINE_PRINT_H
#define SL_TIMELINE_PRINT_H

#include "base/value/buf.h"
#include "timeline/timeline.h"

/* What limits the training, and what to change: one or two sentences with a line feed. `advices`: what was tried out;
 * NULL: nothing was. `command`: what would try it out, for the sentence then. */
void sl_timeline_print_sentence(const struct sl_timeline *timeline, const struct sl_timeline_advices *advices,
                                const char *command, struct sl_buf *out);
/* The ten longest parts of an update, the threads and the memory. */
void sl_timeline_print_table(const struct sl_timeline *timeline, struct sl_buf *out);
/* "20 updates of 64 real steps, 2.31 ms each; recording makes them 0.3 % slower". `how`: "", or how its calls run. */
void sl_timeline_print_updates(const struct sl_timeline *timeline, const char *how, struct sl_buf *out);
extern const char sl_timeline_in_captures[], sl_timeline_call_by_call[];
/* What was tried out, a line for each. */
void sl_timeline_print_advices(const struct sl_timeline_advices *advices, struct sl_buf *out);
/* "seqlstm.profile/1". */
void sl_timeline_print_json(const struct sl_timeline *timeline, const struct sl_timeline_advices *advices,
                            struct sl_buf *out);
/* The activities in the format of Perfetto and chrome://tracing. */
void sl_timeline_print_trace(const struct sl_timeline *timeline, struct sl_buf *out);
/* A section of a page (base/value/html.h): sentence, timeline, table, threads and memory. sl_timeline_style goes into
 * the style of the page. */
void sl_timeline_print_section(const struct sl_timeline *timeline, const struct sl_timeline_advices *advices,
                               struct sl_buf *out);
extern const char sl_timeline_style[];

/* "2.31 ms", "45 us" */
void sl_timeline_format_time(double ns, char *out, size_t capacity_bytes);

#endif
