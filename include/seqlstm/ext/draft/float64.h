/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "float64/0": the arithmetic of a backend in float64 from end to end.
 *
 * get_extension(instance, SEQLSTM_FLOAT64_EXTENSION) of the reference gives this table. Its functions are
 * the backend's `forward` and `backward` with one difference: every slot and gradient that ops.h gives as
 * float32 is float64, so that finite differences and error models see no float32 rounding. Integers,
 * sums and the 16-bit types of CAST stay as they are. Bindings, sizes, workspace and reserve are those of
 * the ordinary calls. Draft: it may change with any release before 1.0.
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
    /* backward of RECURRENT as a backend sees it that knows the values of its activations only rounded: slopes
     * that are made of values (1 - y^2, y (1 - y) …) are moved by `distance` times the largest slope of their
     * function, and products with W_x and W_h that layer norm has normalised, whose size is 1, by `distance`, up or
     * down as `draw` has it. Other operations: as backward. [queue] */
    seqlstm_status (*backward_moved)(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_backward *args, double distance, uint64_t draw,
                                     struct seqlstm_error *err);
};

#ifdef __cplusplus
}
#endif

#endif
