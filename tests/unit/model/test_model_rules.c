/* SPDX-License-Identifier: Apache-2.0 */
/* Rules between keys and between layers, each with the neighbours to which it does not apply; of several layers the one
 * that is named. */
#include "oom.h"
#include "model_fixture.h"
#include "temporary.h"

#include <unistd.h>

#include "model/read/sections.h"

/* What is found, one line each: code and message, place, help. */
static void summarise(const char *text, struct sl_buf *out)
{
    static const char *const kept[] = {"error[", "warning[", "--> m.yaml:", "= help: "};
    for (const char *line = text; *line;) {
        const size_t bytes = strcspn(line, "\n"), blank = strspn(line, " ");
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
            if (strncmp(line + blank, kept[k], strlen(kept[k])) == 0) {
                const size_t skipped = blank + (k == 2 ? strlen(kept[k]) : 0);
                sl_buf_append(out, line + skipped, bytes - skipped);
                sl_buf_append_char(out, '\n');
            }
        line += bytes + (line[bytes] == '\n');
    }
}

struct rule {
    const char *text, *found;
};

static void check_rules(const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct loaded l = load(rules[i].text);
        struct sl_buf found = {0};
        summarise(sl_buf_text(&l.text), &found);
        if (strcmp(sl_buf_text(&found), rules[i].found) != 0)
            fail_msg("\n%s\ngives\n%s\nand should give\n%s", rules[i].text, sl_buf_text(&found), rules[i].found);
        sl_buf_deinit(&found);
        unload(&l);
    }
}

#define CHECK(rules) check_rules(rules, sizeof rules / sizeof *rules)

#define ADDING                                                                                                         \
    "seqlstm: 1\n"                                                                                                     \
    "data: {train: {type: generator, name: adding_problem, size: 10, length: 5}}\n"                                    \
    "model:\n"
#define END                                                                                                            \
    "  - {type: dense, units: from_target}\n"                                                                          \
    "train: {epochs: 1}\n"

/* Of three or four layers that are joined, the one that does not fit. */
static void joins_name_the_layer_that_does_not_fit(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {ADDING "  - {type: lstm, name: a, units: 4, return_sequences: true, from: input}\n"
                "  - {type: gru, name: b, units: 5, return_sequences: true, from: input}\n"
                "  - {type: rnn, name: c, units: 6, from: input}\n"
                "  - {type: concat, from: [a, b, c]}\n" END,
         "error[E0304]: concat_1 cannot join a sequence and a vector (a and c)\n7:5\n"},
        {ADDING "  - {type: lstm, name: a, units: 4, from: input}\n"
                "  - {type: gru, name: b, units: 4, from: input}\n"
                "  - {type: rnn, name: c, units: 6, from: input}\n"
                "  - {type: lstm, name: d, units: 4, from: input}\n"
                "  - {type: add, from: [a, b, c, d]}\n" END,
         "error[E0315]: add_1 adds layers of different width: a has 4 features, c 6\n8:5\n"},
        {ADDING "  - {type: lstm, name: a, units: 4, from: input}\n"
                "  - {type: gru, name: b, units: 5, from: input}\n"
                "  - {type: rnn, name: c, units: 9, from: input}\n"
                "  - {type: concat, name: ab, from: [a, b]}\n"
                "  - {type: add, from: [ab, c]}\n" END,
         ""},
    };
    CHECK(rules);
}

/* The layer that could return a sequence is found along the inputs, not along the lines of the file. */
static void a_layer_that_could_return_a_sequence_is_found_along_the_inputs(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {ADDING "  - {type: lstm, name: a, units: 4, from: input}\n"
                "  - {type: gru, name: b, units: 4, from: input}\n"
                "  - {type: dense, name: c, units: 4, from: a}\n"
                "  - {type: rnn, name: d, units: 4, from: c}\n"
                "  - {type: concat, from: [b, d]}\n" END,
         "error[E0314]: d needs a sequence, but c gives one vector per sequence\n7:5\n"
         "= help: add `return_sequences: true` to a (m.yaml:4:5)\n"},
        {ADDING "  - {type: lstm, name: a, units: 4, return_sequences: true}\n"
                "  - {type: pool, name: b, mode: max}\n"
                "  - {type: gru, name: c, units: 4}\n" END,
         "error[E0314]: c needs a sequence, but b gives one vector per sequence\n6:5\n"},
    };
    CHECK(rules);
}

