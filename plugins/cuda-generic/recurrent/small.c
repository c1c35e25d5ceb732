/* SPDX-License-Identifier: Apache-2.0 */
/* The variant small on the host side: which kernels a descriptor gets. See kernels/small.h. */
#include "cuda-generic/recurrent/recurrent.h"

/* In the order of the rows of `kinds`. */
enum kind { PLAIN, CELL, NORMED };

static const struct {
    cg_small_make_fn *make[2]; /* forward, backward */
    cg_small_run_fn *run[2];
} kinds[] = {
    [PLAIN] = {{cg_small_lstm_forward_make, cg_small_lstm_backward_make},
               {cg_small_lstm_forward, cg_small_lstm_backward}},
    [CELL] = {{cg_small_cell_forward_make, cg_small_cell_backward_make},
              {cg_small_cell_forward, cg_small_cell_backward}},
    [NORMED] = {{cg_small_norm_forward_make, cg_small_norm_backward_make},
                {cg_small_norm_forward, cg_small_norm_backward}},
};

static enum kind find_kind(const struct seqlstm_recurrent_desc *d)
{
    return d->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM ? NORMED : cg_small_is_plain(d) ? PLAIN : CELL;
}

seqlstm_status cg_small_open(struct seqlstm_op *op, int32_t multiprocessors, struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &op->desc.recurrent;
    SEQLSTM_TRY(gpu_use(op->ordinal, err));
    for (int back = 0; back <= (d->head.mode == SEQLSTM_MODE_TRAINING); back++) {
        bool runs = kinds[find_kind(d)].make[back](d->hidden, multiprocessors, &op->small[back]) == 0;
        for (int choice = 0; choice < CG_SMALL_CHOICES; choice++)
            runs = runs && op->small[back].together[choice] > 0;
        if (!runs)
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "small: the device cannot run %s of these kernels",
                         d->hidden > CG_SMALL_BLOCK_MOST ? "a cluster of two blocks" : "a block");
    }
    return SEQLSTM_OK;
}

seqlstm_status cg_small_run(const struct cg_call *call, const struct cg_stack *s, const struct cg_layer *device,
                            bool back, struct seqlstm_error *err)
{
    const enum kind kind = find_kind(s->desc);
    CG_START(call, back ? "all backward steps" : "all steps",
             kinds[kind].run[back](call->stream, device, s->directions, &call->op->small[back], s->hidden,
                                   call->axis->sequences));
    return SEQLSTM_OK;
}
