/* SPDX-License-Identifier: Apache-2.0 */
/* The top of the file, and its small sections: backends, dispatch, output, log. */
#include <string.h>

#include "model/read/sections.h"

#define AT(member) offsetof(struct sl_model, member)
/* clang-format off */
#define NONE {NULL}
/* clang-format on */

static const struct sl_word policy_words[] = {
    {"measured", SL_POLICY_MEASURED, "the fastest, timed once on batches like those of the data; the times are cached",
     false},
    {"estimate", SL_POLICY_ESTIMATE, "the fastest by the backends' own estimates", false},
    {"order", SL_POLICY_ORDER, "the first backend of the list that accepts a layer", false},
    {NULL, 0, NULL, false}};

static const struct sl_word fallback_words[] = {{"report", SL_FALLBACK_REPORT, "mention it in the plan", false},
                                                {"warn", SL_FALLBACK_WARN, "warn", false},
                                                {"error", SL_FALLBACK_ERROR, "stop", false},
                                                {NULL, 0, NULL, false}};

static const struct sl_word precision_words[] = {
    {"float32", SL_PRECISION_FLOAT32, "single precision", false},
    {"tf32", SL_PRECISION_TF32,
     "products of recurrent and dense layers in tf32 (10 bits of mantissa) where a backend has them", false},
    {"bfloat16", SL_PRECISION_BFLOAT16,
     "products of recurrent and dense layers in bfloat16 where a backend has them; all else in single precision",
     false},
    {"float16", SL_PRECISION_FLOAT16,
     "products of recurrent and dense layers in float16 where a backend has them, with dynamic loss scaling", false},
    {NULL, 0, NULL, false}};

static const struct sl_word parallel_words[] = {{"none", SL_PARALLEL_NONE, "one device", false},
                                                {NULL, 0, NULL, false}};

static const struct sl_word device_words[] = {
    {"auto", SL_DEVICE_AUTO, "the best device offered by a backend of the list", false},
    {"cpu", SL_DEVICE_CPU, "the processor", false},
    {NULL, 0, NULL, false}};

/* `include` was followed when the file was read. */
static void read_include(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    (void)reader, (void)option, (void)node, (void)field;
}

