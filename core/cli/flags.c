/* SPDX-License-Identifier: Apache-2.0 */
/* Flags: the tables that commands share, parsing, and lookup. A flag overrides its variable. */
#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "cli/cli.h"

static const struct cli_flag common_flags[] = {
    {.name = "help", .letter = 'h', .help = "show this help"},
    {.name = "quiet", .letter = 'q', .env = "SEQLSTM_QUIET", .help = "print errors only"},
    {.name = "verbose",
     .letter = 'v',
     .env = "SEQLSTM_VERBOSE",
     .repeats = true,
     .help = "print more details; -vv for even more"},
    {.name = "color",
     .argument = "WHEN",
     .env = "SEQLSTM_COLOR",
     .words = "auto always never",
     .help = "use colors: auto, always or never (default auto)"},
    {.name = "progress",
     .argument = "KIND",
     .env = "SEQLSTM_PROGRESS",
     .words = "auto bar lines none",
     .help = "progress display: auto, bar, lines or none (default auto)"},
    {.name = "json", .env = "SEQLSTM_JSON", .help = "write JSON to stdout"},
    {0},
};

static const struct cli_flag model_flags[] = {
    {.name = "set",
     .argument = "KEY=VALUE",
     .repeats = true,
     .help = "override a key of the model file, as in train.epochs=5; repeatable"},
    {.name = "config",
     .letter = 'c',
     .argument = "FILE",
     .repeats = true,
     .help = "apply another YAML file over the model file; repeatable, later files win"},
    {.name = "seed", .argument = "N", .env = "SEQLSTM_SEED", .key = "seed", .help = "random seed of the run"},
    {.name = "device",
     .argument = "DEVICE",
     .env = "SEQLSTM_DEVICE",
     .key = "device",
     .words = "auto cpu cuda:0",
     .help = "device to run on: auto, cpu or cuda:N"},
    {0},
};

static const struct cli_flag backend_flags[] = {
    CLI_FLAG_BACKEND_PATH,
    {.name = "backend",
     .argument = "ID",
     .env = "SEQLSTM_BACKEND",
     .help = "use this backend for everything that it accepts"},
    {.name = "plan", .argument = "FILE", .env = "SEQLSTM_PLAN", .help = "use the choices of a stored plan"},
    CLI_FLAG_THREADS,
    CLI_FLAG_TRUST,
    {0},
};

const struct cli_flag *cli_get_common_flags(void)
{
    return common_flags;
}

const struct cli_flag *cli_get_model_flags(void)
{
    return model_flags;
}

const struct cli_flag *cli_get_backend_flags(void)
{
    return backend_flags;
}

enum { TABLES = 4 };

static void get_tables(const struct cli_command *command, const struct cli_flag *tables[TABLES])
{
    tables[0] = command->flags;
    tables[1] = command->takes_model_flags ? model_flags : NULL;
    tables[2] = command->takes_backend_flags ? backend_flags : NULL;
    tables[3] = common_flags;
}

static const struct cli_flag *find_flag(const struct cli_command *command, const char *name, size_t bytes, char letter)
{
    const struct cli_flag *tables[TABLES];
    get_tables(command, tables);
    for (int t = 0; t < TABLES; t++)
        for (const struct cli_flag *flag = tables[t]; flag && flag->name; flag++)
            if (name ? strlen(flag->name) == bytes && strncmp(flag->name, name, bytes) == 0 : flag->letter == letter)
                return flag;
    return NULL;
}

