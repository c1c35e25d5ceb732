/* SPDX-License-Identifier: Apache-2.0 */
/* What `check` finds in the data of a model and says of them, as a whole: faults of several splits, layers and metrics,
 * at their places, and the notes of the log. */
#include "golden.h"
#include "model_fixture.h"

#include <unistd.h>

#include "base/value/buf.h"
#include "scratch.h"
#include "session/data/check_data.h"
#include "session/record/session_record.h"

static struct sl_buf out;

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    static const char *const levels[] = {"error", "warning", "info", "debug", "trace"};
    (void)context;
    if (level <= SL_LOG_INFO)
        sl_buf_printf(&out, "%s: %s\n", levels[level], message);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void check(const char *title, const char *data, const char *layers, const char *train)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf text = {0}, found = {0};
    const struct sl_log log = {.write = write_log, .level = SL_LOG_TRACE};
    sl_buf_printf(&text, "seqlstm: 1\ndata:\n%smodel:\n%strain: {epochs: 1%s}\n", data, layers, train);
    struct loaded m = load_clean(sl_buf_text(&text));
    struct sl_session session = {.model = m.model, .diagnostics = m.diagnostics, .options = {.log = &log}};
    sl_buf_printf(&out, "== %s\n", title);
    const seqlstm_status status = sl_session_check_data(&session, &err);
    assert_int_equal(sl_diagnostics_render(m.diagnostics, false, &found, NULL), SEQLSTM_OK);
    const char *message = err.message, *folder = strstr(message, scratch_folder);
    sl_buf_printf(&out, "status %d", (int)status);
    if (folder) {
        sl_buf_printf(&out, ": %.*sFOLDER", (int)(folder - message), message);
        message = folder + strlen(scratch_folder);
    } else if (message[0]) {
        sl_buf_append_text(&out, ": ");
    }
    sl_buf_printf(&out, "%s\n%s", message, sl_buf_text(&found));
    sl_buf_deinit(&text);
    sl_buf_deinit(&found);
    unload(&m);
}

#define EMBEDDED "  - {type: embedding, dim: 3}\n  - {type: lstm, units: 4}\n  - {type: output, activation: softmax}\n"
#define PLAIN    "  - {type: lstm, units: 3}\n  - {type: dense, units: from_target}\n"
#define STREAMED                                                                                                       \
    "  - {type: embedding, dim: 3}\n  - {type: lstm, units: 4, return_sequences: true}\n"                              \
    "  - {type: output, activation: softmax}\n"
#define PAIRED(encoder, decoder)                                                                                       \
    "  encoder:\n    - {type: embedding, dim: 3" encoder "}\n    - {type: lstm, units: 4}\n"                           \
    "  decoder:\n    - {type: embedding, dim: 3" decoder "}\n"                                                         \
    "    - {type: lstm, units: 4, return_sequences: true}\n    - {type: output, activation: softmax}\n"

static void write_files(void)
{
    put("train.txt", "A a b\nB b c d e f\nA a c\nB d\n");
    put("five.txt", "V a\nA b\nW c\nX a b c d\nV a\nY b\nZ c\n");
    put("six.txt", "A b\nU c\nV a\nW c\nX a\nV a\nY b\nZ c\nB a b\n");
    put("tags.txt", "a\tX\nb\tY\nc\tX\nd\tX\ne\tX\n\nd\tY\n\n");
    put("source.txt", "x y\ny z\n");
    put("target.txt", "a b c\nb a\n");
    put("three.vec", "x 1 2 3\na 4 5 6\n");
    put("two.vec", "x 1 2\na 4 5\n");
    put("long.txt", "a b c d e f g h i j k l m n o p q r s t u v w x y z\n");
    put("short.txt", "a b c\n");
    put("train.csv", "g,a,y,z\n1,1,2,7\n1,2,3,7\n1,3,4,7\n1,4,1,7\n2,1,2,7\n3,5,4,7\n3,5,2,7\n3,9,4,7\n");
}

