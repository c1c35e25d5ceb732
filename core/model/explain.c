/* SPDX-License-Identifier: Apache-2.0 */
/* The table of codes. */
#include "model/explain.h"

#include <stdbool.h>
#include <strings.h>

#include "base/value/text.h"
#include "model/doc_limits.h"

#define MIB   SL_TEXT_OF(SL_DOC_MAX_MIB)
#define NODES SL_TEXT_OF(SL_DOC_MAX_NODES)
#define DEPTH SL_TEXT_OF(SL_DOC_MAX_DEPTH)
#define KEYS  SL_TEXT_OF(SL_DOC_MAX_KEYS)

static const struct sl_explanation explanations[] = {
    {"E0001", "a file cannot be read",
     "The model file, an overlay (`-c`) or an included file does not exist, is not\n"
     "readable, is empty, or is larger than " MIB " MiB. Paths of included files are\n"
     "relative to the file that names them; paths on the command line are relative to\n"
     "the current directory.\n"},
    {"E0002", "broken YAML",
     "The text is not valid YAML. The most common causes are an unclosed quote or\n"
     "bracket, a `:` without a space after it, and a line that is indented with a tab.\n"
     "The message shows where the reader gave up, which may be after the actual\n"
     "mistake.\n"},
    {"E0003", "not UTF-8",
     "Model files must be UTF-8 without NUL characters. Save the file with that\n"
     "encoding.\n"},
    {"E0004", "too large",
     "A model file may have at most " MIB " MiB, " NODES " values, " DEPTH " levels, and " KEYS " keys in\n"
     "one map. An alias counts each time it is used, so that a small file cannot\n"
     "expand to a huge one.\n"},
    {"E0005", "a tag",
     "Tags such as `!!int` or `!env` are not allowed: the key determines the type of\n"
     "its value.\n"},
    {"E0006", "an alias without anchor",
     "`*name` repeats what `&name` marked earlier in the file. The anchor is missing,\n"
     "comes after the alias, or contains it.\n"},
    {"E0007", "a merge key",
     "`<<: *name` copies the keys of a map. Its value must be an alias of a map, or a\n"
     "list of such aliases.\n"},
    {"E0008", "a key that is not a word", "Keys are single words or strings, not lists or maps.\n"},
    {"E0009", "a path that leads nowhere",
     "`--set path=value` names a key, with dots between the levels, as in\n"
     "`train.optimizer.learning_rate=1e-3`. An element of a list is `model[2]`, or\n"
     "`model.lstm_2` if the file gives it that `name:`.\n"},
    {"E0010", "an include",
     "`include: base.yaml` uses another file, or a list of files, as a base for this\n"
     "one. An included file cannot include others. It must be a regular file and a\n"
     "model file: of any other file no line is shown. `config.yaml` of a saved run\n"
     "includes nothing.\n"},
    {"E0101", "a value of the wrong type",
     "The key determines the type of its value, following YAML 1.2: `true` and `false`\n"
     "are the only boolean values, `1e-3` is a number, `no` and `on` are strings, and\n"
     "a quoted value is always a string.\n"},
    {"E0102", "an unknown word",
     "The key accepts only certain words, and this is not one of them. There is only\n"
     "one spelling; names from other frameworks are recognised but not accepted.\n"},
    {"E0103", "a value out of range",
     "The value has the right type but makes no sense: for example a rate of 2, a\n"
     "width of 0, or an infinite number.\n"},
    {"E0104", "no value",
     "The key has no value after its colon. In an overlay, `key: ~` removes the key of\n"
     "the file below; in a model file it is a mistake.\n"},
    {"E0105", "a variable in a path",
     "Paths may contain `${NAME}` and `${NAME:-default}`; other values are used\n"
     "unchanged. The variable is not set, or is not written in one of these forms.\n"},
    {"E0106", "a period",
     "A period is digits followed by one unit: `100u` updates, `3e` epochs, `10Mt`\n"
     "tokens (with k, M or G), `90s`, `10m`, `2h`, `1d`. Some keys accept only some of\n"
     "the units.\n"},
    {"E0201", "a duplicate key",
     "A map contains the same key twice, but only one of the values could be used.\n"
     "Keep one of them.\n"},
    {"E0202", "a key of another variant",
     "The key exists, but not for the chosen `type`: for example, `momentum` belongs\n"
     "only to optimizers that use it. Here it would have no effect.\n"},
    {"E0203", "an unknown key",
     "There is no such key in this place. Names from other frameworks are never\n"
     "accepted, but the message gives the right key: hidden_size is `units`, lr is\n"
     "`learning_rate`, num_layers is `layers`, bidirectional is `direction:\n"
     "bidirectional`, max_grad_norm is `clip_norm`, and batch_first can be removed.\n"},
    {"E0204", "a missing key", "The section requires this key, which has no default.\n"},
    {"E0205", "a key without effect",
     "In combination with the rest of the file, this key would have no effect. Every\n"
     "key that is accepted has an effect, so this one is refused.\n"},
    {"E0206", "no type",
     "This section has variants, so it must say which one: with `type: lstm`, or with\n"
     "a bare word instead of the map.\n"},
    {"E0207", "keys that contradict each other", "Two keys exclude each other. Remove one of them.\n"},
    {"E0301", "the version of the schema",
     "`seqlstm: 1` on the first line fixes all default values of the file. This\n"
     "program supports version 1.\n"},
    {"E0302", "a duplicate name",
     "Layers must have different names, because `from`, `tie` and `pin` refer to them.\n"
     "`input` is the input of the model.\n"},
    {"E0303", "an unknown layer", "`from` names layers that come earlier in the list, or `input`.\n"},
    {"E0304", "the number of inputs",
     "`concat` and `add` join two or more layers, which must be all sequences or all\n"
     "vectors. Every other layer has one input.\n"},
    {"E0305", "tied weights",
     "`tie` names an embedding of the same model. The width of its vectors must equal\n"
     "the width of the output layer's input.\n"},
    {"E0306", "an embedding without tokens",
     "An embedding maps each token of a text to a vector. These data are numbers:\n"
     "remove the embedding.\n"},
    {"E0307", "tokens without an embedding",
     "Text becomes tokens, and an `embedding` layer turns tokens into vectors. Put one\n"
     "at the beginning of the model.\n"},
    {"E0308", "loss and output activation",
     "cross_entropy requires `softmax` at the output, binary_cross_entropy requires\n"
     "`sigmoid`, and losses for values allow neither. The activation must be written\n"
     "in the file; it is never guessed. Loss and activation are computed together, in\n"
     "a numerically stable way.\n"},
    {"E0309", "loss and task",
     "Tasks with classes (language_model, classify, tag) use the cross-entropies;\n"
     "`regress` uses mse, mae or huber. Class weights are only for classes.\n"},
    {"E0310", "a layer that looks ahead",
     "A backward or bidirectional layer needs the end of the sequence. A stream has no\n"
     "end, and in a language model the layer would see the token that it has to\n"
     "predict.\n"},
    {"E0311", "metric and task",
     "accuracy, perplexity and bits_per_token measure classes; mse, mae and rmse\n"
     "measure values.\n"},
    {"E0312", "a monitored value that is not measured",
     "Early stopping, checkpoints and the plateau schedule monitor `split.metric`. The\n"
     "split (`train` or `valid`) must exist, and the metric must be `loss` or one of\n"
     "`metrics`.\n"},
    {"E0313", "task and output shape",
     "language_model and tag need an output for each step; classify needs one for each\n"
     "sequence. This depends on `return_sequences` of the last recurrent layer, or on\n"
     "a `pool`.\n"},
    {"E0314", "a vector where a sequence is needed",
     "A recurrent layer or a pool needs a sequence, but the layer before it returns\n"
     "only the last step. Set `return_sequences: true` there.\n"},
    {"E0315", "widths that differ", "`add` adds element by element, so its inputs must have the same width.\n"},
    {"E0316", "an output that is not used",
     "Every layer except the last must be the input of another one. Name it in a\n"
     "`from`, or remove it.\n"},
    {"E0317", "the columns of the data",
     "The table does not specify the input (`inputs` or `text`) or what is predicted\n"
     "(`targets` or `label`), or the combination does not work.\n"},
    {"E0318", "streams",
     "`unit: stream` cuts one long text into `batch_size` parallel streams and carries\n"
     "the state from segment to segment. It needs `type: text` or `tokens`, and keeps\n"
     "the order of the text.\n"},
    {"E0319", "a training without end",
     "Set `epochs`, `updates` or `max_time`; the first one that is reached ends the\n"
     "training.\n"},
    {"E0320", "a pin", "`dispatch.pin` assigns a layer, by its name, to a backend of the list.\n"},
    {"E0321", "states that do not fit",
     "A recurrent layer starts from the final states of another one (`initial_state`;\n"
     "the layers of a decoder start from the matching layers of the encoder). Both\n"
     "need the same number of `layers`. `bridge: copy` also needs states of the same\n"
     "kind and width; the two directions of a bidirectional encoder are concatenated.\n"
     "`bridge: dense` learns to convert the states, and `initial_state: none` starts\n"
     "from zero.\n"},
    {"E0322", "input feeding",
     "With `input_feeding: true` in an attention layer, the first recurrent layer\n"
     "before it also reads the attention output of the previous step, appended to its\n"
     "input. There must be such a recurrent layer, and only one attention layer may\n"
     "feed it.\n"},
    {"E0323", "a division among ranks that is not possible",
     "`parallel` contradicts itself: each rank needs at least one shard, `shards` adds\n"
     "in one fixed order in float32, `reduce: central` adds in float32 on rank 0, and in\n"
     "a pipeline each rank updates its own layers.\n"},
    {"E0401", "not in this version",
     "The key or the value is known and planned, but this version of seqlstm does not\n"
     "support it. It is refused, because ignoring it would change the result.\n"},
    {"E0501", "data that cannot be used",
     "A data file is missing, cannot be read, or does not match the model file: text\n"
     "where a number is expected, rows of different widths, a truncated file. The\n"
     "message names the file and, if possible, the line. Paths in a model file are\n"
     "relative to that file. The exit status is 4.\n"},
    {"E0502", "model and data do not fit",
     "Model and data are each valid, but they do not fit: a layer is not as wide as the\n"
     "target (`units: from_target` takes the width from the data), weights are tied to\n"
     "an embedding of another size, a class weight is for a label that does not occur,\n"
     "or a metric is not possible with these data.\n"},
    {"E0503", "no backend for a layer",
     "No listed backend accepts this layer with these options, the backend that it is\n"
     "pinned to refuses it, or `dispatch.fallback: error` forbids the backend that\n"
     "would run it. The message contains every refusal with its reason and points to\n"
     "the refused option. Change the option, or list another backend. The exit status\n"
     "is 3.\n"
     "\n"
     "If no backend is loaded at all: cpu-blas is built and runs where OpenBLAS is\n"
     "installed (Debian: libopenblas-dev, then build again). The reference is built in\n"
     "and runs every model, slowly, but only if you name it:\n"
     "--set 'backends=[reference]'.\n"},
    {"E0504", "a required backend is missing",
     "A plugin with `require: true` was not found, does not work on this machine, or\n"
     "was rejected. `seqlstm backends -v` shows the folders that were searched and the\n"
     "system's own message. Or `device: cuda:1` names a CUDA device that no backend\n"
     "has: `seqlstm backends` lists the devices, which count from 0. The exit status\n"
     "is 3.\n"},
    {"E0505", "initial weights",
     "`train.init_from` names a run, or a file of weights, which does not exist, is\n"
     "damaged, or has another shape; or `weights` of an embedding does not name a file\n"
     "of word vectors.\n"},
    {"E0506", "an option that the backend does not have",
     "A key of `options:` is not an option of the plugin, or its value has the wrong\n"
     "type or is out of range. `seqlstm backends -v` lists the options of every\n"
     "backend.\n"},
    {"E0507", "weights of another shape",
     "A saved run keeps the shapes that it was trained with. `--set` or an overlay\n"
     "asks `resume`, `eval` or `predict` for different ones: other units, a layer\n"
     "option that adds parameters, or an optimizer with other states. Undo the change,\n"
     "or train a new run with it. The run itself has not been changed.\n"},
    {"E0508", "a quantized run is too inexact",
     "`quantize` compares the run with itself in int8, on the validation and test data,\n"
     "gives wider types to layers that need them, and refuses if the first metric of\n"
     "`validate.metrics` still becomes more than 1 % worse. The usual reason is a range\n"
     "of values that does not fit: data in very large or very\n"
     "different units (use `scale`), a few extreme values, or a test split with values\n"
     "that training has never seen. `--max-regress 3%` allows more, `--force` all.\n"},
    {"E0509", "a pipeline that cannot be cut",
     "`parallel: {pipeline: S}` gives neighbouring layers to each of S ranks, so it needs\n"
     "at least S layers. An input feeding loop stays on one rank. Use fewer stages.\n"},
    {"E0601", "the command line",
     "There is no such command or flag, an argument is missing, or a flag has a value\n"
     "that it does not take. Keys of the model file are set with `--set`, as in\n"
     "`--set train.epochs=5`. `seqlstm help COMMAND` lists the flags of a command.\n"},
    {"E0602", "a request that does not fit",
     "The command is well formed, but not for this model, run or file: text is wanted\n"
     "from a model that is no language model, a split does not exist, a folder already\n"
     "holds a run. The message says what was expected.\n"},
    {"E0603", "something that is not there",
     "A run, a file or a name does not exist. A run is given by its folder\n"
     "(`runs/NAME/001`) or by its name, which means its latest run. Paths on the\n"
     "command line are relative to the current folder.\n"},
    {"E0604", "something that is not possible here",
     "No backend that is loaded can do this with this model. `seqlstm plan` shows which\n"
     "backend refuses which option; `seqlstm backends` shows what is loaded.\n"},
    {"E0605", "something is missing on this machine",
     "A backend, a library or a device is not there. `seqlstm backends -v` shows where\n"
     "backends were looked for and why one is not used; `seqlstm doctor` looks at the\n"
     "machine. The exit status is 3.\n"},
    {"E0606", "a plugin for another version",
     "The plugin was built for another version of the backend ABI. Build it again with\n"
     "the headers of this version (`seqlstm version` prints it).\n"},
    {"E0607", "not enough memory",
     "The model, its batch or its data do not fit into the memory that this process may\n"
     "use. Smaller batches (`data.batch_size`, `data.batching.max_tokens`), shorter\n"
     "segments (`data.batching.bptt`) or fewer units need less. `seqlstm plan` shows\n"
     "where memory goes. The exit status is 6.\n"},
    {"E0608", "reading or writing failed",
     "The operating system refused to read or write: no permission, no space left, a\n"
     "file beyond `ulimit -f`, a device that failed. The message contains its reason.\n"
     "What was saved before is intact: after the cause is gone, `seqlstm resume`\n"
     "continues. `--out` puts a run into another folder.\n"},
    {"E0609", "damaged or unsuitable data",
     "A file is damaged, truncated, or does not contain what is needed. Files of a run\n"
     "have checksums: copy the file again, or use an earlier checkpoint. Input of\n"
     "`predict` has the format of the training data. The exit status is 4.\n"},
    {"E0610", "the training diverged",
     "The loss or a gradient is no longer a finite number. Lower the learning rate, set\n"
     "`train.clip_norm`, or scale the data (`data.scale: standard`). The last\n"
     "checkpoint is from before. The exit status is 5.\n"},
    {"E0611", "a device failed",
     "A device or its library reported an error during the computation. The message\n"
     "contains its text and number. `--device cpu` runs without the device.\n"},
    {"E0612", "stopped", "The command was stopped before it had a result.\n"},
    {"E0613", "a bug",
     "This is a bug of seqlstm, or of the plugin that the message names, and not your\n"
     "mistake. Please report the message together with the output of `seqlstm doctor`.\n"},
    {"E0614", "slower than allowed",
     "`seqlstm ab --max-regress` found that side B is slower than side A by more than\n"
     "the limit. The exit status is 1.\n"},
    {"E0615", "a rank was ended",
     "One of the processes of a training on several ranks was ended by a signal, by the\n"
     "user or by the system (SIGKILL: often for want of memory). The others end, too.\n"},
    {"E0701", "a run in use",
     "Another process writes into this run folder. It holds the lock of the file\n"
     "`lock` in it, which says its host, its number and when it began. Wait until it\n"
     "has ended, or stop it: SIGTERM makes it save first. A lock goes with its\n"
     "process, so the file of a killed one does not matter. The exit status is 1.\n"},
    {"E0702", "a run folder that is gone",
     "The run folder was moved, renamed or removed while a process wrote into it.\n"
     "Nothing more was saved. If it was moved, `seqlstm resume` goes on in its new\n"
     "place, from the last checkpoint. Or something in the process, such as a plugin,\n"
     "has closed the file `lock` by which it holds the folder. The exit status is 1.\n"},
    {"E0703", "a run folder that leads elsewhere",
     "A file of the run folder is a link, a pipe or a device. Reading or writing it\n"
     "would work on something outside the run, and a run folder may come from\n"
     "another person. If you made the link yourself, add `--trust`. A pipe or a device\n"
     "in place of a file of the run is refused even then.\n"},
    {"E0704", "a plugin of a saved run",
     "The configuration of a saved run names the file of a plugin. Its code would run\n"
     "because a run folder says so, and the folder may come from another person. Add\n"
     "`--trust` if you trust the run; or put the plugin into a folder of backends and\n"
     "list its id. The exit status is 3.\n"},
    {"E0705", "a path that is not UTF-8",
     "The files of a run hold the paths of the model file, of the data and of the run\n"
     "folder, and they are UTF-8. Rename the file or the folder. Nothing was written.\n"},
    {"W0301", "a cell that can grow without bound",
     "With tanh, the output of an LSTM stays between -1 and 1. With relu, leaky_relu\n"
     "and similar activations inside the cell, the states can grow at every step, and\n"
     "training may diverge. Limit the cell with `cell_clip`, or keep tanh inside and\n"
     "put the activation after the layer.\n"},
    {"W0302", "a target among the inputs",
     "A column is an input and a target of the same row, so the model can copy it. The\n"
     "loss falls to 0, and the model is useless: when it is asked, the target is not\n"
     "known yet. Behind a `window` the same column is history, and fine.\n"},
};

const char *sl_explain_get_code(seqlstm_status status)
{
    static const char *const codes[] = {
        [SEQLSTM_INVALID_ARGUMENT] = "E0602", [SEQLSTM_INVALID_CONFIG] = "E0602",
        [SEQLSTM_NOT_FOUND] = "E0603",        [SEQLSTM_UNSUPPORTED] = "E0604",
        [SEQLSTM_UNAVAILABLE] = "E0605",      [SEQLSTM_ABI_MISMATCH] = "E0606",
        [SEQLSTM_NO_MEMORY] = "E0607",        [SEQLSTM_IO] = "E0608",
        [SEQLSTM_CORRUPT_DATA] = "E0609",     [SEQLSTM_NUMERIC] = "E0610",
        [SEQLSTM_DEVICE] = "E0611",           [SEQLSTM_CANCELLED] = "E0612",
    };
    const bool known = status > 0 && (size_t)status < sizeof codes / sizeof *codes && codes[status] != NULL;
    return known ? codes[status] : "E0613"; /* INTERNAL, or a status that does not exist */
}

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
