/* SPDX-License-Identifier: Apache-2.0 */
/* See kept.h. */
#include "kept.h"

#include <stdio.h>
#include <string.h>

#include "common/cuda_domain.h"

void cdn_kept_init(struct cdn_kept *kept)
{
    memset(kept, 0, sizeof *kept);
    pthread_mutex_init(&kept->lock, NULL);
}

static void destroy(const struct cdn_kept_network *network)
{
    if (gpu_use(network->key.ordinal, NULL) == SEQLSTM_OK)
        cdn.DestroyRNNDescriptor(network->rnn);
}

void cdn_kept_deinit(struct cdn_kept *kept)
{
    for (int32_t k = 0; k < kept->network_count; k++)
        destroy(&kept->networks[k]);
    pthread_mutex_destroy(&kept->lock);
}

/* ---- compiled networks ------------------------------------------------------------------------------------------ */

static void remove_network(struct cdn_kept *kept, int32_t k)
{
    kept->network_count--;
    memmove(&kept->networks[k], &kept->networks[k + 1], (size_t)(kept->network_count - k) * sizeof *kept->networks);
}

cudnnRNNDescriptor_t cdn_kept_take(struct cdn_kept *kept, const struct cdn_network_key *key)
{
    cudnnRNNDescriptor_t rnn = NULL;
    pthread_mutex_lock(&kept->lock);
    for (int32_t k = 0; rnn == NULL && k < kept->network_count; k++)
        if (memcmp(&kept->networks[k].key, key, sizeof *key) == 0) {
            rnn = kept->networks[k].rnn;
            remove_network(kept, k);
        }
    pthread_mutex_unlock(&kept->lock);
    return rnn;
}

void cdn_kept_leave(struct cdn_kept *kept, const struct cdn_network_key *key, cudnnRNNDescriptor_t rnn)
{
    pthread_mutex_lock(&kept->lock);
    if (kept->network_count == CDN_KEPT_NETWORKS) {
        destroy(&kept->networks[0]);
        remove_network(kept, 0);
    }
    kept->networks[kept->network_count].key = *key;
    kept->networks[kept->network_count++].rnn = rnn;
    pthread_mutex_unlock(&kept->lock);
}

/* ---- trials ----------------------------------------------------------------------------------------------------- */

bool cdn_kept_has_passed(struct cdn_kept *kept, const struct seqlstm_recurrent_desc *desc, const char *variant,
                         int32_t ordinal)
{
    bool found = false;
    pthread_mutex_lock(&kept->lock);
    for (uint32_t k = 0; !found && k < kept->trial_count && k < CDN_KEPT_TRIALS; k++) {
        const struct cdn_kept_trial *t = &kept->trials[k];
        found = t->ordinal == ordinal && strcmp(t->variant, variant) == 0 && memcmp(&t->desc, desc, sizeof *desc) == 0;
    }
    pthread_mutex_unlock(&kept->lock);
    return found;
}

void cdn_kept_add_passed(struct cdn_kept *kept, const struct seqlstm_recurrent_desc *desc, const char *variant,
                         int32_t ordinal)
{
    pthread_mutex_lock(&kept->lock);
    struct cdn_kept_trial *t = &kept->trials[kept->trial_count++ % CDN_KEPT_TRIALS];
    memcpy(&t->desc, desc, sizeof *desc); /* with its padding, which is compared, too */
    t->ordinal = ordinal;
    snprintf(t->variant, sizeof t->variant, "%s", variant);
    pthread_mutex_unlock(&kept->lock);
}
