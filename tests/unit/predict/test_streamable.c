/* SPDX-License-Identifier: Apache-2.0 */
/* Which models can run step by step, and what is said of those that cannot: the first layer that needs the whole
 * sequence, where it stands, and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "predict/streamable.h"
#include "oom.h"

enum { LAYERS = 4 };

/* Four layers, of which none needs more than the steps so far; layer 3 stands in a file of its own. */
static void make_model(struct sl_model *model, struct sl_layer layers[LAYERS])
{
    static const char *const names[LAYERS] = {"first", "second", "third", "fourth"};
    memset(layers, 0, LAYERS * sizeof *layers);
    *model = (struct sl_model){.path = "model.yaml", .layers = layers, .layer_count = LAYERS};
    for (int l = 0; l < LAYERS; l++) {
        layers[l].name = (char *)(uintptr_t)names[l];
        layers[l].index = l;
        layers[l].kind = l == LAYERS - 1 ? SL_LAYER_DENSE : SL_LAYER_LSTM;
        layers[l].place.line = 10 + l;
        layers[l].place.file = l == 3 ? "other.yaml" : NULL;
        layers[l].recurrent.initial_state.layer = SL_NO_LAYER;
    }
}

static void each_reason_names_its_layer(void **state)
{
    (void)state;
    enum change { NOTHING, BOTH_WAYS, BACKWARD, POOL, ATTENTION, INITIAL, CHANGES };
    static const char *const needs[CHANGES] = {NULL,
                                               "is bidirectional",
                                               "runs backward",
                                               "pools over all steps",
                                               "reads all steps of the source",
                                               "starts from the final state of another layer"};
    static const char *const heads[LAYERS] = {"`first` (model.yaml:10)", "`second` (model.yaml:11)",
                                              "`third` (model.yaml:12)", "`fourth` (other.yaml:13)"};
    for (int change = NOTHING; change < CHANGES; change++)
        for (int l = 0; l < LAYERS; l++)
            for (int output = -1; output < LAYERS; output++) {
                struct sl_layer layers[LAYERS];
                struct sl_model model;
                char reason[200] = "old", expected[200] = "";
                make_model(&model, layers);
                if (l == 3 && change != POOL && change != ATTENTION)
                    layers[l].kind = SL_LAYER_LSTM;
                layers[l].recurrent.direction = change == BOTH_WAYS  ? SL_DIRECTION_BIDIRECTIONAL
                                                : change == BACKWARD ? SL_DIRECTION_BACKWARD
                                                                     : SL_DIRECTION_FORWARD;
                layers[l].kind = change == POOL        ? SL_LAYER_POOL
                                 : change == ATTENTION ? SL_LAYER_ATTENTION
                                                       : layers[l].kind;
                layers[l].recurrent.initial_state.layer = change == INITIAL ? 0 : SL_NO_LAYER;
                const bool runs = change == NOTHING || (output >= 0 && output < l); /* it is behind the output */
                if (!runs)
                    snprintf(expected, sizeof expected, "%s %s, so it needs the whole sequence", heads[l],
                             needs[change]);
                assert_int_equal(
                    sl_model_is_streamable(&model, output < 0 ? NULL : &layers[output], reason, sizeof reason), runs);
                assert_string_equal(reason, expected);
            }
}

/* Of several layers the first is named; the options of recurrent layers mean nothing for others. */
static void the_first_of_several_is_named(void **state)
{
    (void)state;
    struct sl_layer layers[LAYERS];
    struct sl_model model;
    char reason[200];
    make_model(&model, layers);
    layers[3].recurrent.direction = SL_DIRECTION_BACKWARD;
    assert_true(sl_model_is_streamable(&model, NULL, reason, sizeof reason));
    layers[2].kind = SL_LAYER_POOL;
    layers[1].recurrent.direction = SL_DIRECTION_BACKWARD;
    assert_false(sl_model_is_streamable(&model, NULL, reason, sizeof reason));
    assert_string_equal(reason, "`second` (model.yaml:11) runs backward, so it needs the whole sequence");
    model.encoder_count = 3;
    assert_false(sl_model_is_streamable(&model, NULL, reason, sizeof reason));
    assert_string_equal(reason,
                        "`fourth` (other.yaml:13) is in a decoder, which begins when its encoder has read the whole "
                        "sequence");
    assert_false(sl_model_is_streamable(&model, NULL, NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_names_its_layer),
        cmocka_unit_test(the_first_of_several_is_named),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
