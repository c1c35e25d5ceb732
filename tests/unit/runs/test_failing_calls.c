/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions do where a call that opens, makes, reads, maps or removes a file fails, as on a disk with a fault: the
 * error is of that file, or nothing has needed it. */
#include "session_acts.h"

#include <fcntl.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>

/* Callers of which a call has failed, as hashes of their addresses: each place fails once. */
enum { CALLERS = 7, PLACES_MOST = 1 << 12 };
static uint64_t places[PLACES_MOST];
static int place_count;
static bool armed, failed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_new(void)
{
    void *callers[CALLERS];
    uint64_t place = 0;
    int k = 0;
    for (int c = backtrace(callers, CALLERS); c > 0; c--)
        place = (place ^ (uintptr_t)callers[c - 1]) * UINT64_C(0x9e3779b97f4a7c15);
    while (k < place_count && places[k] != place)
        k++;
    if (k < place_count || place_count == PLACES_MOST)
        return false;
    places[place_count++] = place;
    return true;
}

static bool fails(void)
{
    pthread_mutex_lock(&lock);
    const bool now = armed && !failed && is_new();
    failed = failed || now;
    pthread_mutex_unlock(&lock);
    if (now)
        errno = EIO;
    return now;
}

#define WRAP(type, name, parameters, arguments, failed)                                                                \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        return fails() ? failed : __real_##name arguments;                                                             \
    }

WRAP(FILE *, fopen64, (const char *path, const char *mode), (path, mode), NULL)
WRAP(DIR *, opendir, (const char *path), (path), NULL)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
WRAP(ssize_t, read, (int file, void *bytes, size_t most), (file, bytes, most), -1)
WRAP(ssize_t, pread64, (int file, void *bytes, size_t most, off_t at), (file, bytes, most, at), -1)
WRAP(void *, mmap64, (void *at, size_t bytes, int protection, int flags, int file, off_t first),
     (at, bytes, protection, flags, file, first), MAP_FAILED)
WRAP(int, unlink, (const char *path), (path), -1)

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails() ? -1 : __real_open64(path, flags, mode);
}

static void let_fail(int n)
{
    (void)n;
    failed = false;
    armed = true;
}

static bool disarm(void)
{
    armed = false;
    return failed;
}

static bool is_of_a_file(const struct seqlstm_error *err)
{
    static const char *const files[] = {scratch_folder,      "inputs.txt",    "sums.txt",       "steps.csv",
                                        "classes/",          "a.safetensors", "b.safetensors",  "plain.safetensors",
                                        "torch.safetensors", "whole.onnx",    "p.encoder.onnx", "p.decoder.onnx"};
    bool named = false;
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        named = named || strstr(err->message, files[f]);
    const bool tells = strstr(err->message, strerror(EIO)) || strstr(err->message, "none of the 1 checkpoints");
    return named && tells && (err->code == SEQLSTM_IO || err->code == SEQLSTM_CORRUPT_DATA); /* the latter of data */
}

static void test_calls_fail(void **state)
{
    static const struct failing kind = {let_fail, disarm, is_of_a_file};
    (void)state;
    void *none[1];
    (void)backtrace(none, 1); /* loads what it needs */
    for (int a = 0; a < ACTS; a++)
        expect_failures(&acts[a], &kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_fail),
    };
    return cmocka_run_group_tests(tests, setup, scratch_remove);
}
