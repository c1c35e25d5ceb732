/* SPDX-License-Identifier: Apache-2.0 */
/* What core/base and core/registry open, if only for a moment, is not inherited by programs that another thread may
 * start meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory/memory.h"
#include "base/system/cgroup.h"
#include "base/system/cpu.h"
#include "base/system/file.h"
#include "base/system/file_lock.h"
#include "base/system/file_writer.h"
#include "base/system/trace.h"
#include "descriptors.h"
#include "oom.h"
#include "registry/kind/elf.h"
#include "registry/watch/guard.h"
#include "registry/watch/outlet.h"
#include "temporary.h"

int __real_open64(const char *path, int flags, ...);
FILE *__real_fopen64(const char *path, const char *mode);
int __real_memfd_create(const char *name, unsigned flags);
int __real_fcntl64(int file, int command, ...);
int __wrap_open64(const char *path, int flags, ...);
FILE *__wrap_fopen64(const char *path, const char *mode);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_fcntl64(int file, int command, ...);

static int interruptions, lock_interruptions; /* so many calls are interrupted */
static int opened;
static char inherited[1000]; /* names of what is */

static void note(const char *name, bool is_closed)
{
    opened++;
    if (!is_closed)
        snprintf(inherited + strlen(inherited), sizeof inherited - strlen(inherited), "%s ", name);
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (interruptions > 0) {
        interruptions--;
        errno = EINTR;
        return -1;
    }
    note(path, flags & O_CLOEXEC);
    return __real_open64(path, flags, mode);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
    note(path, strchr(mode, 'e') != NULL);
    return __real_fopen64(path, mode);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    note(name, flags & MFD_CLOEXEC);
    return __real_memfd_create(name, flags);
}

/* Every command of the code under test has an int or a pointer. */
int __wrap_fcntl64(int file, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
        note("a duplicate", command == F_DUPFD_CLOEXEC);
        return __real_fcntl64(file, command, (int)(intptr_t)argument);
    }
    if (command == F_OFD_SETLK && lock_interruptions > 0) {
        lock_interruptions--;
        errno = EINTR;
        return -1;
    }
    return __real_fcntl64(file, command, argument);
}

/* The number of files that were opened since the last call. */
static int take_opened(const char *what)
{
    if (inherited[0])
        fail_msg("%s: programs inherit %s", what, inherited);
    const int count = opened;
    opened = 0;
    return count;
}

static char root[TEMPORARY_BYTES];

static void files_are_not_inherited(void **state)
{
    (void)state;
    const int before = descriptors_count();
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_file_map map;
    struct sl_file_lock *lock = NULL, *other = NULL;
    char holder[SL_FILE_LOCK_HOLDER_BYTES], path[TEMPORARY_BYTES + 16], taken[TEMPORARY_BYTES + 16], *text;
    size_t bytes;
    snprintf(path, sizeof path, "%s/file", root);
    snprintf(taken, sizeof taken, "%s/lock", root);
    assert_int_equal(sl_file_write(path, "text", 4, &err), SEQLSTM_OK);
    assert_int_equal(take_opened("a writer"), 2); /* the file and its folder */
    assert_int_equal(sl_file_read(path, 100, &text, &bytes, &err), SEQLSTM_OK);
    free(text);
    assert_int_equal(take_opened("a reader"), 1);
    assert_int_equal(sl_file_map_open(path, &map, &err), SEQLSTM_OK);
    sl_file_map_close(&map);
    assert_int_equal(take_opened("a map"), 1);
    assert_int_equal(sl_file_sync_folder(root, &err), SEQLSTM_OK);
    assert_int_equal(take_opened("a folder"), 1);
    assert_int_equal(sl_file_lock_take(taken, &lock, &err), SEQLSTM_OK);
    assert_true(take_opened("a lock") > 0);
    assert_int_not_equal(sl_file_lock_take(taken, &other, &err), SEQLSTM_OK);
    assert_true(take_opened("a lock that is held") > 0);
    assert_true(sl_file_lock_find_holder(taken, holder));
    assert_true(take_opened("the holder of a lock") > 0);
    sl_file_lock_release(lock);
    take_opened("a lock that is released");
    unlink(path);
    assert_int_equal(descriptors_count(), before);
}

