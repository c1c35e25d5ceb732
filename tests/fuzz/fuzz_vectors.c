/* SPDX-License-Identifier: Apache-2.0 */
/* Pretrained word vectors. The first byte of the input chooses the width, the rest is the file: it is refused with a
 * message, or every row that it counts is of the vocabulary. */
#include <stdlib.h>
#include <unistd.h>

#include "data/text/word_vectors.h"
#include "fuzz.h"

enum { WORDS = 6, WIDTHS = 6 };

static struct sl_vocabulary *vocabulary; /* lives as long as the process */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const struct sl_vocabulary_entry entries[WORDS] = {{"<unk>", 5, 0},    {"a", 1, 1},        {"the", 3, 1},
                                                              {"new york", 8, 1}, {"\xC3\xA9", 2, 1}, {"-", 1, 1}};
    static const int32_t specials[SL_SPECIAL_COUNT] = {-1, 0, -1, -1};
    static const char good[] = "3 2\na 1 2\nthe 3 -4e1\nnew york 0.5 6\n";
    (void)argc, (void)argv;
    fuzz_require(sl_vocabulary_create(entries, WORDS, specials, &vocabulary, NULL) == SEQLSTM_OK);
    fuzz_write_seed(1, good, sizeof good - 1);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[FUZZ_PATH_BYTES];
    int64_t found = 0;
    if (size < 1)
        return 0;
    const int width = 1 + data[0] % WIDTHS;
    const int fd = fuzz_open_memory(data + 1, size - 1, path);
    float *table = calloc(WORDS * (size_t)width, sizeof *table);
    fuzz_require(table != NULL);
    const seqlstm_status status = sl_word_vectors_load(path, vocabulary, width, table, &found, &err);
    fuzz_require(status == SEQLSTM_OK || fuzz_failed_well(status, &err, SEQLSTM_CORRUPT_DATA, SEQLSTM_CORRUPT_DATA));
    fuzz_require(found >= 0 && found <= WORDS);
    free(table);
    close(fd);
    return 0;
}
