/* SPDX-License-Identifier: Apache-2.0 */
/* The variant small: all steps of a layer of up to 128 units in one launch, with W_h in registers and one barrier per
 * step.
 *
 * A block owns 1, 2 or 4 sequences of one direction. Layers of up to 32, 64 and 128 units have a shape each; units that
 * a layer lacks have weights of zero. With more than 64 units a cluster of two blocks owns the sequences, and each
 * block has half of the units (sm_90 and later); then the cell has no options, for which registers are lacking.
 *
 * Forward, a unit belongs to 4 or 8 lanes, which divide the sum over h. A lane keeps its share of the weights of all
 * four gates, so one value of h that it loads serves four products. Backward, sixteen lanes divide the sum over the
 * gradients of the gates, for four units.
 *
 * The sums of lanes are added by shuffles, each of which halves what a lane still has. In the end a lane has the gates
 * of one unit and one sequence, and computes its cell. Contributions of the input and records are loaded some steps
 * before they are needed, and records are stored after the barrier of their step, so that no step waits for memory.
 *
 * An LSTM that computes with sigmoid and tanh, and nothing else, has kernels of its own (small_lstm_….cu), whose
 * records z are the activated gates. All other options share kernels (small_cell_….cu, small_norm_….cu), with records
 * as in layer.h. Products are computed in float32 whatever the precision. */
#ifndef CG_SMALL_H
#define CG_SMALL_H

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CG_SMALL_MOST = 128, CG_SMALL_BLOCK_MOST = 64, CG_SMALL_CHOICES = 3 };

/* Of one pass: how many blocks (or clusters) of 1, 2 and 4 sequences the device runs at the same time. */
struct cg_small {
    int32_t together[CG_SMALL_CHOICES];
};

/* The fewest sequences per block with which all blocks run at the same time; otherwise the most. */
static inline int cg_small_choose(const struct cg_small *small, int64_t directions, int64_t sequences)
{
    int choice = 0;
    while (choice < CG_SMALL_CHOICES - 1 && directions * (((sequences - 1) >> choice) + 1) > small->together[choice])
        choice++;
    return 1 << choice;
}

/* Functions of a kind of kernels. …_make ask the current device; all return a code as of cudaError_t. `layer`: the
 * layers of the directions, one after another. Forward writes the final states and backward the gradients of the
 * initial states, too. */
typedef int cg_small_make_fn(int64_t hidden, int32_t multiprocessors, struct cg_small *out_small);
typedef int cg_small_run_fn(void *stream, const struct cg_layer *layer, int64_t directions,
                            const struct cg_small *small, int64_t hidden, int64_t sequences);

/* An LSTM without options that concern its cell. */
cg_small_make_fn cg_small_lstm_forward_make, cg_small_lstm_backward_make;
cg_small_run_fn cg_small_lstm_forward, cg_small_lstm_backward;

/* Any cell of up to CG_SMALL_BLOCK_MOST units with all options except LAYER_NORM and a GRU without RESET_AFTER. */
cg_small_make_fn cg_small_cell_forward_make, cg_small_cell_backward_make;
cg_small_run_fn cg_small_cell_forward, cg_small_cell_backward;

/* Any such cell with LAYER_NORM. The inputs of all rows are normalised before, and their gradients are computed after
 * the steps (norm_inputs.h). */
cg_small_make_fn cg_small_norm_forward_make, cg_small_norm_backward_make;
cg_small_run_fn cg_small_norm_forward, cg_small_norm_backward;

#ifdef __cplusplus
}
#endif

#endif