#define TABLE(columns, output, train)                                                                                  \
    "seqlstm: 1\n"                                                                                                     \
    "data: {train: {type: csv, file: a.csv, " columns "}}\n"                                                           \
    "model:\n"                                                                                                         \
    "  - {type: lstm, name: a, units: 4, return_sequences: " output "}\n"                                              \
    "  - {type: dense, units: from_target}\n"                                                                          \
    "train: {epochs: 1, task: regress" train "}\n"
#define PER_STEP                                                                                                       \
    "error[E0313]: the task `regress` needs one output per sequence, but dense_1 gives one for each step\n5:5\n"       \
    "= help: remove `return_sequences` from the last recurrent layer, or add a `pool`\n"

/* A forecast behind a window and a value of a whole sequence have one output per sequence; targets beside each row may
 * have either. */
static void only_windows_and_labels_need_one_output_per_sequence(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {TABLE("inputs: [x], targets: [y], group: g", "true", ""), ""},
        {TABLE("inputs: [x], targets: [y], group: g", "false", ""), ""},
        {TABLE("inputs: [x], targets: [y], window: {length: 3}", "true", ""), PER_STEP},
        {TABLE("inputs: [x], targets: [y], window: {length: 3}", "false", ""), ""},
        {TABLE("inputs: [x], label: {column: y, type: value}, group: g", "true", ""), PER_STEP},
        {TABLE("inputs: [x], label: {column: y, type: value}, group: g", "false", ""), ""},
    };
    CHECK(rules);
}

#define LINES(train)                                                                                                   \
    "seqlstm: 1\n"                                                                                                     \
    "data: {train: {type: lines, file: a.txt, label: first}, valid: {file: b.txt}, tokenizer: whitespace}\n"           \
    "model:\n"                                                                                                         \
    "  - {type: embedding, dim: 3}\n"                                                                                  \
    "  - {type: lstm, units: 4}\n"                                                                                     \
    "  - {type: output, activation: softmax}\n"                                                                        \
    "train: {epochs: 1, " train "}\n"

/* Each split is monitored by what is measured on it. */
static void a_monitor_is_measured_on_its_own_split(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {LINES("metrics: [accuracy], validate: {metrics: [f1_macro]}, early_stopping: {monitor: valid.f1_macro}"), ""},
        {LINES("metrics: [accuracy], validate: {metrics: [f1_macro]}, early_stopping: {monitor: train.accuracy}"), ""},
        {LINES("metrics: [accuracy], validate: {metrics: [f1_macro]}, early_stopping: {monitor: valid.accuracy}"),
         "error[E0312]: `valid.accuracy` is monitored, but `accuracy` is not measured\n7:100\n"
         "= help: add `metrics: [accuracy]` to train\n"},
        {LINES("metrics: [accuracy], validate: {metrics: [f1_macro]}, early_stopping: {monitor: train.f1_macro}"),
         "error[E0312]: `train.f1_macro` is monitored, but `f1_macro` is not measured\n7:100\n"
         "= help: add `metrics: [f1_macro]` to train\n"},
    };
    CHECK(rules);
}

/* With one target for each sequence, only weights of rows make another mean. */
static void weights_of_rows_give_reductions_an_effect(void **state)
{
    (void)state;
    static const char idle[] =
        "error[E0205]: `reduction` has no effect without a target for each step: here each sequence has one\n";
    static const struct rule rules[] = {
        {LINES("loss: {type: cross_entropy, reduction: mean}"), ""},
        {LINES("loss: {type: cross_entropy, reduction: sequence_mean, ignore: spam}"), ""},
        {LINES("loss: {type: cross_entropy, reduction: sequence_mean}, class_weight: balanced"), ""},
        {LINES("loss: {type: cross_entropy, reduction: sequence_mean}, class_weight: {spam: 2}"), ""},
    };
    static const char *const idles[] = {
        LINES("loss: {type: cross_entropy, reduction: sequence_mean}"),
        LINES("loss: {type: cross_entropy, reduction: step_mean, ignore: spam}"),
        LINES("loss: {type: cross_entropy, reduction: step_mean}, class_weight: balanced"),
    };
    CHECK(rules);
    for (size_t i = 0; i < sizeof idles / sizeof *idles; i++)
        assert_refused(idles[i], idle);
}

