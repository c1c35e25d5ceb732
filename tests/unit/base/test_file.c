/* SPDX-License-Identifier: Apache-2.0 */
/* Files: whole reads and maps, and writes that leave the old or the new file whatever fails when. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/absolute_path.h"
#include "base/system/file.h"
#include "base/system/file_error.h"
#include "base/system/file_writer.h"
#include "base/system/near_file.h"
#include "base/value/path.h"
#include "descriptors.h"
#include "oom.h"
#include "temporary.h"

static char root[TEMPORARY_BYTES];
static struct seqlstm_error err = SEQLSTM_ERROR_INIT;

static int enter(void **state)
{
    oom_group_begin(state);
    return mkdtemp(temporary_template(root, "file")) && chdir(root) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    char command[TEMPORARY_BYTES + 32];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return oom_group_end(state) == 0 && chdir("/") == 0 ? system(command) : -1;
}

static int n_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = -2; /* . and .. */
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void assert_content(const char *path, const char *expected)
{
    char *data = NULL;
    size_t bytes = 0;
    assert_int_equal(sl_file_read(path, 1 << 20, &data, &bytes, &err), SEQLSTM_OK);
    assert_int_equal(bytes, strlen(expected));
    assert_string_equal(data, expected);
    free(data);
}

static void reads_what_was_written(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 65535, 65536, 65537, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *source = malloc(sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++)
            source[k] = (unsigned char)(k * 31 + k / 257);
        struct sl_file_writer *writer = NULL;
        assert_int_equal(sl_file_writer_open("data", &writer, &err), SEQLSTM_OK);
        size_t step = 1;
        for (size_t at = 0; at < sizes[i]; at += step) {
            step = step * 3 % 70001;
            size_t n = step < sizes[i] - at ? step : sizes[i] - at;
            assert_int_equal(sl_file_writer_write(writer, source + at, n, &err), SEQLSTM_OK);
        }
        assert_int_equal(sl_file_writer_commit(writer, &err), SEQLSTM_OK);
        char *data = NULL;
        size_t bytes = 99;
        assert_int_equal(sl_file_read("data", sizes[i], &data, &bytes, &err), SEQLSTM_OK);
        assert_int_equal(bytes, sizes[i]);
        assert_memory_equal(data, source, bytes);
        assert_int_equal(data[bytes], 0);
        free(data);
        struct sl_file_map map = {0};
        assert_int_equal(sl_file_map_open("data", &map, &err), SEQLSTM_OK);
        assert_int_equal(map.size_bytes, sizes[i]);
        assert_memory_equal(map.data, source, sizes[i]);
        sl_file_map_close(&map);
        sl_file_map_close(&map);
        free(source);
    }
    unlink("data");
}

