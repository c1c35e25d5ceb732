/* SPDX-License-Identifier: Apache-2.0 */
/* The top of the file, and its small sections: backends, dispatch, output, log. */
#include <string.h>

#include "base/value/text.h"
#include "model/read/sections.h"

#define AT(member) offsetof(struct sl_model, member)

static const struct sl_word policy_words[] = {
    WORD("measured", SL_POLICY_MEASURED,
         "the fastest, timed once on batches like those of the data; the times are cached"),
    WORD("estimate", SL_POLICY_ESTIMATE, "the fastest by the backends' own estimates"),
    WORD("order", SL_POLICY_ORDER, "the first backend of the list that accepts a layer"),
    WORD_END,
};

static const struct sl_word fallback_words[] = {
    WORD("report", SL_FALLBACK_REPORT, "mention it in the plan"),
    WORD("warn", SL_FALLBACK_WARN, "warn"),
    WORD("error", SL_FALLBACK_ERROR, "stop"),
    WORD_END,
};

static const struct sl_word precision_words[] = {
    WORD("float32", SL_PRECISION_FLOAT32, "single precision"),
    WORD("tf32", SL_PRECISION_TF32,
         "products of recurrent and dense layers in tf32 (10 bits of mantissa) where a backend has them"),
    WORD("bfloat16", SL_PRECISION_BFLOAT16,
         "products of recurrent and dense layers in bfloat16 where a backend has them; all else in single precision"),
    WORD("float16", SL_PRECISION_FLOAT16,
         "products of recurrent and dense layers in float16 where a backend has them, with dynamic loss scaling"),
    WORD_END,
};

static const struct sl_word device_words[] = {
    WORD("auto", SL_DEVICE_AUTO, "the best device offered by a backend of the list"),
    WORD("cpu", SL_DEVICE_CPU, "the processor"),
    WORD_END,
};

/* `include` was handled when the file was read. */
static void read_include(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    (void)reader, (void)option, (void)node, (void)field;
}

/* The number of `cuda` or `cuda:1`. */
static bool parse_cuda(const char *text, int64_t *out_number)
{
    *out_number = 0;
    return text[4] == 0 || (text[4] == ':' && sl_text_parse_int64(text + 5, strlen(text + 5), out_number) &&
                            *out_number >= 0 && *out_number < SL_DEVICE_NUMBERS);
}

/* Lists of devices are for a later version. */
static void read_device(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option word = {.key = "device", .kind = SL_VALUE_WORD, .words = device_words};
    const bool scalar = node->kind == SL_NODE_SCALAR;
    int64_t number;
    if (node->kind == SL_NODE_LIST)
        sl_reader_refuse_later(reader, node->place, "`device` with a list");
    else if (scalar && strncmp(node->text, "cpu:", 4) == 0)
        sl_reader_refuse_later(reader, node->place, sl_reader_printf(reader, "`device: %.60s`", node->text));
    else if (!scalar || (strncmp(node->text, "cuda", 4) == 0 && !parse_cuda(node->text, &number)))
        sl_reader_report_type(reader, option, node, "`auto`, `cpu` or a CUDA device such as `cuda:1`");
    else if (strncmp(node->text, "cuda", 4) == 0)
        *(enum sl_device *)field = (enum sl_device)(SL_DEVICE_CUDA + (int)number);
    else
        sl_reader_read_value(reader, &word, node, field);
}

/* The run folder: variables are replaced, but it stays relative to the current directory. */
static void read_dir(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    if (node->kind != SL_NODE_SCALAR || node->text[0] == 0) {
        sl_reader_report_type(reader, option, node, "a path");
        return;
    }
    const char *path = sl_reader_resolve_path(reader, node, false);
    if (path == NULL)
        return;
    *(const char **)field = node->text = path;
    for (const char *at = strchr(path, '{'); at != NULL; at = strchr(at + 1, '{')) {
        size_t letters = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_");
        if (letters > 0 && at[1 + letters] == '}' && strncmp(at, "{name}", 6) != 0 && strncmp(at, "{run}", 5) != 0)
            sl_reader_report(reader, "E0103", node->place, "only `{name}` and `{run}` are replaced", NULL,
                             "`dir` does not know `%.*s`", (int)letters + 2, at);
    }
}

