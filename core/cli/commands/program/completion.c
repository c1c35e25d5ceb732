/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm completion: scripts for bash, zsh and fish, written from the tables of commands and flags. */
#include <string.h>

#include "cli/cli.h"

enum operand { OPERAND_NONE, OPERAND_MODEL, OPERAND_RUN, OPERAND_FILE, OPERAND_COMMAND, OPERAND_SHELL };

static const char *const operand_names[] = {"", "model", "run", "file", "command", "shell"};

/* What the first operand of a command is, found in its usage. */
static enum operand find_operand(const struct cli_command *command)
{
    static const struct {
        const char *begin;
        enum operand operand;
    } known[] = {{"model.yaml", OPERAND_MODEL}, {"RUN", OPERAND_RUN},           {"[RUN", OPERAND_RUN},
                 {"FILE", OPERAND_FILE},        {"[COMMAND]", OPERAND_COMMAND}, {"SHELL", OPERAND_SHELL}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(command->usage, known[i].begin, strlen(known[i].begin)) == 0)
            return known[i].operand;
    return OPERAND_NONE;
}

static bool takes_path(const struct cli_flag *flag)
{
    return flag->argument && (strcmp(flag->argument, "FILE") == 0 || strcmp(flag->argument, "DIR") == 0);
}

typedef void flag_fn(struct sl_buf *out, const struct cli_command *command, const struct cli_flag *flag);

static void each_flag(struct sl_buf *out, const struct cli_command *command, flag_fn *fn)
{
    const struct cli_flag *tables[] = {command->flags, command->takes_model_flags ? cli_get_model_flags() : NULL,
                                       command->takes_backend_flags ? cli_get_backend_flags() : NULL,
                                       cli_get_common_flags()};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct cli_flag *flag = tables[t]; flag && flag->name; flag++)
            if (strncmp(flag->help, "internal", 8) != 0 && cli_offers(command, flag))
                fn(out, command, flag);
}

/* Appends text for single quotes of a shell; the characters in `also` get a backslash. */
static void append_quoted(struct sl_buf *out, const char *text, const char *also)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            sl_buf_append_text(out, "'\\''");
        else if (strchr(also, *p))
            sl_buf_printf(out, "\\%c", *p);
        else
            sl_buf_append_char(out, *p);
    }
}

/* Whether no earlier command has the same first word: "data" of "data stats" is listed once. */
static bool is_first_of_its_word(const struct cli_command *const *command)
{
    size_t length = strcspn((*command)->name, " ");
    for (const struct cli_command *const *other = cli_get_commands(); other < command; other++)
        if (strcspn((*other)->name, " ") == length && strncmp((*other)->name, (*command)->name, length) == 0)
            return false;
    return true;
}

/* Of the commands with two words, whether it is the first with its first word; *out_bytes is the length of that word.
 */
static bool is_first_of_its_group(const struct cli_command *const *command, int *out_bytes)
{
    const char *space = strchr((*command)->name, ' ');
    const size_t bytes = space ? (size_t)(space - (*command)->name) + 1 : 0;
    for (const struct cli_command *const *other = cli_get_commands(); space && other < command; other++)
        if (strncmp((*other)->name, (*command)->name, bytes) == 0)
            return false;
    *out_bytes = (int)bytes - 1;
    return space != NULL;
}

/* Is the first word of a group a command by itself, too? */
static bool is_command(const char *group, int bytes)
{
    for (const struct cli_command *const *c = cli_get_commands(); *c; c++)
        if (strncmp((*c)->name, group, (size_t)bytes) == 0 && (*c)->name[bytes] == '\0')
            return true;
    return false;
}

/* The second words of a group, each after `separator`. */
static void append_second_words(struct sl_buf *out, const char *group, int bytes, const char *separator)
{
    const char *between = "";
    for (const struct cli_command *const *c = cli_get_commands(); *c; c++)
        if (strncmp((*c)->name, group, (size_t)bytes + 1) == 0) {
            sl_buf_printf(out, "%s%s", between, (*c)->name + bytes + 1);
            between = separator;
        }
}