/* Flags of other programs, with what does the same here; NULL: none. */
static const char *find_other_flag(const struct cli_command *command, const char *word)
{
    static const struct {
        const char *word, *flag, *answer; /* `flag`: the command must have it; NULL: any command */
    } others[] = {
        {"gpu", "device", "use `--device cuda:0`"},
        {"cuda", "device", "use `--device cuda:0`"},
        {"cpu", "device", "use `--device cpu`"},
        {"dry-run", NULL, "`seqlstm check` finds mistakes and `seqlstm plan` shows what would run; neither trains"},
        {"resume", NULL, "`seqlstm resume RUN` continues a run"},
        {"output", "out", "use `--out DIR`"},
        {"output", "file", "use `--file FILE`"},
        {"output", "dir", "use `--dir DIR`"},
        {"output", "format", "the output goes to the standard output: add `> FILE`"},
        {"out", "file", "use `--file FILE`"},
        {"out", "dir", "use `--dir DIR`"},
        {"out", "format", "the output goes to the standard output: add `> FILE`"},
        {"output-dir", "out", "use `--out DIR`"},
        {"output-dir", "dir", "use `--dir DIR`"},
        {"output-file", "file", "use `--file FILE`"},
        {"output-file", "format", "the output goes to the standard output: add `> FILE`"},
        {"jobs", "threads", "use `--threads N`"},
        {"workers", "threads", "use `--threads N`"},
        {"num-workers", "threads", "use `--threads N`"},
        {"data", "input", "use `--input FILE`"},
        {"test", "input", "use `--input FILE`"},
        {"proba", "probabilities", "use `--probabilities`"},
        {"format", "to", "use `--to FORMAT`"},
    };
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (strcmp(others[k].word, word) == 0 &&
            (!others[k].flag || find_flag(command, others[k].flag, strlen(others[k].flag), 0)))
            return others[k].answer;
    return NULL;
}

/* `next` is the argument after it, or NULL. */
static int refuse_flag(const struct cli_context *cli, const char *said, const char *next)
{
    const char *names[128];
    size_t count = 0;
    const struct cli_flag *tables[TABLES];
    get_tables(cli->command, tables);
    for (int t = 0; t < TABLES; t++)
        for (const struct cli_flag *flag = tables[t]; flag && flag->name && count < 128; flag++)
            names[count++] = flag->name;
    if (strncmp(said, "--", 2) != 0)
        return cli_usage_error(cli, "`seqlstm %s` has no flag `%s`\n  = help: `seqlstm help %s` lists them",
                               cli->command->name, said, cli->command->name);
    char word[64], key[CLI_KEY_BYTES];
    const char *equals = strchr(said, '='), *near = NULL;
    sl_text_snprintf(word, sizeof word, "%.*s", (int)strcspn(said + 2, "="), said + 2);
    for (char *at = word; *at; at++)
        *at = *at == '_' ? '-' : *at;
    const char *other = find_other_flag(cli->command, word);
    if (other)
        return cli_usage_error(cli, "`seqlstm %s` has no flag `--%.*s`\n  = help: %s", cli->command->name,
                               (int)strcspn(said + 2, "="), said + 2, other);
    sl_text_snprintf(word, sizeof word, "%.*s", (int)strcspn(said + 2, "="), said + 2);
    const bool takes_set = cli->command->takes_model_flags;
    bool is_key = takes_set && cli_suggest_key(word, true, key);
    if (!is_key)
        near = sl_text_closest(word, names, count);
    if (near)
        return cli_usage_error(cli, "`seqlstm %s` has no flag `--%s`\n  = help: did you mean `--%s`?",
                               cli->command->name, word, near);
    is_key = is_key || (takes_set && cli_suggest_key(word, false, key));
    const char *value = equals ? equals + 1 : next && next[0] != '-' ? next : "VALUE";
    if (is_key)
        return cli_usage_error(
            cli, "`seqlstm %s` has no flag `--%s`\n  = help: it is a key of the model file: `--set %s=%s`",
            cli->command->name, word, key, value);
    return cli_usage_error(cli, "`seqlstm %s` has no flag `--%s`\n  = help: `seqlstm help %s` lists them",
                           cli->command->name, word, cli->command->name);
}

static int add_value(struct cli_context *cli, const struct cli_flag *flag, const char *value, bool from_env)
{
    struct cli_values *values = &cli->values;
    if (!flag->repeats && !from_env)
        for (int i = 0; i < values->count; i++)
            if (values->items[i].flag == flag && !values->items[i].from_env && flag->argument)
                return cli_usage_error(cli, "`--%s` is given twice", flag->name);
    if (values->count == CLI_VALUES_MAX)
        return cli_usage_error(cli, "more than %d flags", CLI_VALUES_MAX);
    values->items[values->count].flag = flag;
    values->items[values->count].value = value;
    values->items[values->count++].from_env = from_env;
    return CLI_OK;
}

