/* SPDX-License-Identifier: Apache-2.0 */
/* The program's face: flags, help, exit codes. The only layer that prints, reads argv or exits.
 *
 * A command is one file: a table entry (name, flags, help) and a function. Flags, environment variables, help and
 * completion all come from the tables. Data and --json go to stdout, everything else to stderr.
 */
#ifndef SL_CLI_CLI_H
#define SL_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/value/buf.h"
#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "cli/commands.h"
#include "model/yaml/diagnostics.h"
#include "model/model.h"
#include "session/session.h"

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILURE = 1, /* runtime failure, or verify/ab/bench/conformance found something */
    CLI_USAGE = 2,   /* usage or configuration error */
    CLI_MISSING = 3, /* a required backend or device is missing */
    CLI_DATA = 4,
    CLI_DIVERGED = 5,
    CLI_NO_MEMORY = 6,
    CLI_TIME = 75 /* time limit reached, checkpoint saved, run again */
};

/* One flag. What an entry of a table leaves out, it does not have. */
struct cli_flag {
    const char *name;     /* "threads": --threads */
    char letter;          /* 't': -t */
    const char *argument; /* "N"; NULL: a boolean flag */
    const char *env;      /* the variable that sets it, too: "SEQLSTM_THREADS" */
    const char *key;      /* the model key that it sets: "seed" */
    const char *words;    /* all values, for completion: "auto cpu" */
    bool repeats;         /* may be given more than once */
    const char *help;
};

/* Flags of several tables. */
#define CLI_FLAG_BACKEND_PATH                                                                                          \
    {                                                                                                                  \
        .name = "backend-path", .argument = "DIR", .repeats = true,                                                    \
        .help = "search this folder for backends first; repeatable",                                                   \
    }
#define CLI_FLAG_THREADS                                                                                               \
    {                                                                                                                  \
        .name = "threads", .argument = "N", .env = "SEQLSTM_THREADS",                                                  \
        .help = "number of CPU threads, or auto (default auto)",                                                       \
    }
#define CLI_FLAG_TRUST                                                                                                 \
    {                                                                                                                  \
        .name = "trust", .env = "SEQLSTM_TRUST", .help = "load plugins without checking owner and permissions",        \
    }

enum { CLI_VALUES_MAX = 256, CLI_SAID_BYTES = 160 };

struct cli_value {
    const struct cli_flag *flag;
    const char *value; /* NULL for flags without argument */
    bool from_env;
};

/* What was said: flags in order, operands. */
struct cli_values {
    struct cli_value items[CLI_VALUES_MAX];
    int count;
    const char *operands[64];
    int operand_count;
};

struct cli_context;
struct json_t;

struct cli_command {
    const char *name;             /* "run"; two words are one command: "data stats" */
    const char *summary;          /* one line */
    const char *usage;            /* "model.yaml [flags]" */
    const char *examples;         /* lines, two blanks of indent */
    const char *text;             /* a paragraph or two */
    const struct cli_flag *flags; /* own ones, ending with a zero entry; NULL: none */
    bool takes_model_flags;       /* --set, -c, --seed … */
    bool takes_backend_flags;     /* --backend-path, --threads … */
    int operands_min, operands_max;
    int (*run)(struct cli_context *cli);
};

enum cli_progress { CLI_PROGRESS_AUTO, CLI_PROGRESS_BAR, CLI_PROGRESS_LINES, CLI_PROGRESS_NONE };

struct cli_context {
    const struct cli_command *command;
    struct cli_values values;
    bool color;     /* of stderr */
    bool color_out; /* of stdout */
    int verbosity;  /* -1 quiet, 0, 1, 2 */
    bool json;
    enum cli_progress progress;
    struct sl_log log;
    struct sl_interrupt *interrupt;
    struct sl_diagnostics *diagnostics;
    /* storage behind the session's options */
    struct sl_model_request model_request;
    const char *overlays[64];
    struct sl_override overrides[96];
    char *override_texts[96];
    char *folders[64]; /* absolute */
    struct sl_session_options options;
};

