/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a track's activities. Private to core/timeline. */
#ifndef SL_TIMELINE_TREE_H
#define SL_TIMELINE_TREE_H

#include "timeline/timeline.h"

/* Fills parts, updates, rows and times of the profile from the track of the thread that trains. NO_MEMORY; NOT_FOUND:
 * no update was recorded. */
seqlstm_status sl_timeline_grow(struct sl_timeline *timeline, struct seqlstm_error *err);

/* Sorts activities by their begin, those that hold others first. */
void sl_timeline_sort(struct sl_activity *activities, int64_t count);

#endif
