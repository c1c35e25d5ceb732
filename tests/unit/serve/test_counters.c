/* SPDX-License-Identifier: Apache-2.0 */
/* What a server counts, as /metrics shows it: each counter has another number, and each bucket of the histograms.
 * Compared with tests/fixtures/reports/counters.txt; see golden.h.
 */
#include "oom.h"
#include "golden.h"

#include "serve/job/counters.h"

static void every_number_has_its_place(void **state)
{
    static const double waits[] = {0, 1e-5, 2e-5, 2.1e-5, 3e-4, 0.049, 0.05, 0.06, 1, 1.9, 2, 5, 10, 10.1, 1000};
    static const int64_t widths[] = {1, 1, 2, 3, 5, 16, 17, 64, 65, 192, 1024, 4096, 4097, 100000};
    struct sl_counters counters;
    struct sl_buf out = {0};
    (void)state;
    sl_counters_init(&counters);
    for (int status = 200; status < 600; status += 50)
        for (int k = 0; k < status / 100; k++)
            sl_counters_note_reply(&counters, status);
    for (size_t k = 0; k < sizeof waits / sizeof *waits; k++)
        sl_counters_note_queued(&counters, waits[k]);
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
        sl_counters_note_batch(&counters, widths[k], 3 * widths[k], (double)widths[k] * 1e-4);
    for (int k = 0; k < 7; k++)
        sl_counters_note_busy(&counters, k == 3 ? -1 : 1);
    sl_counters_note_sequences(&counters, 11);
    sl_counters_note_sequences(&counters, 12);
    sl_counters_note_gone(&counters);
    sl_counters_note_followed(&counters);
    sl_counters_note_followed(&counters);
    const struct sl_counter_gauges gauges = {.waiting = 31, .streams = 32, .expired = 33};
    sl_counters_write(&counters, &gauges, &out);
    golden_expect("reports/counters.txt", "# HELP", sl_buf_text(&out));
    sl_buf_deinit(&out);
    sl_counters_deinit(&counters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_number_has_its_place)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
