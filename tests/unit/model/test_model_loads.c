/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of several files and settings together, as a whole: the effective configuration with the origin of each
 * value, and what is said. See fixtures/dumps/loads.txt:
 *
 * `== FILE` is followed by the text of a file. `? load FILE [OVERLAY …]` begins a case, `? saved FILE [OVERLAY …]` one
 * of a configuration that a run keeps. `? ORIGIN KEY=VALUE` belongs to it: a flag, a variable or `override`. `? all`
 * shows defaults, too. What comes out follows, with `|` before each line. */
#include "golden.h"
#include "model_fixture.h"
#include "oom.h"
#include "temporary.h"

#include <unistd.h>

enum { FILES_MOST = 6, SETTINGS_MOST = 6 };

struct load_case {
    const char *files[FILES_MOST]; /* the model file, then overlays */
    size_t file_count;
    struct sl_override settings[SETTINGS_MOST];
    size_t setting_count;
    bool saved, shows_all;
};

static char folder[TEMPORARY_BYTES];

static int make_folder(void **state)
{
    oom_group_begin(state);
    if (mkdtemp(temporary_template(folder, "loads")) == NULL || chdir(folder) != 0)
        return -1;
    return system("mkdir -p sub");
}

static int remove_folder(void **state)
{
    char command[TEMPORARY_BYTES + 32];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return oom_group_end(state) != 0 || chdir("/") != 0 || system(command) != 0;
}

/* Each line with a mark before it, without the folder of the test, and with one blank before an origin: how many there
 * are depends on the folder. */
static void quote(struct sl_buf *out, const char *text)
{
    for (const char *end; *text; text = end + (*end != '\0')) {
        end = text + strcspn(text, "\n");
        sl_buf_append_char(out, '|');
        while (text < end) {
            const bool is_folder = strncmp(text, folder, strlen(folder)) == 0;
            const size_t blanks = strspn(text, " ");
            if (is_folder)
                sl_buf_append_text(out, "FOLDER");
            else if (blanks == 0 || text[blanks] != '#')
                sl_buf_append_char(out, *text);
            else
                sl_buf_append_char(out, ' ');
            text += is_folder ? strlen(folder) : blanks > 0 && text[blanks] == '#' ? blanks : 1;
        }
        sl_buf_append_char(out, '\n');
    }
}

static void end_case(struct sl_buf *out, struct load_case *c)
{
    if (c->file_count == 0)
        return;
    const struct sl_model_request request = {.path = c->files[0],
                                             .overlays = c->files + 1,
                                             .overlay_count = c->file_count - 1,
                                             .overrides = c->settings,
                                             .override_count = c->setting_count,
                                             .saved = c->saved};
    struct sl_diagnostics *diagnostics;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_model *model = NULL;
    struct sl_buf text = {0};
    assert_int_equal(sl_diagnostics_create(&diagnostics, &err), SEQLSTM_OK);
    const seqlstm_status status = sl_model_load(&request, diagnostics, &model, &err);
    sl_buf_printf(&text, "status %d\n", (int)status);
    if (status != SEQLSTM_OK)
        sl_buf_printf(&text, "error: %s\n", err.message);
    assert_int_equal(sl_diagnostics_render(diagnostics, false, &text, NULL), SEQLSTM_OK);
    if (model != NULL) {
        sl_buf_printf(&text, "name %s\n", model->name);
        const unsigned flags = SL_CONFIG_ORIGIN | (c->shows_all ? 0 : SL_CONFIG_MINIMAL);
        assert_int_equal(sl_model_write_config(model, flags, &text, NULL), SEQLSTM_OK);
    }
    quote(out, sl_buf_text(&text));
    sl_model_destroy(model);
    sl_diagnostics_destroy(diagnostics);
    sl_buf_deinit(&text);
    *c = (struct load_case){.file_count = 0};
}

static void take_directive(struct sl_buf *out, struct load_case *c, char *line)
{
    const bool saved = strncmp(line, "saved ", 6) == 0;
    if (saved || strncmp(line, "load ", 5) == 0)
        end_case(out, c);
    sl_buf_printf(out, "? %s\n", line);
    char *first = strsep(&line, " ");
    if (saved || strcmp(first, "load") == 0) {
        c->saved = saved;
        for (char *file; (file = strsep(&line, " ")) != NULL;) {
            assert_true(c->file_count < FILES_MOST);
            c->files[c->file_count++] = file;
        }
    } else if (strcmp(first, "all") == 0) {
        c->shows_all = true;
    } else {
        assert_true(c->setting_count < SETTINGS_MOST && line != NULL);
        c->settings[c->setting_count++] = (struct sl_override){first, line};
    }
}

static void end_file(const char *name, struct sl_buf *file)
{
    if (name)
        assert_int_equal(sl_file_write(name, sl_buf_text(file), file->length_bytes, NULL), SEQLSTM_OK);
    sl_buf_truncate(file, 0);
}

static void loads_are_as_before(void **state)
{
    (void)state;
    struct sl_buf now = {0}, file = {0};
    struct load_case c = {.file_count = 0};
    char *text = golden_read("dumps/loads.txt"), *rest = text, *line;
    const char *name = NULL;
    while ((line = strsep(&rest, "\n")) != NULL) {
        const bool is_name = strncmp(line, "== ", 3) == 0, is_directive = strncmp(line, "? ", 2) == 0;
        if (*line == '|' || (rest == NULL && *line == '\0'))
            continue;
        if (is_name || is_directive) {
            end_file(name, &file);
            name = NULL;
        }
        if (is_name)
            end_case(&now, &c);
        if (is_directive) {
            take_directive(&now, &c, line + 2);
            continue;
        }
        sl_buf_printf(&now, "%s\n", line);
        if (is_name)
            name = line + 3;
        else
            sl_buf_printf(&file, "%s\n", line);
    }
    end_case(&now, &c);
    golden_expect("dumps/loads.txt", "? ", sl_buf_text(&now));
    free(text);
    sl_buf_deinit(&now);
    sl_buf_deinit(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(loads_are_as_before)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
