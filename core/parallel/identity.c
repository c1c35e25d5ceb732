/* SPDX-License-Identifier: Apache-2.0 */
/* See identity.h. */
#include "parallel/identity.h"

#include <string.h>
#include <unistd.h>

#include "base/value/text.h"

/* A launcher and its variables. NULL: it has none of this kind. */
struct source {
    const char *launcher;
    const char *rank, *ranks, *local_ranks, *local_rank, *nodes;
    const char *job[2]; /* both, if the second is there */
};

static const struct source sources[] = {
    {"seqlstm", "SEQLSTM_RANK", "SEQLSTM_RANKS", "SEQLSTM_RANKS", "SEQLSTM_RANK", NULL, {"SEQLSTM_JOB", NULL}},
    {"OpenMPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     NULL,
     {"PMIX_NAMESPACE", NULL}},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", NULL, {"PMI_KVSNAME", NULL}},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     NULL,
     "SLURM_LOCALID",
     "SLURM_STEP_NUM_NODES",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK", NULL, {"TORCHELASTIC_RUN_ID", "MASTER_PORT"}},
    {"Kubernetes", "JOB_COMPLETION_INDEX", NULL, NULL, NULL, NULL, {"JOB_NAME", NULL}},
};

static bool read_number(const char *(*get)(const char *name), const char *name, int32_t least, int32_t *out)
{
    int64_t value;
    const char *text = name ? get(name) : NULL;
    if (!text || !sl_text_parse_int64(text, strlen(text), &value) || value < least || value > INT32_MAX)
        return false;
    *out = (int32_t)value;
    return true;
}

/* The text that is the same for all ranks; other characters than the contract's become `_`. Without one, ranks of one
 * launcher on one host share their parent. */
static void name_job(const char *(*get)(const char *name), const struct source *source, char out[SEQLSTM_MAX_JOB_BYTES])
{
    const char *first = get(source->job[0]), *second = source->job[1] ? get(source->job[1]) : NULL;
    if (first)
        sl_text_snprintf(out, SEQLSTM_MAX_JOB_BYTES, "%s%s%s", first, second ? "." : "", second ? second : "");
    else
        sl_text_snprintf(out, SEQLSTM_MAX_JOB_BYTES, "%s-%d", source->launcher, (int)getppid());
    for (char *c = out; *c; c++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:_-", *c))
            *c = '_';
}

bool sl_rank_identity_find(const char *(*get)(const char *name), struct sl_rank_identity *out)
{
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++) {
        const struct source *source = &sources[s];
        int32_t nodes;
        memset(out, 0, sizeof *out);
        if (!read_number(get, source->rank, 0, &out->rank) ||
            (source->ranks && !read_number(get, source->ranks, 1, &out->ranks)) ||
            (source->ranks && out->rank >= out->ranks))
            continue;
        read_number(get, source->local_ranks, 1, &out->local_ranks);
        if (read_number(get, source->nodes, 1, &nodes))
            out->local_ranks = nodes == 1 ? out->ranks : 1;
        if (!source->ranks)
            out->local_ranks = 1;
        if (!read_number(get, source->local_rank, 0, &out->local_rank))
            out->local_rank = out->local_ranks > 0 ? out->rank % out->local_ranks : 0;
        out->launcher = source->launcher;
        name_job(get, source, out->job);
        if (s == 0 && !read_number(get, "SEQLSTM_LAUNCHER", 1, &out->parent))
            continue;
        return true;
    }
    return false;
}
