/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: flags, help, messages, exit codes. The only layer that prints, reads argv or exits.
 *
 * A command is one file: a `struct cli_command` (name, help, flags) and a function. Parsing, environment variables,
 * help and completion all use these tables. Data and --json output go to stdout, everything else goes to stderr.
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

struct sl_live_page;
struct sl_registry;

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILURE = 1, /* runtime failure, or ab, bench, verify or conformance found a problem */
    CLI_USAGE = 2,   /* usage or configuration error */
    CLI_MISSING = 3, /* a required backend or device is missing */
    CLI_DATA = 4,
    CLI_DIVERGED = 5,
    CLI_NO_MEMORY = 6,
    CLI_OTHER_RANK = 76, /* this rank ends because another one has ended; the launcher knows why */
    CLI_TIME = 75        /* time limit reached, checkpoint saved: resume later */
};

/* One flag. All fields but `name` and `help` are optional. */
struct cli_flag {
    const char *name;      /* "threads": --threads */
    char letter;           /* 't': -t */
    const char *argument;  /* "N"; NULL: a boolean flag */
    const char *otherwise; /* the value without `=VALUE`, which alone gives another; NULL: the value is required */
    const char *env;       /* an environment variable that sets it, too: "SEQLSTM_THREADS" */
    const char *key;       /* the key of the model file that it sets: "seed" */
    const char *words;     /* all values, for completion: "auto cpu" */
    bool repeats;          /* may be given more than once */
    bool writes;           /* names a file that the command writes at last: whether it can is known before it begins */
    const char *help;
};

/* Flags that several tables have. */
#define CLI_FLAG_INPUT                                                                                                 \
    {                                                                                                                  \
        .name = "input", .letter = 'i', .argument = "FILE",                                                            \
        .help = "file with the inputs; - is standard input (default -)"                                                \
    }
#define CLI_FLAG_LENGTHS                                                                                               \
    {                                                                                                                  \
        .name = "lengths", .argument = "FILE",                                                                         \
        .help = "for npy input: .npy file with the length of each sequence (default: all steps)"                       \
    }
#define CLI_FLAG_WATCH_PORT                                                                                            \
    {                                                                                                                  \
        .name = "watch-port", .argument = "N",                                                                         \
        .help = "serve the growing report on 127.0.0.1, at the address that is printed; 0: a free port"                \
    }
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
        .name = "trust", .env = "SEQLSTM_TRUST", .help = "load plugins unchecked; follow what a run folder names",     \
    }

enum { CLI_VALUES_MAX = 256, CLI_GIVEN_BYTES = 160 };

struct cli_value {
    const struct cli_flag *flag;
    const char *value; /* NULL for flags without argument */
    bool from_env;
};

/* The parsed command line: flags in the order given, and operands. */
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
    const char *examples;         /* lines, indented by two spaces */
    const char *text;             /* a paragraph or two */
    const struct cli_flag *flags; /* its own flags, ending with a zero entry; NULL: none */
    bool takes_model_flags;       /* --set, -c, --seed … */
    bool has_no_json;             /* --json is refused */
    bool takes_backend_flags;     /* --backend-path, --threads … */
    enum sl_run_use use;          /* what it opens runs for: which of their keys may be changed */
    int operands_min, operands_max;
    int (*run)(struct cli_context *cli);
};

enum cli_progress { CLI_PROGRESS_AUTO, CLI_PROGRESS_BAR, CLI_PROGRESS_LINES, CLI_PROGRESS_NONE };

struct cli_context {
    const struct cli_command *command;
    struct cli_values values;
    bool color;    /* on stderr */
    int verbosity; /* -1 quiet, 0, 1, 2 */
    bool json;
    enum cli_progress progress;
    struct sl_log log;
    struct sl_interrupt *interrupt;
    struct sl_diagnostics *diagnostics;
    /* memory that `options` points to */
    struct sl_model_request model_request;
    const char *overlays[64];
    struct sl_override overrides[96];
    char *override_texts[96];
    char *folders[64]; /* absolute */
    struct sl_session_options options;
    struct sl_rank_identity rank; /* which rank of a training this is … */
    bool is_rank;                 /* … if it is one */
    struct sl_live_page *live;    /* --watch-port: the page of the run while it grows; NULL: it has none */
    bool mute;                    /* what is found in the model is not shown: the launcher has shown it */
};

