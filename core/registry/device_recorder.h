/* SPDX-License-Identifier: Apache-2.0 */
/* What a device did while a profile is taken (base/system/trace.h): asks the extension "recorder/1" of the backend, and
 * puts its answers on a track. A backend without the extension, or one that fails, reports nothing, which is no error.
 */
#ifndef SL_REGISTRY_DEVICE_RECORDER_H
#define SL_REGISTRY_DEVICE_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/ext/recorder.h>

/* Zeroed: nothing is recorded. */
struct sl_device_recorder {
    const struct seqlstm_backend *table;
    struct seqlstm_instance *instance;
    uint32_t device;
    const struct seqlstm_recorder *extension; /* NULL: it has none */
    int32_t track;
    int64_t zero_ns, reported_ns; /* on the host's clock: when it started, and last reported */
};

/* When the device has nothing to do. Why the backend does not report is noted in the trace. [control] */
void sl_device_recorder_start(struct sl_device_recorder *recorder, const struct seqlstm_backend *table,
                              struct seqlstm_instance *instance, uint32_t device, int32_t track);
/* Takes what the backend has recorded, unless it did so a moment ago. */
void sl_device_recorder_report(struct sl_device_recorder *recorder);
/* Takes the rest, and ends. */
void sl_device_recorder_stop(struct sl_device_recorder *recorder);

#endif
