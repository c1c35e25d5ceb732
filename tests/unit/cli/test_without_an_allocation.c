/* SPDX-License-Identifier: Apache-2.0 */
/* Whole commands on a run and files of the test, each once without memory in every place that asks for some: it ends as
 * one without memory and says so, or writes all that it writes otherwise, and keeps nothing. */
#include "captured.h"

#include "cli/cli.h"
#include "cli/commands.h"
#include "scratch.h"

#include "command_line.h"

enum { CALLERS = 4 };

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_true(file && fputs(text, file) >= 0);
    fclose(file);
}

static int make_files(void **state)
{
    if (scratch_make(state) != 0 || chdir(scratch_folder) != 0)
        return -1;
    setenv("XDG_CACHE_HOME", scratch_folder, 1);
    write_file("t.csv", "a,b,y\n1,2,3\n2,3,5\n3,4,7\n4,5,9\n5,6,11\n");
    write_file("m.yaml", "seqlstm: 1\nname: table\nseed: 3\n"
                         "data: {type: csv, train: {file: t.csv}, valid: {file: t.csv}, inputs: [a, b], "
                         "targets: [y], batch_size: 4}\n"
                         "model: [{type: dense, units: from_target}]\n"
                         "train: {loss: mse, epochs: 2}\nbackends: [reference]\n");
    write_file("wrong.yaml", "seqlstm: 1\ndata: {type: cvs}\n");
    cli_set_commands(cli_commands);
    struct ended ended = run_failing("run m.yaml --out r -q", 0, NULL);
    assert_int_equal(ended.code, CLI_OK);
    ended_deinit(&ended);
    return 0;
}

static void commands_are_whole_or_say_so(void **state)
{
    static const char *const lines[] = {
        "watch r",
        "watch r --once",
        "watch r --json",
        "stop r",
        "runs",
        "runs --dir . --json",
        "runs --dir . --where state=finished --sort updates",
        "runs --dir . --html runs.html",
        "runs compare r r",
        "runs compare r r --json",
        "inspect r",
        "check m.yaml --json",
        "check wrong.yaml",
        "check wrong.yaml --json",
        "data stats m.yaml --json",
        "eval r --json",
        "predict r --input t.csv",
        "predict r --input t.csv --format npy",
        "export r --file w.safetensors --force",
        "backends --json",
        "completion bash",
        "help run --man",
    };
    (void)state;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        run_without_memory(lines[k], CALLERS);
    sl_buf_deinit(&noted);
}

/* Plugins keep blocks, so those of the group are not counted: each command counts its own. */
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(commands_are_whole_or_say_so)};
    return cmocka_run_group_tests(tests, make_files, scratch_clear);
}
