/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder of a backend, with the mistake that -DFAULT_…=1 chooses. */
#ifndef TESTS_CONFORMANCE_FAULTY_RECORDER_H
#define TESTS_CONFORMANCE_FAULTY_RECORDER_H

#include <seqlstm/ext/recorder.h>

/* Says that it worked for a microsecond in each recording. */
static int told;

static seqlstm_status faulty_start(struct seqlstm_instance *instance, uint32_t device, struct seqlstm_error *err)
{
    (void)instance;
    (void)device;
    (void)err;
    told = 0;
#ifdef FAULT_CANNOT_RECORD
    return SEQLSTM_UNAVAILABLE;
#else
    return SEQLSTM_OK;
#endif
}

static seqlstm_status faulty_report(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_report *to,
                                    struct seqlstm_error *err)
{
    struct seqlstm_activity activity = {
        .struct_size = sizeof activity, .kind = SEQLSTM_ACTIVITY_KERNEL, .name = "kernel", .end_ns = 1000};
    (void)instance;
    (void)device;
    (void)err;
#ifdef FAULT_RECORDS_BACKWARD
    activity.begin_ns = 2000;
#endif
#ifdef FAULT_RECORDS_AHEAD
    activity.end_ns = (int64_t)1 << 50;
#endif
#ifdef FAULT_RECORDS_TWICE
    told = 0;
#endif
#ifndef FAULT_CANNOT_RECORD
    if (!told)
        to->activity(to->context, &activity);
#else
    (void)to;
    (void)activity;
#endif
    told = 1;
    return SEQLSTM_OK;
}

static void faulty_stop(struct seqlstm_instance *instance, uint32_t device)
{
    (void)instance;
    (void)device;
}

static const struct seqlstm_recorder faulty_recorder = {
    .struct_size = sizeof faulty_recorder, .start = faulty_start, .report = faulty_report, .stop = faulty_stop};

#endif
