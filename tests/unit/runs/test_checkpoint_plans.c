/* SPDX-License-Identifier: Apache-2.0 */
/* The plan in a checkpoint decides what plan.json does: what computes each layer in training, evaluation and decoding,
 * the threads, the devices and the edges of buckets. */
#include "opened_run.h"

#include <unistd.h>

#include "session/run_folder/stored_plan.h"
#include "train/checkpoint/checkpoint.h"

#define BY_ORDER "checkpoint: {every: 1e, keep_last: 1}}\nbackends: [reference]\ndispatch: {policy: order}\n"

static const struct {
    const char *name, *text;
    int decoding, sampling; /* layers, at least */
} models[] = {
    {"classes",
     "seqlstm: 1\nname: m\nseed: 3\ndata:\n  type: lines\n  label: first\n  train: {file: lines.txt}\n"
     "  valid: {file: lines.txt}\n  tokenizer: {type: whitespace, specials: [unk]}\n  batch_size: 2\n"
     "  batching: {bucketing: auto}\nmodel:\n  - {type: embedding, dim: 3}\n  - {type: dropout, rate: 0.5}\n"
     "  - {type: lstm, units: 4}\n  - {type: dropout, rate: 0.25}\n  - {type: output, activation: softmax}\n"
     "train: {epochs: 1, " BY_ORDER,
     0, 0},
    {"pairs",
     "seqlstm: 1\nname: m\nseed: 3\ndata:\n"
     "  train: {type: generator, name: addition, digits: 1, size: 8, seed: 5}\n"
     "  valid: {type: generator, name: addition, digits: 1, size: 3, seed: 6}\n  batch_size: 4\nmodel:\n"
     "  encoder:\n    - {type: embedding, dim: 2}\n    - {type: dropout, rate: 0.5}\n"
     "    - {type: lstm, units: 3, name: reader}\n  decoder:\n    - {type: embedding, dim: 2}\n"
     "    - {type: lstm, units: 3, return_sequences: true, initial_state: reader}\n"
     "    - {type: output, activation: softmax}\ndecode: {beam: 2, max_length: 4}\n"
     "train: {epochs: 1, teacher_forcing: {type: constant, probability: 0.5}, "
     "validate: {metrics: [loss, bleu]}, " BY_ORDER,
     4, 4},
};

static void expect_choices(const char *name, const struct sl_choices *got, const struct sl_choices *expected)
{
    assert_int_equal(got->count, expected->count);
    for (int32_t k = 0; k < got->count; k++) {
        const struct sl_plan_choice *a = &got->items[k], *b = &expected->items[k];
        if (a->phase != b->phase || strcmp(a->node, b->node) != 0 || strcmp(a->backend, b->backend) != 0 ||
            strcmp(a->variant, b->variant) != 0)
            fail_msg("%s: choice %d is of `%s` (phase %d), in plan.json of `%s` (phase %d)", name, (int)k, a->node,
                     (int)a->phase, b->node, (int)b->phase);
    }
}

static int count_phase(const struct sl_choices *choices, enum sl_phase phase)
{
    int count = 0;
    for (int32_t k = 0; k < choices->count; k++)
        count += choices->items[k].phase == phase;
    return count;
}

static void checkpoints_have_the_plan_of_the_run(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        const char *name = models[m].name;
        struct opened_run run;
        struct sl_run_result result;
        struct sl_stored_plan got = {.threads = 0}, expected = {.threads = 0};
        struct sl_safetensors *file = NULL;
        char path[300];
        open_text(&run, name, models[m].text);
        ok(train_run(&run, &result), &run.err);
        snprintf(path, sizeof path, "%s/checkpoints", run.out);
        ok(sl_checkpoint_open_latest(path, NULL, &file, NULL, &run.err), &run.err);
        const char *text = sl_safetensors_find_text(file, "plan");
        assert_non_null(text);
        ok(sl_stored_plan_parse("the checkpoint", text, strlen(text), &got, &run.err), &run.err);
        snprintf(path, sizeof path, "%s/plan.json", run.out);
        ok(sl_stored_plan_read(path, &expected, &run.err), &run.err);
        expect_choices(name, &got.phases, &expected.phases);
        expect_choices(name, &got.decoding, &expected.decoding);
        expect_choices(name, &got.sampling, &expected.sampling);
        assert_true(count_phase(&got.phases, SL_PHASE_TRAIN) > count_phase(&got.phases, SL_PHASE_EVALUATE));
        assert_true(got.decoding.count >= models[m].decoding && got.sampling.count >= models[m].sampling);
        assert_int_equal(got.threads, expected.threads);
        assert_int_equal(got.device_count, expected.device_count);
        for (int32_t d = 0; d < got.device_count; d++)
            assert_string_equal(got.devices[d].backend, expected.devices[d].backend);
        assert_int_equal(got.edge_count, expected.edge_count);
        for (int64_t e = 0; e < got.edge_count; e++)
            assert_int_equal(got.edges[e], expected.edges[e]);
        sl_arena_deinit(&got.arena);
        sl_arena_deinit(&expected.arena);
        sl_safetensors_close(file);
        close_run(&run);
    }
}

static int setup(void **state)
{
    if (scratch_make(state) != 0 || chdir(scratch_folder) != 0)
        return -1;
    put_file("lines.txt",
             "good fine day\nbad grey\nfair mild day of rain\nbad cold\ngood warm day\nfair so so it is\n");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_have_the_plan_of_the_run),
    };
    return cmocka_run_group_tests(tests, setup, scratch_remove);
}
