/* SPDX-License-Identifier: Apache-2.0 */
/* See selection.h. */
#include "cli/commands/runs/selection.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/value/text.h"
#include "runs/condition.h"
#include "session/run_folder/run_name.h"

enum { KEYS_MOST = 512 };

#define WHOLE_MOST 9e15 /* larger ones are not exact */

/* ---- keys -------------------------------------------------------------------------------------------------- */

bool cli_selection_get(struct cli_context *cli, struct cli_selection *selection, size_t r, const char *key,
                       struct sl_run_value *out)
{
    const bool fine = sl_run_value_find(&selection->arena, selection->runs[r], &selection->configs[r], key, out);
    if (!fine)
        cli_fail_memory(cli, "the runs");
    return fine;
}

/* The name nearest to a key: of the run's own facts, its metrics and its configuration. */
static const char *suggest(struct cli_selection *selection, const char *key)
{
    static const char *const own[] = {"name", "state", "end", "started", "updates", "epochs", "seconds"};
    const char *names[KEYS_MOST];
    size_t count = 0;
    for (; count < sizeof own / sizeof *own; count++)
        names[count] = own[count];
    for (size_t r = 0; r < selection->count; r++) {
        const struct sl_run_facts *run = selection->runs[r];
        for (size_t m = 0; m < run->metric_count && count < KEYS_MOST; m++)
            names[count++] = sl_arena_printf(&selection->arena, "%s.%s", run->metrics[m].split, run->metrics[m].name);
        for (size_t i = 0; i < selection->configs[r].count && count < KEYS_MOST; i++)
            names[count++] = selection->configs[r].items[i].path;
        if (count > 0 && names[count - 1] == NULL)
            return NULL;
    }
    return sl_text_closest(key, names, count);
}

int cli_selection_check_key(struct cli_context *cli, struct cli_selection *selection, const char *key)
{
    struct sl_run_value value = {0};
    for (size_t r = 0; r < selection->count; r++) {
        if (!cli_selection_get(cli, selection, r, key, &value))
            return CLI_NO_MEMORY;
        if (value.kind != SL_RUN_VALUE_NONE)
            return CLI_OK;
    }
    if (selection->count == 0)
        return CLI_OK;
    const char *near = suggest(selection, key);
    if (near)
        return cli_usage_error(cli, "no run has `%s`\n  = help: did you mean `%s`?", key, near);
    return cli_usage_error(cli, "no run has `%s`\n  = help: `seqlstm help runs` says what may be named", key);
}

/* ---- runs -------------------------------------------------------------------------------------------------- */

/* A run folder that is not below the searched folder; *out_run NULL: it is none. False: no memory. */
static bool read_elsewhere(struct cli_selection *selection, const char *word, const struct sl_run_facts **out_run)
{
    *out_run = NULL;
    if (!sl_run_folder_is_run(word))
        return true;
    struct sl_run_facts *run = SL_ARENA_NEW(&selection->arena, struct sl_run_facts);
    const bool fine = run && sl_run_facts_read(&selection->arena, word, word, run);
    *out_run = fine ? run : NULL;
    return fine;
}

