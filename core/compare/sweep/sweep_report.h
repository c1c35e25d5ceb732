/* SPDX-License-Identifier: Apache-2.0 */
/* What a sweep has found, and how it is printed. */
#ifndef SL_COMPARE_SWEEP_SWEEP_REPORT_H
#define SL_COMPARE_SWEEP_SWEEP_REPORT_H

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "compare/sweep/sweep_request.h"

/* A layer with products that another backend runs. */
struct sl_sweep_loan {
    const char *layer;
    const char *id, *variant; /* the backend that runs it */
    const char *reason;       /* why the candidate's backend does not */
};

struct sl_sweep_candidate {
    const char *name;   /* as the user wrote it */
    const char *device; /* the class, such as "cpu:x86-64-v4" */
    int32_t threads;
    const char *excluded;              /* why it is not timed; NULL if it is */
    const struct sl_sweep_loan *loans; /* [loan_count], at the first batch size */
    int32_t loan_count;
    bool failed; /* excluded because its results are wrong */
    double peak_gflops;
};

struct sl_sweep_cell {
    int32_t rounds;         /* 0: not timed */
    double step_ns;         /* median */
    double low_ns, high_ns; /* smallest and largest of the rounds */
};

struct sl_sweep_batch {
    int64_t batch;
    int64_t rows;                /* real steps in the batch */
    double gflop;                /* operations of one step */
    int32_t winner;              /* the fastest candidate; within 3 % the winner of the previous size stays; -1: none */
    struct sl_sweep_cell *cells; /* [candidate_count] */
};

struct sl_sweep_report {
    struct sl_arena arena;
    const struct sl_model *model;
    enum sl_phase phase;
    struct sl_sweep_candidate *candidates;
    int32_t candidate_count;
    struct sl_sweep_batch batches[SL_SWEEP_BATCHES_MOST];
    int32_t batch_count;
    int64_t skipped_from; /* the batch size at which time ran out; 0: none */
    int64_t crossover;    /* the first size from which another candidate always wins; 0: none */
    int32_t failures;     /* candidates whose results are wrong */
};

/* NULL is allowed. */
void sl_sweep_report_destroy(struct sl_sweep_report *report);

/* "cpu-blas, 2 threads" */
void sl_sweep_print_candidate(const struct sl_sweep_candidate *candidate, struct sl_buf *out);
/* "cpu-blas, 1 thread: fastest up to batch 8; cpu-blas, 2 threads: fastest from batch 16 on." */
void sl_sweep_print_sentence(const struct sl_sweep_report *report, struct sl_buf *out);
/* The number of loans of candidate c in the report. Those of a backend are reported once, whatever its numbers of
 * threads. */
int32_t sl_sweep_count_loans(const struct sl_sweep_report *report, int32_t c);
/* "cpu-onednn: lstm_1 runs on cpu-blas:packed; activation leaky_relu (m.yaml:9:5): …" */
void sl_sweep_print_loan(const struct sl_sweep_candidate *candidate, int32_t l, struct sl_buf *out);
/* Prints the table, the sentence, the loans and the excluded candidates; 80 columns for up to four candidates. */
void sl_sweep_print_table(const struct sl_sweep_report *report, struct sl_buf *out);
/* "seqlstm.bench/1". NO_MEMORY. */
seqlstm_status sl_sweep_print_json(const struct sl_sweep_report *report, struct sl_buf *out, struct seqlstm_error *err);
/* One page that needs no network: the plot of throughput, and the table. */
void sl_sweep_print_html(const struct sl_sweep_report *report, struct sl_buf *out);

#endif
