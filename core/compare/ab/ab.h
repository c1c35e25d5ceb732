/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm ab`: runs one model on two backends in turn, step by step, with equal weights, batches and masks.
 *
 * A and B are compared on the operations that both accept; everything else runs on one common backend. Results are
 * checked first: each compared layer of each side is checked against the reference (oracle.h), and a layer that
 * fails is not timed. Times are taken in rounds (interval.h). A round has new buffers and one batch, then blocks of
 * A B B A or B A A B, chosen at random from the seed. */
#ifndef SL_COMPARE_AB_AB_H
#define SL_COMPARE_AB_AB_H

#include "base/value/buf.h"
#include "compare/sample/backend_spec.h"
#include "measure/interval.h"
#include "compare/side/side.h"
#include "session/session.h"

struct sl_ab_request {
    struct sl_session *session;
    const char *a, *b;   /* see backend_spec.h */
    enum sl_phase phase; /* TRAIN, or PREDICT */
    int64_t batch_size;  /* 0: the model's */
    int64_t rounds;      /* 0: as many as fit into `seconds` */
    double seconds;      /* for timing */
    double confidence;   /* 0.95 */
    double within;       /* see ab_time.h */
    int32_t threads;     /* 0: auto */
    bool separate;       /* run each side in its own process, even if not needed */
    const char *const
        *worker; /* argv of a side's process without its last element; see remote_side.h. NULL: never separate */
    const struct sl_interrupt *interrupt;
    /* Called before each round; may be NULL. */
    void (*on_progress)(void *context, double seconds_gone);
    void *context;
};

struct sl_ab_layer {
    const struct sl_node *node;
    bool compared;       /* false: the common backend runs it on both sides */
    const char *a, *b;   /* "cpu-blas:packed" */
    const char *refused; /* if not compared: which side refused it, and why; otherwise NULL */
    struct sl_compare_side_verdict verdict_a, verdict_b; /* compared */
    double a_ns, b_ns;                                   /* medians; 0 if it was not timed */
    double gflop;                                        /* of one call, in 1e9 operations; 0: it has no products */
    struct sl_interval interval;
};

struct sl_ab_report {
    struct sl_arena arena;
    struct sl_graph *graph;
    struct sl_compare_side_facts a, b;
    const char *a_text, *b_text; /* as the user wrote them */
    const char *separate;        /* why each side ran in its own process; NULL if they did not */
    int32_t threads;
    int64_t sequences, rows; /* of the largest batch */
    int32_t batches;
    struct sl_ab_layer *layers;
    int32_t layer_count, compared;
    bool numeric_ok;
    double difference; /* ‖a - b‖ / ‖b‖ of all gradients (training) or of the output */
    double loss_a, loss_b;
    bool timed;
    double a_ns, b_ns, gflop; /* of the whole step */
    double peak_gflops;
    double confidence;
    struct sl_interval step;
};

/* Errors: UNAVAILABLE if a side does not load, or if both accept no layer; errors of the model and the data;
 * CANCELLED. A wrong result is a finding, not an error. */
seqlstm_status sl_ab_run(const struct sl_ab_request *request, struct sl_ab_report **out_report,
                         struct seqlstm_error *err);
void sl_ab_report_destroy(struct sl_ab_report *report);

/* In the process of one side: serves the requests of the parent (remote_side.h). `request`: the same as the
 * parent's. */
seqlstm_status sl_ab_serve(const struct sl_ab_request *request, bool is_b, struct seqlstm_error *err);

/* In a probe: sends the files that the backend of one side maps (remote_side.h). */
seqlstm_status sl_ab_probe(const struct sl_ab_request *request, bool is_b, struct seqlstm_error *err);

/* Print "seqlstm.ab/1", and the table. */
seqlstm_status sl_ab_report_print_json(const struct sl_ab_report *report, struct sl_buf *out,
                                       struct seqlstm_error *err);
void sl_ab_report_print_table(const struct sl_ab_report *report, struct sl_buf *out);

#endif
