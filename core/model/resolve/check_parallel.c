/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what `parallel` needs of the rest of the model. */
#include "model/read/sections.h"

/* A key that cannot be combined with several ranks yet. */
static void refuse_with_ranks(struct sl_reader *reader, const struct sl_node *root, const char *what)
{
    sl_reader_refuse_later(reader, sl_reader_get_place(root, "parallel"),
                           sl_reader_printf(reader, "`parallel` together with %s", what));
}

static void check_compress(struct sl_reader *reader, const struct sl_node *node, const struct sl_model *model)
{
    const struct sl_parallel_config *parallel = &model->parallel;
    const struct sl_place place = sl_reader_get_place(node, "compress");
    if (parallel->compress.kind == SL_COMPRESS_NONE) {
        if (parallel->compress.rank > 0)
            sl_reader_report(reader, "E0205", place, "set `type: powersgd`, or remove `rank`", NULL,
                             "`rank` has no effect without a `type` of compression");
        return;
    }
    if (parallel->shards > 0)
        sl_reader_report(reader, "E0323", place, "remove `compress`, or `shards`", NULL,
                         "`shards` promises the same bits, and `compress` changes gradients");
    if (parallel->pipeline > 1 || parallel->pieces > 0)
        sl_reader_report(reader, "E0323", place, "remove `compress`, or `pipeline` and `pieces`", NULL,
                         "the gradients of a pipeline are exchanged whole");
    if (parallel->reduce.how == SL_REDUCE_CENTRAL || parallel->reduce.dtype != SL_REDUCE_FLOAT32)
        sl_reader_report(reader, "E0323", place, "use one of them", NULL,
                         "`compress` exchanges factors in float32 among all ranks, so `reduce` cannot change that");
    if (model->precision == SL_PRECISION_FLOAT16)
        sl_reader_report(
            reader, "E0323", place, "use bfloat16, or remove `compress`", NULL,
            "`compress` keeps errors from update to update, and with float16 the scale of gradients changes "
            "in between");
    if (parallel->data == 1)
        sl_reader_report(reader, "E0205", place, "give `data` a number of ranks, or remove `compress`", NULL,
                         "`compress` has no effect with one rank");
}

void sl_model_check_parallel(struct sl_reader *reader, const struct sl_node *root, const struct sl_model *model)
{
    const struct sl_parallel_config *parallel = &model->parallel;
    const struct sl_node *node = sl_node_find(root, "parallel");
    const bool splits = sl_parallel_is_divided(parallel);
    if (node == NULL || reader->errors > 0)
        return;
    const struct sl_place shards = sl_reader_get_place(node, "shards"), reduce = sl_reader_get_place(node, "reduce");
    const bool rounds = parallel->reduce.dtype != SL_REDUCE_FLOAT32,
               central = parallel->reduce.how == SL_REDUCE_CENTRAL;
    if (parallel->shards > 0 && parallel->shards < parallel->data)
        sl_reader_report(reader, "E0323", shards, "use at least as many shards as ranks", NULL,
                         "%lld shard%s too few for %lld ranks", (long long)parallel->shards,
                         parallel->shards == 1 ? " is" : "s are", (long long)parallel->data);
    if (parallel->shards > 0 && (rounds || central))
        sl_reader_report(reader, "E0323", reduce, "remove `reduce`, or `shards`", NULL,
                         "`shards` adds gradients in float32 on all ranks, so `reduce` cannot change that");
    if (rounds && central)
        sl_reader_report(reader, "E0323", reduce, "use one of them", NULL,
                         "`reduce: central` adds in float32, so it cannot be combined with `dtype: bfloat16`");
    if (central && (parallel->pipeline > 1 || parallel->pieces > 0))
        sl_reader_report(reader, "E0323", reduce, "remove `reduce`, or `pipeline` and `pieces`", NULL,
                         "in a pipeline each rank updates the weights of its own layers, so `reduce: central` is not "
                         "possible");
    if (parallel->data * parallel->pipeline > SL_RANKS_MOST)
        sl_reader_report(reader, "E0323", sl_reader_get_place(node, "pipeline"), "use fewer", NULL,
                         "%lld group%s of %lld ranks are more than %d ranks", (long long)parallel->data,
                         parallel->data == 1 ? "" : "s", (long long)parallel->pipeline, SL_RANKS_MOST);
    if (parallel->data == 1 && (rounds || central))
        sl_reader_report(reader, "E0205", reduce, "give `data` a number of ranks, or remove `reduce`", NULL,
                         "`reduce` has no effect where no ranks share a batch");
    check_compress(reader, node, model);
    if (splits && model->train.teacher_forcing.kind != SL_TEACHER_ALWAYS)
        refuse_with_ranks(reader, root, "scheduled sampling");
}
