/* SPDX-License-Identifier: Apache-2.0 */
/* All that models hold after they are loaded: what was given, defaults, what follows from other options, places, and
 * what is said about them. See support/dump_file.h. Of a case whose title begins with `train` only the training is
 * shown, of one that begins with `config` the configuration that a run would keep. In settings.txt `# set KEY=VALUE` is
 * `--set`: what it changes in the model, or what is said. */
#include "oom.h"
#include "dump_file.h"
#include "model_dump.h"
#include "model_fixture.h"

static void add_configs(struct sl_buf *out, const struct sl_model *model)
{
    for (unsigned flags = 0; flags <= (SL_CONFIG_MINIMAL | SL_CONFIG_ORIGIN); flags++) {
        sl_buf_printf(out, "-- flags %u\n", flags);
        assert_int_equal(sl_model_write_config(model, flags, out, NULL), SEQLSTM_OK);
    }
}

static void add_model(struct sl_buf *out, const char *title, const char *text)
{
    struct loaded l = load(text);
    sl_buf_append_text(out, sl_buf_text(&l.text));
    if (l.model && strncmp(title, "config", strlen("config")) == 0)
        add_configs(out, l.model);
    else if (l.model && strncmp(title, "train", strlen("train")) == 0)
        dump_train(out, &l.model->train);
    else if (l.model)
        dump_model(out, l.model);
    unload(&l);
}

static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += length)
        if ((at == text || at[-1] == ' ' || at[-1] == '\n') && (at[length] == ' ' || at[length] == '\n'))
            return true;
    return false;
}

/* The words of a model that another one does not have. */
static void add_changes(struct sl_buf *out, const struct sl_model *model, const char *before)
{
    struct sl_buf now = {0};
    dump_model(&now, model);
    char *rest = now.data, *word;
    while ((word = strsep(&rest, " \n")) != NULL)
        if (*word != '\0' && !has_word(before, word))
            sl_buf_printf(out, " %s", word);
    sl_buf_append_char(out, '\n');
    sl_buf_deinit(&now);
}

/* The line of the message, and what helps. */
static void add_messages(struct sl_buf *out, const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const int length = (int)strcspn(line, "\n");
        if (strncmp(line, "error", 5) == 0 || strncmp(line, "warning", 7) == 0)
            sl_buf_printf(out, "  %.*s\n", length, line);
        else if (strncmp(line, "  = ", 4) == 0)
            sl_buf_printf(out, "    %.*s\n", length - 4, line + 4);
    }
}

static void add_settings(struct sl_buf *out, const char *title, const char *text)
{
    struct loaded base = load(text);
    struct sl_buf before = {0};
    (void)title;
    if (base.model == NULL)
        fail_msg("%s", sl_buf_text(&base.text));
    dump_model(&before, base.model);
    for (const char *line = text; (line = strstr(line, "\n# set ")) != NULL;) {
        char set[600];
        line += strlen("\n# set ");
        snprintf(set, sizeof set, "%.*s", (int)strcspn(line, "\n"), line);
        const struct sl_override override = {"--set", set};
        struct loaded l = load_text("m.yaml", text, strlen(text),
                                    &(struct sl_model_request){.overrides = &override, .override_count = 1});
        sl_buf_printf(out, "%s:", set);
        if (l.model)
            add_changes(out, l.model, sl_buf_text(&before));
        else
            sl_buf_append_char(out, '\n');
        add_messages(out, sl_buf_text(&l.text));
        unload(&l);
    }
    sl_buf_deinit(&before);
    unload(&base);
}

static void settings_are_as_before(void **state)
{
    (void)state;
    compare_dumps("settings", add_settings);
}

static void models_are_as_before(void **state)
{
    (void)state;
    compare_dumps("models", add_model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_as_before),
        cmocka_unit_test(settings_are_as_before),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