#define PAIRS(train)                                                                                                   \
    "seqlstm: 1\n"                                                                                                     \
    "data: {train: {type: lines, source: a.txt, target: b.txt}, tokenizer: whitespace}\n"                              \
    "model:\n"                                                                                                         \
    "  encoder:\n"                                                                                                     \
    "    - {type: embedding, dim: 3}\n"                                                                                \
    "    - {type: lstm, name: e, units: 4}\n"                                                                          \
    "  decoder:\n"                                                                                                     \
    "    - {type: embedding, dim: 3}\n"                                                                                \
    "    - {type: lstm, units: 4, return_sequences: true, initial_state: e}\n"                                         \
    "    - {type: output, activation: softmax}\n"                                                                      \
    "train: {" train "}\n"

/* A share of the run can be told as soon as updates or epochs end it. */
static void a_linear_teacher_needs_an_end_that_is_no_time(void **state)
{
    (void)state;
    static const char endless[] =
        "error[E0204]: the schedule needs `over`, because `train` has neither `epochs` nor `updates`\n11:40\n";
    static const struct rule rules[] = {
        {PAIRS("max_time: 1h, teacher_forcing: {type: linear}"), endless},
        {PAIRS("max_time: 1h, teacher_forcing: {type: linear, over: 5u}"), ""},
        {PAIRS("updates: 10, teacher_forcing: {type: linear}"), ""},
        {PAIRS("epochs: 10, teacher_forcing: {type: linear}"), ""},
        {PAIRS("max_time: 1h, teacher_forcing: {type: constant, probability: 0.5}"), ""},
    };
    CHECK(rules);
}

#define BATCHING(batching)                                                                                             \
    "seqlstm: 1\n"                                                                                                     \
    "data: {train: {type: generator, name: adding_problem, size: 10, length: 5}, batching: {" batching "}}\n"          \
    "model:\n"                                                                                                         \
    "  - {type: lstm, units: 4}\n"                                                                                     \
    "  - {type: dense, units: from_target}\n"                                                                          \
    "train: {epochs: 1}\n"

/* Every length of the list is above the one before it, not only above the first. */
static void each_edge_is_above_the_one_before(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {BATCHING("bucketing: [10, 30, 40]"), ""},
        {BATCHING("bucketing: [10, 30, 20]"),
         "error[E0103]: the lengths of `bucketing` must increase: 20 comes after 30\n2:108\n"},
    };
    CHECK(rules);
}

/* The longest sequence: the smaller one of `max_length` and the last edge, and edges only where they end something. */
static void the_smaller_limit_of_the_lengths_counts(void **state)
{
    (void)state;
    static const int64_t edges[] = {3, 7};
    static const struct {
        enum sl_bucketing_kind kind;
        size_t edges;
        int64_t most;
        enum sl_overflow action;
        int64_t longest;
    } cases[] = {
        {SL_BUCKETING_LENGTHS, 2, 0, SL_OVERFLOW_DROP, 7},     {SL_BUCKETING_LENGTHS, 2, 5, SL_OVERFLOW_DROP, 5},
        {SL_BUCKETING_LENGTHS, 2, 9, SL_OVERFLOW_TRUNCATE, 7}, {SL_BUCKETING_LENGTHS, 2, 9, SL_OVERFLOW_SPLIT, 7},
        {SL_BUCKETING_LENGTHS, 2, 0, SL_OVERFLOW_KEEP, 0},     {SL_BUCKETING_LENGTHS, 2, 9, SL_OVERFLOW_KEEP, 9},
        {SL_BUCKETING_LENGTHS, 0, 9, SL_OVERFLOW_DROP, 9},     {SL_BUCKETING_POOLS, 0, 4, SL_OVERFLOW_DROP, 4},
        {SL_BUCKETING_POOLS, 0, 0, SL_OVERFLOW_DROP, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sl_batching batching = {
            .bucketing = {.kind = cases[i].kind, .edges = edges, .edge_count = cases[i].edges},
            .max_length = cases[i].most,
            .on_overflow = cases[i].action};
        assert_int_equal(sl_batching_find_longest(&batching), cases[i].longest);
    }
}

/* The configuration of a run says nothing that has no effect, whether it is read from a person or from a run. */
static void idle_keys_of_a_saved_run_are_left_out(void **state)
{
    (void)state;
    static const char text[] = ADDING "  - {type: lstm, units: 4}\n"
                                      "  - {type: dense, units: from_target}\n"
                                      "train: {epochs: 1, checkpoint: {every: 1e, monitor: train.loss, mode: min}}\n";
    const struct sl_model_request saved = {.path = "m.yaml", .saved = true};
    struct loaded l = load_text("m.yaml", text, strlen(text), &saved);
    struct sl_buf config = {0};
    assert_string_equal(sl_buf_text(&l.text), "");
    assert_non_null(l.model);
    assert_int_equal(sl_model_write_config(l.model, 0, &config, NULL), SEQLSTM_OK);
    assert_non_null(strstr(sl_buf_text(&config), "every: 1e"));
    assert_null(strstr(sl_buf_text(&config), "monitor:"));
    assert_null(strstr(sl_buf_text(&config), "mode: min"));
    sl_buf_deinit(&config);
    unload(&l);
}

#define ENDED(train)                                                                                                   \
    ADDING "  - {type: lstm, units: 4}\n"                                                                              \
           "  - {type: dense, units: from_target}\n"                                                                   \
           "train: {" train "}\n"

/* A key that is nearly `epochs` is taken for it, so that one mistake has one message. */
static void a_misspelt_end_is_no_missing_end(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {ENDED("epoxxs: 1"),
         "error[E0203]: unknown key `epoxxs` in the training\n6:9\n= help: did you mean `epochs`?\n"},
        {ENDED("loss: mse"), "error[E0319]: the training has no end: it needs `epochs`, `updates` or `max_time`\n6:8\n"
                             "= help: add `epochs: 10`\n"},
    };
    CHECK(rules);
}

