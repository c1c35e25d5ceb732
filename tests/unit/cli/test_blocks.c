/* SPDX-License-Identifier: Apache-2.0 */
/* Whole commands on a model, data and a run of the test: each leaves no block of memory and no descriptor behind,
 * whether it succeeds or refuses what it is asked. */
#include "captured.h"

#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "scratch.h"

#include "command_line.h"
#include "descriptors.h"

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_true(file && fputs(text, file) >= 0);
    fclose(file);
}

static int make_files(void **state)
{
    static const char table[] = "seqlstm: 1\nname: table\nseed: 3\n"
                                "data: {type: csv, train: {file: t.csv}, valid: {file: t.csv}, inputs: [a, b], "
                                "targets: [y], batch_size: 4}\n"
                                "model: [{type: dense, units: 3}, {type: dense, units: from_target}]\n"
                                "train: {loss: mse, epochs: 2}\nbackends: [reference]\n",
                      letters[] =
                          "seqlstm: 1\nname: letters\nseed: 2\n"
                          "data: {type: text, train: {file: t.txt}, valid: {file: t.txt}, tokenizer: {type: char}, "
                          "batch_size: 2, batching: {unit: stream, bptt: 8}}\n"
                          "model: [{type: embedding, dim: 2}, {type: lstm, units: 3, return_sequences: true}, "
                          "{type: output, activation: softmax}]\n"
                          "train: {task: language_model, loss: cross_entropy, epochs: 1}\nbackends: [reference]\n",
                      classes[] =
                          "seqlstm: 1\nname: classes\nseed: 4\n"
                          "data: {type: lines, train: {file: l.txt}, label: first, batch_size: 2, "
                          "tokenizer: {type: whitespace, specials: [unk]}}\n"
                          "model: [{type: embedding, dim: 2}, {type: lstm, units: 3}, "
                          "{type: output, activation: softmax}]\n"
                          "train: {loss: cross_entropy, metrics: [accuracy], epochs: 2}\nbackends: [reference]\n";
    if (scratch_make(state) != 0 || chdir(scratch_folder) != 0)
        return -1;
    setenv("XDG_CACHE_HOME", scratch_folder, 1);
    write_file("t.csv", "a,b,y\n1,2,3\n2,3,5\n3,4,7\n4,5,9\n5,6,11\n");
    write_file("t.txt", "what is read is what is written\n");
    write_file("l.txt", "good\ta fine day\nbad\tno fine day\ngood\tone more day\n");
    write_file("m.yaml", table);
    write_file("letters.yaml", letters);
    write_file("classes.yaml", classes);
    write_file("wrong.yaml", "seqlstm: 1\ndata: {type: cvs}\n");
    cli_set_commands(cli_commands);
    return 0;
}

static void commands_leave_no_block(void **state)
{
    static const char *const before[] = {"run m.yaml --out r -q", "run m.yaml --out s -q",
                                         "run letters.yaml --out t -q", "run classes.yaml --out c -q"};
    static const char *const lines[] = {
        "run m.yaml -q",
        "run m.yaml --progress lines",
        "run wrong.yaml",
        "run none.yaml",
        "run m.yaml --out r",
        "resume r -q",
        "check m.yaml",
        "check m.yaml --json",
        "check wrong.yaml",
        "check wrong.yaml --json",
        "check letters.yaml --set train.loss=mse",
        "config m.yaml",
        "config r",
        "plan m.yaml",
        "plan m.yaml --json",
        "plan letters.yaml",
        "plan m.yaml --html plan.html",
        "data stats m.yaml",
        "data stats letters.yaml --json",
        "data stats classes.yaml --html data.html",
        "eval r",
        "eval r --json",
        "eval t --split valid",
        "predict r --input t.csv",
        "predict r --input t.csv --format csv --columns a",
        "predict r --input t.csv --format npy",
        "predict r --input t.csv --json",
        "predict r --input none.csv",
        "predict c --input l.txt --probabilities",
        "embed c --input l.txt",
        "embed c --input l.txt --format npy",
        "generate t --length 5 --seed 1",
        "export r --file w.safetensors",
        "export r --to onnx --file w.onnx",
        "import w.safetensors --into m.yaml --out i",
        "inspect r",
        "inspect r --json",
        "inspect w.safetensors",
        "quantize r",
        "quantize c --force",
        "runs",
        "runs r",
        "runs r s --json",
        "runs --html runs.html",
        "runs --where state=finished --sort updates",
        "runs --where loss<1",
        "runs compare r s",
        "runs compare r t --json",
        "runs delete none --yes",
        "watch r --once",
        "watch r",
        "watch r --json",
        "watch none",
        "stop r",
        "verify m.yaml --backend reference",
        "verify m.yaml --backend reference --json",
        "bench m.yaml --backend reference --seconds 0.01 --batch 1 --threads 1",
        "bench m.yaml --backend reference --seconds 0.01 --batch 1,2 --threads 1,2 --phase infer --json",
        "bench m.yaml --backend none --seconds 0.01",
        "ab m.yaml --a reference --b reference --rounds 1 --batch 2 --seconds 0.01",
        "ab m.yaml --a reference --b reference --rounds 1 --phase infer --json",
        "profile m.yaml --updates 2 --seconds 0",
        "profile m.yaml --updates 2 --seconds 0 --trace trace.json --html profile.html --json",
        "run m.yaml -q --profile=2",
        "conformance reference --in-process --case dense:bwd:R5I3O4:f32:flat",
        "conformance reference --in-process --case dense:bwd:R5I3O4:f32:flat --json",
        "conformance reference --in-process --case dense:bwd:R5I3O4:f32:flat --junit",
        "conformance reference --list --case dense:*",
        "conformance none",
        "backends",
        "backends --json",
        "doctor",
        "schema",
        "explain E0203",
        "explain X",
        "completion bash",
        "completion zsh",
        "completion fish",
        "help",
        "help run",
        "help --man",
        "help none",
        "version --json",
        "new model n",
    };
    (void)state;
    for (size_t k = 0; k < sizeof before / sizeof *before; k++) {
        struct ended ended = run_failing(before[k], 0, NULL);
        if (ended.code != CLI_OK)
            fail_msg("%s: %s", before[k], sl_buf_text(&ended.errors));
        ended_deinit(&ended);
    }
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        const int open = descriptors_count();
        run_for_its_blocks(lines[k]);
        if (descriptors_count() != open)
            fail_msg("%s: %d descriptors are left", lines[k], descriptors_count() - open);
    }
    sl_buf_deinit(&noted);
}

static void statistics_are_whole_or_an_error(void **state)
{
    static const char *const lines[] = {"data stats classes.yaml --json", "data stats m.yaml --json"};
    (void)state;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        run_without_memory(lines[k], 0);
    sl_buf_deinit(&noted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(commands_leave_no_block),
                                       cmocka_unit_test(statistics_are_whole_or_an_error)};
    return cmocka_run_group_tests(tests, make_files, scratch_clear);
}
