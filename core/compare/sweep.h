/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm bench`: how fast each backend and thread count is on this model, over the size of the batch.
 *
 * A candidate gives its backend every operation that it accepts; the rest runs on the best other one, which the
 * report names where that has products. Each backend is first checked against the reference; what fails is not timed.
 * At each batch size the candidates take turns in an order drawn anew, each time with fresh buffers. See side.h.
 */
#ifndef SL_COMPARE_SWEEP_H
#define SL_COMPARE_SWEEP_H

#include "base/value/buf.h"
#include "compare/backend_spec.h"
#include "session/session.h"

enum { SL_SWEEP_BATCHES_MOST = 32, SL_SWEEP_BACKENDS_MOST = 16, SL_SWEEP_THREADS_MOST = 8 };

struct sl_sweep_request {
    struct sl_session *session;
    const char *const *backends; /* as backend_spec.h says; none: all that load but the reference */
    int32_t backend_count;
    int64_t batches[SL_SWEEP_BATCHES_MOST]; /* rising; none: 1, 2, 4 … 1024 */
    int32_t batch_count;
    int32_t threads[SL_SWEEP_THREADS_MOST]; /* none: 1 and all cores */
    int32_t thread_count;
    enum sl_phase phase; /* TRAIN or PREDICT */
    double seconds;      /* about, in all */
    const struct sl_interrupt *interrupt;
    /* Before each batch size; may be NULL. */
    void (*on_progress)(void *context, int64_t batch);
    void *context;
};

/* A layer with products that another backend runs. */
struct sl_sweep_loan {
    const char *layer;
    const char *id, *variant; /* what runs it */
    const char *reason;       /* why not the candidate's backend */
};

struct sl_sweep_candidate {
    const char *name;   /* as written */
    const char *device; /* class: "cpu:x86-64-v4" */
    int32_t threads;
    const char *excluded;              /* why it is not timed; NULL: it is */
    const struct sl_sweep_loan *loans; /* [loan_count], of the first batch size */
    int32_t loan_count;
    bool failed; /* excluded because its numbers are wrong */
    double peak_gflops;
};

struct sl_sweep_cell {
    int32_t rounds;         /* 0: not timed */
    double step_ns;         /* median */
    double low_ns, high_ns; /* least and most of the rounds */
};

struct sl_sweep_batch {
    int64_t batch;
    int64_t rows;                /* real steps in it */
    double gflop;                /* of one step */
    int32_t winner;              /* candidate; ties within 3 % stay with the winner of the size before; -1: none */
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
    int64_t skipped_from; /* batch size from which time was up; 0: none */
    int64_t crossover;    /* first size from which another one wins, up to the end; 0: none */
    int32_t failures;     /* candidates whose numbers are wrong */
};

/* Errors: UNAVAILABLE when nothing is left to time, those of model and data, CANCELLED. The report points into the
 * session's model. */
seqlstm_status sl_sweep_run(const struct sl_sweep_request *request, struct sl_sweep_report **out_report,
                            struct seqlstm_error *err);
void sl_sweep_report_destroy(struct sl_sweep_report *report);

/* "cpu-blas, 2 threads" */
void sl_sweep_print_candidate(const struct sl_sweep_candidate *candidate, struct sl_buf *out);
/* "cpu-blas, 1 thread: fastest up to batch 8; cpu-blas, 2 threads: fastest from batch 16 on." */
void sl_sweep_print_sentence(const struct sl_sweep_report *report, struct sl_buf *out);
/* How many loans of candidate c are reported: those of a backend once, whatever its numbers of threads. */
int32_t sl_sweep_count_loans(const struct sl_sweep_report *report, int32_t c);
/* "cpu-onednn: lstm_1 runs on cpu-blas:packed; activation leaky_relu (m.yaml:9:5): …" */
void sl_sweep_print_loan(const struct sl_sweep_candidate *candidate, int32_t l, struct sl_buf *out);
/* The table, the sentence, the loans and what was left out; 80 columns for up to four candidates. */
void sl_sweep_print_table(const struct sl_sweep_report *report, struct sl_buf *out);
/* "seqlstm.bench/1". NO_MEMORY. */
seqlstm_status sl_sweep_print_json(const struct sl_sweep_report *report, struct sl_buf *out, struct seqlstm_error *err);
/* One page that needs no network: the plot of throughput, and the table. */
void sl_sweep_print_html(const struct sl_sweep_report *report, struct sl_buf *out);

#endif