/* auto, cpu; numbered devices and lists of them belong to a later version. */
static void read_device(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option word = {.key = "device", .kind = SL_VALUE_WORD, .words = device_words};
    (void)option;
    if (node->kind == SL_NODE_LIST)
        sl_reader_refuse_later(reader, node->place, "`device` with a list");
    else if (node->kind == SL_NODE_SCALAR &&
             (strncmp(node->text, "cuda", 4) == 0 || strncmp(node->text, "cpu:", 4) == 0))
        sl_reader_refuse_later(reader, node->place, sl_reader_printf(reader, "`device: %.60s`", node->text));
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
            sl_reader_report(reader, "E0103", node->place, "`{name}` and `{run}` are replaced, nothing else", NULL,
                             "`dir` knows no `%.*s`", (int)letters + 2, at);
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
static const struct sl_custom device_custom = {read_device, "`auto` or `cpu`", "{\"enum\": [\"auto\", \"cpu\"]}"};
static const struct sl_custom dir_custom = {read_dir, "path", "{\"type\": \"string\"}"};
static const struct sl_custom pins_custom = {
    sl_model_read_pins, "map from a layer's name to a backend",
    "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}}"};
static const struct sl_custom plugin_options_custom = {
    sl_model_read_plugin_options, "map",
    "{\"type\": \"object\", \"additionalProperties\": {\"type\": [\"string\", \"number\", "
    "\"boolean\"]}}"};

static const struct sl_option top_options[] = {
    {"seqlstm", SL_VALUE_INT, AT(version), 0, SL_OPTION_REQUIRED, NULL, 0, 0, NONE,
     "version of the schema, currently 1; it fixes all default values"},
    {"name", SL_VALUE_NAME, AT(name), 0, 0, NULL, 0, 0, NONE,
     "name of the model; default: the file name without its extension"},
    {"seed", SL_VALUE_SEED, AT(seed), 0, 0, "0", 0, 9007199254740991.0, NONE,
     "seed of all random numbers: initial weights, dropout masks, shuffling, generators"},
    {"deterministic", SL_VALUE_BOOL, AT(deterministic), 0, 0, "false", 0, 0, NONE,
     "true: backends whose results vary from run to run are not used"},
    {"include",
     SL_VALUE_CUSTOM,
     0,
     0,
     0,
     NULL,
     0,
     0,
     {.custom = &include_custom},
     "files that this file is based on; they must not include other files"},
    {"init",
     SL_VALUE_CUSTOM,
     0,
     0,
     0,
     "keras",
     0,
     0,
     {.custom = &init_custom},
     "initial values of the parameters, unless a layer specifies its own"},
    {"data",
     SL_VALUE_CUSTOM,
     AT(data),
     0,
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {.custom = &data_custom},
     "the data to learn from"},
    {"model", SL_VALUE_CUSTOM, 0, 0, SL_OPTION_REQUIRED, NULL, 0, 0, {.custom = &layers_custom}, "the layers"},
    {"train",
     SL_VALUE_CUSTOM,
     AT(train),
     0,
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {.custom = &train_custom},
     "how the model is trained"},
    {"decode",
     SL_VALUE_SECTION,
     AT(decode),
     0,
     0,
     "{}",
     0,
     0,
     {.section = &sl_section_decode},
     "how a decoder generates text"},
    {"backends",
     SL_VALUE_CUSTOM,
     0,
     0,
     0,
     NULL,
     0,
     0,
     {.custom = &backends_custom},
     "the plugins to load, in order of preference; default: all that are found"},
    {"dispatch",
     SL_VALUE_SECTION,
     AT(dispatch),
     0,
     0,
     "{}",
     0,
     0,
     {.section = &sl_section_dispatch},
     "which backend runs which layer"},
    {"device", SL_VALUE_CUSTOM, AT(device), 0, 0, "auto", 0, 0, {.custom = &device_custom}, "the device to run on"},
    {"precision",
     SL_VALUE_WORD,
     AT(precision),
     0,
     SL_OPTION_FIXED,
     "float32",
     0,
     0,
     {.words = precision_words},
     "precision of the computation"},
    {"parallel",
     SL_VALUE_WORD,
     AT(parallel),
     0,
     SL_OPTION_FIXED,
     "none",
     0,
     0,
     {.words = parallel_words},
     "training on more than one device"},
    {"output",
     SL_VALUE_SECTION,
     AT(output),
     0,
     0,
     "{}",
     0,
     0,
     {.section = &sl_section_output},
     "where the run is stored"},
    {"log",
     SL_VALUE_SECTION,
     AT(log),
     0,
     0,
     "{}",
     0,
     0,
     {.section = &sl_section_log},
     "what is reported during training"},
    {"export", SL_VALUE_LATER, 0, 0, 0, NULL, 0, 0, NONE, "files to write for other programs"},
    {0}};

const struct sl_section sl_section_top = {
    "top", "the model file", NULL, 0, NULL, NULL, top_options, "the keys at the top of the file"};

static const struct sl_option backend_options[] = {
    {"plugin", SL_VALUE_TEXT, 0, 0, SL_OPTION_REQUIRED, NULL, 0, 0, NONE,
     "id of the plugin, looked up on the backend path; with a `/`: a file"},
    {"require", SL_VALUE_BOOL, offsetof(struct sl_backend_entry, require), 0, 0, "false", 0, 0, NONE,
     "true: a missing plugin is an error; false: it is only noted"},
    {"options", SL_VALUE_CUSTOM, 0, 0, 0, NULL, 0, 0, {.custom = &plugin_options_custom}, "options of the plugin"},
    {"device", SL_VALUE_LATER, 0, 0, 0, NULL, 0, 0, NONE, "the devices that the plugin may use"},
    {"threads", SL_VALUE_LATER, 0, 0, 0, NULL, 0, 0, NONE, "the threads that the plugin may use"},
    {0}};

const struct sl_section sl_section_backend = {
    "backends", "a backend", NULL, 0, NULL, "plugin", backend_options, "a list of plugins; each is an id or a map"};

static const struct sl_option dispatch_options[] = {
    {"policy",
     SL_VALUE_WORD,
     offsetof(struct sl_dispatch_config, policy),
     0,
     0,
     "measured",
     0,
     0,
     {.words = policy_words},
     "how the backend of a layer is chosen"},
    {"fallback",
     SL_VALUE_WORD,
     offsetof(struct sl_dispatch_config, fallback),
     0,
     0,
     "report",
     0,
     0,
     {.words = fallback_words},
     "what happens when a layer is refused by a backend that is earlier in the list"},
    {"pin",
     SL_VALUE_CUSTOM,
     offsetof(struct sl_dispatch_config, pins),
     0,
     0,
     NULL,
     0,
     0,
     {.custom = &pins_custom},
     "the backend for individual layers; a refusal by that backend is an error"},
    {0}};

const struct sl_section sl_section_dispatch = {
    "dispatch", "the dispatch", NULL, 0, NULL, NULL, dispatch_options, "which backend runs which layer"};

static const struct sl_option output_options[] = {{"dir",
                                                   SL_VALUE_CUSTOM,
                                                   offsetof(struct sl_output_config, dir),
                                                   0,
                                                   0,
                                                   "runs/{name}/{run}",
                                                   0,
                                                   0,
                                                   {.custom = &dir_custom},
                                                   "the run folder, relative to the current directory"},
                                                  {0}};

const struct sl_section sl_section_output = {"output", "the output", NULL,           0,
                                             NULL,     NULL,         output_options, "where the run is stored"};

static const struct sl_option log_options[] = {{"every",
                                                SL_VALUE_PERIOD,
                                                offsetof(struct sl_log_config, every),
                                                0,
                                                0,
                                                "10s",
                                                0,
                                                0,
                                                {.period_units = "us"},
                                                "interval between progress lines when the output is not a terminal"},
                                               {"jsonl", SL_VALUE_BOOL, offsetof(struct sl_log_config, jsonl), 0, 0,
                                                "true", 0, 0, NONE, "whether to write metrics.jsonl"},
                                               {"tensorboard", SL_VALUE_BOOL,
                                                offsetof(struct sl_log_config, tensorboard), 0, SL_OPTION_FIXED,
                                                "false", 0, 0, NONE, "whether to write TensorBoard event files"},
                                               {0}};

const struct sl_section sl_section_log = {"log", "the log", NULL,        0,
                                          NULL,  NULL,      log_options, "what is reported during training"};
