/* SPDX-License-Identifier: Apache-2.0 */
/* What all fuzz targets share. A target is built with libFuzzer (tools/nightly/fuzz.sh), or with replay.c. */
#ifndef SL_TESTS_FUZZ_FUZZ_H
#define SL_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/value/buf.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_PATH_BYTES = 64 };

/* What is found ends the process: libFuzzer keeps the input. */
void fuzz_require(bool condition);

/* Failed with a message, and with one of the two codes? */
bool fuzz_failed_well(seqlstm_status status, const struct seqlstm_error *err, seqlstm_status a, seqlstm_status b);

/* A file in memory with these bytes: its path, and the descriptor to close. */
int fuzz_open_memory(const void *bytes, size_t count, char path[FUZZ_PATH_BYTES]);

void fuzz_write_file(const char *path, const void *bytes, size_t count);

/* Makes an empty folder in $TMPDIR or /tmp, removed when the process ends, with all that is in it. */
const char *fuzz_make_folder(void);

/* The same bytes? Empties both. */
bool fuzz_equal(struct sl_buf *a, struct sl_buf *b);

/* A good input, `choice` and then `bytes`, as a file of the folder $SEQLSTM_FUZZ_SEEDS; nothing if that is not set. */
void fuzz_write_seed(int choice, const void *bytes, size_t count);

#endif
