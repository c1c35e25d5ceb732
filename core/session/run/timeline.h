/* SPDX-License-Identifier: Apache-2.0 */
/* The profile of a training: what was recorded, against the plan and the peaks of the machine. */
#ifndef SL_SESSION_RUN_TIMELINE_H
#define SL_SESSION_RUN_TIMELINE_H

#include <seqlstm/status.h>

#include "timeline/timeline.h"

struct sl_recorder;
struct sl_session;

/* Before a run: makes its recorder, if options.profile_updates asks for one. NO_MEMORY. */
seqlstm_status sl_session_open_recorder(struct sl_session *session, struct seqlstm_error *err);
/* After its training: makes the profile, and writes trace.json and profile.json into the run folder. A failure is
 * logged and is no error. */
void sl_session_note_timeline(struct sl_session *session);
void sl_session_close_recorder(struct sl_session *session);

/* The profile of what the recorder has recorded in this session's training; measures the peaks of the machine. It must
 * be destroyed before the recorder and the session. NOT_FOUND: nothing was recorded. */
seqlstm_status sl_session_make_timeline(struct sl_session *session, struct sl_recorder *recorder,
                                        struct sl_timeline **out_timeline, struct seqlstm_error *err);

/* Of the run; NULL: none was taken. */
const struct sl_timeline *sl_session_find_timeline(const struct sl_session *session);

#endif
