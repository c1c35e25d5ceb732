/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.jsonl of a run that is resumed: what is damaged or too new is removed, so that opening it a second time
 * removes nothing. */
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "train/metrics_log.h"

enum { LAST_UPDATE = 20, LAST_VALIDATION = 10 };

static char path[600];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    snprintf(path, sizeof path, "%s/metrics.jsonl", fuzz_make_folder());
    return 0;
}

/* The file's size afterwards. */
static off_t open_log(double *out_seconds)
{
    struct sl_metrics_log *log = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct stat found;
    fuzz_require(sl_metrics_log_open(path, LAST_UPDATE, LAST_VALIDATION, NULL, &log, out_seconds, &err) == SEQLSTM_OK);
    sl_metrics_log_close(log);
    fuzz_require(stat(path, &found) == 0);
    return found.st_size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double first = 0, second = 0;
    fuzz_write_file(path, data, size);
    const off_t kept = open_log(&first);
    fuzz_require(kept <= (off_t)size && isfinite(first) && first >= 0);
    fuzz_require(open_log(&second) == kept && second == first);
    return 0;
}
