/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that the files of a run hold: which of several is no UTF-8; folders that are made for a run and taken back;
 * which of several checkpoints is a link, which run a name
 * means where there is no memory, and what is said there of a folder that is taken. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "descriptors.h"
#include "model_fixture.h"
#include "ok.h"
#include "oom.h"
#include "scratch.h"
#include "session/record/session_record.h"
#include "session/run_files/new_folder.h"
#include "session/run_files/run_lock.h"
#include "session/run_files/trusted_files.h"
#include "session/run_folder/run_folder.h"
#include "session/run_folder/run_name.h"

static const char text[] = "seqlstm: 1\nname: m\ndata: {type: generator, name: adding_problem, length: [5, 8], train: "
                           "{size: 64}, batch_size: 8}\nmodel:\n  - {type: lstm, units: 3}\n  - {type: dense, units: "
                           "from_target}\ntrain: {loss: mse, epochs: 1}\n";

static bool is_there(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

/* An empty file and its folders. */
static void put(const char *path)
{
    char folder[64];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_int_equal(sl_file_make_folders(folder, NULL), SEQLSTM_OK);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

/* The first path that is no UTF-8 is refused, with its kind and the byte, counted from 1; nothing is made. */
static void what_is_no_utf8_is_named(void **state)
{
    static const struct {
        const char *overlays[3], *folders[3], *out;
        const char *told;
    } rows[] = {
        {{"/a.yaml", "/b\xff.yaml", "/c.yaml"},
         {"/p", "/q", "/r"},
         "new",
         "the path of an overlay is not UTF-8 (byte 3 is 0xff)"},
        {{"/a.yaml", "/b.yaml", "/cc\xfe"},
         {"/p\xfd", "/q", "/r"},
         "new",
         "the path of an overlay is not UTF-8 (byte 4 is 0xfe)"},
        {{"/a.yaml", "/b.yaml", "/c"},
         {"/p", "/q", "/\xc3\xa4\xfd"},
         "new",
         "the path of `--backend-path` is not UTF-8 (byte 4 is 0xfd)"},
        {{"/a.yaml", "/b.yaml", "/c"},
         {"/p", "/\x80q", "/r"},
         "new",
         "the path of `--backend-path` is not UTF-8 (byte 2 is 0x80)"},
        {{"/a.yaml", "/b\xff.yaml", "/c"},
         {"/p", "/q", "/r"},
         "/tmp/\xf8/new",
         "the path of the run folder is not UTF-8 (byte 6 is 0xf8)"},
    };
    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct loaded m = load_clean(text);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char expected[200];
        const struct sl_model_request request = {.overlays = rows[k].overlays, .overlay_count = 3};
        struct sl_session session = {.model = m.model,
                                     .options = {.model = &request,
                                                 .out_dir = rows[k].out,
                                                 .backend_folders = rows[k].folders,
                                                 .backend_folder_count = 3}};
        assert_int_equal(sl_new_folder_begin(&session, &err), SEQLSTM_INVALID_CONFIG);
        snprintf(expected, sizeof expected, "%s, and the files of a run are; use a path of UTF-8", rows[k].told);
        assert_string_equal(err.message, expected);
        assert_true(session.folder == NULL && session.lock == NULL && !is_there("new"));
        unload(&m);
    }
}

/* Folders that were made for the run go with it, and those that were there stay, as do those with other files. */
static void what_was_made_is_taken_back(void **state)
{
    static const struct {
        const char *there, *out, *kept, *gone;
    } rows[] = {
        {NULL, "one/two/three", NULL, "one"},
        {"four", "four/five/six", "four", "four/five"},
        {"seven", "seven", "seven", "seven/config.yaml"},
        {NULL, "eight", NULL, "eight"},
    };
    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct loaded m = load_clean(text);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const char *folders[] = {"/p", "/q", "/r"};
        struct sl_session session = {
            .model = m.model,
            .options = {.out_dir = rows[k].out, .threads = 2, .backend_folders = folders, .backend_folder_count = 3}};
        assert_true(rows[k].there == NULL || mkdir(rows[k].there, 0777) == 0);
        ok(sl_new_folder_begin(&session, &err), &err);
        assert_string_equal(session.folder, rows[k].out);
        char path[64];
        static const char *const made[] = {"config.yaml", "flags.json", "checksums.json", "lock"};
        for (size_t f = 0; f < sizeof made / sizeof *made; f++) {
            snprintf(path, sizeof path, "%s/%s", rows[k].out, made[f]);
            assert_true(is_there(path));
        }
        char *flags = NULL;
        snprintf(path, sizeof path, "%s/flags.json", rows[k].out);
        ok(sl_file_read(path, 1 << 16, &flags, NULL, &err), &err);
        const char *at = flags; /* all of them, in their order */
        for (int f = 0; f < 3; f++) {
            at = strstr(at, folders[f]);
            assert_non_null(at);
        }
        free(flags);
        sl_new_folder_discard(&session);
        assert_true(session.lock == NULL);
        assert_true(rows[k].kept == NULL || is_there(rows[k].kept));
        assert_false(is_there(rows[k].gone));
        if (rows[k].kept)
            assert_int_equal(rmdir(rows[k].kept), 0); /* it is empty */
        sl_new_folder_discard(&session);              /* once more: nothing */
        free(session.folder);
        unload(&m);
    }
}