/* ---- tables (commands.c, flags.c) ---- */
const struct cli_command *const *cli_get_commands(void); /* NULL-terminated */
const struct cli_command *cli_find_command(const char *name);
/* Says that there is no such command, and which was meant; CLI_USAGE. */
int cli_refuse_command(const char *name);
const struct cli_flag *cli_get_common_flags(void);
const struct cli_flag *cli_get_model_flags(void);
const struct cli_flag *cli_get_backend_flags(void);

/* ---- flags ---- */
/* Parses argv behind the command's name. Prints what is wrong and returns CLI_USAGE, or CLI_OK. */
int cli_parse(struct cli_context *cli, int argc, char **argv);
/* The last value of a flag, NULL if it was not said. `has` for flags without argument. */
const char *cli_get(const struct cli_context *cli, const char *flag);
/* A flag and its value as they were said: "--threads 5", or "SEQLSTM_THREADS=5". */
void cli_print_said(const struct cli_context *cli, const char *flag, char out[CLI_SAID_BYTES]);
bool cli_has(const struct cli_context *cli, const char *flag);
/* A number in a flag; prints and returns false when it is none or out of range. `out` keeps its value if unsaid. */
bool cli_get_int(const struct cli_context *cli, const char *flag, int64_t low, int64_t high, int64_t *out);
bool cli_get_float(const struct cli_context *cli, const char *flag, double low, double high, double *out);

/* Fills context->options from the flags; `path`: model file, or NULL. Prints and returns an exit code on error. */
int cli_prepare(struct cli_context *cli, const char *path);
void cli_release(struct cli_context *cli);

/* ---- printing ---- */
void cli_note(const struct cli_context *cli, const char *format, ...) SEQLSTM_PRINTF(2, 3);
/* Each line (all end in a newline) as a note. */
void cli_note_lines(const struct cli_context *cli, const char *lines);
/* The findings, or "error: message" where there are none; the exit code of the status. */
int cli_fail(const struct cli_context *cli, seqlstm_status status, const struct seqlstm_error *err);
/* "error: …" about the command line; returns CLI_USAGE. */
int cli_usage_error(const struct cli_context *cli, const char *format, ...) SEQLSTM_PRINTF(2, 3);
/* Data for stdout; with `flush` at once. Fails with IO; who does not want to read on (EPIPE) is no error worth a
 * word: cli_fail is silent about it. */
seqlstm_status cli_put(const void *data, size_t bytes, bool flush, struct seqlstm_error *err);
/* Is it a variable that the user has not set, and the program has for the libraries behind its backends? */
bool cli_has_set(const char *variable);
/* Takes the redrawn line off the terminal before something else is written there. */
void cli_clear_line(void);
/* Remembers that there is such a line. */
void cli_set_line(void);
/* From here on the first SIGINT or SIGTERM asks the training to save and leave; before, both end the program. */
void cli_save_on_signals(void);
/* Shows the findings (if any) on stderr, and forgets them. */
void cli_show_diagnostics(const struct cli_context *cli);
int cli_get_exit(seqlstm_status status);
/* Writes a buffer to stdout; false and a message when that fails (a full disk). */
bool cli_write_out(const struct cli_context *cli, const struct sl_buf *buf);
/* Writes a JSON value (taken over; NULL: memory ran out) to stdout; CLI_OK or CLI_FAILURE. */
int cli_write_json(const struct cli_context *cli, struct json_t *root);
void cli_print_help(const struct cli_command *command, FILE *out, bool color);
void cli_print_overview(FILE *out, bool color);
int cli_get_width(void);

/* ---- opening ---- */
/* Opens a model file / a run with diagnostics shown on failure; CLI_OK or an exit code. */
int cli_open_model(struct cli_context *cli, const char *path, struct sl_session **out_session);
int cli_open_run(struct cli_context *cli, const char *run, struct sl_session **out_session);

/* ---- progress (progress.c) ---- */
struct cli_train_view;
/* Observers that draw a training run on stderr as `progress` says. */
struct cli_train_view *cli_train_view_create(struct cli_context *cli);
void cli_train_view_destroy(struct cli_train_view *view);
struct sl_run_observer cli_train_view_observer(struct cli_train_view *view);
/* The table of metrics at the end, and the exit code of the end. */
int cli_train_view_finish(struct cli_train_view *view, const struct sl_run_result *result);

#endif