static void errors_name_path_and_reason(void **state)
{
    (void)state;
    char *data = NULL;
    assert_int_equal(sl_file_read("absent", 10, &data, NULL, &err), SEQLSTM_NOT_FOUND);
    assert_int_equal(err.native_code, ENOENT);
    assert_non_null(strstr(err.message, "`absent`"));
    assert_non_null(strstr(err.message, "No such file"));
    assert_int_equal(sl_file_read(".", 10, &data, NULL, &err), SEQLSTM_IO);
    assert_int_equal(err.native_code, EISDIR);
    struct sl_file_map map = {0};
    assert_int_equal(sl_file_map_open("absent", &map, &err), SEQLSTM_NOT_FOUND);
    assert_int_equal(sl_file_map_open("/dev/null", &map, &err), SEQLSTM_IO);
    assert_int_equal(sl_file_write("absent/x", "", 0, &err), SEQLSTM_NOT_FOUND);
    assert_int_equal(sl_file_write(".", "", 0, &err), SEQLSTM_IO);
    assert_int_equal(sl_file_write("five", "12345", 5, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_read("five", 4, &data, NULL, &err), SEQLSTM_CORRUPT_DATA);
    assert_int_equal(sl_file_read("/dev/zero", 100000, &data, NULL, &err), SEQLSTM_CORRUPT_DATA);
    assert_int_equal(sl_file_read("/proc/self/status", 100000, &data, NULL, &err), SEQLSTM_OK);
    assert_non_null(strstr(data, "Name:")); /* a file whose size is told as 0 */
    free(data);
    unlink("five");
}

/* Files that can be opened, but not read or mapped: of the memory at address 0, and of the system's settings. */
static void what_fails_after_opening_is_told(void **state)
{
    (void)state;
    static const char setting[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    const int before = descriptors_count();
    struct sl_file_map map = {0};
    char *data = NULL;
    assert_int_equal(sl_file_read("/proc/self/mem", 100, &data, NULL, &err), SEQLSTM_IO);
    assert_int_equal(err.native_code, EIO);
    assert_string_equal(err.message, "cannot read `/proc/self/mem`: Input/output error");
    assert_null(data);
    if (access(setting, R_OK) == 0) {
        assert_int_equal(sl_file_map_open(setting, &map, &err), SEQLSTM_IO);
        assert_int_equal(err.native_code, ENODEV);
        assert_non_null(strstr(err.message, "cannot map `/sys/kernel/"));
    }
    assert_int_equal(descriptors_count(), before);
}

static void an_aborted_write_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(sl_file_write("kept", "old", 3, &err), SEQLSTM_OK);
    struct sl_file_writer *writer = NULL;
    assert_int_equal(sl_file_writer_open("kept", &writer, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_writer_write(writer, "new", 3, &err), SEQLSTM_OK);
    assert_content("kept", "old");
    assert_int_equal(n_entries("."), 2);
    sl_file_writer_abort(writer);
    sl_file_writer_abort(NULL);
    assert_content("kept", "old");
    assert_int_equal(n_entries("."), 1);
    unlink("kept");
}

static void any_failing_call_leaves_old_or_new(void **state)
{
    (void)state;
    char big[200001];
    memset(big, 'x', 200000);
    big[200000] = '\0';
    for (int partial = -1; partial <= 1000; partial += 1001) {
        int n_failures = 0, n_late = 0;
        for (int n = 1;; n++) {
            assert_int_equal(sl_file_write("target", "old", 3, &err), SEQLSTM_OK);
            io_fail_at(n, ENOSPC, partial);
            struct sl_file_writer *writer = NULL;
            assert_int_equal(sl_file_writer_open("target", &writer, &err), SEQLSTM_OK);
            seqlstm_status first = sl_file_writer_write(writer, "ab", 2, &err);
            for (int i = 0; i < 3; i++)
                first = sl_file_writer_write(writer, big + 50000 * i, 50000, &err);
            first = sl_file_writer_write(writer, big, 200000, &err);
            seqlstm_status status = sl_file_writer_commit(writer, &err);
            if (!io_disarm()) {
                assert_int_equal(first, SEQLSTM_OK);
                assert_int_equal(status, SEQLSTM_OK);
                break;
            }
            assert_int_equal(status, SEQLSTM_IO);
            assert_int_equal(err.native_code, ENOSPC);
            assert_non_null(strstr(err.message, "`: No space left"));
            struct stat info;
            assert_int_equal(stat("target", &info), 0);
            /* the last call is the folder's fsync: there the new file stands already */
            assert_true(info.st_size == 3 || info.st_size == 350002);
            assert_int_equal(n_entries("."), 1);
            n_failures++;
            n_late += first == SEQLSTM_OK;
        }
        assert_true(n_failures >= 6);
        assert_int_equal(n_late, 3); /* both syncs, and the new name; a full disk is told by the write that meets it */
    }
    unlink("target");
}

/* A write that ends early, or not at all, because of a signal goes on with the bytes that are left. */
static void interrupted_writes_go_on_where_they_were(void **state)
{
    (void)state;
    enum { BYTES = 150000 };
    static char made[BYTES + 1];
    for (int i = 0; i < BYTES; i++)
        made[i] = (char)('a' + (i + i / 26) % 26);
    for (int n = 1; n <= 2; n++)
        for (int partial = -1; partial <= 1000; partial += 1001) {
            struct sl_file_writer *writer = NULL;
            assert_int_equal(sl_file_writer_open("target", &writer, &err), SEQLSTM_OK);
            io_fail_at(n, EINTR, partial);
            assert_int_equal(sl_file_writer_write(writer, made, 50000, &err), SEQLSTM_OK);
            assert_int_equal(sl_file_writer_write(writer, made + 50000, 30000, &err), SEQLSTM_OK);
            assert_int_equal(sl_file_writer_write(writer, made + 80000, BYTES - 80000, &err), SEQLSTM_OK);
            assert_true(io_disarm());
            assert_int_equal(sl_file_writer_commit(writer, &err), SEQLSTM_OK);
            assert_content("target", made);
        }
    unlink("target");
}

static void no_memory_anywhere(void **state)
{
    (void)state;
    assert_int_equal(sl_file_write("here", "text", 4, &err), SEQLSTM_OK);
    for (int n = 1;; n++) {
        char *data = NULL, *absolute = NULL;
        oom_fail_at(n);
        seqlstm_status status = sl_file_write("other", "new", 3, &err);
        if (status == SEQLSTM_OK)
            status = sl_file_read("here", 10, &data, NULL, &err);
        if (status == SEQLSTM_OK)
            status = sl_file_make_folders("some/folders/deep", &err);
        if (status == SEQLSTM_OK)
            status = sl_path_absolute("a/b", &absolute, &err);
        bool failed = oom_disarm();
        assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        free(data);
        free(absolute);
        if (!failed)
            break;
        assert_true(n_entries(".") <= 3);
    }
    unlink("here");
    unlink("other");
    rmdir("some/folders/deep"), rmdir("some/folders"), rmdir("some");
}

static void leftovers_links_and_permissions(void **state)
{
    (void)state;
    char stale[64];
    snprintf(stale, sizeof stale, ".file.tmp-%ld-0", (long)getpid());
    assert_int_equal(sl_file_write(stale, "crashed", 7, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_write("file", "1", 1, &err), SEQLSTM_OK);
    assert_content("file", "1");
    assert_content(stale, "crashed");
    unlink(stale);
    assert_int_equal(chmod("file", 0750), 0);
    assert_int_equal(symlink("file", "link"), 0);
    assert_int_equal(sl_file_write("link", "2", 1, &err), SEQLSTM_OK);
    assert_content("file", "2"); /* written through the link, which is still one */
    struct stat info;
    assert_int_equal(lstat("link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat("file", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0750);
    unlink("file");
    assert_true(sl_file_exists("link") && sl_file_is_in("", "link") && sl_file_is_in(".", "link"));
    assert_false(sl_file_is_in("..", "link") || sl_file_is_in("none", "link"));
    unlink("link");
    assert_false(sl_file_exists("link"));
}

static void two_writers_of_one_file(void **state)
{
    (void)state;
    struct sl_file_writer *a = NULL, *b = NULL;
    assert_int_equal(sl_file_writer_open("both", &a, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_writer_open("both", &b, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_writer_write(a, "aaaa", 4, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_writer_write(b, "bb", 2, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_writer_commit(b, &err), SEQLSTM_OK);
    assert_content("both", "bb");
    assert_int_equal(sl_file_writer_commit(a, &err), SEQLSTM_OK);
    assert_content("both", "aaaa");
    unlink("both");
}

static void folders_are_made(void **state)
{
    (void)state;
    assert_int_equal(sl_file_make_folders("a/b//c/", &err), SEQLSTM_OK);
    assert_true(sl_file_is_folder("a/b/c"));
    assert_int_equal(sl_file_make_folders("a/b/c", &err), SEQLSTM_OK);
    assert_int_equal(sl_file_make_folders("/", &err), SEQLSTM_OK);
    assert_int_equal(sl_file_write("a/file", "", 0, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_make_folders("a/file/d", &err), SEQLSTM_NOT_FOUND);
    assert_int_equal(err.native_code, ENOTDIR);
    assert_int_equal(sl_file_make_folders("", &err), SEQLSTM_NOT_FOUND);
    assert_int_equal(sl_file_sync_folder("a", &err), SEQLSTM_OK);
    assert_int_equal(sl_file_sync_folder("a/none", &err), SEQLSTM_NOT_FOUND);
    assert_false(sl_file_is_folder("a/file"));
    unlink("a/file"), rmdir("a/b/c"), rmdir("a/b"), rmdir("a");
}

/* A path of as many bytes as can be opened, and one byte more; of the folder with so many files the last is seen. */
static void the_longest_path_and_a_full_folder(void **state)
{
    (void)state;
    char folder[PATH_MAX + 8];
    assert_int_equal(sl_file_write("file", "", 0, NULL), SEQLSTM_OK);
    for (size_t bytes = PATH_MAX - 3; bytes <= PATH_MAX + 1; bytes++) { /* of folder, slash and name */
        const size_t length = bytes - strlen("/file");
        for (size_t k = 0; k < length; k++)
            folder[k] = k % 2 ? '/' : '.';
        folder[length - 1] = folder[length - 1] == '/' ? '/' : '.';
        folder[length] = '\0';
        assert_int_equal(sl_file_is_in(folder, "file"), bytes < PATH_MAX);
    }
    unlink("file");
    assert_int_equal(mkdir("full", 0777), 0);
    for (int k = 0; k < 256; k++) {
        char name[32];
        snprintf(name, sizeof name, "full/%03d.txt", k);
        assert_int_equal(close(creat(name, 0666)), 0);
    }
    for (int k = 0; k < 256; k++) {
        char name[32];
        snprintf(name, sizeof name, "full/%03d.tx", k);
        char *near = sl_near_file_find(name);
        assert_non_null(near);
        assert_memory_equal(near, name + 5, 3);
        free(near);
    }
    for (int k = 0; k < 256; k++) {
        char name[32];
        snprintf(name, sizeof name, "full/%03d.txt", k);
        unlink(name);
    }
    assert_int_equal(rmdir("full"), 0);
}

static void assert_absolute(const char *path, const char *expected)
{
    char *absolute = NULL;
    assert_int_equal(sl_path_absolute(path, &absolute, &err), SEQLSTM_OK);
    assert_string_equal(absolute, expected);
    free(absolute);
}

static void paths_are_text(void **state)
{
    (void)state;
    assert_absolute("/a/./b//../c/", "/a/c");
    assert_absolute("/../..", "/");
    assert_absolute("/", "/");
    char expected[128];
    snprintf(expected, sizeof expected, "%s/x", root);
    assert_absolute("x", expected);
    assert_absolute("./y/../x", expected);
    assert_absolute(".", root);
    const struct {
        const char *folder, *name, *joined;
    } joins[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"},
                 {NULL, "b", "b"},  {"a", "/b", "/b"},  {"/", "b", "/b"}};
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        char *joined = sl_path_join(joins[i].folder, joins[i].name);
        assert_string_equal(joined, joins[i].joined);
        free(joined);
    }
    const char *const folders[][2] = {{"a/b", "a"}, {"b", "."}, {"/b", "/"}, {"/a/b", "/a"}};
    for (size_t i = 0; i < 4; i++) {
        char *folder = sl_path_folder(folders[i][0]);
        assert_string_equal(folder, folders[i][1]);
        free(folder);
        assert_string_equal(sl_path_name(folders[i][0]), "b");
    }
    char *real = NULL;
    assert_int_equal(symlink(".", "self"), 0);
    assert_int_equal(sl_path_real("self/self", &real, &err), SEQLSTM_OK);
    assert_string_equal(real, root);
    free(real);
    unlink("self");
    assert_int_equal(sl_path_real("self", &real, &err), SEQLSTM_NOT_FOUND);
}

/* What is read from a mapped file is told from what it was; a cut is an error and not the end of the program. */
static void mapped_files_may_change(void **state)
{
    (void)state;
    char path[TEMPORARY_BYTES], out[8];
    struct sl_file_map map, empty = {0};
    int fd = mkstemp(temporary_template(path, "map"));
    assert_int_equal(write(fd, "0123456789", 10), 10);
    assert_int_equal(sl_file_map_open(path, &map, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_map_read(&map, path, map.data + 2, 8, out, &err), SEQLSTM_OK);
    assert_memory_equal(out, "23456789", 8);
    assert_int_equal(sl_file_map_check(&map, path, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_map_check(&empty, path, &err), SEQLSTM_OK);
    struct sl_file_map lost = map; /* one that can no longer be read */
    lost.fd = -1;
    assert_int_equal(sl_file_map_read(&lost, "here", map.data + 2, 8, out, &err), SEQLSTM_IO);
    assert_string_equal(err.message, "cannot read `here`: Bad file descriptor");
    assert_int_equal(sl_file_map_check(&lost, "here", &err), SEQLSTM_IO);
    assert_string_equal(err.message, "cannot read `here`: Bad file descriptor");
    assert_int_equal(ftruncate(fd, 6), 0);
    assert_int_equal(sl_file_map_read(&map, path, map.data + 2, 8, out, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "was cut while it was used (10 bytes then)"));
    assert_int_equal(sl_file_map_check(&map, path, &err), SEQLSTM_CORRUPT_DATA);
    assert_int_equal(pwrite(fd, "abcdefghij", 10, 0), 10); /* as large as before, and newer */
    assert_int_equal(futimens(fd, (struct timespec[2]){{1, 0}, {1, 0}}), 0);
    assert_int_equal(sl_file_map_check(&map, path, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "changed while it was used"));
    sl_file_map_close(&map);
    close(fd);
    unlink(path);
}

/* A pipe does not say how many bytes it has. */
static void limits_hold_where_no_size_is_known(void **state)
{
    (void)state;
    for (size_t limit = 3; limit <= 5; limit++) {
        int ends[2];
        char path[64], *data = NULL;
        size_t bytes = 0;
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], "abcd", 4), 4);
        close(ends[1]);
        snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
        assert_int_equal(sl_file_read(path, limit, &data, &bytes, &err), limit < 4 ? SEQLSTM_CORRUPT_DATA : SEQLSTM_OK);
        assert_true(limit < 4 ? data == NULL : bytes == 4 && strcmp(data, "abcd") == 0);
        free(data);
        close(ends[0]);
    }
}

static void near_names_are_of_files_that_are_shown(void **state)
{
    (void)state;
    assert_int_equal(mkdir("near", 0777), 0);
    assert_int_equal(sl_file_write("near/.model.yaml", "", 0, NULL), SEQLSTM_OK);
    assert_null(sl_near_file_find("near/model.yaml"));
    assert_int_equal(sl_file_write("near/zebra.yaml", "", 0, NULL), SEQLSTM_OK);
    assert_null(sl_near_file_find("near/model.yaml"));
    assert_int_equal(sl_file_write("near/models.yaml", "", 0, NULL), SEQLSTM_OK);
    char *near = sl_near_file_find("near/model.yaml");
    assert_string_equal(near, "models.yaml");
    free(near);
    assert_int_equal(sl_file_fail(&err, ENOENT, "cannot write", "near/model.yaml"), SEQLSTM_NOT_FOUND);
    assert_string_equal(err.message, "cannot write `near/model.yaml`: No such file or directory");
    assert_int_equal(sl_file_fail(&err, EACCES, "cannot open", "near/model.yaml"), SEQLSTM_IO);
    assert_string_equal(err.message, "cannot open `near/model.yaml`: Permission denied");
    assert_int_equal(err.native_code, EACCES);
    assert_int_equal(sl_file_fail(&err, ENOENT, "cannot open", "near/model.yaml"), SEQLSTM_NOT_FOUND);
    assert_string_equal(err.message, "cannot open `near/model.yaml`: No such file or directory; did you mean "
                                     "`models.yaml`, which is there?");
}

static void temporaries_are_removed(void **state)
{
    (void)state;
    static const char *const names[] = {".a.tmp-12-0", ".b.json.tmp-1-99", ".c.tmp-1-",  ".tmp-1-1", "d.tmp-1-1",
                                        ".e.tmp-x-1",  ".f.tmp-1-2.bak",   ".g.tmp-1x2", ".h.tmp--3"};
    assert_int_equal(mkdir("left", 0777), 0);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char *path = sl_path_join("left", names[n]);
        assert_int_equal(sl_file_write(path, "x", 1, &err), SEQLSTM_OK);
        free(path);
    }
    sl_file_remove_temporaries("left");
    sl_file_remove_temporaries("no/such/folder");
    assert_int_equal(n_entries("left"), 7);
    assert_true(sl_file_exists("left/d.tmp-1-1") && sl_file_exists("left/.tmp-1-1"));
}

static void a_pipe_is_not_waited_for(void **state)
{
    (void)state;
    struct sl_file_map map;
    assert_int_equal(mkfifo("pipe", 0666), 0);
    assert_int_equal(sl_file_map_open("pipe", &map, &err), SEQLSTM_IO);
    assert_string_equal(err.message, "cannot read `pipe`: it is no regular file");
    assert_false(sl_file_is_regular("pipe"));
}

/* A small file is written, synchronized, renamed, and then its folder is synchronized: four calls that can fail, of
 * which each failure is told. */
static void a_commit_reaches_the_disk(void **state)
{
    (void)state;
    int calls = 0;
    for (;; calls++) {
        io_fail_at(calls + 1, EIO, -1);
        const seqlstm_status status = sl_file_write("synced", "x", 1, &err);
        if (!io_disarm()) {
            assert_int_equal(status, SEQLSTM_OK);
            break;
        }
        assert_int_equal(status, SEQLSTM_IO);
    }
    assert_int_equal(calls, 4);
    unlink("synced");
}

/* Whatever becomes of a file, nothing of it stays open. */
static void files_are_closed(void **state)
{
    (void)state;
    const int before = descriptors_count();
    struct sl_file_map map = {0};
    struct sl_file_writer *writer = NULL;
    char *text = NULL;
    size_t bytes;
    assert_int_equal(sl_file_write("some", "text", 4, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_write("none", "", 0, &err), SEQLSTM_OK);
    for (int k = 0; k < 2; k++) {
        const char *name = k ? "some" : "none";
        assert_int_equal(sl_file_map_open(name, &map, &err), SEQLSTM_OK);
        sl_file_map_close(&map);
        assert_int_equal(sl_file_read(name, 100, &text, &bytes, &err), SEQLSTM_OK);
        free(text);
        assert_int_equal(sl_file_writer_open(name, &writer, &err), SEQLSTM_OK);
        sl_file_writer_abort(writer);
    }
    assert_int_equal(sl_file_map_open(".", &map, &err), SEQLSTM_IO);
    assert_int_equal(sl_file_read(".", 100, &text, &bytes, &err), SEQLSTM_IO);
    assert_int_not_equal(sl_file_read("some", 3, &text, &bytes, &err), SEQLSTM_OK);
    assert_int_equal(descriptors_count(), before);
    unlink("some");
    unlink("none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mapped_files_may_change),
        cmocka_unit_test(a_commit_reaches_the_disk),
        cmocka_unit_test(files_are_closed),
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(errors_name_path_and_reason),
        cmocka_unit_test(what_fails_after_opening_is_told),
        cmocka_unit_test(an_aborted_write_changes_nothing),
        cmocka_unit_test(any_failing_call_leaves_old_or_new),
        cmocka_unit_test(interrupted_writes_go_on_where_they_were),
        cmocka_unit_test(no_memory_anywhere),
        cmocka_unit_test(leftovers_links_and_permissions),
        cmocka_unit_test(two_writers_of_one_file),
        cmocka_unit_test(folders_are_made),
        cmocka_unit_test(the_longest_path_and_a_full_folder),
        cmocka_unit_test(paths_are_text),
        cmocka_unit_test(limits_hold_where_no_size_is_known),
        cmocka_unit_test(near_names_are_of_files_that_are_shown),
        cmocka_unit_test(temporaries_are_removed),
        cmocka_unit_test(a_pipe_is_not_waited_for),
    };
    return cmocka_run_group_tests_name("file", tests, enter, leave);
}
