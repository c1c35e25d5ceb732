/* SPDX-License-Identifier: Apache-2.0 */
/* A verification as JSON: "seqlstm.verify/1". */
#include "compare/verify/verify.h"

#include <jansson.h>
#include <math.h>

#include "base/operation/op_signature.h"
#include "base/value/json_tree.h"
#include "base/value/json_write.h"

static json_t *write_judgement(const struct sl_judgement *j, enum sl_phase phase)
{
    const struct sl_offer *offer = &j->offer;
    json_t *object =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:b,s:o,s:s}", "phase", phase == SL_PHASE_TRAIN ? "train" : "infer", "name",
                  j->node->name, "op", sl_op_name(j->node->desc.head.op), "backend", sl_backend_get_id(j->backend),
                  "variant", offer->variant, "verdict", sl_verdict_name(j->verdict), "gradients", j->backward,
                  "error_over_tolerance", isfinite(j->worst) ? json_real(j->worst) : json_null(), "reason", j->detail);
    if (object && !offer->accepted) {
        object = sl_json_put(object, "option", json_string(offer->option));
        object = sl_json_put(object, "value", json_string(offer->value));
        object = sl_json_put(object, "file", offer->place.file ? json_string(offer->place.file) : json_null());
        object = sl_json_put(object, "line", json_integer(offer->place.line));
        object = sl_json_put(object, "column", json_integer(offer->place.column));
    }
    return object;
}

seqlstm_status sl_verify_report_print_json(const struct sl_verify_report *report, struct sl_buf *out,
                                           struct seqlstm_error *err)
{
    json_t *layers = json_array();
    int32_t totals[SL_VERDICT_COUNT] = {0};
    for (int32_t i = 0; i < sl_verify_report_get_count(report); i++) {
        enum sl_phase phase;
        const struct sl_judgement *j = sl_verify_report_get(report, i, &phase);
        totals[j->verdict]++;
        layers = sl_json_add(layers, write_judgement(j, phase));
    }
    const struct sl_envelope batch = sl_verify_report_get_batch(report);
    json_t *root =
        json_pack("{s:s,s:b,s:{s:I,s:I,s:I},s:o,s:{s:i,s:i,s:i,s:i}}", "schema", "seqlstm.verify/1", "ok",
                  sl_verify_report_get_failures(report) == 0, "batch", "sequences", (json_int_t)batch.sequences,
                  "steps", (json_int_t)batch.steps, "rows", (json_int_t)batch.rows, "layers", layers, "totals", "pass",
                  totals[SL_VERDICT_PASS], "fail", totals[SL_VERDICT_FAIL], "skip", totals[SL_VERDICT_SKIP],
                  "unsupported", totals[SL_VERDICT_UNSUPPORTED]);
    if (!sl_json_append_tree(out, root, 0))
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report's JSON");
    return SEQLSTM_OK;
}