/* Numbers of runs go on where they have more digits than usual. */
static void a_thousand_runs_are_not_too_many(void **state)
{
    struct sl_model model = {.name = "m", .output = {.dir = "many/{run}"}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char *made, *path;
    (void)state;
    assert_true(chdir(scratch_folder) == 0 && mkdir("many", 0777) == 0);
    for (int run = 1; run <= 1000; run++) {
        char name[32];
        snprintf(name, sizeof name, "many/%03d", run);
        assert_int_equal(mkdir(name, 0777), 0);
    }
    ok(sl_run_folder_make(&model, NULL, &made, &path, &err), &err);
    assert_string_equal(path, "many/1001");
    assert_string_equal(made, "many/1001");
    free(made);
    free(path);
}

/* What the system says is passed on, in words and as a number, with what to do. */
static void a_folder_that_cannot_be_made(void **state)
{
    char name[300], expected[500];
    struct sl_model model = {.name = "m"};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char *made = NULL, *path = NULL;
    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(sl_run_folder_make(&model, name, &made, &path, &err), SEQLSTM_IO);
    snprintf(expected, sizeof expected,
             "%s: cannot make the run folder: %s; use another folder: `--out DIR`, or `output.dir`", name,
             strerror(ENAMETOOLONG));
    assert_string_equal(err.message, expected);
    assert_int_equal(err.code, SEQLSTM_IO);
    assert_int_equal(err.native_code, ENAMETOOLONG);
    assert_true(made == NULL && path == NULL);
}

/* The writer of a run removes what one that was killed has left; a second writer is refused, and is told so in a
 * way that a program can read. */
static void a_run_has_one_writer(void **state)
{
    static const char *const gone[] = {"written/.config.yaml.tmp-1-1",
                                       "written/checkpoints/.update-000000000009.safetensors.tmp-1-2"},
                             *const kept[] = {"written/config.yaml", "written/notes.tmp",
                                              "written/checkpoints/update-000000000009.safetensors"};
    char folder[] = "written";
    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    for (int f = 0; f < 3; f++)
        put(kept[f]);
    for (int f = 0; f < 2; f++)
        put(gone[f]);
    struct sl_session first = {.folder = folder}, second = {.folder = folder};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf found = {0};
    ok(sl_diagnostics_create(&second.diagnostics, &err), &err);
    ok(sl_run_lock_take(&first, &err), &err);
    ok(sl_run_lock_take(&first, &err), &err); /* it has it */
    for (int f = 0; f < 3; f++)
        assert_true(is_there(kept[f]));
    for (int f = 0; f < 2; f++)
        assert_false(is_there(gone[f]));
    put(gone[0]);
    assert_int_equal(sl_run_lock_take(&second, &err), SEQLSTM_IO);
    assert_true(second.lock == NULL && is_there(gone[0])); /* it is the other's */
    assert_int_equal(err.native_code, EAGAIN);
    assert_non_null(strstr(err.message, "another process writes into this run: written/lock is held by process"));
    ok(sl_diagnostics_render(second.diagnostics, false, &found, &err), &err);
    assert_true(strncmp(sl_buf_text(&found), "error[E0701]: another process writes", 35) == 0);
    assert_non_null(strstr(sl_buf_text(&found), " --> written\n"));
    sl_run_lock_release(&first);
    assert_false(is_there("written/lock"));
    ok(sl_run_lock_take(&second, &err), &err);
    sl_run_lock_release(&second);
    sl_buf_deinit(&found);
    sl_diagnostics_destroy(second.diagnostics);
}

/* What has become of the lock when the folder was moved, and when a plugin has closed it. */
static void a_writer_that_lost_its_lock_says_how(void **state)
{
    static const char *const told[] = {"the run folder lost was moved or removed while the run went on",
                                       "has closed the lock of the run folder lost: nothing more is saved"};
    char folder[] = "lost";
    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    put("lost/config.yaml");
    for (int closed = 0; closed < 2; closed++) {
        struct sl_session session = {.folder = folder};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const int fd = dup(STDIN_FILENO);
        close(fd); /* the next one to be opened */
        ok(sl_run_lock_take(&session, &err), &err);
        ok(sl_run_lock_check(&session, &err), &err);
        assert_int_equal(closed ? close(fd) : rename("lost/lock", "lost/was"), 0);
        assert_int_equal(sl_run_lock_check(&session, &err), SEQLSTM_IO);
        assert_non_null(strstr(err.message, told[closed]));
        sl_run_lock_release(&session);
    }
    assert_int_equal(unlink("lost/lock") + unlink("lost/was"), 0);
}

/* Whichever of several checkpoints is a link, the folder is refused, and the link is named. */
static void a_link_among_checkpoints_is_refused(void **state)
{
    static const char *const names[] = {"update-000000000009.safetensors", "update-000000000010.safetensors",
                                        "update-000000000200.safetensors"};
    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    assert_true(mkdir("run", 0777) == 0 && mkdir("run/checkpoints", 0777) == 0);
    for (int link = -1; link < 3; link++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char path[80], expected[200];
        struct sl_session session = {.options = {.trust = false}};
        for (int k = 0; k < 3; k++) {
            snprintf(path, sizeof path, "run/checkpoints/%s", names[k]);
            unlink(path);
            if (k == link) {
                assert_int_equal(symlink("/etc/hostname", path), 0);
                continue;
            }
            FILE *file = fopen(path, "w");
            assert_non_null(file);
            assert_int_equal(fclose(file), 0);
        }
        const seqlstm_status status = sl_trusted_files_check(&session, "run", &err);
        assert_int_equal(status, link < 0 ? SEQLSTM_OK : SEQLSTM_INVALID_CONFIG);
        if (link < 0)
            continue;
        snprintf(expected, sizeof expected,
                 "%s is a link, and what it leads to is not in the run folder; use `--trust` if you made it yourself",
                 names[link]);
        assert_string_equal(err.message, expected);
        for (int n = 1;; n++) { /* no memory is no reason to pass it over */
            oom_fail_at(n);
            const seqlstm_status refused = sl_trusted_files_check(&session, "run", &err);
            const bool failed = oom_disarm();
            assert_true(refused == SEQLSTM_INVALID_CONFIG || (failed && refused == SEQLSTM_NO_MEMORY));
            if (!failed)
                break;
        }
        session.options.trust = true;
        ok(sl_trusted_files_check(&session, "run", &err), &err);
    }
}

/* What is said of a folder that is there does not depend on memory: a run with weights is not called one that failed,
 * nor one that goes on, and both are refused whichever allocation fails. */
static void a_taken_folder_is_refused_for_what_it_is(void **state)
{
    static const struct {
        const char *folder, *files[2], *told;
        bool locked;
    } rows[] = {
        {"final", {"config.yaml", "final.safetensors"}, "`seqlstm resume final` continues it", false},
        {"begun", {"config.yaml", "checkpoints/update-000000000009.safetensors"}, "`seqlstm resume begun`", false},
        {"bare", {"config.yaml"}, "a run without weights is there, which failed or has only begun", false},
        {"other", {"notes.txt"}, "the run folder is not empty, and holds no run", false},
        {"live", {"config.yaml"}, "live/lock is held by process", true},
        {"killed", {"config.yaml", "lock"}, "a run without weights is there, which failed or has only begun", false},
    };
    const struct sl_model model = {.name = "m"};
    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_file_lock *lock = NULL;
        char path[80], said[sizeof err.message] = "";
        for (int f = 0; f < 2 && rows[k].files[f]; f++) {
            snprintf(path, sizeof path, "%s/%s", rows[k].folder, rows[k].files[f]);
            put(path);
        }
        snprintf(path, sizeof path, "%s/lock", rows[k].folder);
        if (rows[k].locked)
            ok(sl_file_lock_take(path, &lock, &err), &err);
        oom_fail_from(1);
        assert_int_equal(sl_run_folder_is_run(rows[k].folder), strcmp(rows[k].folder, "other") != 0);
        assert_int_equal(sl_run_folder_holds_weights(rows[k].folder), k < 2);
        oom_disarm();
        const int descriptors = descriptors_count();
        for (int n = 0;; n++) {
            char *made, *folder;
            if (n > 0)
                oom_fail_at(n);
            const seqlstm_status status = sl_run_folder_make(&model, rows[k].folder, &made, &folder, &err);
            const bool failed = oom_disarm();
            assert_int_equal(descriptors_count(), descriptors);
            assert_true(status != SEQLSTM_OK);
            if (status == SEQLSTM_NO_MEMORY && failed)
                continue;
            assert_int_equal(is_there(path), rows[k].locked); /* a lock that nothing holds goes */
            if (n == 0)
                memcpy(said, err.message, sizeof said);
            assert_string_equal(err.message, said);
            assert_non_null(strstr(said, rows[k].told));
            if (n > 0 && !failed)
                break;
        }
        sl_file_lock_release(lock);
    }
}