static const struct sl_custom include_custom = {
    read_include, "path, or list of paths",
    "{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"array\", \"items\": {\"type\": \"string\"}}]}"};
static const struct sl_custom init_custom = {
    sl_model_read_init, "`keras`, `pytorch` or an initializer",
    "{\"anyOf\": [{\"enum\": [\"keras\", \"pytorch\"]}, {\"$ref\": \"#/$defs/initializer\"}]}"};
static const struct sl_custom layers_custom = {
    sl_model_read_layers, "list of layers, or [encoder and decoder](#modelsides)",
    "{\"anyOf\": [{\"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": \"#/$defs/model\"}}, "
    "{\"$ref\": \"#/$defs/model.sides\"}]}"};
static const struct sl_custom data_custom = {sl_model_read_data, "map", "{\"$ref\": \"#/$defs/data\"}"};
static const struct sl_custom train_custom = {sl_model_read_train, "map", "{\"$ref\": \"#/$defs/train\"}"};
static const struct sl_custom backends_custom = {sl_model_read_backends, "list of backends",
                                                 "{\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/backends\"}}"};
static const struct sl_custom device_custom = {
    read_device, "`auto`, `cpu` or `cuda:N`",
    "{\"type\": \"string\", \"pattern\": \"^(auto|cpu|cuda(:[0-9]{1,4})?)$\"}"};
static const struct sl_custom dir_custom = {read_dir, "path", "{\"type\": \"string\"}"};
static const struct sl_custom pins_custom = {
    sl_model_read_pins, "map from a layer's name to a backend",
    "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}}"};
static const struct sl_custom plugin_options_custom = {
    sl_model_read_plugin_options, "map",
    "{\"type\": \"object\", \"additionalProperties\": {\"type\": [\"string\", \"number\", "
    "\"boolean\"]}}"};

static const char *const init_lone_words[] = {"keras", "pytorch", NULL};

static const struct sl_option top_options[] = {
    OPTION(INT, "seqlstm", AT(version), .flags = SL_OPTION_REQUIRED,
           .doc = "version of the schema, currently 1; it fixes all default values"),
    OPTION(NAME, "name", AT(name), .doc = "name of the model; default: the file name without its extension"),
    OPTION(SEED, "seed", AT(seed), .default_text = "0", .min = 0, .max = 9007199254740991.0,
           .doc = "seed of all random numbers: initial weights, dropout masks, shuffling, generators"),
    OPTION(BOOL, "deterministic", AT(deterministic), .default_text = "false",
           .doc = "true: backends whose results vary from run to run are not used"),
    OPTION(CUSTOM, "include", SL_NO_FIELD, .custom = &include_custom,
           .doc = "files that this file is based on; they must not include other files"),
    OPTION(CUSTOM, "init", SL_NO_FIELD, .default_text = "keras", .custom = &init_custom, .map = &sl_section_initializer,
           .lone_words = init_lone_words, .doc = "initial values of the parameters, unless a layer specifies its own"),
    OPTION(CUSTOM, "data", AT(data), .flags = SL_OPTION_REQUIRED, .custom = &data_custom, .map = &sl_section_data,
           .doc = "the data to learn from"),
    OPTION(CUSTOM, "model", SL_NO_FIELD, .flags = SL_OPTION_REQUIRED, .custom = &layers_custom,
           .map = &sl_section_sides, .items = &sl_section_layer, .doc = "the layers"),
    OPTION(CUSTOM, "train", AT(train), .flags = SL_OPTION_REQUIRED, .custom = &train_custom, .map = &sl_section_train,
           .doc = "how the model is trained"),
    OPTION(SECTION, "decode", AT(decode), .default_text = "{}", .section = &sl_section_decode,
           .doc = "how a decoder generates text"),
    OPTION(CUSTOM, "backends", SL_NO_FIELD, .custom = &backends_custom, .items = &sl_section_backend,
           .doc = "the plugins to load, in order of preference; default: all that are found"),
    OPTION(SECTION, "dispatch", AT(dispatch), .default_text = "{}", .section = &sl_section_dispatch,
           .doc = "which backend runs which layer"),
    OPTION(CUSTOM, "device", AT(device), .default_text = "auto", .custom = &device_custom,
           .doc = "the device to run on; `cuda:1`: as `auto`, with CUDA device 1"),
    OPTION(WORD, "precision", AT(precision), .flags = SL_OPTION_FIXED, .default_text = "float32",
           .words = precision_words, .doc = "precision of the computation"),
    OPTION(SECTION, "parallel", AT(parallel), .default_text = "{}", .section = &sl_section_parallel,
           .doc = "training on several ranks"),
    OPTION(SECTION, "output", AT(output), .default_text = "{}", .section = &sl_section_output,
           .doc = "where the run is stored"),
    OPTION(SECTION, "log", AT(log), .default_text = "{}", .section = &sl_section_log,
           .doc = "what is reported during training"),
    OPTION(LATER, "export", SL_NO_FIELD, .doc = "files to write for other programs"),
    OPTION_END,
};

