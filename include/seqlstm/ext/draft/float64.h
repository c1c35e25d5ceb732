/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "float64/0": the arithmetic of a backend in float64 throughout.
 *
 * get_extension(instance, SEQLSTM_FLOAT64_EXTENSION) of the reference returns this table. Its functions are `forward`
 * and `backward` of the backend with one difference: every slot and gradient that is float32 in ops.h is float64 here.
 * Finite differences and error models then see no rounding to float32. Integers, sums and the 16-bit types of CAST stay
 * as they are. Bindings, sizes, workspace and reserve are those of the ordinary calls. Draft: it may change with any
 * release before 1.0.
 */
#ifndef SEQLSTM_EXT_DRAFT_FLOAT64_H
#define SEQLSTM_EXT_DRAFT_FLOAT64_H

#include <seqlstm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEQLSTM_FLOAT64_EXTENSION "float64/0"

struct seqlstm_float64 {
    uint32_t struct_size;
    uint32_t reserved0;
    seqlstm_status (*forward)(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                              const struct seqlstm_forward *args, struct seqlstm_error *err); /* [queue] */
    seqlstm_status (*backward)(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                               const struct seqlstm_backward *args, struct seqlstm_error *err); /* [queue] */
    /* backward of RECURRENT in a backend that has only rounded values of its activations. Slopes that are computed from
     * values (1 - y^2, y (1 - y) …) are moved by `distance` times the largest slope of their function. Products with
     * W_x and W_h that layer norm has normalised, whose size is 1, are moved by `distance`. Random numbers seeded with
     * `draw` decide between up and down. Other operations: as backward. [queue] */
    seqlstm_status (*backward_moved)(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_backward *args, double distance, uint64_t draw,
                                     struct seqlstm_error *err);
};

#ifdef __cplusplus
}
#endif

#endif