static bool is_false(const char *text)
{
    return !*text || !strcmp(text, "0") || !strcmp(text, "false") || !strcmp(text, "no");
}

static int read_environment(struct cli_context *cli)
{
    const struct cli_flag *tables[TABLES];
    get_tables(cli->command, tables);
    for (int t = 0; t < TABLES; t++)
        for (const struct cli_flag *flag = tables[t]; flag && flag->name; flag++) {
            const char *value = flag->env ? getenv(flag->env) : NULL;
            if (value == NULL || (flag->argument ? !*value : is_false(value)))
                continue;
            int code = add_value(cli, flag, flag->argument ? value : NULL, true);
            if (code != CLI_OK)
                return code;
        }
    return CLI_OK;
}

/* Parses one argument that begins with "--". Moves `*index` on if the value is the next argument. */
static int parse_long(struct cli_context *cli, int argc, char **argv, int *index)
{
    const char *said = argv[*index], *name = said + 2, *equals = strchr(name, '=');
    const struct cli_flag *flag = find_flag(cli->command, name, equals ? (size_t)(equals - name) : strlen(name), 0);
    if (flag == NULL)
        return refuse_flag(cli, said, *index + 1 < argc ? argv[*index + 1] : NULL);
    if (flag->argument == NULL)
        return equals ? cli_usage_error(cli, "`--%s` takes no value", flag->name) : add_value(cli, flag, NULL, false);
    if (equals)
        return add_value(cli, flag, equals + 1, false);
    if (flag->otherwise)
        return add_value(cli, flag, flag->otherwise, false);
    if (*index + 1 >= argc)
        return cli_usage_error(cli, "`--%s` needs a value: --%s %s", flag->name, flag->name, flag->argument);
    return add_value(cli, flag, argv[++*index], false);
}

/* "-v", "-qv", "-c FILE", "-cFILE" */
static int parse_short(struct cli_context *cli, int argc, char **argv, int *index)
{
    for (const char *p = argv[*index] + 1; *p; p++) {
        const struct cli_flag *flag = find_flag(cli->command, NULL, 0, *p);
        if (flag == NULL)
            return refuse_flag(cli, argv[*index], NULL);
        if (flag->argument == NULL) {
            int code = add_value(cli, flag, NULL, false);
            if (code != CLI_OK)
                return code;
            continue;
        }
        if (p[1])
            return add_value(cli, flag, p + 1, false);
        if (*index + 1 >= argc)
            return cli_usage_error(cli, "`-%c` needs a value: -%c %s", *p, *p, flag->argument);
        return add_value(cli, flag, argv[++*index], false);
    }
    return CLI_OK;
}

/* On the command line: a variable is meant for the commands that have a use for it. */
static bool is_given(const struct cli_context *cli, const char *flag)
{
    for (int i = 0; i < cli->values.count; i++)
        if (strcmp(cli->values.items[i].flag->name, flag) == 0 && !cli->values.items[i].from_env)
            return true;
    return false;
}

bool cli_offers(const struct cli_command *command, const struct cli_flag *flag)
{
    return !(command->has_no_json && strcmp(flag->name, "json") == 0);
}

