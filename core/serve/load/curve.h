/* SPDX-License-Identifier: Apache-2.0 */
/* Latency over load: the highest throughput, then open loops at parts of it. */
#ifndef SL_SERVE_LOAD_CURVE_H
#define SL_SERVE_LOAD_CURVE_H

#include "base/value/buf.h"
#include "serve/load/load.h"

enum { SL_CURVE_POINTS_MOST = 32 };

struct sl_curve {
    const char *name, *server;           /* of the model; address of the server */
    int64_t steps, requests;             /* of the bodies */
    double offline;                      /* requests per second that are computed without a server; 0: not known */
    struct sl_load_result alone, closed; /* one connection, and many */
    struct sl_load_result points[SL_CURVE_POINTS_MOST]; /* in the order of load */
    int32_t count;
};

/* How many loads sl_curve_measure runs for so many rates. */
int32_t sl_curve_count_loads(int32_t count);
/* Fills the results. `rates` [count]: requests per second, in order; count 0: 0.1 to 0.95 of the highest throughput.
 * `request->rate` does not count; its seconds are those of one point. Errors as sl_load_run. */
seqlstm_status sl_curve_measure(struct sl_curve *curve, const struct sl_load_request *request, const double *rates,
                                int32_t count, struct seqlstm_error *err);

void sl_curve_print_table(const struct sl_curve *curve, struct sl_buf *out);
void sl_curve_print_json(const struct sl_curve *curve, struct sl_buf *out);
/* A page without scripts. */
void sl_curve_print_html(const struct sl_curve *curve, struct sl_buf *out);

#endif