#define OUT   "{type: output, activation: softmax}"
#define MARKS "{type: whitespace, specials: [bos, eos]}"
#define SIDES(decoder, tokenizer, loss, more)                                                                          \
    "seqlstm: 1\n"                                                                                                     \
    "data: {train: {type: lines, source: s.txt, target: t.txt}, tokenizer: " tokenizer ", batch_size: 4}\n"            \
    "model:\n"                                                                                                         \
    "  encoder: [{type: embedding, dim: 4}, {type: lstm, units: 4}]\n"                                                 \
    "  decoder: [{type: embedding, dim: 4}, {type: lstm, units: 4, return_sequences: true}, " decoder "]\n" more       \
    "train: {epochs: 1, loss: " loss "}\n"                                                                             \
    "decode: {beam: 2}\n"

/* What depends on a value that could not be read is no error beside it. */
static void a_value_that_could_not_be_read_is_the_only_error(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {SIDES(OUT, MARKS, "cross_entropy", ""), ""},
        {SIDES(OUT ", 7", MARKS, "cross_entropy", ""), "error[E0102]: `type` has no value `7`\n5:125\n"},
        {SIDES(OUT, MARKS, "cross_entropy", "  dec: 1\n"),
         "error[E0203]: unknown key `dec` in a model of encoder and decoder\n6:3\n= help: did you mean `decoder`?\n"},
        {SIDES(OUT, "{typ: whitespace}", "cross_entropy", ""),
         "error[E0206]: the tokenizer needs a `type`\n2:72\n= help: did you mean `type`?\n"},
        {SIDES(OUT, "nosuch", "cross_entropy", ""), "error[E0102]: `tokenizer` has no value `nosuch`\n2:71\n"},
        {SIDES(OUT, MARKS, "{typ: cross_entropy}", ""),
         "error[E0206]: the loss needs a `type`\n6:27\n= help: did you mean `type`?\n"},
        {SIDES(OUT, MARKS, "nosuch", ""), "error[E0102]: `loss` has no value `nosuch`\n6:26\n"},
        {SIDES(OUT, "{type: whitespace, specials: [bos]}", "mse", ""),
         "error[E0317]: a decoder needs the special tokens `bos` and `eos`\n2:100\nerror[E0309]: the loss `mse` does "
         "not fit the task `seq2seq`\n6:26\n"},
    };
    CHECK(rules);
}

#define TIMED(more) TABLE("inputs: [x], targets: [y], window: {length: 3}, time: {column: t, " more "}", "false", "")
#define DROPPING(more)                                                                                                 \
    TABLE("inputs: [x], targets: [y], window: {length: 3}, missing: drop, time: {column: t, " more "}", "false", "")

