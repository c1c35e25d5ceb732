/* SPDX-License-Identifier: Apache-2.0 */
/* The table of codes. */
#include "model/explain.h"

#include <strings.h>

static const struct sl_explanation explanations[] = {
    {"E0001", "a file cannot be read",
     "The model file, an overlay (`-c`) or an included file does not exist, may not be\n"
     "read, is empty or is larger than 4 MiB. Includes are relative to the file that\n"
     "names them, paths on the command line to the current directory.\n"},
    {"E0002", "broken YAML",
     "The text is not YAML. Most often a quote or a bracket is not closed, a `:` has no\n"
     "blank behind it, or a line is indented with a tab. The place is where the reader\n"
     "gave up, which may be behind the mistake.\n"},
    {"E0003", "not UTF-8", "Model files are UTF-8 without NUL characters. Save the file with that encoding.\n"},
    {"E0004", "too large",
     "A model file holds at most 4 MiB, 50000 values, 64 levels and 10000 keys in one\n"
     "map. Aliases count as often as they are used, so that a small file cannot grow to\n"
     "a huge one.\n"},
    {"E0005", "a tag",
     "Tags such as `!!int` or `!env` are not allowed: the key decides how a value is\n"
     "read.\n"},
    {"E0006", "an alias without anchor",
     "`*name` repeats what `&name` marked further up. The anchor is missing, stands\n"
     "behind the alias, or contains it.\n"},
    {"E0007", "a merge key",
     "`<<: *name` copies the keys of a map; its value is an alias of a map, or a list of\n"
     "them.\n"},
    {"E0008", "a key that is not a word", "Keys are single words or texts, not lists or maps.\n"},
    {"E0009", "a path that leads nowhere",
     "`--set path=value` names a key with dots between the levels, as in\n"
     "`train.optimizer.learning_rate=1e-3`. Elements of lists are `model[2]`, or\n"
     "`model.lstm_2` by the `name:` that they say in the file.\n"},
    {"E0010", "an include",
     "`include: base.yaml` lays this file over another, or over several in a list. An\n"
     "included file includes nothing itself.\n"},
    {"E0101", "a value of the wrong type",
     "Values are typed by their key with the rules of YAML 1.2: `true` and `false` are\n"
     "the only truth values, `1e-3` is a number, `no` and `on` are texts, and a value in\n"
     "quotes is always a text.\n"},
    {"E0102", "an unknown word",
     "The key takes one of a few words, and this is none of them. There is one spelling\n"
     "only; names of other frameworks are recognised but not accepted.\n"},
    {"E0103", "a value out of range",
     "The value has the right type but cannot be meant: a rate of 2, a width of 0, an\n"
     "infinite number.\n"},
    {"E0104", "no value",
     "A key stands there with nothing behind its colon. In an overlay `key: ~` takes the\n"
     "key of the file below away; in a file it is a mistake.\n"},
    {"E0105", "a variable in a path",
     "Paths may hold `${NAME}` and `${NAME:-default}`; other values are taken as they\n"
     "stand. The variable is not set, or is not written like that.\n"},
    {"E0106", "a period",
     "Periods are digits and one unit: `100u` updates, `3e` epochs, `10Mt` tokens (with\n"
     "k, M or G), `90s`, `10m`, `2h`, `1d`. Some keys take some units only.\n"},
    {"E0201", "a key said twice",
     "One map holds the same key twice, and only one of the values could be used. Keep\n"
     "one of them.\n"},
    {"E0202", "a key of another variant",
     "The key exists, but not for the `type` that was chosen: `momentum` belongs to the\n"
     "optimizers that have one. It would change nothing here.\n"},
    {"E0203", "an unknown key",
     "There is no such key in this place. Names of other frameworks are answered with\n"
     "the key that is meant, and never accepted: hidden_size is `units`, lr is\n"
     "`learning_rate`, num_layers is `layers`, bidirectional is `direction:\n"
     "bidirectional`, max_grad_norm is `clip_norm`, batch_first can go.\n"},
    {"E0204", "a missing key", "The section cannot do without this key, and it has no default.\n"},
    {"E0205", "a key without effect",
     "With what else the file says this key would change nothing. Every key that is\n"
     "accepted changes the result, so this one is refused.\n"},
    {"E0206", "no type",
     "What has variants says which one: `type: lstm`, or a bare word in place of the\n"
     "map.\n"},
    {"E0207", "keys that contradict each other", "Two keys exclude each other. Take one of them away.\n"},
    {"E0301", "the version of the schema",
     "`seqlstm: 1` on the first line pins every default of the file. This program knows\n"
     "version 1.\n"},
    {"E0302", "a name twice",
     "Layers have different names, because `from`, `tie` and `pin` refer to them.\n"
     "`input` is the input of the model.\n"},
    {"E0303", "an unknown layer", "`from` names layers that stand further up in the list, or `input`.\n"},
    {"E0304", "the number of inputs",
     "`concat` and `add` join two or more layers, all of them sequences or all of them\n"
     "vectors; every other layer takes one.\n"},
    {"E0305", "tied weights",
     "`tie` names an embedding of the same model. Its vectors are as wide as what the\n"
     "output layer gets.\n"},
    {"E0306", "an embedding without tokens",
     "An embedding gives a vector to each token of a text. These data are numbers: leave\n"
     "the embedding away.\n"},
    {"E0307", "tokens without an embedding",
     "Text becomes tokens, and tokens become vectors in an `embedding` layer. Let the\n"
     "model begin with one.\n"},
    {"E0308", "loss and output activation",
     "cross_entropy goes with `softmax` at the output, binary_cross_entropy with\n"
     "`sigmoid`, and the losses of values with neither. The activation is said, not\n"
     "guessed; loss and activation are computed together, in a stable way.\n"},
    {"E0309", "loss and task",
     "Classes (language_model, classify, tag) take the cross-entropies, `regress` takes\n"
     "mse, mae or huber. Class weights are for classes.\n"},
    {"E0310", "a layer that looks ahead",
     "A backward or bidirectional layer needs the end of the sequence. A stream has\n"
     "none, and in a language model the layer would see the token that it is to predict.\n"},
    {"E0311", "metric and task",
     "accuracy, perplexity and bits_per_token measure classes; mse, mae and rmse measure\n"
     "values.\n"},
    {"E0312", "a watched value that nobody measures",
     "Early stopping, checkpoints and the plateau schedule watch `split.metric`. The\n"
     "split (`train` or `valid`) must exist and the metric be `loss` or in `metrics`.\n"},
    {"E0313", "task and output shape",
     "language_model and tag need an output for each step, classify one for each\n"
     "sequence. `return_sequences` of the last recurrent layer, or a `pool`, decides.\n"},
    {"E0314", "a vector where a sequence is needed",
     "A recurrent layer or a pool needs a sequence, and the layer before it gives the\n"
     "last step only. Say `return_sequences: true` there.\n"},
    {"E0315", "widths that differ", "`add` adds element by element, so its inputs are equally wide.\n"},
    {"E0316", "an output that nobody takes",
     "Every layer but the last feeds another one. Name it in a `from`, or take it away.\n"},
    {"E0317", "the columns of the data",
     "The table does not say what goes in (`inputs` or `text`) or what is predicted\n"
     "(`targets` or `label`), or says it in a way that cannot work.\n"},
    {"E0318", "streams",
     "`unit: stream` cuts one long text into `batch_size` parallel streams and carries\n"
     "the state from piece to piece. It needs `type: text` or `tokens`, and keeps the\n"
     "order of the text.\n"},
    {"E0319", "a training without end",
     "Say `epochs`, `updates` or `max_time`; the first that is reached ends the\n"
     "training.\n"},
    {"E0320", "a pin", "`dispatch.pin` gives a layer, by its name, to a backend of the list.\n"},
    {"E0321", "states that do not fit",
     "A recurrent layer starts from the final states of another one (`initial_state`; a\n"
     "decoder's layers from the encoder's, one by one). Both have as many `layers`, and\n"
     "with `bridge: copy` states of the same kind and width; the two directions of a\n"
     "bidirectional encoder stand side by side. `bridge: dense` learns to translate, and\n"
     "`initial_state: none` starts from zero.\n"},
    {"E0322", "input feeding",
     "With `input_feeding: true` in an attention layer the first recurrent layer before\n"
     "it reads, behind its input, what attention gave at the step before. There is such a\n"
     "layer, and one attention layer feeds.\n"},
    {"E0401", "not in this version",
     "The key or the value is known and planned, but this version of seqlstm cannot do\n"
     "it. It is refused, because ignoring it would change what you get.\n"},
    {"E0501", "data that cannot be used",
     "A data file is not there, cannot be read, or does not hold what the model file\n"
     "says: a text where a number is expected, rows of different widths, a file cut\n"
     "short. The message names the file, and the line where there is one. Paths in a\n"
     "model file are relative to that file. The exit status is 4.\n"},
    {"E0502", "model and data do not fit",
     "Each is right by itself, but the widths differ: a layer yields other than the\n"
     "target holds, weights are tied to an embedding of another size. `units:\n"
     "from_target` takes the width from the data.\n"},
    {"E0503", "no backend for a layer",
     "No listed backend accepts this layer with these options, or the one that it is\n"
     "pinned to refuses, or `dispatch.fallback: error` forbids the one that would run\n"
     "it. The message holds every refusal with its reason; the place is the option that\n"
     "was refused. Change the option, or list another backend. The exit status is 3.\n"
     "\n"
     "Where no backend is loaded at all: cpu-blas is built and runs where OpenBLAS is\n"
     "installed (Debian: libopenblas-dev, then build again). The reference is built in and\n"
     "runs every model, slowly, but only where it is named: --set 'backends=[reference]'.\n"},
    {"E0504", "a required backend is missing",
     "`require: true` was said, and the plugin is not there, does not work on this\n"
     "machine or was refused. `seqlstm backends -v` shows the folders searched and the\n"
     "system's own message. The exit status is 3.\n"},
    {"E0505", "weights to begin with",
     "`train.init_from` names a run, or a file of weights, that is not there, is damaged\n"
     "or has another shape; or `weights` of an embedding names no file of word vectors.\n"},
    {"E0506", "an option that the backend does not have",
     "A key of `options:` that the plugin does not publish, or a value of another type or\n"
     "outside of its range. `seqlstm backends -v` lists the options of every backend.\n"},
    {"E0507", "weights of another shape",
     "A saved run goes on with the shapes that it was trained with. `--set` or an overlay\n"
     "asks `resume`, `eval` or `predict` for others: other units, an option of a layer\n"
     "that brings parameters, an optimizer with other states. Take the change back, or\n"
     "train a new run with it. Nothing of the run has been changed.\n"},
    {"W0301", "a cell that can grow without bound",
     "With tanh the states of an LSTM stay between -1 and 1 at the output. With relu,\n"
     "leaky_relu and the like inside the cell they can grow at every step, and training\n"
     "may diverge. Limit the cell with `cell_clip`, or keep tanh inside and put the\n"
     "activation behind the layer.\n"},
};

const struct sl_explanation *sl_explain_find(const char *code)
{
    for (size_t i = 0; i < sizeof explanations / sizeof *explanations; i++)
        if (strcasecmp(explanations[i].code, code) == 0)
            return &explanations[i];
    return NULL;
}

const struct sl_explanation *sl_explain_get_all(size_t *out_count)
{
    *out_count = sizeof explanations / sizeof *explanations;
    return explanations;
}