const struct sl_section sl_section_top = {
    .path = "top",
    .noun = "the model file",
    .options = top_options,
    .doc = "the keys at the top of the file",
};

static const struct sl_option backend_options[] = {
    OPTION(TEXT, "plugin", SL_NO_FIELD, .flags = SL_OPTION_REQUIRED,
           .doc = "id of the plugin, looked up on the backend path; with a `/`: a file"),
    OPTION(BOOL, "require", offsetof(struct sl_backend_entry, require), .default_text = "false",
           .doc = "true: a missing plugin is an error; false: it is only noted"),
    OPTION(CUSTOM, "options", SL_NO_FIELD, .custom = &plugin_options_custom, .doc = "options of the plugin"),
    OPTION(LATER, "device", SL_NO_FIELD, .doc = "the devices that the plugin may use"),
    OPTION(LATER, "threads", SL_NO_FIELD, .doc = "the threads that the plugin may use"),
    OPTION_END,
};

const struct sl_section sl_section_backend = {
    .path = "backends",
    .noun = "a backend",
    .bare_key = "plugin",
    .options = backend_options,
    .doc = "a list of plugins; each is an id or a map",
};

static const struct sl_option dispatch_options[] = {
    OPTION(WORD, "policy", offsetof(struct sl_dispatch_config, policy), .default_text = "measured",
           .words = policy_words, .doc = "how the backend of a layer is chosen"),
    OPTION(WORD, "fallback", offsetof(struct sl_dispatch_config, fallback), .default_text = "report",
           .words = fallback_words,
           .doc = "what happens when a layer is refused by a backend that is earlier in the list"),
    OPTION(CUSTOM, "pin", offsetof(struct sl_dispatch_config, pins), .custom = &pins_custom,
           .doc = "the backend for individual layers; a refusal by that backend is an error"),
    OPTION_END,
};

const struct sl_section sl_section_dispatch = {
    .path = "dispatch",
    .noun = "the dispatch",
    .options = dispatch_options,
    .doc = "which backend runs which layer",
};

static const struct sl_option output_options[] = {
    OPTION(CUSTOM, "dir", offsetof(struct sl_output_config, dir), .default_text = "runs/{name}/{run}",
           .custom = &dir_custom, .doc = "the run folder, relative to the current directory"),
    OPTION(BOOL, "tensorboard", offsetof(struct sl_output_config, tensorboard), .default_text = "false",
           .doc = "whether to write an event file for TensorBoard into the run folder"),
    OPTION(BOOL, "weight_histograms", offsetof(struct sl_output_config, weight_histograms), .default_text = "false",
           .doc = "whether the event file holds histograms of the weights, after each epoch"),
    OPTION_END,
};

const struct sl_section sl_section_output = {
    .path = "output",
    .noun = "the output",
    .options = output_options,
    .doc = "where the run is stored",
};

static const struct sl_option log_options[] = {
    OPTION(PERIOD, "every", offsetof(struct sl_log_config, every), .default_text = "10s", .period_units = "us",
           .doc = "interval between progress lines when the output is not a terminal"),
    OPTION(BOOL, "jsonl", offsetof(struct sl_log_config, jsonl), .default_text = "true",
           .doc = "whether to write metrics.jsonl"),
    OPTION_END,
};

const struct sl_section sl_section_log = {
    .path = "log",
    .noun = "the log",
    .options = log_options,
    .doc = "what is reported during training",
};