static void append_first_words(struct sl_buf *out)
{
    for (const struct cli_command *const *c = cli_get_commands(); *c; c++)
        if (is_first_of_its_word(c))
            sl_buf_printf(out, " %.*s", (int)strcspn((*c)->name, " "), (*c)->name);
}

/* ---- bash ---- */

static void bash_flag(struct sl_buf *out, const struct cli_command *command, const struct cli_flag *flag)
{
    (void)command;
    sl_buf_printf(out, " --%s", flag->name);
}

static void bash_value(struct sl_buf *out, const struct cli_command *command, const struct cli_flag *flag)
{
    (void)command;
    if (flag->argument == NULL || flag->otherwise)
        return;
    sl_buf_printf(out, "        --%s", flag->name);
    if (flag->letter)
        sl_buf_printf(out, "|-%c", flag->letter);
    if (flag->words)
        sl_buf_printf(out, ") words='%s' ;;\n", flag->words);
    else
        sl_buf_printf(out, ") %s ;;\n", takes_path(flag) ? "paths=yes" : "return");
}

static void write_bash(struct sl_buf *out)
{
    sl_buf_append_text(out, "# bash completion of seqlstm; source it, or put it into a folder of bash-completion.\n"
                            "_seqlstm() {\n"
                            "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                            "    local command=${COMP_WORDS[1]} flags='' operand='' words='' paths='' seconds=''\n"
                            "    COMPREPLY=()\n"
                            "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                            "        COMPREPLY=($(compgen -W '");
    append_first_words(out);
    sl_buf_append_text(out, "' -- \"$cur\"))\n        return\n    fi\n    case \"$command ${COMP_WORDS[2]}\" in\n");
    for (const struct cli_command *const *c = cli_get_commands(); *c; c++)
        if (strchr((*c)->name, ' '))
            sl_buf_printf(out, "    '%s') [ \"$COMP_CWORD\" -eq 2 ] || command='%s' ;;\n", (*c)->name, (*c)->name);
    sl_buf_append_text(out, "    esac\n    case \"$command\" in\n");
    for (const struct cli_command *const *c = cli_get_commands(); *c; c++) {
        int bytes;
        if (is_first_of_its_group(c, &bytes)) {
            sl_buf_printf(out, "    %.*s) seconds='", bytes, (*c)->name);
            append_second_words(out, (*c)->name, bytes, " ");
            sl_buf_append_text(out, "' ;;\n");
        }
    }
    sl_buf_append_text(out, "    esac\n    case \"$command\" in\n");
    for (const struct cli_command *const *c = cli_get_commands(); *c; c++) {
        sl_buf_printf(out, "    '%s')\n        operand=%s flags='", (*c)->name, operand_names[find_operand(*c)]);
        each_flag(out, *c, bash_flag);
        sl_buf_append_text(out, "'\n        case \"$prev\" in\n");
        each_flag(out, *c, bash_value);
        sl_buf_append_text(out, "        esac ;;\n");
    }
    sl_buf_append_text(out, "    esac\n"
                            "    if [ -n \"$words\" ]; then\n"
                            "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                            "        return\n"
                            "    fi\n"
                            "    case \"$cur\" in -*) [ -n \"$paths\" ] || operand=flags ;; esac\n"
                            "    [ -z \"$paths\" ] || operand=file\n"
                            "    if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
                            "        COMPREPLY=($(compgen -W \"$seconds\" -- \"$cur\"))\n"
                            "    fi\n"
                            "    case \"$operand\" in\n"
                            "    flags) COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\")) ;;\n"
                            "    command) COMPREPLY=($(compgen -W '");
    append_first_words(out);
    sl_buf_append_text(out, "' -- \"$cur\")) ;;\n"
                            "    shell) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\")) ;;\n"
                            "    run) compopt -o filenames; COMPREPLY+=($(compgen -d -- \"$cur\")) ;;\n"
                            "    model) compopt -o filenames\n"
                            "        COMPREPLY=($(compgen -d -- \"$cur\")\n"
                            "            $(compgen -f -X '!*.y?(a)ml' -- \"$cur\")) ;;\n"
                            "    file) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
                            "    esac\n"
                            "}\n"
                            "shopt -s extglob\n"
                            "complete -F _seqlstm seqlstm\n");
}

/* ---- zsh ---- */

static void zsh_flag(struct sl_buf *out, const struct cli_command *command, const struct cli_flag *flag)
{
    (void)command;
    for (int form = flag->letter ? 0 : 1; form < 2; form++) {
        sl_buf_append_text(out, flag->repeats ? " \\\n        '*" : " \\\n        '");
        if (form == 0)
            sl_buf_printf(out, "-%c[", flag->letter);
        else
            sl_buf_printf(out, "--%s[", flag->name);
        append_quoted(out, flag->help, "[]:\\");
        sl_buf_append_char(out, ']');
        if (flag->argument && !flag->otherwise) {
            sl_buf_append_char(out, ':');
            append_quoted(out, flag->argument, ":\\");
            if (flag->words)
                sl_buf_printf(out, ":(%s)", flag->words);
            else
                sl_buf_append_text(out, takes_path(flag) ? ":_files" : ":");
        }
        sl_buf_append_char(out, '\'');
    }
}

static void write_zsh(struct sl_buf *out)
{
    static const char *const actions[] = {"",
                                          "'*:model:_files -g \"*.y(a|)ml\"'",
                                          "'*:run:_files -/'",
                                          "'*:file:_files'",
                                          "'*:command:_seqlstm_commands'",
                                          "'1:shell:(bash zsh fish)'"};
    sl_buf_append_text(out, "#compdef seqlstm\n"
                            "# zsh completion of seqlstm: put it as _seqlstm into a folder of $fpath, or source it.\n"
                            "_seqlstm_commands() {\n"
                            "    local -a commands=(");
    for (const struct cli_command *const *c = cli_get_commands(); *c; c++) {
        if (!is_first_of_its_word(c))
            continue;
        sl_buf_printf(out, "\n        '%.*s:", (int)strcspn((*c)->name, " "), (*c)->name);
        append_quoted(out, (*c)->summary, "\\");
        sl_buf_append_char(out, '\'');
    }
    sl_buf_append_text(out, ")\n"
                            "    _describe command commands\n"
                            "}\n"
                            "_seqlstm() {\n"
                            "    if (( CURRENT == 2 )); then\n"
                            "        _seqlstm_commands\n"
                            "        return\n"
                            "    fi\n"
                            "    local command=$words[2]\n"
                            "    shift words\n"
                            "    (( CURRENT-- ))\n"
                            "    case $command in\n");
    for (const struct cli_command *const *c = cli_get_commands(); *c; c++) {
        int bytes;
        if (!is_first_of_its_group(c, &bytes))
            continue;
        sl_buf_printf(out, "    %.*s)\n        if (( CURRENT == 2 )); then\n            compadd -- ", bytes,
                      (*c)->name);
        append_second_words(out, (*c)->name, bytes, " ");
        sl_buf_append_text(out, is_command((*c)->name, bytes) ? "\n" : "\n            return\n");
        sl_buf_append_text(out, "        fi\n        case $words[2] in\n        ");
        append_second_words(out, (*c)->name, bytes, "|");
        sl_buf_append_text(out, ")\n"
                                "            command=\"$command $words[2]\"\n"
                                "            shift words\n"
                                "            (( CURRENT-- )) ;;\n"
                                "        esac ;;\n");
    }
    sl_buf_append_text(out, "    esac\n    case $command in\n");
    for (const struct cli_command *const *c = cli_get_commands(); *c; c++) {
        sl_buf_printf(out, "    '%s')\n        _arguments %s", (*c)->name, actions[find_operand(*c)]);
        each_flag(out, *c, zsh_flag);
        sl_buf_append_text(out, " ;;\n");
    }
    sl_buf_append_text(out, "    esac\n"
                            "}\n"
                            "if [ \"$funcstack[1]\" = _seqlstm ]; then\n"
                            "    _seqlstm \"$@\"\n"
                            "else\n"
                            "    compdef _seqlstm seqlstm\n"
                            "fi\n");
}

/* ---- fish ---- */

static void fish_flag(struct sl_buf *out, const struct cli_command *command, const struct cli_flag *flag)
{
    sl_buf_printf(out, "complete -c seqlstm -n '__fish_seen_subcommand_from %.*s' -l %s",
                  (int)strcspn(command->name, " "), command->name, flag->name);
    if (flag->letter)
        sl_buf_printf(out, " -s %c", flag->letter);
    if (flag->words)
        sl_buf_printf(out, " -x -a '%s'", flag->words);
    else if (flag->argument && !flag->otherwise)
        sl_buf_append_text(out, takes_path(flag) ? " -r -F" : " -x");
    sl_buf_append_text(out, " -d '");
    append_quoted(out, flag->help, "\\");
    sl_buf_append_text(out, "'\n");
}

static void write_fish(struct sl_buf *out)
{
    sl_buf_append_text(out, "# fish completion of seqlstm: put it into ~/.config/fish/completions/seqlstm.fish.\n"
                            "complete -c seqlstm -f\n");
    for (const struct cli_command *const *c = cli_get_commands(); *c; c++) {
        const char *space = strchr((*c)->name, ' ');
        int first = (int)strcspn((*c)->name, " ");
        if (is_first_of_its_word(c)) {
            sl_buf_printf(out, "complete -c seqlstm -n __fish_use_subcommand -a %.*s -d '", first, (*c)->name);
            append_quoted(out, (*c)->summary, "\\");
            sl_buf_append_text(out, "'\n");
        }
        if (space)
            sl_buf_printf(out, "complete -c seqlstm -n '__fish_seen_subcommand_from %.*s' -a %s\n", first, (*c)->name,
                          space + 1);
        each_flag(out, *c, fish_flag);
        enum operand operand = find_operand(*c);
        if (operand == OPERAND_MODEL || operand == OPERAND_RUN || operand == OPERAND_FILE)
            sl_buf_printf(out, "complete -c seqlstm -n '__fish_seen_subcommand_from %s' -F\n",
                          space ? space + 1 : (*c)->name);
        if (operand == OPERAND_SHELL || operand == OPERAND_COMMAND) {
            sl_buf_printf(out, "complete -c seqlstm -n '__fish_seen_subcommand_from %s' -a '", (*c)->name);
            if (operand == OPERAND_SHELL)
                sl_buf_append_text(out, "bash zsh fish");
            else
                append_first_words(out);
            sl_buf_append_text(out, "'\n");
        }
    }
}

static int completion(struct cli_context *cli)
{
    const char *shell = cli->values.operands[0];
    struct sl_buf out = {0};
    if (strcmp(shell, "bash") == 0)
        write_bash(&out);
    else if (strcmp(shell, "zsh") == 0)
        write_zsh(&out);
    else if (strcmp(shell, "fish") == 0)
        write_fish(&out);
    else
        return cli_usage_error(cli, "unknown shell `%.60s`: expected bash, zsh or fish", shell);
    int code = out.failed ? cli_fail_memory(cli, "the completion") : cli_write_out(cli, &out);
    sl_buf_deinit(&out);
    return code;
}

const struct cli_command cli_command_completion = {
    .name = "completion",
    .has_no_json = true,
    .summary = "print a script for the shell that completes commands and flags",
    .usage = "SHELL",
    .examples = "  source <(seqlstm completion bash)\n"
                "  seqlstm completion zsh > ~/.zfunc/_seqlstm\n"
                "  seqlstm completion fish > ~/.config/fish/completions/seqlstm.fish\n",
    .text = "SHELL is bash, zsh or fish. The script completes commands, their flags, and\n"
            "the kinds of files that they accept. For zsh, the folder must be in $fpath\n"
            "before compinit runs.\n",
    .operands_min = 1,
    .operands_max = 1,
    .run = completion,
};