/* ---- tables (find_command.c, flags.c) ---- */
void cli_set_commands(const struct cli_command *const *all); /* NULL-terminated; main does that first */
const struct cli_command *const *cli_get_commands(void);
const struct cli_command *cli_find_command(const char *name);
/* Prints that there is no such command, and suggests one; returns CLI_USAGE. */
int cli_refuse_command(const char *name);
const struct cli_flag *cli_get_common_flags(void);
const struct cli_flag *cli_get_model_flags(void);
const struct cli_flag *cli_get_backend_flags(void);

/* ---- flags ---- */
/* Does the command take this flag of its tables? Not --json where it has no JSON. */
bool cli_offers(const struct cli_command *command, const struct cli_flag *flag);
/* Parses the arguments after the command's name. Returns CLI_OK, or prints an error and returns CLI_USAGE. */
int cli_parse(struct cli_context *cli, int argc, char **argv);
/* The value of a flag, the last one if repeated; NULL if it was not given. For boolean flags: cli_has. */
const char *cli_get(const struct cli_context *cli, const char *flag);
/* A flag and its value as they were given: "--threads 5", or "SEQLSTM_THREADS=5". */
void cli_format_given(const struct cli_context *cli, const char *flag, char out[CLI_GIVEN_BYTES]);
bool cli_has(const struct cli_context *cli, const char *flag);
/* The number that a flag holds; prints an error and returns false if it is not a number or out of range. `out` does
 * not change if the flag was not given. */
bool cli_get_int(const struct cli_context *cli, const char *flag, int64_t low, int64_t high, int64_t *out);
bool cli_get_float(const struct cli_context *cli, const char *flag, double low, double high, double *out);
/* The same for a share: `5%` or 0.05. */
bool cli_get_share(const struct cli_context *cli, const char *flag, double *out);

enum { CLI_KEY_BYTES = 96 };

/* The key of the model file that a flag of this name may mean, with its path: "train.epochs". `exact`: only if the name
 * is that of a key, here or in another program. False: none. */
bool cli_suggest_key(const char *flag, bool exact, char out[CLI_KEY_BYTES]);

/* Fills cli->options from the flags; `path`: the model file, or NULL. Returns CLI_OK, or prints an error and returns
 * its exit code. */
int cli_prepare(struct cli_context *cli, const char *path);
void cli_release(struct cli_context *cli);

/* ---- printing ----
 *
 * Control characters in what is printed become escapes (base/value/printable.h), except line breaks and tabs: they may
 * come from a file or a plugin. */
/* Prints to stdout or stderr. */
void cli_say(FILE *out, const char *format, ...) SEQLSTM_PRINTF(2, 3);
void cli_note(const struct cli_context *cli, const char *format, ...) SEQLSTM_PRINTF(2, 3);
/* Prints each line (all end in a newline) as a note. */
void cli_note_lines(const struct cli_context *cli, const char *lines);
/* Prints a text to stderr, with paths as the user wrote them. */
void cli_print_text(const struct cli_context *cli, const char *text);
/* Prints "error[E0601]: text", then `where` (may be NULL); what follows "; use" in the text becomes its help. */
void cli_print_error(const struct cli_context *cli, const char *code, const char *where, const char *text);
/* Prints the diagnostics, or an error with the code of the status if there are none; returns the exit code for the
 * status. */
int cli_fail(const struct cli_context *cli, seqlstm_status status, const struct seqlstm_error *err);
/* Prints that there is no memory for something; returns CLI_NO_MEMORY. */
int cli_fail_memory(const struct cli_context *cli, const char *what);
/* Prints an error about the command line (E0601); returns CLI_USAGE. */
int cli_usage_error(const struct cli_context *cli, const char *format, ...) SEQLSTM_PRINTF(2, 3);
/* Writes data to stdout, unchanged; `flush`: at once. Fails with SEQLSTM_IO. If the reader of stdout has closed it
 * (EPIPE), cli_fail prints nothing. */
seqlstm_status cli_put(const void *data, size_t bytes, bool flush, struct seqlstm_error *err);
/* The same for text, with escapes. */
seqlstm_status cli_put_text(const char *text, size_t bytes, bool flush, struct seqlstm_error *err);
/* Clears the progress line on the terminal before something else is printed. */
void cli_clear_line(void);
/* Does the progress of a run go to one line that is redrawn: on a terminal, or where the user says so? */
bool cli_draws_line(const struct cli_context *cli);
/* Remembers that there is a progress line. */
void cli_set_line(void);

/* ---- signals (signals.c) ---- */
/* Signals end the program, unless the command saves first. */
void cli_handle_signals(void);
/* From now on, the first SIGINT, SIGTERM or SIGHUP asks the training to save and stop. */
void cli_save_on_signals(void);
/* What signals ask for. */
struct sl_interrupt *cli_get_interrupt(void);