static bool is_mapped(const char *path)
{
    char line[512];
    bool found = false;
    FILE *file = __real_fopen64("/proc/self/maps", "re");
    while (file && fgets(line, sizeof line, file))
        found = found || strstr(line, path);
    if (file)
        fclose(file);
    return found;
}

/* New files are as the mask of the process has it; signals do not end a call; a link is no lock. */
static void files_are_opened_as_they_should(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_file_lock *lock = NULL;
    struct stat info;
    struct sl_file_map map;
    char holder[SL_FILE_LOCK_HOLDER_BYTES], path[TEMPORARY_BYTES + 16], taken[TEMPORARY_BYTES + 16],
        link[TEMPORARY_BYTES + 16], *text;
    size_t bytes;
    snprintf(path, sizeof path, "%s/file", root);
    snprintf(taken, sizeof taken, "%s/lock", root);
    snprintf(link, sizeof link, "%s/link", root);
    const mode_t before = umask(022);
    interruptions = 2;
    assert_int_equal(sl_file_write(path, "text", 4, &err), SEQLSTM_OK);
    umask(before);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0644);
    interruptions = 2;
    assert_int_equal(sl_file_read(path, 100, &text, &bytes, &err), SEQLSTM_OK);
    free(text);
    assert_int_equal(sl_file_map_open(path, &map, &err), SEQLSTM_OK);
    assert_true(is_mapped(path));
    sl_file_map_close(&map);
    assert_false(is_mapped(path));
    assert_int_equal(sl_elf_check_plugin(path, &sl_backend_kind, &err), SEQLSTM_ABI_MISMATCH);
    assert_false(is_mapped(path));
    lock_interruptions = 2;
    assert_int_equal(sl_file_lock_take(taken, &lock, &err), SEQLSTM_OK);
    assert_int_equal(lock_interruptions, 0);
    assert_int_equal(symlink("lock", link), 0);
    assert_true(sl_file_lock_find_holder(taken, holder));
    assert_false(sl_file_lock_find_holder(link, holder));
    sl_file_lock_release(lock);
    unlink(link);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* it is not waited for */
    assert_int_equal(sl_elf_check_plugin(path, &sl_backend_kind, &err), SEQLSTM_ABI_MISMATCH);
    unlink(path);
    take_opened("files");
}

static void what_the_system_says_is_not_inherited(void **state)
{
    (void)state;
    const int before = descriptors_count();
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_trace trace;
    sl_cgroup_find_memory("");
    assert_true(take_opened("a limit of memory") > 0);
    assert_true(sl_cpu_count() > 0);
    take_opened("processors");
    assert_true(sl_memory_get_large_page() > 0);
    assert_int_equal(take_opened("large pages"), 1);
    assert_int_equal(sl_trace_start(SL_TRACE_PHASES, 10, &err), SEQLSTM_OK);
    sl_trace_end(sl_trace_begin(SL_ACTIVITY_STEP, NULL), SL_ACTIVITY_STEP, NULL, NULL, 0);
    sl_trace_stop(&trace);
    sl_trace_deinit(&trace);
    assert_true(take_opened("a trace") > 0);
    assert_int_equal(descriptors_count(), before);
}

static void guards_are_not_inherited(void **state)
{
    (void)state;
    const int before = descriptors_count();
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_process_guard guard;
    struct sl_outlet outlet;
    char text[200];
    sl_process_guard_begin(&guard);
    assert_int_equal(sl_process_guard_end(&guard, text, sizeof text), 0);
    assert_true(take_opened("a guard") > 1);
    sl_outlet_init(&outlet, NULL, true);
    sl_outlet_begin(&outlet);
    sl_outlet_end(&outlet, text, sizeof text);
    sl_outlet_deinit(&outlet);
    assert_true(take_opened("an outlet") > 2);
    sl_elf_check_plugin("/proc/self/exe", &sl_backend_kind, &err);
    assert_int_equal(take_opened("a plugin's file"), 1);
    assert_int_equal(descriptors_count(), before);
}

static int enter(void **state)
{
    oom_group_begin(state);
    return mkdtemp(temporary_template(root, "open")) ? 0 : -1;
}

static int leave(void **state)
{
    return oom_group_end(state) == 0 ? rmdir(root) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_not_inherited),
        cmocka_unit_test(files_are_opened_as_they_should),
        cmocka_unit_test(what_the_system_says_is_not_inherited),
        cmocka_unit_test(guards_are_not_inherited),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
