/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as their launchers name them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "parallel/identity.h"
#include "oom.h"

static const char *const *environment; /* names and values in turn; ends with NULL */

static const char *get(const char *name)
{
    for (const char *const *e = environment; *e; e += 2)
        if (strcmp(*e, name) == 0)
            return e[1];
    return NULL;
}

static bool find(const char *const *variables, struct sl_rank_identity *out)
{
    environment = variables;
    return sl_rank_identity_find(get, out);
}

static void expect_local_rank(const char *const *variables, int local_rank)
{
    struct sl_rank_identity found;
    assert_true(find(variables, &found));
    assert_int_equal(found.local_rank, local_rank);
}

static void expect(const char *const *variables, const char *launcher, int rank, int ranks, int local, const char *job)
{
    struct sl_rank_identity found;
    assert_true(find(variables, &found));
    assert_string_equal(found.launcher, launcher);
    assert_int_equal(found.rank, rank);
    assert_int_equal(found.ranks, ranks);
    assert_int_equal(found.local_ranks, local);
    if (job)
        assert_string_equal(found.job, job);
}

#define VARIABLES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void launchers_are_understood(void **state)
{
    (void)state;
    expect(VARIABLES("SEQLSTM_RANK", "1", "SEQLSTM_RANKS", "2", "SEQLSTM_JOB", "7-8", "SEQLSTM_LAUNCHER", "7"),
           "seqlstm", 1, 2, 2, "7-8");
    expect(VARIABLES("OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_SIZE", "2",
                     "PMIX_NAMESPACE", "prterun-host-12@1"),
           "OpenMPI", 3, 4, 2, "prterun-host-12_1");
    expect(VARIABLES("PMI_RANK", "0", "PMI_SIZE", "2"), "MPICH", 0, 2, 0, NULL);
    expect(VARIABLES("SLURM_PROCID", "5", "SLURM_STEP_NUM_TASKS", "8", "SLURM_STEP_NUM_NODES", "1", "SLURM_JOB_ID",
                     "99", "SLURM_STEP_ID", "0"),
           "Slurm", 5, 8, 8, "99.0");
    expect(VARIABLES("SLURM_PROCID", "5", "SLURM_STEP_NUM_TASKS", "8", "SLURM_STEP_NUM_NODES", "2", "SLURM_JOB_ID",
                     "99", "SLURM_STEP_ID", "0"),
           "Slurm", 5, 8, 1, "99.0");
    expect(VARIABLES("RANK", "1", "WORLD_SIZE", "2", "LOCAL_WORLD_SIZE", "2", "TORCHELASTIC_RUN_ID", "none",
                     "MASTER_PORT", "29500"),
           "torchrun", 1, 2, 2, "none.29500");
    expect(VARIABLES("JOB_COMPLETION_INDEX", "2", "JOB_NAME", "train"), "Kubernetes", 2, 0, 1, "train");
}