/* ---- vendor_threads.c ---- */
/* Tells the libraries of backends how many threads to start, where the user has not. Before any thread exists. */
void cli_set_vendor_threads(void);
/* Has the program set this variable? */
bool cli_has_set(const char *variable);

/* ---- trap.c ---- */
/* From now on a crash in a plugin, or a plugin that calls exit, ends with a message that names it, and not as a
 * success. */
void cli_trap_plugins(void);
/* Ends the process at once: nothing is flushed, and nothing that was registered for the end runs. Safe in signal
 * handlers. */
_Noreturn void cli_leave(int code);

/* ---- trap_exits.c ---- */
/* Ends the program as exit() does, which is trapped. */
_Noreturn void cli_exit(int code);
/* For trap_exits.c: is this the program, and not a child of it? */
bool cli_trap_is_program(void);
/* Names the plugin that has done `what`, or the file of `caller`, and ends the program. */
_Noreturn void cli_trap_end(const char *what, const void *caller);
/* Prints the diagnostics (if any) to stderr, and forgets them. */
void cli_show_diagnostics(const struct cli_context *cli);
int cli_get_exit(seqlstm_status status);
/* Writes a text to stdout. Prints an error and returns its exit status if that fails: no memory, a full disk. */
int cli_write_out(const struct cli_context *cli, const struct sl_buf *buf);
/* Writes the buffer to a file and releases it; prints an error if that fails. */
int cli_write_file(const struct cli_context *cli, const char *path, struct sl_buf *buf);
/* Writes a JSON value to stdout and frees it (NULL: out of memory). Returns the exit status. */
int cli_write_json(const struct cli_context *cli, struct json_t *root);
void cli_print_help(const struct cli_command *command, FILE *out);
void cli_print_overview(FILE *out);
/* Appends the same as a manual page in roff (man.c); `command` NULL: the page of the program. */
void cli_write_man(const struct cli_command *command, struct sl_buf *out);
int cli_get_width(void);

/* ---- opening ---- */
/* Open a model file or a run. Return CLI_OK, or print the diagnostics and return an exit code. */
int cli_open_model(struct cli_context *cli, const char *path, struct sl_session **out_session);
int cli_open_run(struct cli_context *cli, const char *run, struct sl_session **out_session);
/* Looks for all backends, as commands about backends do. Returns CLI_OK, or prints an error and returns an exit code.
 */
int cli_open_registry(struct cli_context *cli, bool all_builtins, struct sl_registry **out_registry);

/* Opens the run that the first operand names, does some work with it, and closes it. Returns the exit code. */
typedef seqlstm_status cli_run_work_fn(struct cli_context *cli, struct sl_session *session, void *state,
                                       struct seqlstm_error *err);
int cli_with_run(struct cli_context *cli, cli_run_work_fn *work, void *state);
/* What the flags CLI_FLAG_INPUT and CLI_FLAG_LENGTHS say. */
struct sl_input_request cli_get_input(const struct cli_context *cli);

/* ---- ranks (launch.c) ---- */
/* Finds out whether a launcher has started this process as a rank. */
void cli_find_rank(struct cli_context *cli);
/* With the model: only a divided training has ranks. Ranks other than 0 print errors and nothing else. */
void cli_begin_rank(struct cli_context *cli, const struct sl_model *model);
/* Runs this command again on so many ranks; returns the exit status of the first that failed. When a rank is killed,
 * all resume the run, at most `restarts` times. */
int cli_launch_ranks(const struct cli_context *cli, int32_t ranks, int64_t restarts);

/* ---- the page of a run while it grows (live.c) ---- */
/* Serves a page if --watch-port asks for it, and says where. Returns CLI_OK, or prints an error and returns an exit
 * code. */
int cli_begin_live(struct cli_context *cli);
/* The page is that of this run from now on. */
void cli_show_live(struct cli_context *cli, const char *folder);
void cli_end_live(struct cli_context *cli);

/* ---- progress (progress.c) ---- */
struct cli_train_view;
/* Observers that show a training run on stderr, in the way of cli->progress. */
struct cli_train_view *cli_train_view_create(struct cli_context *cli);
void cli_train_view_destroy(struct cli_train_view *view);
struct sl_run_observer cli_train_view_observer(struct cli_train_view *view);
/* Prints the table of metrics at the end of a run; returns the exit code of the run. */
int cli_train_view_finish(struct cli_train_view *view, const struct sl_run_result *result);

#endif