static void what_is_found_in_data(void **state)
{
    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    write_files();
    check("generators are as small as a batch",
          "  {type: generator, name: adding_problem, length: 5, batch_size: 8, train: {size: 2000000000}, "
          "valid: {size: 2000000000}, test: {size: 2000000000}}\n",
          PLAIN, "");
    check("a part of the training data is not",
          "  {type: generator, name: adding_problem, length: 5, batch_size: 2, train: {size: 20}, "
          "valid: {split: 0.25}}\n",
          PLAIN, "");
    check("it has records for both, more than a batch",
          "  {type: generator, name: adding_problem, length: 5, batch_size: 1, train: {size: 20}, "
          "valid: {split: 0.25}}\n",
          PLAIN, "");
    check("likewise for a test",
          "  {type: generator, name: adding_problem, length: 5, batch_size: 1, train: {size: 20}, "
          "valid: {size: 3}, test: {split: 0.25}}\n",
          PLAIN, "");
#define LINES(valid)                                                                                                   \
    "  type: lines\n  label: first\n  tokenizer: {type: whitespace}\n  batch_size: 2\n  train: {file: "                \
    "train.txt}\n" valid
    check("five labels are unknown", LINES("  valid: {file: five.txt}\n"), EMBEDDED, ", metrics: [accuracy]");
    check("six labels are unknown, in another split", LINES("  valid: {file: train.txt}\n  test: {file: six.txt}\n"),
          EMBEDDED, ", metrics: [accuracy]");
    check("a whole sequence is not cut into parts", LINES("  batching: {max_length: 2, on_overflow: split}\n"),
          EMBEDDED, "");
    check("a sequence of tags is cut into parts",
          "  type: conll\n  label: 2\n  tokenizer: {type: whitespace}\n  batch_size: 2\n  train: {file: tags.txt}\n"
          "  batching: {max_length: 2, on_overflow: split}\n",
          STREAMED, ", task: tag");
    check("a sequence is cut off",
          LINES("  batching: {max_length: 3, on_overflow: truncate}\n  valid: {file: five.txt}\n"), EMBEDDED, "");
    check("sequences are dropped", LINES("  batching: {max_length: 1, on_overflow: drop}\n  test: {file: train.txt}\n"),
          EMBEDDED, "");
    check("weights of a class that the data do not have", LINES(""), EMBEDDED, ", class_weight: {C: 2}");
    check("a validation that has another fault than the training", LINES("  valid: {file: nowhere.txt}\n"), EMBEDDED,
          ", class_weight: {C: 2}");
    check("files of two splits are missing", LINES("  valid: {file: nowhere.txt}\n  test: {file: neither.txt}\n"),
          EMBEDDED, "");
    check("vectors of another width", LINES(""),
          "  - {type: embedding, dim: 3, weights: two.vec}\n  - {type: lstm, units: 4}\n"
          "  - {type: output, activation: softmax}\n",
          "");
#define PAIRS                                                                                                          \
    "  type: lines\n  train: {source: source.txt, target: target.txt}\n  tokenizer: {type: whitespace}\n"              \
    "  source_tokenizer: {type: whitespace}\n  batch_size: 2\n"
    check("vectors of both sides fit", PAIRS, PAIRED(", weights: three.vec", ", weights: three.vec"), "");
    check("those of the decoder do not", PAIRS, PAIRED(", weights: three.vec", ", weights: two.vec"), "");
    check("those of the encoder are missing, which is said elsewhere", PAIRS,
          PAIRED(", weights: nowhere.vec", ", weights: two.vec"), "");
#define STREAM(more)                                                                                                   \
    "  type: text\n  tokenizer: {type: whitespace}\n  batch_size: 4\n  batching: {unit: stream, bptt: 3}\n"            \
    "  train: {file: long.txt}\n" more
    check("a test of one stream", STREAM("  test: {file: short.txt}\n"), STREAMED, ", task: language_model");
    check("a validation of four streams", STREAM("  valid: {file: short.txt}\n"), STREAMED, ", task: language_model");
#define WINDOWS                                                                                                        \
    "  type: csv\n  group: g\n  train: {file: train.csv}\n  valid: {file: train.csv}\n  inputs: [a]\n"                 \
    "  targets: [y, z]\n  window: {length: 2, horizon: 1}\n  batch_size: 2\n"
    check("windows and targets of a table", WINDOWS, PLAIN, ", loss: mse");
    check("a metric of training that the data do not allow", WINDOWS, PLAIN, ", loss: mse, metrics: [mase]");
    check("a metric of validation that the data do not allow", WINDOWS, PLAIN,
          ", loss: mse, metrics: [mae], validate: {metrics: [mae, mase]}");
    assert_false(out.failed);
    golden_expect("reports/checked_data.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_found_in_data),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