/* Among the ranks of its host: what the launcher says, or the hosts are filled one after the other. */
static void ranks_of_a_host_are_counted(void **state)
{
    (void)state;
    expect_local_rank(
        VARIABLES("SEQLSTM_RANK", "1", "SEQLSTM_RANKS", "2", "SEQLSTM_JOB", "7-8", "SEQLSTM_LAUNCHER", "7"), 1);
    expect_local_rank(VARIABLES("OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                "2", "OMPI_COMM_WORLD_LOCAL_RANK", "0"),
                      0);
    expect_local_rank(
        VARIABLES("OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_SIZE", "2"), 1);
    expect_local_rank(VARIABLES("SLURM_PROCID", "5", "SLURM_STEP_NUM_TASKS", "8", "SLURM_STEP_NUM_NODES", "2",
                                "SLURM_LOCALID", "1", "SLURM_JOB_ID", "99"),
                      1);
    expect_local_rank(VARIABLES("RANK", "6", "WORLD_SIZE", "8", "LOCAL_WORLD_SIZE", "4", "LOCAL_RANK", "2"), 2);
    expect_local_rank(VARIABLES("PMI_RANK", "1", "PMI_SIZE", "2"), 0);
}

/* Every number is another one, so each field has the one of its variable; a launcher that starts others is first. */
static void each_field_has_its_own_variable(void **state)
{
    (void)state;
    const struct {
        const char *launcher;
        int32_t rank, ranks, local_ranks, local_rank, parent;
        const char *job, *const *variables;
    } cases[] = {
        {"seqlstm", 4, 9, 9, 4, 77, "a:b_c",
         VARIABLES("SEQLSTM_RANK", "4", "SEQLSTM_RANKS", "9", "SEQLSTM_JOB", "a:b c", "SEQLSTM_LAUNCHER", "77")},
        {"OpenMPI", 7, 9, 5, 3, 0, "space",
         VARIABLES("OMPI_COMM_WORLD_RANK", "7", "OMPI_COMM_WORLD_SIZE", "9", "OMPI_COMM_WORLD_LOCAL_SIZE", "5",
                   "OMPI_COMM_WORLD_LOCAL_RANK", "3", "PMIX_NAMESPACE", "space", "PMI_KVSNAME", "other", "SEQLSTM_RANK",
                   "1", "SEQLSTM_RANKS", "2", "SEQLSTM_JOB", "old")},
        {"MPICH", 5, 8, 4, 2, 0, "kvs",
         VARIABLES("PMI_RANK", "5", "PMI_SIZE", "8", "MPI_LOCALNRANKS", "4", "MPI_LOCALRANKID", "2", "PMI_KVSNAME",
                   "kvs", "SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "3", "SLURM_JOB_ID", "99")},
        {"Slurm", 6, 8, 1, 2, 0, "99",
         VARIABLES("SLURM_PROCID", "6", "SLURM_STEP_NUM_TASKS", "8", "SLURM_STEP_NUM_NODES", "3", "SLURM_LOCALID", "2",
                   "SLURM_JOB_ID", "99", "RANK", "0", "WORLD_SIZE", "2")},
        {"Slurm", 6, 8, 0, 0, 0, "99.4",
         VARIABLES("SLURM_PROCID", "6", "SLURM_STEP_NUM_TASKS", "8", "SLURM_STEP_NUM_NODES", "0", "SLURM_JOB_ID", "99",
                   "SLURM_STEP_ID", "4")},
        {"torchrun", 6, 9, 4, 3, 0, "run.29500",
         VARIABLES("RANK", "6", "WORLD_SIZE", "9", "LOCAL_WORLD_SIZE", "4", "LOCAL_RANK", "3", "TORCHELASTIC_RUN_ID",
                   "run", "MASTER_PORT", "29500", "JOB_COMPLETION_INDEX", "1", "JOB_NAME", "train")},
        {"torchrun", 6, 9, 4, 2, 0, "run",
         VARIABLES("RANK", "6", "WORLD_SIZE", "9", "LOCAL_WORLD_SIZE", "4", "TORCHELASTIC_RUN_ID", "run")},
        {"Kubernetes", 3, 0, 1, 0, 0, "train", VARIABLES("JOB_COMPLETION_INDEX", "3", "JOB_NAME", "train")},
    };
    struct sl_rank_identity found;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        memset(&found, 0x55, sizeof found);
        assert_true(find(cases[k].variables, &found));
        if (strcmp(found.launcher, cases[k].launcher) != 0 || found.rank != cases[k].rank ||
            found.ranks != cases[k].ranks || found.local_ranks != cases[k].local_ranks ||
            found.local_rank != cases[k].local_rank || found.parent != cases[k].parent ||
            strcmp(found.job, cases[k].job) != 0)
            fail_msg("case %zu: %s, rank %d of %d, %d of %d here, parent %d, job %s", k, found.launcher, found.rank,
                     found.ranks, found.local_rank, found.local_ranks, found.parent, found.job);
    }
    char job[64];
    snprintf(job, sizeof job, "MPICH-%d", (int)getppid());
    assert_true(find(VARIABLES("PMI_RANK", "0", "PMI_SIZE", "2", "TORCHELASTIC_RUN_ID", "run"), &found));
    assert_string_equal(found.job, job);
}

/* What is missing or makes no sense is no rank: a batch script of Slurm has a number, but no step. */
static void others_are_no_ranks(void **state)
{
    (void)state;
    struct sl_rank_identity found;
    assert_false(find(VARIABLES("HOME", "/root"), &found));
    assert_false(find(VARIABLES("SLURM_PROCID", "0", "SLURM_NTASKS", "8", "SLURM_JOB_ID", "99"), &found));
    assert_false(find(VARIABLES("RANK", "2", "WORLD_SIZE", "2"), &found));
    assert_false(find(VARIABLES("RANK", "one", "WORLD_SIZE", "2"), &found));
    assert_false(find(VARIABLES("RANK", "4294967296", "WORLD_SIZE", "2"), &found)); /* not 0 */
    assert_false(find(VARIABLES("RANK", "0", "WORLD_SIZE", "4294967298"), &found)); /* not 2 */
    assert_false(find(VARIABLES("OMPI_COMM_WORLD_RANK", "-1", "OMPI_COMM_WORLD_SIZE", "2"), &found));
    assert_false(find(VARIABLES("SEQLSTM_RANK", "0", "SEQLSTM_RANKS", "2", "SEQLSTM_JOB", "7"), &found));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_are_understood),
        cmocka_unit_test(ranks_of_a_host_are_counted),
        cmocka_unit_test(each_field_has_its_own_variable),
        cmocka_unit_test(others_are_no_ranks),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
