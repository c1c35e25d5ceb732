/* SPDX-License-Identifier: Apache-2.0 */
/* All that models hold after they are loaded: what was given, defaults, what follows from other options, places, and
 * what is said about them. See support/dump_file.h. Of a case whose title begins with `train` only the training is
 * shown, of one that begins with `config` the configuration that a run would keep. */
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

static void models_are_as_before(void **state)
{
    (void)state;
    compare_dumps("models", add_model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_as_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
