/* SPDX-License-Identifier: Apache-2.0 */
/* A model that was accepted is printed as one that loads to the same. */
#ifndef SL_TESTS_FUZZ_ROUND_TRIP_H
#define SL_TESTS_FUZZ_ROUND_TRIP_H

#include "fuzz.h"
#include "model/yaml/diagnostics.h"
#include "model/model.h"

static inline void check_round_trip(const struct sl_model *model)
{
    struct sl_buf first = {0}, second = {0};
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_model *again = NULL;
    fuzz_require(sl_diagnostics_create(&diagnostics, NULL) == SEQLSTM_OK);
    fuzz_require(sl_model_write_config(model, 0, &first, NULL) == SEQLSTM_OK);
    fuzz_require(sl_model_load_text("m.yaml", first.data, first.length_bytes, NULL, diagnostics, &again, NULL) ==
                 SEQLSTM_OK);
    fuzz_require(sl_model_write_config(again, 0, &second, NULL) == SEQLSTM_OK);
    fuzz_require(fuzz_equal(&first, &second));
    sl_model_destroy(again);
    sl_diagnostics_destroy(diagnostics);
}

#endif
