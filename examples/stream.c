/* SPDX-License-Identifier: Apache-2.0 */
/* A stream in a C program: sound comes in on standard input, and each frame is answered as soon as it is there.
 *
 *   cc stream.c -lm $(pkg-config --cflags --libs seqlstm) -o stream
 *   arecord -q -f S16_LE -r 16000 -c 1 -t raw | ./stream runs/voice/001
 *
 * Input: 16-bit samples at 16 kHz. A frame is 10 ms; the model gets two numbers of it, the logarithm of its mean energy
 * and the share of samples at which the sign changes, and predicts the probability of voice. The program prints when
 * voice begins and ends. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include <seqlstm/seqlstm.h>

enum { FRAME = 160, FEATURES = 2 };

static void describe(const int16_t samples[FRAME], float features[FEATURES])
{
    double energy = 0;
    int changes = 0;
    for (int k = 0; k < FRAME; k++) {
        const double value = samples[k] / 32768.0;
        energy += value * value;
        changes += k > 0 && (samples[k] < 0) != (samples[k - 1] < 0);
    }
    features[0] = (float)log10(energy / FRAME + 1e-9);
    features[1] = (float)changes / FRAME;
}

static seqlstm_status listen(struct seqlstm_context *context, struct seqlstm_stream *stream, struct seqlstm_error *err)
{
    int16_t samples[FRAME];
    float features[FEATURES], probability;
    int voice = 0;
    while (fread(samples, sizeof samples, 1, stdin) == 1) {
        describe(samples, features);
        SEQLSTM_TRY(seqlstm_stream_step(context, stream, features, 1, &probability, err));
        if ((probability > 0.5f) == voice)
            continue;
        voice = !voice;
        printf("%.2f s: voice %s\n", 0.01 * (double)seqlstm_stream_get_position(stream), voice ? "begins" : "ends");
        fflush(stdout);
    }
    return SEQLSTM_OK;
}

/* The model reads two numbers per frame and predicts one. */
static seqlstm_status check(const struct seqlstm_predictor *predictor, struct seqlstm_error *err)
{
    struct seqlstm_predictor_info info = {.struct_size = sizeof info};
    seqlstm_predictor_get_info(predictor, &info);
    if (info.input != SEQLSTM_INPUT_VALUES || info.input_features != FEATURES || info.output_features != 1)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a model with %d inputs and one output was expected", FEATURES);
    return SEQLSTM_OK;
}

int main(int argc, char **argv)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = NULL;
    struct seqlstm_predictor *predictor = NULL;
    struct seqlstm_context *context = NULL;
    struct seqlstm_stream *stream = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: stream RUN <samples\n");
        return 2;
    }
    seqlstm_status status = seqlstm_open_run(argv[1], NULL, &session, &err);
    if (status == SEQLSTM_OK)
        status = seqlstm_predictor_open(session, NULL, &predictor, &err);
    if (status == SEQLSTM_OK)
        status = check(predictor, &err);
    if (status == SEQLSTM_OK)
        status = seqlstm_context_open(predictor, &context, &err);
    if (status == SEQLSTM_OK)
        status = seqlstm_stream_open(predictor, &stream, &err);
    if (status == SEQLSTM_OK)
        status = listen(context, stream, &err);
    seqlstm_stream_close(stream);
    seqlstm_context_close(context);
    seqlstm_predictor_close(predictor);
    seqlstm_close(session);
    if (status != SEQLSTM_OK)
        fprintf(stderr, "error: %s\n", err.message);
    return status == SEQLSTM_OK ? 0 : 1;
}
