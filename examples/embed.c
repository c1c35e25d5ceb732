/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding seqlstm in a C program: train a small model, evaluate it, and predict from values in memory.
 *
 *   cc embed.c $(pkg-config --cflags --libs seqlstm) -o embed
 *   ./embed configs/adding-problem.yaml /tmp/embedded
 */
#include <stdio.h>

#include <seqlstm/seqlstm.h>

static int32_t show_progress(void *context, int64_t update, double epoch, double loss)
{
    (void)context;
    printf("update %lld, epoch %.2f, loss %.4f\n", (long long)update, epoch, loss);
    return 0; /* continue */
}

static seqlstm_status show_prediction(void *context, int64_t record, const float *values, int64_t rows,
                                      int64_t features)
{
    const double *expected = context;
    (void)rows;
    (void)features;
    printf("sequence %lld: predicted %.3f, expected %.3f\n", (long long)record, (double)values[0], expected[record]);
    return SEQLSTM_OK;
}

/* Two sequences of the adding problem: each step is (value, mark); the answer is the sum of the marked values. */
static seqlstm_status predict(struct seqlstm_session *session, struct seqlstm_error *err)
{
    enum { STEPS = 50 };
    static float values[2 * STEPS * 2];
    const int64_t lengths[2] = {STEPS, STEPS};
    double expected[2] = {0.75 + 0.5, 0.25 + 0.125};
    for (int t = 0; t < 2 * STEPS; t++)
        values[2 * t] = (float)((t * 37 % 100) / 100.0);
    values[2 * 7] = 0.75f;
    values[2 * 7 + 1] = 1;
    values[2 * 20] = 0.5f;
    values[2 * 20 + 1] = 1;
    values[2 * (STEPS + 3)] = 0.25f;
    values[2 * (STEPS + 3) + 1] = 1;
    values[2 * (STEPS + 22)] = 0.125f;
    values[2 * (STEPS + 22) + 1] = 1;
    return seqlstm_predict_values(session, values, lengths, 2, show_prediction, expected, err);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: embed model.yaml RUN_FOLDER [KEY=VALUE]...\n");
        return 2;
    }
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    options.out_dir = argv[2];
    options.overrides = (const char *const *)(argv + 3);
    options.override_count = (uint32_t)(argc - 3);
    struct seqlstm_session *session = NULL;
    struct seqlstm_metric metrics[16];
    int32_t count = 0;
    seqlstm_status status = seqlstm_open_model(argv[1], &options, &session, &err);
    if (status == SEQLSTM_OK)
        status = seqlstm_train(session, show_progress, NULL, &err);
    if (status == SEQLSTM_OK)
        status = seqlstm_evaluate(session, "test", metrics, 16, &count, &err);
    for (int32_t m = 0; status == SEQLSTM_OK && m < count; m++)
        printf("test %s %.6f\n", metrics[m].name, metrics[m].value);
    if (status == SEQLSTM_OK)
        status = predict(session, &err);
    seqlstm_close(session);
    if (status != SEQLSTM_OK)
        fprintf(stderr, "error: %s\n", err.message);
    return status == SEQLSTM_OK ? 0 : 1;
}