/* There are gaps where a step is said, or where rows of windows are left out. */
static void gaps_need_a_step_or_rows_that_are_left_out(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {TIMED("step: 1h, gaps: break"), ""},
        {DROPPING("gaps: break"), ""},
        {DROPPING("step: 1h, gaps: break"), ""},
        {TIMED("gaps: break"), "error[E0205]: `gaps` has no effect without `step`\n2:106\n"},
    };
    CHECK(rules);
}

/* What a value came from: a line of a file, or what it is called that has no lines; and only marks that are invisible
 * are written as numbers. */
static void a_written_value_has_its_origin_and_its_letters(void **state)
{
    (void)state;
    static const char text[] = "seqlstm: 1\n"
                               "data: {train: {type: csv, file: a.csv, inputs: [\"\xc2\xb5\", \"b\\x85\"], label: y}}\n"
                               "model: [{type: dense, units: from_target, activation: softmax}]\n"
                               "train: {epochs: 1}\n";
    static const struct sl_override overrides[] = {{"SEQLSTM_SEED", "seed=5"}, {"--set", "train.epochs=3"}};
    const struct sl_model_request request = {.overrides = overrides, .override_count = 2};
    static const char *const lines[] = {"seed: 5",    "# SEQLSTM_SEED\n", "epochs: 3", "# --set train.epochs\n",
                                        "seqlstm: 1", "# m.yaml:1\n"};
    struct loaded l = load_text("m.yaml", text, strlen(text), &request);
    struct sl_buf config = {0};
    if (l.model == NULL)
        fail_msg("%s", sl_buf_text(&l.text));
    assert_int_equal(sl_model_write_config(l.model, SL_CONFIG_ORIGIN, &config, NULL), SEQLSTM_OK);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i += 2) {
        const char *line = strstr(sl_buf_text(&config), lines[i]);
        assert_non_null(line);
        const char *origin = strchr(line, '#');
        assert_non_null(origin);
        assert_memory_equal(origin, lines[i + 1], strlen(lines[i + 1]));
    }
    assert_non_null(strstr(sl_buf_text(&config), "[\"\xc2\xb5\", \"b\\x85\"]"));
    sl_buf_deinit(&config);
    unload(&l);
}

/* A value that reaches the column of origins has one blank behind it. */
static void origins_stand_in_one_column_behind_a_blank(void **state)
{
    (void)state;
    for (int letters = 40; letters <= 44; letters++) {
        char text[512];
        const int bytes = snprintf(text, sizeof text,
                                   "seqlstm: 1\nname: %.*s\ndata: {train: {type: csv, file: a.csv, inputs: [a], "
                                   "label: y}}\nmodel: [{type: dense, units: from_target, activation: softmax}]\n"
                                   "train: {epochs: 1}\n",
                                   letters, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        struct loaded l = load_text("m.yaml", text, (size_t)bytes, NULL);
        struct sl_buf config = {0};
        if (l.model == NULL)
            fail_msg("%s", sl_buf_text(&l.text));
        assert_int_equal(sl_model_write_config(l.model, SL_CONFIG_ORIGIN, &config, NULL), SEQLSTM_OK);
        const char *line = strstr(sl_buf_text(&config), "name: aaa");
        assert_non_null(line);
        const int length = 6 + letters;
        assert_int_equal(strchr(line, '#') - line, length < 48 ? 48 : length + 1);
        sl_buf_deinit(&config);
        unload(&l);
    }
}

/* An overlay that is not there is the reason, whichever overlays stand before and behind it. */
static void an_overlay_that_is_missing_is_the_reason(void **state)
{
    (void)state;
    static const char text[] = ENDED("epochs: 1");
    char there[TEMPORARY_BYTES];
    temporary_template(there, "overlay");
    const int file = mkstemp(there);
    assert_true(file >= 0);
    assert_int_equal(write(file, "seed: 9\n", 8), 8);
    assert_int_equal(close(file), 0);
    const char *const missing = "/nonexistent/overlay.yaml";
    const char *const lists[][3] = {{missing, there, there}, {there, missing, there}, {there, there, missing}};
    for (size_t i = 0; i <= sizeof lists / sizeof *lists; i++) {
        const bool whole = i == sizeof lists / sizeof *lists;
        const char *const all[] = {there, there, there};
        const struct sl_model_request request = {.overlays = whole ? all : lists[i], .overlay_count = 3};
        struct loaded l = load_text("m.yaml", text, strlen(text), &request);
        assert_int_equal(l.status, whole ? SEQLSTM_OK : SEQLSTM_NOT_FOUND);
        assert_true(!whole || l.model->seed == 9);
        unload(&l);
    }
    assert_int_equal(unlink(there), 0);
}

/* A warning hides no other finding. */
static void warnings_stand_beside_each_other(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {"seqlstm: 1\ndata: {train: {type: csv, file: a.csv, group: g, inputs: [a, b], targets: [b]}}\n"
         "model:\n  - {type: lstm, name: one, units: 4, activation: relu, return_sequences: true}\n"
         "  - {type: lstm, name: two, units: 4, activation: elu, return_sequences: true}\n"
         "  - {type: dense, units: from_target}\ntrain: {epochs: 1}\n",
         "warning[W0302]: `b` is an input and the target of the same row: the model need only copy it\n2:50\n"
         "= help: remove it from `inputs`, or predict later rows with `window`\n"
         "warning[W0301]: the states of one can grow without bound with relu inside the cell\n4:39\n"
         "= help: add `cell_clip: 10`, or keep tanh inside and put the activation after the layer\n"
         "warning[W0301]: the states of two can grow without bound with elu inside the cell\n5:39\n"
         "= help: add `cell_clip: 10`, or keep tanh inside and put the activation after the layer\n"},
    };
    CHECK(rules);
}