/* No memory is no reason to say that there is no run, nor to take another. */
static void a_run_is_found_or_memory_is_short(void **state)
{
    static const char *const files[] = {"named/runs/m/001/config.yaml", "named/runs/m/001/final.safetensors",
                                        "named/runs/m/9/config.yaml",   "named/runs/m/9/final.safetensors",
                                        "named/runs/m/010/config.yaml", "named/runs/bare/config.yaml"};
    static const char *const rows[][2] = {
        {"m", "runs/m/9"}, {"runs/m", "runs/m/9"}, {"bare", "runs/bare"}, {"runs/m/001", "runs/m/001"}, {"none", NULL}};
    static const struct sl_log silent = {.write = NULL};
    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        put(files[f]);
    assert_int_equal(chdir("named"), 0);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int n = 1;; n++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            char *found = NULL;
            oom_fail_at(n);
            const seqlstm_status status = sl_run_folder_find(rows[k][0], &silent, &found, &err);
            const bool failed = oom_disarm();
            if (status != SEQLSTM_OK && status != (failed ? SEQLSTM_NO_MEMORY : SEQLSTM_NOT_FOUND))
                fail_msg("%s, allocation %d: %s", rows[k][0], n, err.message);
            if (status == SEQLSTM_OK)
                assert_string_equal(found, rows[k][1]);
            else if (!failed)
                assert_null(rows[k][1]);
            free(found);
            if (!failed)
                break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_utf8_is_named),
        cmocka_unit_test(what_was_made_is_taken_back),
        cmocka_unit_test(a_thousand_runs_are_not_too_many),
        cmocka_unit_test(a_folder_that_cannot_be_made),
        cmocka_unit_test(a_link_among_checkpoints_is_refused),
        cmocka_unit_test(a_run_has_one_writer),
        cmocka_unit_test(a_writer_that_lost_its_lock_says_how),
        cmocka_unit_test(a_run_is_found_or_memory_is_short),
        cmocka_unit_test(a_taken_folder_is_refused_for_what_it_is),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
