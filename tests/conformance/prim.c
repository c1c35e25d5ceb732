/* SPDX-License-Identifier: Apache-2.0 */
/* The time loop of include/seqlstm/prim_loop.h without code of an author: it must conform, and so must a variant that
 * replaces one of its three functions. */
#include <seqlstm/prim_loop_backend.h>

/* The plain cell behind a refusal: this is what a cell looks like that supports one activation. */
static int32_t knows_tanh(const struct seqlstm_recurrent_desc *desc, struct seqlstm_answer *answer)
{
    for (int direction = 0; direction < 2; direction++)
        if (desc->activations[SEQLSTM_PLACE_CANDIDATE][direction].kind != SEQLSTM_ACT_TANH)
            return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_ACTIVATION, NULL,
                                     "its cell knows tanh");
    return 1;
}

static const struct seqlstm_prim prims[] = {{"tanh", NULL, seqlstm_prim_cell_forward, NULL, knows_tanh},
                                            {"plain", NULL, NULL, NULL, NULL}};

SEQLSTM_PRIM_BACKEND("prim", "0.1.0", "seqlstm", "Apache-2.0", "plain C", prims)