int cli_parse(struct cli_context *cli, int argc, char **argv)
{
    int code = read_environment(cli);
    bool only_operands = false;
    for (int i = 0; i < argc && code == CLI_OK; i++) {
        if (only_operands || argv[i][0] != '-' || argv[i][1] == '\0') {
            if (cli->values.operand_count == 64)
                return cli_usage_error(cli, "too many arguments");
            cli->values.operands[cli->values.operand_count++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            only_operands = true;
        } else if (argv[i][1] == '-') {
            code = parse_long(cli, argc, argv, &i);
        } else {
            code = parse_short(cli, argc, argv, &i);
        }
    }
    if (code != CLI_OK || cli_has(cli, "help"))
        return code;
    if (cli->command->has_no_json && is_given(cli, "json"))
        return cli_usage_error(cli, "`seqlstm %s` has no JSON output, so `--json` has no use", cli->command->name);
    if (cli->values.operand_count < cli->command->operands_min)
        return cli_usage_error(cli, "an argument is missing: seqlstm %s %s\n  = help: `seqlstm help %s` has examples",
                               cli->command->name, cli->command->usage, cli->command->name);
    if (cli->values.operand_count > cli->command->operands_max)
        return cli_usage_error(cli, "unexpected argument `%s`: seqlstm %s %s",
                               cli->values.operands[cli->command->operands_max], cli->command->name,
                               cli->command->usage);
    return CLI_OK;
}

/* The value from the command line (the last one if repeated), or else from the variable. */
static const struct cli_value *find_value(const struct cli_context *cli, const char *flag)
{
    const struct cli_value *found = NULL, *from_env = NULL;
    for (int i = 0; i < cli->values.count; i++) {
        const struct cli_value *value = &cli->values.items[i];
        if (strcmp(value->flag->name, flag) != 0)
            continue;
        if (value->from_env)
            from_env = value;
        else
            found = value;
    }
    return found ? found : from_env;
}

const char *cli_get(const struct cli_context *cli, const char *flag)
{
    const struct cli_value *value = find_value(cli, flag);
    return value ? value->value : NULL;
}

void cli_format_given(const struct cli_context *cli, const char *flag, char out[CLI_GIVEN_BYTES])
{
    const struct cli_value *value = find_value(cli, flag);
    const bool from_env = value && value->from_env;
    sl_text_snprintf(out, CLI_GIVEN_BYTES, "%s%s%s%.100s", from_env ? value->flag->env : "--", from_env ? "" : flag,
                     from_env ? "=" : " ", value && value->value ? value->value : "");
}

bool cli_has(const struct cli_context *cli, const char *flag)
{
    for (int i = 0; i < cli->values.count; i++)
        if (strcmp(cli->values.items[i].flag->name, flag) == 0)
            return true;
    return false;
}

bool cli_get_int(const struct cli_context *cli, const char *flag, int64_t low, int64_t high, int64_t *out)
{
    const char *text = cli_get(cli, flag);
    int64_t value;
    if (text == NULL)
        return true;
    if (!sl_text_parse_int64(text, strlen(text), &value) || value < low || value > high) {
        char said[CLI_GIVEN_BYTES];
        cli_format_given(cli, flag, said);
        cli_usage_error(cli, "`%s`: expected a whole number from %lld to %lld", said, (long long)low, (long long)high);
        return false;
    }
    *out = value;
    return true;
}

bool cli_get_float(const struct cli_context *cli, const char *flag, double low, double high, double *out)
{
    const char *text = cli_get(cli, flag);
    double value;
    if (text == NULL)
        return true;
    if (!sl_text_parse_float64(text, strlen(text), &value) || !(value >= low && value <= high)) {
        char said[CLI_GIVEN_BYTES];
        cli_format_given(cli, flag, said);
        cli_usage_error(cli, "`%s`: expected a number from %g to %g", said, low, high);
        return false;
    }
    *out = value;
    return true;
}

bool cli_get_share(const struct cli_context *cli, const char *flag, double *out)
{
    const char *text = cli_get(cli, flag);
    double value;
    if (text == NULL)
        return true;
    size_t length = strlen(text);
    bool percent = length > 0 && text[length - 1] == '%';
    if (!sl_text_parse_float64(text, length - percent, &value) || !(value >= 0 && value <= (percent ? 10000 : 100))) {
        char said[CLI_GIVEN_BYTES];
        cli_format_given(cli, flag, said);
        cli_usage_error(cli, "`%s`: expected a share such as 5%% or 0.05", said);
        return false;
    }
    *out = percent ? value / 100 : value;
    return true;
}
