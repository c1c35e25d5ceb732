/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm embed: writes the output of a layer for each input, or the most similar inputs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/json_write.h"
#include "base/value/text.h"
#include "cli/output/prediction_writer.h"
#include "session/predict/neighbours.h"

static const struct cli_flag flags[] = {
    CLI_FLAG_INPUT,
    CLI_FLAG_LENGTHS,
    {.name = "layer",
     .argument = "NAME",
     .help = "write the output of this layer (default: the input of the last layer)"},
    {.name = "format",
     .letter = 'f',
     .argument = "FORMAT",
     .help = "output format: text, csv, jsonl or npy (default: jsonl with --json, else csv)"},
    {.name = "with-input", .help = "print the input text next to its embedding"},
    {.name = "nearest", .argument = "K", .help = "print the K most similar inputs of each input instead, by cosine"},
    {0},
};

/* All embeddings and their inputs, for --nearest. */
struct collection {
    struct sl_buf values; /* [records, features] */
    struct sl_buf texts;  /* one after the other, each with a NUL */
    int64_t records, features;
};

static seqlstm_status collect(void *context, const struct sl_prediction *p, struct seqlstm_error *err)
{
    struct collection *all = context;
    if (p->rows != 1)
        SEQLSTM_FAIL(
            err, SEQLSTM_INVALID_ARGUMENT,
            "the layer has one row for each step (%lld rows for record %lld), but `--nearest` needs one row for "
            "each input: choose another layer with --layer, or add pooling",
            (long long)p->rows, (long long)p->record);
    for (int64_t f = 0; f < p->features; f++)
        if (!isfinite(p->values[f]) && !(p->none && p->none[0]))
            SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "the embedding of record %lld holds values that are not finite numbers",
                         (long long)p->record);
    all->features = p->features;
    all->records++;
    sl_buf_append(&all->values, p->values, (size_t)p->features * sizeof *p->values);
    if (p->input)
        sl_buf_append(&all->texts, p->input, p->input_bytes);
    sl_buf_append_char(&all->texts, '\0');
    if (all->values.failed || all->texts.failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %lld embeddings", (long long)all->records);
    return SEQLSTM_OK;
}

static void write_neighbours(const struct cli_context *cli, int64_t record, const struct sl_neighbour *nearest,
                             int64_t count, const char *const *texts, struct sl_buf *out)
{
    char number[SL_TEXT_NUMBER_BYTES];
    if (cli->json) {
        sl_buf_printf(out, "{\"record\": %lld, \"input\": ", (long long)record);
        sl_json_append_string(out, texts[record]);
        sl_buf_append_text(out, ", \"nearest\": [");
    } else {
        sl_buf_printf(out, "%lld  %s\n", (long long)record, texts[record]);
    }
    for (int64_t k = 0; k < count && nearest[k].row >= 0; k++) {
        if (cli->json) {
            sl_text_print_float32(number, nearest[k].cosine);
            sl_buf_printf(out, "%s{\"record\": %lld, \"cosine\": %s, \"input\": ", k ? ", " : "",
                          (long long)nearest[k].row, number);
            sl_json_append_string(out, texts[nearest[k].row]);
            sl_buf_append_char(out, '}');
        } else {
            sl_buf_printf(out, "    %6.3f  ", (double)nearest[k].cosine);
            if (texts[nearest[k].row][0] != 0)
                sl_buf_printf(out, "%s\n", texts[nearest[k].row]);
            else /* the input is numbers, or an empty line */
                sl_buf_printf(out, "record %lld\n", (long long)nearest[k].row);
        }
    }
    if (cli->json)
        sl_buf_append_text(out, "]}\n");
}

static seqlstm_status show_nearest(const struct cli_context *cli, struct collection *all, int64_t count,
                                   struct seqlstm_error *err)
{
    struct sl_neighbour *nearest = calloc((size_t)(all->records * count) + 1, sizeof *nearest);
    const char **texts = malloc(((size_t)all->records + 1) * sizeof *texts);
    struct sl_buf out = {0};
    seqlstm_status status = SEQLSTM_OK;
    if (nearest == NULL || texts == NULL) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the neighbours");
    } else {
        const char *text = all->texts.data;
        for (int64_t r = 0; r < all->records; r++, text += strlen(text) + 1)
            texts[r] = text;
        /* the buffer's memory comes from malloc and holds only floats */
        sl_neighbours_find((float *)(void *)all->values.data, all->records, all->features, count, nearest);
        for (int64_t r = 0; r < all->records; r++)
            write_neighbours(cli, r, nearest + r * count, count, texts, &out);
        status = out.failed ? seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the text")
                            : cli_put_text(sl_buf_text(&out), out.length_bytes, true, err);
    }
    sl_buf_deinit(&out);
    free(texts);
    free(nearest);
    return status;
}

struct state {
    struct cli_prediction_writer writer;
    int64_t nearest; /* 0: the embeddings themselves */
};

static seqlstm_status work(struct cli_context *cli, struct sl_session *session, void *context,
                           struct seqlstm_error *err)
{
    struct state *s = context;
    const char *layer = cli_get(cli, "layer");
    const struct sl_input_request request = cli_get_input(cli);
    SEQLSTM_TRY(cli_prediction_writer_check(&s->writer, sl_session_find_data_state(session), err));
    if (s->nearest == 0) {
        SEQLSTM_TRY(sl_session_embed(session, &request, layer, cli_prediction_writer_add, &s->writer, err));
        return cli_prediction_writer_end(&s->writer, err);
    }
    struct collection all = {.records = 0};
    seqlstm_status status = sl_session_embed(session, &request, layer, collect, &all, err);
    if (status == SEQLSTM_OK && all.records)
        status = show_nearest(cli, &all, s->nearest, err);
    sl_buf_deinit(&all.values);
    sl_buf_deinit(&all.texts);
    return status;
}

static int embed(struct cli_context *cli)
{
    struct state s = {.nearest = 0};
    if (!cli_get_int(cli, "nearest", 1, 1000, &s.nearest))
        return CLI_USAGE;
    int code = cli_prediction_writer_init(&s.writer, cli, CLI_PREDICTION_CSV);
    if (code == CLI_OK && s.nearest && cli_get(cli, "format"))
        code = cli_usage_error(cli, "`--format` cannot be combined with `--nearest`; `--json` can");
    else if (code == CLI_OK)
        code = cli_with_run(cli, work, &s);
    cli_prediction_writer_deinit(&s.writer);
    return code;
}

const struct cli_command cli_command_embed = {
    .name = "embed",
    .summary = "write the output of a layer for each input, in order",
    .usage = "RUN [--input FILE] [--layer NAME] [flags]",
    .examples = "  seqlstm embed sst-classifier --input reviews.txt --format npy > reviews.npy\n"
                "  seqlstm embed sst-classifier --input reviews.txt --nearest 5\n",
    .text = "Writes one row for each input, or one for each of its steps if the layer\n"
            "returns sequences. Like `predict`, it reads the format of the training data.\n",
    .flags = flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .use = SL_RUN_USE_PREDICT,
    .operands_min = 1,
    .operands_max = 1,
    .run = embed,
};