/* However it is named. */
static bool is_same_folder(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static bool has(const struct cli_selection *selection, const struct sl_run_facts *run)
{
    for (size_t r = 0; r < selection->count; r++)
        if (selection->runs[r] == run ||
            (selection->elsewhere && is_same_folder(selection->runs[r]->folder, run->folder)))
            return true;
    return false;
}

static int take_word(struct cli_context *cli, struct cli_selection *selection, const struct sl_run_catalogue *all,
                     const char *word)
{
    size_t found = 0;
    for (size_t r = 0; r < all->count; r++)
        if (sl_run_catalogue_matches(&all->runs[r], word)) {
            if (!has(selection, &all->runs[r]))
                selection->runs[selection->count++] = &all->runs[r];
            found++;
        }
    const struct sl_run_facts *elsewhere = NULL;
    if (found == 0 && !read_elsewhere(selection, word, &elsewhere))
        return cli_fail_memory(cli, "the runs");
    selection->elsewhere = selection->elsewhere || elsewhere;
    if (elsewhere && !has(selection, elsewhere))
        selection->runs[selection->count++] = elsewhere;
    if (found || elsewhere)
        return CLI_OK;
    const char *names[KEYS_MOST];
    size_t count = 0;
    for (; count < all->count && count < KEYS_MOST; count++)
        names[count] = all->runs[count].name;
    const char *near = sl_text_closest(word, names, count);
    if (near)
        return cli_usage_error(cli, "no run is named `%s`\n  = help: did you mean `%s`?", word, near);
    return cli_usage_error(cli, "no run is named `%s`\n  = help: `seqlstm runs` lists them", word);
}

static int take_words(struct cli_context *cli, struct cli_selection *selection, const struct sl_run_catalogue *all)
{
    int code = CLI_OK;
    for (int i = 0; i < cli->values.operand_count && code == CLI_OK; i++)
        code = take_word(cli, selection, all, cli->values.operands[i]);
    for (size_t r = 0; cli->values.operand_count == 0 && r < all->count; r++)
        selection->runs[selection->count++] = &all->runs[r];
    return code;
}

/* ---- conditions -------------------------------------------------------------------------------------------- */

static int keep_runs(struct cli_context *cli, struct cli_selection *selection, const struct sl_run_condition *condition)
{
    struct sl_run_value value = {0};
    size_t kept = 0;
    int code = cli_selection_check_key(cli, selection, condition->key);
    for (size_t r = 0; r < selection->count && code == CLI_OK; r++) {
        if (!cli_selection_get(cli, selection, r, condition->key, &value))
            return CLI_NO_MEMORY;
        if (!sl_run_condition_holds(condition, &value))
            continue;
        selection->runs[kept] = selection->runs[r];
        selection->configs[kept++] = selection->configs[r];
    }
    selection->count = kept;
    return code;
}

static int apply_conditions(struct cli_context *cli, struct cli_selection *selection)
{
    int code = CLI_OK;
    for (int i = 0; i < cli->values.count && code == CLI_OK; i++) {
        struct sl_run_condition condition;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        if (strcmp(cli->values.items[i].flag->name, "where") != 0)
            continue;
        seqlstm_status status = sl_run_condition_read(&selection->arena, cli->values.items[i].value, &condition, &err);
        code = status == SEQLSTM_INVALID_CONFIG ? cli_usage_error(cli, "--where: %s", err.message)
               : status != SEQLSTM_OK           ? cli_fail(cli, status, &err)
                                                : keep_runs(cli, selection, &condition);
    }
    return code;
}

int cli_selection_find(struct cli_context *cli, struct cli_selection *out)
{
    const char *dir = cli_get(cli, "dir");
    struct sl_run_catalogue all = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    *out = (struct cli_selection){0};
    if (dir != NULL || sl_file_exists("runs")) {
        seqlstm_status status = sl_run_catalogue_read(&out->arena, dir ? dir : "runs", &all, &err);
        if (status != SEQLSTM_OK)
            return cli_fail(cli, status, &err);
    }
    const size_t most = all.count + (size_t)cli->values.operand_count;
    out->runs = SL_ARENA_ARRAY(&out->arena, const struct sl_run_facts *, most);
    out->configs = SL_ARENA_ARRAY(&out->arena, struct sl_config_entries, most);
    if (out->runs == NULL || out->configs == NULL)
        return cli_fail_memory(cli, "the runs");
    int code = take_words(cli, out, &all);
    return code == CLI_OK ? apply_conditions(cli, out) : code;
}

json_t *cli_selection_pack(const struct sl_run_value *value)
{
    if (value->kind == SL_RUN_VALUE_NONE)
        return json_null();
    if (value->kind == SL_RUN_VALUE_TEXT)
        return json_string(value->text);
    return value->number == floor(value->number) && fabs(value->number) < WHOLE_MOST
               ? json_integer((json_int_t)value->number)
               : json_real(value->number);
}

void cli_selection_release(struct cli_selection *selection)
{
    sl_arena_deinit(&selection->arena);
}
