/* SPDX-License-Identifier: Apache-2.0 */
/* Model files: whatever the bytes are, loading ends with a model or with diagnostics that can be shown, and a model
 * that was accepted is printed as one that loads to the same. */
#include "base/value/buf.h"
#include "fuzz.h"
#include "round_trip.h"
#include "model/yaml/diagnostics.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_buf text = {0};
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_model *model = NULL;
    fuzz_require(sl_diagnostics_create(&diagnostics, NULL) == SEQLSTM_OK);
    seqlstm_status status = sl_model_load_text("m.yaml", (const char *)data, size, NULL, diagnostics, &model, NULL);
    fuzz_require(sl_diagnostics_render(diagnostics, true, &text, NULL) == SEQLSTM_OK);
    fuzz_require((status == SEQLSTM_OK) == (model != NULL));
    if (model != NULL)
        check_round_trip(model);
    else
        fuzz_require(sl_diagnostics_count(diagnostics, SL_SEVERITY_ERROR) > 0 && text.length_bytes > 0);
    sl_model_destroy(model);
    sl_diagnostics_destroy(diagnostics);
    sl_buf_deinit(&text);
    return 0;
}
