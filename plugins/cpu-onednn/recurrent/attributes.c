/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of primitives in int8. */
#include "cpu-onednn/recurrent/recurrent.h"

dnnl_status_t odn_quantized_attr(const struct odn_recurrent *r, const float *scales, dnnl_scratchpad_mode_t scratch,
                                 dnnl_primitive_attr_t *out_attr)
{
    const struct seqlstm_host *host = r->op->instance->host;
    const int64_t rows = r->gates * r->hidden;
    dnnl_primitive_attr_t attr = NULL;
    float *ones = NULL;
    if (scales == NULL) {
        ones = host_allocate(host, (uint64_t)rows * sizeof *ones);
        for (int64_t i = 0; ones != NULL && i < rows; i++)
            ones[i] = 1.0f;
        scales = ones;
    }
    dnnl_status_t status = scales != NULL ? odn.primitive_attr_create(&attr) : dnnl_out_of_memory;
    if (status == dnnl_success)
        status = odn.primitive_attr_set_scratchpad_mode(attr, scratch);
    if (status == dnnl_success)
        status = odn.primitive_attr_set_rnn_data_qparams(attr, r->elem.scale, r->elem.shift);
    if (status == dnnl_success) /* dimensions 3 and 4 of the weights: gate and output */
        status = odn.primitive_attr_set_rnn_weights_qparams(attr, rows, (1 << 3) | (1 << 4), scales);
    if (status != dnnl_success && attr != NULL) {
        odn.primitive_attr_destroy(attr);
        attr = NULL;
    }
    host_release(host, ones);
    *out_attr = attr;
    return status;
}
