/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two plans by their whole steps. */
#ifndef SL_SESSION_MEASURE_WHOLE_STEPS_H
#define SL_SESSION_MEASURE_WHOLE_STEPS_H

#include "dispatch/plan/request.h"

/* A sl_whole_steps_fn. Buffers are those of one plan at a time, with parameters of their own. */
sl_whole_steps_fn sl_session_time_whole_steps;

#endif