/* A schedule over the whole run needs an end of the run: epochs or updates. */
static void schedules_end_with_the_run(void **state)
{
    (void)state;
    static const char needs[] = "error[E0204]: the schedule needs `over`, because `train` has neither `epochs` nor "
                                "`updates`\n6:";
    static const char *const ends[] = {"", "epochs: 3, ", "updates: 3, ", "max_time: 3m, "};
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        for (int over = 0; over < 2; over++) {
            char text[400];
            snprintf(text, sizeof text,
                     ADDING "  - {type: lstm, units: 4}\n  - {type: dense, units: from_target}\n"
                            "train: {%sschedule: {type: cosine%s}}\n",
                     ends[k], over ? ", over: 9u" : "");
            struct loaded l = load(text);
            struct sl_buf found = {0};
            summarise(sl_buf_text(&l.text), &found);
            const bool missed = strstr(sl_buf_text(&found), needs) != NULL;
            if (missed != (!over && k != 1 && k != 2))
                fail_msg("%s gives %s", text, sl_buf_text(&found));
            sl_buf_deinit(&found);
            unload(&l);
        }
}

#define TWO_SIDES(encoder, decoder)                                                                                    \
    "seqlstm: 1\ndata: {train: {type: lines, source: a.txt, target: b.txt}, valid: {split: 0.1}}\nmodel:\n  "          \
    "encoder:\n"                                                                                                       \
    "    - {type: embedding, dim: 4}\n    - " encoder "\n  decoder:\n    - {type: embedding, dim: 4}\n    - " decoder  \
    "\n    - {type: output, activation: softmax}\n"

/* h and c each have a width of their own; a sum helps where it has the width of the layer. */
static void states_fit_by_their_widths(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {TWO_SIDES("{type: lstm, name: up, units: 8, projection: 4}",
                   "{type: lstm, name: down, units: 8, projection: 4, return_sequences: true}") "train: {epochs: 1}\n",
         ""},
        {TWO_SIDES("{type: lstm, name: up, units: 8, projection: 4}",
                   "{type: lstm, name: down, units: 6, projection: 4, return_sequences: true}") "train: {epochs: 1}\n",
         "error[E0321]: the cell state of up has 8 features, and down takes 6\n9:7\n"
         "= help: use `initial_state: {from: …, bridge: dense}`, or make the widths equal\n"},
        {TWO_SIDES("{type: lstm, name: up, units: 5, direction: bidirectional}",
                   "{type: lstm, name: down, units: 5, return_sequences: true}") "train: {epochs: 1}\n",
         "error[E0321]: the state of up has 10 features, and down takes 5\n9:7\n"
         "= help: use `initial_state: {from: …, bridge: sum}`, or `bridge: dense`\n"},
        {TWO_SIDES("{type: lstm, name: up, units: 4, direction: bidirectional}",
                   "{type: lstm, name: down, units: 5, return_sequences: true}") "train: {epochs: 1}\n",
         "error[E0321]: the state of up has 8 features, and down takes 5\n9:7\n"
         "= help: use `initial_state: {from: …, bridge: dense}`, or make the widths equal\n"},
    };
    CHECK(rules);
}

