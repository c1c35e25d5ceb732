/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char made[512]; /* the folder */

void fuzz_require(bool condition)
{
    if (!condition)
        __builtin_trap();
}

bool fuzz_failed_well(seqlstm_status status, const struct seqlstm_error *err, seqlstm_status a, seqlstm_status b)
{
    return (status == a || status == b) && err->message[0] != 0;
}

int fuzz_open_memory(const void *bytes, size_t count, char path[FUZZ_PATH_BYTES])
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_require(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
    snprintf(path, FUZZ_PATH_BYTES, "/proc/self/fd/%d", fd);
    return fd;
}

void fuzz_write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    fuzz_require(file != NULL && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    remove(path);
    return 0;
}

static void remove_folder(void)
{
    nftw(made, remove_entry, 8, FTW_PHYS | FTW_DEPTH);
}

const char *fuzz_make_folder(void)
{
    const char *temporary = getenv("TMPDIR");
    fuzz_require(made[0] == 0);
    snprintf(made, sizeof made, "%s/seqlstm-fuzz-XXXXXX", temporary && temporary[0] ? temporary : "/tmp");
    fuzz_require(mkdtemp(made) != NULL && atexit(remove_folder) == 0);
    return made;
}

bool fuzz_equal(struct sl_buf *a, struct sl_buf *b)
{
    const bool equal = a->length_bytes == b->length_bytes && memcmp(a->data, b->data, a->length_bytes) == 0;
    sl_buf_deinit(a);
    sl_buf_deinit(b);
    return equal;
}

void fuzz_write_seed(int choice, const void *bytes, size_t count)
{
    const char *folder = getenv("SEQLSTM_FUZZ_SEEDS");
    char path[512];
    if (folder == NULL)
        return;
    snprintf(path, sizeof path, "%s/seed-%d", folder, choice);
    FILE *file = fopen(path, "wb");
    fuzz_require(file != NULL && fputc(choice, file) == choice && fwrite(bytes, 1, count, file) == count &&
                 fclose(file) == 0);
}
