/* SPDX-License-Identifier: Apache-2.0 */
/* Runs command lines in a test whose layers below are made up, and notes all that they do. */
#ifndef SL_TESTS_COMMAND_LINE_H
#define SL_TESTS_COMMAND_LINE_H

#include "captured.h"

#include "cli/cli.h"

static struct sl_buf out, noted; /* all of it; and what the layers below were asked for */
static bool command_color;

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

/* Runs a command line, whose words are separated by blanks, and notes all that it does. */
static inline void run(const char *line)
{
    enum { WORDS = 100 };
    static struct sl_interrupt interrupt;
    char *text = strdup(line), *words[WORDS], *rest = NULL;
    int count = 0, used;
    struct cli_context cli = {.interrupt = &interrupt, .color = command_color};
    struct sl_buf errors = {0}, written = {0};
    for (char *word = strtok_r(text, " ", &rest); word && count < WORDS; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    cli.command = find_named(words, count, &used);
    assert_non_null(cli.command);
    assert_int_equal(sl_diagnostics_create(&cli.diagnostics, NULL), SEQLSTM_OK);
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
    if (code == CLI_OK)
        code = cli.command->run(&cli);
    fflush(stdout);
    assert_true(dup2(before, STDOUT_FILENO) >= 0);
    close(before);
    cli_clear_line();
    capture_end(&errors);
    rewind(file);
    for (int c; (c = fgetc(file)) != EOF;)
        sl_buf_append_char(&written, (char)c);
    fclose(file);
    sl_buf_printf(&out, "$ seqlstm %s\n%s%s", line, sl_buf_text(&noted), sl_buf_text(&written));
    for (const char *at = sl_buf_text(&errors); *at; at++)
        sl_buf_printf(&out, "%s%.*s", at == sl_buf_text(&errors) || at[-1] == '\n' ? "! " : "", 1,
                      *at == '\r'     ? "^"
                      : *at == '\033' ? "~"
                                      : at);
    sl_buf_printf(&out, "%sexit %d\n", errors.length_bytes && errors.data[errors.length_bytes - 1] != '\n' ? "\n" : "",
                  code);
    cli_release(&cli);
    sl_buf_deinit(&noted);
    sl_buf_deinit(&errors);
    sl_buf_deinit(&written);
    free(text);
}

#endif
