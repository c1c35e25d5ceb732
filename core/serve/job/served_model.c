/* SPDX-License-Identifier: Apache-2.0 */
/* See served_model.h. */
#include "serve/job/served_model.h"

#include <stdlib.h>

#include "session/session.h"

enum { TEXT_STEPS = 65536 }; /* by default */

/* Each text counts as one row: `rows` limits the tokens of a batch inside the predictor. */
static void describe_decoder(struct sl_served_model *out)
{
    const struct sl_envelope *envelope = &sl_predictor_find_graph(out->predictor, SL_USE_ENCODER)->facts.envelope;
    out->decodes = out->reads_text = true;
    out->input_features = out->output_features = 1;
    out->steps = envelope->source_steps;
    out->sequences = out->rows = envelope->sequences;
}

seqlstm_status sl_served_model_open(struct sl_session *session, const char *name,
                                    const struct sl_predictor_limits *limits, struct sl_served_model *out,
                                    struct seqlstm_error *err)
{
    *out = (struct sl_served_model){.name = name, .uses = malloc(sizeof *out->uses)};
    if (out->uses == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a model");
    atomic_init(&out->uses->count, 1);
    atomic_init(&out->uses->over, false);
    SEQLSTM_TRY(sl_session_open_predictor(session, limits, &out->predictor, err));
    out->state = sl_session_find_data_state(session);
    const struct sl_data_facts *facts = sl_data_state_get_facts(out->state);
    if (sl_predictor_decodes(out->predictor)) {
        describe_decoder(out);
        return SEQLSTM_OK;
    }
    const struct sl_envelope *envelope = &sl_predictor_find_graph(out->predictor, SL_USE_WHOLE)->facts.envelope;
    out->reads_ids = facts->input.kind == SL_FIELD_IDS;
    out->reads_steps = facts->input.on_steps;
    out->reads_text = out->reads_ids && out->reads_steps && sl_data_state_find_vocabulary(out->state) != NULL;
    out->gives_steps = sl_predictor_has_step_output(out->predictor);
    out->input_features = out->reads_ids ? 1 : facts->input.features;
    out->input_classes = out->reads_ids ? facts->input.classes : 0;
    out->output_features = sl_predictor_get_features(out->predictor);
    out->steps = envelope->steps;
    out->never = *sl_predictor_get_never(out->predictor);
    out->text_steps = limits->steps > 0 ? limits->steps : TEXT_STEPS;
    out->sequences = envelope->sequences;
    out->rows = envelope->rows;
    const struct sl_graph *chunks = sl_predictor_find_graph(out->predictor, SL_USE_CHUNKS);
    out->streams = chunks != NULL;
    out->continues = chunks && out->reads_text && out->gives_steps &&
                     sl_predictor_get_model(out->predictor)->train.task == SL_TASK_LANGUAGE_MODEL;
    out->chunk_steps = chunks ? chunks->facts.envelope.steps : 0;
    out->classes = sl_predictor_gives_values(out->predictor) ? NULL : sl_data_state_find_classes(out->state);
    if (out->classes && sl_vocabulary_get_size(out->classes) != out->output_features)
        out->classes = NULL; /* one probability stands for two classes */
    return SEQLSTM_OK;
}

void sl_served_model_close(struct sl_served_model *model)
{
    sl_predictor_destroy(model->predictor);
    model->predictor = NULL;
    free(model->uses);
    model->uses = NULL;
}
