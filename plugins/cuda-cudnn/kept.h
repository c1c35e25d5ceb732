/* SPDX-License-Identifier: Apache-2.0 */
/* What an instance keeps because it is slow to obtain: networks that cuDNN has compiled, and what has passed its trial.
 *
 * cuDNN compiles a network of PERSIST_DYNAMIC for each number of sequences, which can take longer than the work of many
 * batches. A session that ends leaves its compiled network here, and the next one that needs the same takes it. A
 * network has one session at a time. When there is no more room, the one that was left first is destroyed. */
#ifndef CDN_KEPT_H
#define CDN_KEPT_H

#include <pthread.h>

#include <seqlstm/backend.h>

#include "library.h"

enum { CDN_KEPT_NETWORKS = 16, CDN_KEPT_TRIALS = 128 };

/* All that a compiled network depends on. Compared byte by byte: clear it before filling it. */
struct cdn_network_key {
    int64_t input, hidden, output;
    int32_t ordinal, sequences, layers;
    int32_t mode, directions, type, math, uniform;
    float clip;
    int32_t reserved0; /* zero; no byte of padding is compared */
};

struct cdn_kept_network {
    struct cdn_network_key key;
    cudnnRNNDescriptor_t rnn;
};

/* An operation that ran as its variant says. */
struct cdn_kept_trial {
    struct seqlstm_recurrent_desc desc;
    char variant[SEQLSTM_MAX_VARIANT_BYTES];
    int32_t ordinal;
};

struct cdn_kept {
    pthread_mutex_t lock;
    int32_t network_count;
    struct cdn_kept_network networks[CDN_KEPT_NETWORKS]; /* in the order in which they were left */
    uint32_t trial_count;                                /* of all times; the newest are kept */
    struct cdn_kept_trial trials[CDN_KEPT_TRIALS];
};

void cdn_kept_init(struct cdn_kept *kept);
void cdn_kept_deinit(struct cdn_kept *kept);

/* Takes a compiled network out; NULL if there is none with this key. [any] */
cudnnRNNDescriptor_t cdn_kept_take(struct cdn_kept *kept, const struct cdn_network_key *key);
/* Leaves a compiled network. [any] */
void cdn_kept_leave(struct cdn_kept *kept, const struct cdn_network_key *key, cudnnRNNDescriptor_t rnn);

/* Has an operation with this descriptor and variant passed its trial on the device? [any] */
bool cdn_kept_has_passed(struct cdn_kept *kept, const struct seqlstm_recurrent_desc *desc, const char *variant,
                         int32_t ordinal);
void cdn_kept_add_passed(struct cdn_kept *kept, const struct seqlstm_recurrent_desc *desc, const char *variant,
                         int32_t ordinal);

#endif