/* What a decoder writes is measured where it writes: not in training, whether it is in the list of metrics or not. */
static void texts_are_not_measured_in_training(void **state)
{
    (void)state;
    static const char refused[] = "error[E0312]: `train.bleu` is measured only on `valid` and `test`\n11:";
    static const char *const trains[] = {"train: {epochs: 1, early_stopping: {monitor: train.bleu, patience: 2}}\n",
                                         "train: {epochs: 1, validate: {metrics: [bleu]}, early_stopping: {monitor: "
                                         "train.bleu, patience: 2}}\n"};
    for (size_t k = 0; k < sizeof trains / sizeof *trains; k++) {
        char text[700];
        snprintf(text, sizeof text, "%s%s",
                 TWO_SIDES("{type: gru, units: 4}", "{type: gru, units: 4, return_sequences: true}"), trains[k]);
        struct loaded l = load(text);
        struct sl_buf found = {0};
        summarise(sl_buf_text(&l.text), &found);
        if (strncmp(sl_buf_text(&found), refused, strlen(refused)) != 0)
            fail_msg("%s gives %s", text, sl_buf_text(&found));
        sl_buf_deinit(&found);
        unload(&l);
    }
}

/* The last layer is the output, of whatever type: what is fed comes from before it. */
static void an_output_is_not_fed(void **state)
{
    (void)state;
    static const struct {
        const char *behind; /* the attention layer */
        int giver;
    } rows[] = {
        {"{type: dense, units: from_target, activation: softmax}", 4},
        {"{type: dense, units: 5}\n    - {type: dense, units: from_target, activation: softmax}", 5},
        {"{type: dense, units: 5}\n    - {type: dropout, rate: 0.5}\n    - {type: output, activation: softmax}", 6},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char text[900];
        snprintf(text, sizeof text,
                 "seqlstm: 1\ndata: {train: {type: lines, source: a.txt, target: b.txt}}\nmodel:\n  encoder:\n"
                 "    - {type: embedding, dim: 4}\n    - {type: gru, units: 4, return_sequences: true}\n  decoder:\n"
                 "    - {type: embedding, dim: 4}\n    - {type: gru, units: 4, return_sequences: true}\n"
                 "    - {type: attention, input_feeding: true}\n    - %s\ntrain: {epochs: 1}\n",
                 rows[k].behind);
        struct loaded l = load_clean(text);
        assert_true(l.model->feeding.present);
        assert_int_equal(l.model->feeding.reader, 3);
        assert_int_equal(l.model->feeding.giver, rows[k].giver);
        unload(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_name_the_layer_that_does_not_fit),
        cmocka_unit_test(a_layer_that_could_return_a_sequence_is_found_along_the_inputs),
        cmocka_unit_test(only_windows_and_labels_need_one_output_per_sequence),
        cmocka_unit_test(a_monitor_is_measured_on_its_own_split),
        cmocka_unit_test(weights_of_rows_give_reductions_an_effect),
        cmocka_unit_test(a_linear_teacher_needs_an_end_that_is_no_time),
        cmocka_unit_test(each_edge_is_above_the_one_before),
        cmocka_unit_test(the_smaller_limit_of_the_lengths_counts),
        cmocka_unit_test(idle_keys_of_a_saved_run_are_left_out),
        cmocka_unit_test(a_misspelt_end_is_no_missing_end),
        cmocka_unit_test(a_value_that_could_not_be_read_is_the_only_error),
        cmocka_unit_test(gaps_need_a_step_or_rows_that_are_left_out),
        cmocka_unit_test(a_written_value_has_its_origin_and_its_letters),
        cmocka_unit_test(origins_stand_in_one_column_behind_a_blank),
        cmocka_unit_test(an_overlay_that_is_missing_is_the_reason),
        cmocka_unit_test(warnings_stand_beside_each_other),
        cmocka_unit_test(schedules_end_with_the_run),
        cmocka_unit_test(states_fit_by_their_widths),
        cmocka_unit_test(texts_are_not_measured_in_training),
        cmocka_unit_test(an_output_is_not_fed),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
