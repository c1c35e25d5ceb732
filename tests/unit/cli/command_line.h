/* SPDX-License-Identifier: Apache-2.0 */
/* Runs command lines in a test whose layers below are made up, and notes all that they do. */
#ifndef SL_TESTS_COMMAND_LINE_H
#define SL_TESTS_COMMAND_LINE_H

#include <dlfcn.h>

#include "captured.h"

#include "cli/cli.h"
#include "live.h"
#include "oom.h"

static struct sl_buf out, noted; /* all of it; and what the layers below were asked for */
static bool command_color;
static bool loses_memory;         /* run: each line without one of its allocations, and nothing is noted */
static void (*before_each)(void); /* NULL: nothing is to be done before a line runs */

static inline void write_log(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    fprintf(stderr, "%s: %s\n", sl_log_level_name(level), message);
}

/* The command that the first word names, or the first two. */
static inline const struct cli_command *find_named(char *const *words, int count, int *out_used)
{
    char pair[64];
    snprintf(pair, sizeof pair, "%s %s", words[0], count > 1 ? words[1] : "");
    const struct cli_command *command = cli_find_command(pair);
    *out_used = command ? 2 : 1;
    return command ? command : cli_find_command(words[0]);
}

/* What a command line did. */
struct ended {
    struct sl_buf errors, written;
    int code;
};

static inline void ended_deinit(struct ended *ended)
{
    sl_buf_deinit(&ended->errors);
    sl_buf_deinit(&ended->written);
}

/* Runs a command line, whose words are separated by blanks. With `fails` > 0 its allocation of that number fails, with
 * `fails` < 0 the first one whose nearest -`fails` callers had none that failed; *out_failed: whether there was one. */
static inline struct ended run_failing(const char *line, int fails, bool *out_failed)
{
    enum { WORDS = 100 };
    static struct sl_interrupt interrupt;
    char *text = strdup(line), *words[WORDS], *rest = NULL;
    int count = 0, used;
    struct cli_context cli = {.interrupt = &interrupt, .color = command_color};
    struct ended ended = {.code = CLI_OK};
    for (char *word = strtok_r(text, " ", &rest); word && count < WORDS; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    cli.command = find_named(words, count, &used);
    assert_non_null(cli.command);
    assert_int_equal(sl_diagnostics_create(&cli.diagnostics, NULL), SEQLSTM_OK);
    if (before_each)
        before_each();
    sl_buf_deinit(&noted);
    noted = (struct sl_buf){0};
    capture_begin();
    int code = cli_parse(&cli, count - used, words + used);
    cli.json = code == CLI_OK && cli_has(&cli, "json");
    for (int k = 0; k < cli.values.count; k++)
        cli.verbosity += strcmp(cli.values.items[k].flag->name, "verbose") == 0;
    cli.verbosity = code == CLI_OK && cli_has(&cli, "quiet") ? -1 : cli.verbosity;
    cli.progress = CLI_PROGRESS_AUTO;
    cli.log = (struct sl_log){.write = write_log, .level = SL_LOG_INFO};
    cli.options.log = &cli.log;
    FILE *file = tmpfile(); /* stdout, beside stderr, which is captured */
    const int before = dup(STDOUT_FILENO);
    fflush(stdout);
    assert_true(file && before >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    if (fails > 0)
        oom_fail_at(fails);
    else if (fails < 0)
        oom_fail_anew(-fails);
    if (code == CLI_OK)
        code = cli.command->run(&cli);
    if (fails != 0)
        *out_failed = oom_disarm();
    fflush(stdout);
    assert_true(dup2(before, STDOUT_FILENO) >= 0);
    close(before);
    cli_clear_line();
    capture_end(&ended.errors);
    rewind(file);
    for (int c; (c = fgetc(file)) != EOF;)
        sl_buf_append_char(&ended.written, (char)c);
    fclose(file);
    cli_release(&cli);
    free(text);
    ended.code = code;
    return ended;
}

/* Blocks of memory that are held, without what the test has noted and the last message of dlopen, which the system
 * keeps where a plugin finds no library of its device. */
static inline long count_blocks(void)
{
    (void)dlerror(); /* the second call releases what the first has told */
    (void)dlerror();
    const long live = live_count();
    return live > 0 ? live - (noted.data != NULL) : 0; /* 0: under a sanitizer */
}

/* Runs a command line once for each of its allocations, which fails, or with `callers` > 0 for each place of them. It
 * then ends as one without memory and says so, or as it does anyway; nothing is missing in what a success writes. */
static inline void run_without_memory(const char *line, int callers)
{
    struct ended whole = run_failing(line, 0, NULL);
    bool failed = true;
    oom_fail_anew(callers); /* loads what it needs */
    oom_disarm();
    for (int n = 1; failed; n++) {
        const long before = count_blocks();
        struct ended now = run_failing(line, callers > 0 ? -callers : n, &failed);
        const bool whole_out =
            now.written.length_bytes == whole.written.length_bytes &&
            memcmp(sl_buf_text(&now.written), sl_buf_text(&whole.written), whole.written.length_bytes) == 0;
        const bool same = now.code == whole.code && (now.code != CLI_OK || whole_out);
        if (!same && (!failed || now.code != CLI_NO_MEMORY))
            fail_msg("%s: without allocation %d: exit %d, not %d, and on stdout:\n%s\ninstead of:\n%s\nstderr:\n%s",
                     line, n, now.code, whole.code, sl_buf_text(&now.written), sl_buf_text(&whole.written),
                     sl_buf_text(&now.errors));
        if (!same && now.errors.length_bytes + now.written.length_bytes == 0)
            fail_msg("%s: without allocation %d: not a word about it", line, n);
        ended_deinit(&now);
        if (count_blocks() != before)
            fail_msg("%s: without allocation %d: %ld blocks of memory are left", line, n, count_blocks() - before);
    }
    ended_deinit(&whole);
}

/* Runs a command line once more, and then again, for which nothing more may be left. */
static inline void run_for_its_blocks(const char *line)
{
    struct ended ended = run_failing(line, 0, NULL);
    ended_deinit(&ended);
    const long before = count_blocks();
    ended = run_failing(line, 0, NULL);
    ended_deinit(&ended);
    if (count_blocks() != before)
        fail_msg("%s: %ld blocks of memory are left", line, count_blocks() - before);
}

/* Runs a command line and notes all that it does. */
static inline void run(const char *line)
{
    if (loses_memory) {
        run_without_memory(line, 0);
        return;
    }
    struct ended ended = run_failing(line, 0, NULL);
    sl_buf_printf(&out, "$ seqlstm %s\n%s%s", line, sl_buf_text(&noted), sl_buf_text(&ended.written));
    for (const char *at = sl_buf_text(&ended.errors); *at; at++)
        sl_buf_printf(&out, "%s%.*s", at == sl_buf_text(&ended.errors) || at[-1] == '\n' ? "! " : "", 1,
                      *at == '\r'     ? "^"
                      : *at == '\033' ? "~"
                                      : at);
    const size_t bytes = ended.errors.length_bytes;
    sl_buf_printf(&out, "%sexit %d\n", bytes && ended.errors.data[bytes - 1] != '\n' ? "\n" : "", ended.code);
    ended_deinit(&ended);
    run_for_its_blocks(line);
}

#endif
