/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other programs are told apart by their first bytes, and answered with the line that converts them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"

#include "interop/foreign.h"

/* An archive whose first member has this name, of which so many bytes are there. */
#define ZIP(length, name) "PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" length "\0\0\0" name

static const struct {
    const char *bytes;
    size_t count;
    const char *what; /* NULL: it is none of these */
} files[] = {
    {"", 0, NULL},
    {"\x89HDF\r\n\032\n", 8, "a file of Keras"},
    {"\x89HD", 3, NULL},
    {"\x93NUMPY\1\0", 8, "one array of NumPy"},
    {"\x80\2}q", 4, "a file of PyTorch"},
    {"\x80\5\x95\1\0\0\0\0\0", 9, "a file of PyTorch"},
    {"\x80\1}q", 4, NULL},
    {"\x80\6}q", 4, NULL},
    {"\x80", 1, NULL},
    {"\x80\2\0\0\0\0\0\0{\"a\"", 12, NULL}, /* safetensors with a header of 640 bytes */
    {"\x80\2\0\0\0\0\0\0", 8, "a file of PyTorch"},
    {ZIP("\5", "a.npy"), 35, "an archive of NumPy"},
    {ZIP("\4", "a.npy"), 35, "a file of PyTorch"}, /* the name ends before */
    {ZIP("\5", "a.npy"), 34, "a file of PyTorch"}, /* so does the file */
    {ZIP("\x0d", "metadata.json"), 43, "a file of Keras"},
    {ZIP("\x0b", "config.json"), 41, "a file of Keras"},
    {ZIP("\x10", "model.weights.h5"), 46, "a file of Keras"},
    {ZIP("\x10", "archive/data.pkl"), 46, "a file of PyTorch"},
    {ZIP("\1", ""), 30, NULL},
    {"PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\1\0\0long/name.npy", 43,
     "an archive of NumPy"},                                                                            /* 261 bytes */
    {"PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\377\0\0long/name", 39, "a file of PyTorch"}, /* 65280 */
    {"PK\5\6", 4, NULL},
    {"\x10\0\0\0\0\0\0\0{}", 10, NULL},
};

static void files_are_told_apart(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        FILE *file = fopen(scratch_path("weights.bin"), "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(files[f].bytes, 1, files[f].count, file), files[f].count);
        assert_int_equal(fclose(file), 0);
        const seqlstm_status status = sl_foreign_refuse(scratch_path("weights.bin"), &err);
        if (status != (files[f].what ? SEQLSTM_INVALID_ARGUMENT : SEQLSTM_OK) ||
            (files[f].what && strstr(err.message, files[f].what) == NULL))
            fail_msg("file %d: status %d, `%s`", (int)f, (int)status, err.message);
    }
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_foreign_refuse(scratch_path("none"), &err), SEQLSTM_OK);
    assert_int_equal(sl_foreign_refuse(scratch_folder, &err), SEQLSTM_OK);
}

/* The line reads the file and writes one beside it whose name has another ending. */
static void the_line_names_both_files(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"w.npy", "w"}, {"w", "w"}, {".npy", ".npy"}, {"a.b.npy", "a.b"}};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char path[256], reads[300], writes[300];
        snprintf(path, sizeof path, "%s", scratch_path(names[n][0]));
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        fputs("\x93NUMPY", file);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(sl_foreign_refuse(path, &err), SEQLSTM_INVALID_ARGUMENT);
        snprintf(reads, sizeof reads, "numpy.load('%s')", path);
        snprintf(writes, sizeof writes, "'%s.safetensors')\"", scratch_path(names[n][1]));
        if (strncmp(err.message, path, strlen(path)) != 0 || !strstr(err.message, reads) ||
            !strstr(err.message, writes))
            fail_msg("%s: `%s`", names[n][0], err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_told_apart),
        cmocka_unit_test(the_line_names_both_files),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
