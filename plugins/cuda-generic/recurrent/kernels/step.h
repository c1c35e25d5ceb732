/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of one time step, for every option: the variant step_graph consists of them. `layer` is in device memory.
 * Every function returns the code of its launch. */
#ifndef CG_STEP_H
#define CG_STEP_H

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cg_drop;
/* Before the first and after the last step. cg_step_finish also masks the rows of `drop`, which may have none. */
int cg_step_begin(void *stream, const struct cg_layer *layer, int64_t sequences, int64_t out);
int cg_step_finish(void *stream, const struct cg_layer *layer, int64_t sequences, int64_t hidden, int64_t out,
                   const struct cg_drop *drop);
int cg_step_begin_back(void *stream, const struct cg_layer *layer, int64_t sequences, int64_t hidden, int64_t out);
int cg_step_finish_back(void *stream, const struct cg_layer *layer, int64_t sequences, int64_t hidden, int64_t out);
/* What products for the gradients of weights read: h_rows [rows, O], the masked h of the step before, for `rows` rows,
 * and the masked input for those of `drop`; either may have none. */
int cg_step_h_rows(void *stream, const struct cg_layer *layer, int64_t rows, int64_t out, const struct cg_drop *drop);

/* Products of one step. The result has m rows and n columns; `compute` as in struct cg_gemm. */
enum cg_step_product {
    CG_PRODUCT_H,          /* hm W_h' -> product, or the record v with LAYER_NORM */
    CG_PRODUCT_RESET,      /* reset W_hn' -> the candidate's columns of product */
    CG_PRODUCT_OUTPUT,     /* raw W_p' -> projected */
    CG_PRODUCT_BACK,       /* dv W_h -> back */
    CG_PRODUCT_BACK_RESET, /* dz_n W_hn -> dreset */
    CG_PRODUCT_BACK_OUTPUT /* dh_new W_p -> dout */
};
int cg_step_product(void *stream, const struct cg_layer *layer, enum cg_step_product which, uint32_t compute, int64_t t,
                    int32_t parity, int64_t m, int64_t n);

/* The cell after the product, one block per sequence. */
enum cg_step_phase {
    CG_PHASE_WHOLE, /* all of it; with a projection, up to raw */
    CG_PHASE_RESET, /* late: only r and z */
    CG_PHASE_OUTPUT /* late: the rest */
};
int cg_step_cell(void *stream, const struct cg_layer *layer, enum cg_step_phase phase, int64_t t, int32_t parity,
                 int64_t m);
/* projected -> h. */
int cg_step_publish(void *stream, const struct cg_layer *layer, int64_t t, int32_t parity, int64_t m, int64_t out);

/* Product and cell in one kernel: no LAYER_NORM, no projection, not late. Computes step number `turn` of all
 * directions, whose layers follow each other in memory. most: sequences of the direction that has more. */
int cg_step_fused(void *stream, const struct cg_layer *layer, int64_t directions, int64_t turn, int64_t most,
                  int64_t hidden);

/* With a projection: dh -> dh_new, direct. */
int cg_step_split_back(void *stream, const struct cg_layer *layer, int64_t t, int64_t m, int64_t out);
int cg_step_cell_back(void *stream, const struct cg_layer *layer, enum cg_step_phase phase, int64_t t, int64_t m);

#ifdef __cplusplus
}
#endif

#endif
