/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm generate */
#include "cli/cli.h"

static const struct cli_flag flags[] = {
    {.name = "prompt", .letter = 'p', .argument = "TEXT", .help = "start with this text"},
    {.name = "length", .letter = 'n', .argument = "N", .help = "number of tokens to generate (default 200)"},
    {.name = "seed",
     .argument = "N",
     .env = "SEQLSTM_SEED",
     .help = "random seed of the sampling (default: the seed of the run)"},
    {.name = "temperature",
     .letter = 't',
     .argument = "X",
     .help = "above 1: more random, below 1: more predictable (default 1)"},
    {.name = "top-k", .argument = "N", .help = "sample only from the N most likely tokens (default: all)"},
    {.name = "top-p",
     .argument = "X",
     .help = "sample only from the most likely tokens with this total probability (default 1)"},
    {.name = "stop-at-eos", .help = "stop at the first <eos>"},
    {0},
};

/* Prints the prompt together with the first token, so that a failure before it prints nothing. */
static seqlstm_status write(void *context, const char *text, size_t bytes, struct seqlstm_error *err)
{
    const char **prompt = context;
    if (*prompt)
        cli_say(stdout, "%s", *prompt);
    *prompt = NULL;
    return cli_put_text(text, bytes, true, err);
}

static seqlstm_status work(struct cli_context *cli, struct sl_session *session, void *context,
                           struct seqlstm_error *err)
{
    struct sl_generate_request *request = context;
    const char *prompt = request->prompt;
    if (cli_get(cli, "seed") == NULL)
        request->seed = sl_session_get_model(session)->seed;
    SEQLSTM_TRY(sl_session_generate(session, request, write, &prompt, err));
    return prompt == NULL ? cli_put("\n", 1, true, err) : SEQLSTM_OK;
}

static int generate(struct cli_context *cli)
{
    int64_t seed = 0;
    struct sl_generate_request request = {.prompt = cli_get(cli, "prompt"),
                                          .length = 200,
                                          .temperature = 1,
                                          .top_p = 1,
                                          .stop_at_eos = cli_has(cli, "stop-at-eos")};
    if (!cli_get_int(cli, "length", 0, INT64_C(1) << 40, &request.length) ||
        !cli_get_int(cli, "top-k", 0, INT32_MAX, &request.top_k) || !cli_get_int(cli, "seed", 0, INT64_MAX, &seed) ||
        !cli_get_float(cli, "temperature", 1e-3, 1e3, &request.temperature) ||
        !cli_get_float(cli, "top-p", 1e-9, 1, &request.top_p))
        return CLI_USAGE;
    request.seed = (uint64_t)seed;
    return cli_with_run(cli, work, &request);
}

const struct cli_command cli_command_generate = {
    .name = "generate",
    .has_no_json = true,
    .summary = "generate text with a language model",
    .usage = "RUN [--prompt TEXT] [flags]",
    .examples = "  seqlstm generate char-lm --prompt 'ROMEO:' --length 500 --temperature 0.8\n",
    .text = "The same seed gives the same text.\n",
    .flags = flags,
    .takes_backend_flags = true,
    .use = SL_RUN_USE_PREDICT,
    .operands_min = 1,
    .operands_max = 1,
    .run = generate,
};
