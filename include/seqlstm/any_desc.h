/* SPDX-License-Identifier: Apache-2.0 */
/* Storage for any descriptor, and assertions that their sizes stay as they are. */
#ifndef SEQLSTM_ANY_DESC_H
#define SEQLSTM_ANY_DESC_H

#include "ext/draft/attention.h"
#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Storage for any descriptor. */
union seqlstm_any_desc {
    struct seqlstm_desc head;
    struct seqlstm_recurrent_desc recurrent;
    struct seqlstm_embedding_desc embedding;
    struct seqlstm_dense_desc dense;
    struct seqlstm_activation_desc activation;
    struct seqlstm_dropout_desc dropout;
    struct seqlstm_layer_norm_desc layer_norm;
    struct seqlstm_pool_desc pool;
    struct seqlstm_merge_desc merge;
    struct seqlstm_gather_desc gather;
    struct seqlstm_cast_desc cast;
    struct seqlstm_loss_desc loss;
    struct seqlstm_dense_loss_desc dense_loss;
    struct seqlstm_top_k_desc top_k;
    struct seqlstm_reduce_desc reduce;
    struct seqlstm_optimizer_desc optimizer;
    struct seqlstm_vector_desc vector;
    struct seqlstm_attention_desc attention;
};

#ifdef __cplusplus
#define SEQLSTM_STATIC_ASSERT(condition, name) static_assert(condition, name)
#else
#define SEQLSTM_STATIC_ASSERT(condition, name) _Static_assert(condition, name)
#endif
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_desc) == 72, "descriptor head");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_recurrent_desc) == 264, "recurrent descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_embedding_desc) == 88, "embedding descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_dense_desc) == 112, "dense descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_activation_desc) == 96, "activation descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_dropout_desc) == 96, "dropout descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_layer_norm_desc) == 88, "layer norm descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_pool_desc) == 88, "pool descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_merge_desc) == 144, "merge descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_gather_desc) == 80, "gather descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_cast_desc) == 88, "cast descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_loss_desc) == 96, "loss descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_dense_loss_desc) == 112, "dense loss descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_top_k_desc) == 112, "top-k descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_reduce_desc) == 72, "reduce descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_optimizer_desc) == 112, "optimizer descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_vector_desc) == 80, "vector descriptor");
SEQLSTM_STATIC_ASSERT(sizeof(struct seqlstm_attention_desc) == 104, "attention descriptor");

#ifdef __cplusplus
}
#endif

#endif
