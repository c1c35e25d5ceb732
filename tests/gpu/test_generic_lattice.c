/* SPDX-License-Identifier: Apache-2.0 */
/* What cuda-generic supports, asked without a device: `supports` over the lattice of recurrent options, all operations,
 * dtypes and device classes, compared with the rules, which are written down here a second time.
 *
 *   test_generic_lattice MODULE.so docs/cuda.md      TAP on stdout */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <seqlstm/backend.h>

static const struct seqlstm_backend *backend;
static int number, failed;
static long asked;

static void check(bool fine, const char *name, const char *detail)
{
    printf("%sok %d - %s\n", fine ? "" : "not ", ++number, name);
    if (!fine)
        printf("# %s\n", detail);
    failed += !fine;
}

static struct seqlstm_answer ask(const char *device_class, const struct seqlstm_desc *desc)
{
    struct seqlstm_answer answer;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memset(&answer, 0, sizeof answer);
    answer.struct_size = sizeof answer;
    if (backend->supports(device_class, desc, &answer, &err) != SEQLSTM_OK)
        snprintf(answer.reason, sizeof answer.reason, "ERROR: %.200s", err.message);
    asked++;
    return answer;
}

static bool has_variant(const struct seqlstm_answer *a, const char *name)
{
    for (uint32_t v = 0; v < a->variant_count; v++)
        if (strcmp(a->variants[v], name) == 0)
            return true;
    return false;
}

static bool is_plain_no(const struct seqlstm_answer *a)
{
    return !a->accepted && a->code != 0 && a->reason[0] != 0 && strncmp(a->reason, "ERROR", 5) != 0;
}

/* ---- the lattice of recurrent layers --------------------------------------------------------------------------- */

static const int64_t sizes[] = {1, 64, 65, 200, 512, 650, 4096, 5000};

/* Do the equations of ops.h allow it? */
static bool is_meaningful(const struct seqlstm_recurrent_desc *d)
{
    const uint32_t o = d->options;
    const bool lstm = d->cell == SEQLSTM_CELL_LSTM, gru = d->cell == SEQLSTM_CELL_GRU;
    const bool after = o & SEQLSTM_BIT_RECURRENT_RESET_AFTER, normed = o & SEQLSTM_BIT_RECURRENT_LAYER_NORM;
    return (lstm ||
            (d->projection == 0 && !(o & (SEQLSTM_BIT_RECURRENT_PEEPHOLE | SEQLSTM_BIT_RECURRENT_COUPLED_GATES)) &&
             d->cell_clip == 0 && d->zoneout_cell == 0)) &&
           (gru || !after) && !(gru && normed && !after) &&
           (o & (SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_FINAL_STATE));
}

static bool has_clusters(const struct seqlstm_answer *a, bool of_4, bool of_8, bool of_16)
{
    return has_variant(a, "cluster_4") == of_4 && has_variant(a, "cluster_8") == of_8 &&
           has_variant(a, "cluster_16") == of_16;
}

/* An LSTM with sigmoid and tanh, whose cell has no option. */
static bool is_plain(const struct seqlstm_recurrent_desc *d)
{
    const uint32_t others =
        SEQLSTM_BIT_RECURRENT_PEEPHOLE | SEQLSTM_BIT_RECURRENT_COUPLED_GATES | SEQLSTM_BIT_RECURRENT_LAYER_NORM;
    const bool both = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL;
    bool usual = true;
    for (int place = 0; place < 3; place++)
        for (int k = 0; k <= both; k++)
            usual = usual && d->activations[place][k].kind ==
                                 (place == SEQLSTM_PLACE_GATE ? SEQLSTM_ACT_SIGMOID : SEQLSTM_ACT_TANH);
    return usual && d->cell == SEQLSTM_CELL_LSTM && !(d->options & others) && d->cell_clip == 0 && d->gate_clip == 0 &&
           d->zoneout_cell == 0 && d->zoneout_hidden == 0 && !(both && d->merge == SEQLSTM_KIND_MERGE_MUL);
}

static bool is_answered_right(const struct seqlstm_recurrent_desc *d)
{
    const struct seqlstm_answer a = ask("cuda:sm_90", &d->head);
    if (!is_meaningful(d))
        return is_plain_no(&a) && a.variant_count == 0;
    const bool late = d->cell == SEQLSTM_CELL_GRU && !(d->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER);
    const bool masked = d->head.mode == SEQLSTM_MODE_TRAINING && d->recurrent_dropout > 0;
    const bool folds = !masked && d->zoneout_hidden == 0 &&
                       !(d->options & (SEQLSTM_BIT_RECURRENT_LAYER_NORM | SEQLSTM_BIT_RECURRENT_STEPWISE));
    const bool flat = d->projection == 0 || folds, plain = is_plain(d);
    const bool few = d->hidden == 65 || (late && d->hidden < 65); /* units that fit the smallest kernels of clusters */
    return a.accepted && has_variant(&a, "step_graph") &&
           has_clusters(&a, flat && few, flat && (few || d->hidden == 200),
                        flat && (d->hidden == 200 || d->hidden == 512)) &&
           has_variant(&a, "resident") == (flat && (late || d->hidden > 64) && d->hidden <= 2048) &&
           has_variant(&a, "small") == (flat && !late && d->hidden <= (plain ? 128 : 64));
}

/* Bits of `rest`, lowest first: dropout, recurrent_dropout, zoneout_cell, zoneout_hidden, weight_drop, cell_clip,
 * gate_clip, projection, training, many sequences. */
enum { REST = 1 << 10 };

static struct seqlstm_recurrent_desc make(uint32_t cell, uint32_t direction, uint32_t options, uint32_t rest,
                                          size_t size)
{
    struct seqlstm_recurrent_desc d;
    memset(&d, 0, sizeof d);
    d.head.struct_size = sizeof d;
    d.head.op = SEQLSTM_OP_RECURRENT;
    d.head.mode = rest & 256 ? SEQLSTM_MODE_TRAINING : SEQLSTM_MODE_INFERENCE;
    d.head.dtype_compute = (rest ^ options) % 4; /* all four, with every combination */
    d.head.max_rows = 20000;
    d.head.max_sequences = rest & 512 ? 1000 : 32;
    d.head.max_steps = 35;
    d.cell = cell;
    d.direction = direction;
    d.merge = options % 4;
    d.options = options;
    d.layers = 1 + options % 3;
    d.input = 20;
    d.hidden = sizes[size];
    d.projection = rest & 128 ? 16 : 0;
    for (uint32_t place = 0; place < 3; place++)
        for (uint32_t k = 0; k < 2; k++)
            d.activations[place][k].kind = rest % 3 == 0 ? (place > 0 ? SEQLSTM_ACT_TANH : SEQLSTM_ACT_SIGMOID)
                                                         : (rest + options + place + k) % (SEQLSTM_ACT_AFFINE + 1);
    d.dropout = rest & 1 ? 0.5f : 0;
    d.recurrent_dropout = rest & 2 ? 0.25f : 0;
    d.zoneout_cell = rest & 4 ? 0.5f : 0;
    d.zoneout_hidden = rest & 8 ? 1.0f : 0;
    d.weight_drop = rest & 16 ? 0.5f : 0;
    d.cell_clip = rest & 32 ? 3.0f : 0;
    d.gate_clip = rest & 64 ? 5.0f : 0;
    d.layer_norm_epsilon = 1e-5f;
    return d;
}

static void check_recurrent(void)
{
    long wrong = 0, accepted = 0;
    char detail[200] = "";
    for (uint32_t cell = SEQLSTM_CELL_LSTM; cell <= SEQLSTM_CELL_RNN; cell++)
        for (uint32_t direction = 0; direction < 3; direction++)
            for (uint32_t options = 0; options < 1u << 9; options++)
                for (uint32_t rest = 0; rest < REST; rest++) {
                    const struct seqlstm_recurrent_desc d =
                        make(cell, direction, options, rest, (options + rest) % (sizeof sizes / sizeof *sizes));
                    accepted += is_meaningful(&d);
                    if (!is_answered_right(&d) && wrong++ == 0)
                        snprintf(detail, sizeof detail, "first at cell %u, direction %u, options 0x%x, rest 0x%x", cell,
                                 direction, options, rest);
                }
    check(wrong == 0 && accepted > 100000, "what has a meaning is accepted, all else refused with a reason", detail);
}

/* ---- who runs which layer --------------------------------------------------------------------------------------- */

/* Kinds of layers that variants treat differently, as rows of the table in docs/cuda.md. */
static const struct kind {
    const char *name;
    uint32_t cell, options;
    bool projection, masked;
} kinds[] = {
    {"LSTM with sigmoid and tanh", SEQLSTM_CELL_LSTM, 0, false, false},
    {"LSTM with an option of its cell", SEQLSTM_CELL_LSTM, SEQLSTM_BIT_RECURRENT_PEEPHOLE, false, false},
    {"GRU with `reset_after`", SEQLSTM_CELL_GRU, SEQLSTM_BIT_RECURRENT_RESET_AFTER, false, false},
    {"GRU without `reset_after`", SEQLSTM_CELL_GRU, 0, false, false},
    {"RNN", SEQLSTM_CELL_RNN, 0, false, false},
    {"LSTM with layer norm", SEQLSTM_CELL_LSTM, SEQLSTM_BIT_RECURRENT_LAYER_NORM, false, false},
    {"GRU with `reset_after` and layer norm", SEQLSTM_CELL_GRU,
     SEQLSTM_BIT_RECURRENT_LAYER_NORM | SEQLSTM_BIT_RECURRENT_RESET_AFTER, false, false},
    {"RNN with layer norm", SEQLSTM_CELL_RNN, SEQLSTM_BIT_RECURRENT_LAYER_NORM, false, false},
    {"LSTM with a projection", SEQLSTM_CELL_LSTM, 0, true, false},
    {"LSTM with a projection and layer norm", SEQLSTM_CELL_LSTM, SEQLSTM_BIT_RECURRENT_LAYER_NORM, true, false},
    {"LSTM with a projection and `recurrent_dropout`", SEQLSTM_CELL_LSTM, 0, true, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds, HIDDEN_MOST = 2200 };

static struct seqlstm_recurrent_desc make_kind(const struct kind *k, int64_t hidden, uint32_t compute,
                                               int32_t sequences)
{
    struct seqlstm_recurrent_desc d = make(k->cell, 0, SEQLSTM_BIT_RECURRENT_OUTPUT | k->options, 256, 0);
    d.layers = 1;
    d.hidden = hidden;
    d.projection = k->projection ? 16 : 0;
    d.recurrent_dropout = k->masked ? 0.25f : 0;
    d.head.dtype_compute = compute;
    d.head.max_sequences = sequences;
    for (uint32_t place = 0; place < 3; place++)
        for (uint32_t way = 0; way < 2; way++)
            d.activations[place][way].kind = place == SEQLSTM_PLACE_GATE ? SEQLSTM_ACT_SIGMOID : SEQLSTM_ACT_TANH;
    return d;
}

static const char *const all_variants[] = {"small", "cluster_4", "cluster_8", "cluster_16", "resident", "step_graph"};
enum { ALL_VARIANTS = sizeof all_variants / sizeof *all_variants };

/* Which numbers of units each variant takes on a device, such as "`small` 1–64, `resident` 65–2048". `step_graph` takes
 * all. */
static void write_cell(const struct kind *k, const char *device_class, char *out, size_t bytes)
{
    bool has[ALL_VARIANTS][HIDDEN_MOST + 2] = {{false}};
    for (int64_t hidden = 1; hidden <= HIDDEN_MOST; hidden++) {
        const struct seqlstm_recurrent_desc d = make_kind(k, hidden, SEQLSTM_DTYPE_FLOAT32, 32);
        const struct seqlstm_answer a = ask(device_class, &d.head);
        for (size_t v = 0; v < ALL_VARIANTS; v++)
            has[v][hidden] = has_variant(&a, all_variants[v]);
    }
    size_t at = 0;
    for (size_t v = 0; v < ALL_VARIANTS - 1; v++)
        for (int64_t first = 1, last; first <= HIDDEN_MOST; first = last + 1) {
            for (last = first; has[v][first] && has[v][last + 1];)
                last++;
            if (has[v][first] && at < bytes)
                at += (size_t)snprintf(out + at, bytes - at, "%s`%s` %d–%d", at ? ", " : "", all_variants[v],
                                       (int)first, (int)last);
        }
    if (at == 0)
        snprintf(out, bytes, "`step_graph` alone");
}

/* The table of docs/cuda.md has exactly these rows. */
static void check_table(const char *path)
{
    char detail[600] = "", row[600], cells[3][150];
    static char text[200000];
    FILE *file = fopen(path, "r");
    const size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[bytes] = 0;
    static const char *const classes[] = {"cuda:sm_80", "cuda:sm_90", "cuda:sm_120"};
    bool fine = bytes > 0;
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t c = 0; c < 3; c++)
            write_cell(&kinds[k], classes[c], cells[c], sizeof cells[c]);
        snprintf(row, sizeof row, "\n| %s | %s | %s | %s |\n", kinds[k].name, cells[0], cells[1],
                 strcmp(cells[1], cells[2]) == 0 ? "the same" : cells[2]);
        if (strstr(text, row) == NULL) {
            fine = false;
            printf("# docs/cuda.md lacks:%.*s\n", (int)strlen(row) - 1, row);
            snprintf(detail, sizeof detail, "rows are missing in %s", path);
        }
    }
    check(fine, "the table of layers, variants and devices in docs/cuda.md", detail);
}

/* A variant that never comes first would be measured for nothing. */
static void check_each_comes_first(void)
{
    static const int32_t batches[] = {1, 32, 64, 200, 1024};
    bool first[ALL_VARIANTS] = {false};
    for (size_t k = 0; k < KINDS; k++)
        for (int64_t hidden = 1; hidden <= HIDDEN_MOST; hidden += hidden < 140 ? 1 : 37)
            for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
                for (uint32_t compute = SEQLSTM_DTYPE_FLOAT32; compute <= SEQLSTM_DTYPE_FLOAT16; compute++) {
                    const struct seqlstm_recurrent_desc d = make_kind(&kinds[k], hidden, compute, batches[b]);
                    const struct seqlstm_answer a = ask("cuda:sm_90", &d.head);
                    for (size_t v = 0; v < ALL_VARIANTS; v++)
                        first[v] = first[v] || strcmp(a.variants[0], all_variants[v]) == 0;
                }
    char detail[100] = "";
    bool fine = true;
    for (size_t v = 0; v < ALL_VARIANTS; v++)
        if (!first[v]) {
            fine = false;
            snprintf(detail, sizeof detail, "%s", all_variants[v]);
        }
    check(fine, "each variant is expected to be the fastest for some layer", detail);
}

/* The variant that runs where nothing is measured. */
static void check_first(void)
{
    static const struct {
        int64_t hidden, sequences;
        uint32_t compute;
        const char *first;
    } cases[] = {{64, 1000, SEQLSTM_DTYPE_FLOAT32, "small"},     {128, 32, SEQLSTM_DTYPE_FLOAT32, "small"},
                 {128, 1000, SEQLSTM_DTYPE_FLOAT32, "cluster"},  {128, 32, SEQLSTM_DTYPE_BFLOAT16, "cluster"},
                 {64, 32, SEQLSTM_DTYPE_BFLOAT16, "small"},      {129, 32, SEQLSTM_DTYPE_FLOAT32, "cluster"},
                 {256, 1024, SEQLSTM_DTYPE_TF32, "resident"},    {650, 32, SEQLSTM_DTYPE_FLOAT32, "resident"},
                 {2049, 32, SEQLSTM_DTYPE_FLOAT32, "step_graph"}};
    bool fine = true;
    char detail[200] = "";
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct seqlstm_recurrent_desc d =
            make_kind(&kinds[0], cases[k].hidden, cases[k].compute, (int32_t)cases[k].sequences);
        const struct seqlstm_answer a = ask("cuda:sm_90", &d.head);
        if (a.variant_count == 0 || strncmp(a.variants[0], cases[k].first, strlen(cases[k].first)) != 0) {
            fine = false;
            snprintf(detail, sizeof detail, "case %zu begins with %s", k, a.variant_count ? a.variants[0] : "nothing");
        }
    }
    check(fine, "the variant that is likely to be fastest comes first", detail);
}

/* ---- operations, dtypes, devices ------------------------------------------------------------------------------- */

static void check_dtypes(void)
{
    struct seqlstm_recurrent_desc d = make(SEQLSTM_CELL_LSTM, 0, SEQLSTM_BIT_RECURRENT_OUTPUT, 256, 1);
    uint32_t *roles[] = {&d.head.dtype_activation, &d.head.dtype_activation_grad, &d.head.dtype_state,
                         &d.head.dtype_weight,     &d.head.dtype_weight_grad,     &d.head.dtype_compute};
    bool fine = true;
    d.head.dtype_compute = SEQLSTM_DTYPE_FLOAT32;
    for (size_t r = 0; r < sizeof roles / sizeof *roles; r++)
        for (uint32_t dtype = SEQLSTM_DTYPE_FLOAT32; dtype <= SEQLSTM_DTYPE_UINT8 + 1; dtype++) {
            *roles[r] = dtype;
            const struct seqlstm_answer a = ask("cuda:sm_90", &d.head);
            const bool yes = dtype == SEQLSTM_DTYPE_FLOAT32 || (r == 5 && dtype <= SEQLSTM_DTYPE_FLOAT16);
            fine = fine && (yes ? a.accepted : is_plain_no(&a) && a.option == SEQLSTM_OPTION_DTYPE);
            *roles[r] = SEQLSTM_DTYPE_FLOAT32;
        }
    check(fine, "products in four types, float32 for all else", "a dtype is answered otherwise");
}

static void check_devices(void)
{
    struct seqlstm_recurrent_desc d = make(SEQLSTM_CELL_LSTM, 0, SEQLSTM_BIT_RECURRENT_OUTPUT, 0, 1);
    static const char *const good[] = {"cuda:sm_80", "cuda:sm_86", "cuda:sm_90", "cuda:sm_100", "cuda:sm_120"};
    static const char *const bad[] = {"cuda:sm_70", "cuda:sm_75", "cpu:x86-64-v4", "cuda",
                                      "cuda:",      "cuda:sm_",   "hip:gfx90a",    ""};
    bool fine = true;
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        d.hidden = 200;
        struct seqlstm_answer a = ask(good[k], &d.head);
        fine = fine && a.accepted && has_clusters(&a, false, k >= 2, k >= 2);
        d.hidden = 512; /* in float32 it needs 160 KiB of shared memory per block */
        a = ask(good[k], &d.head);
        fine = fine && a.accepted && has_clusters(&a, false, false, k == 2 || k == 3);
    }
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        const struct seqlstm_answer a = ask(bad[k], &d.head);
        fine = fine && is_plain_no(&a) && (a.code & SEQLSTM_BIT_REFUSED_DEVICE);
    }
    check(fine, "devices from sm_80 on, no other; clusters from sm_90 on", "a class of devices is answered otherwise");
}

static void check_bad_values(void)
{
    struct seqlstm_recurrent_desc d = make(SEQLSTM_CELL_LSTM, 0, SEQLSTM_BIT_RECURRENT_OUTPUT | 1u << 9, 256, 1);
    struct seqlstm_answer a = ask("cuda:sm_90", &d.head);
    bool fine = is_plain_no(&a) && (a.code & SEQLSTM_BIT_REFUSED_ABI);
    d.options = SEQLSTM_BIT_RECURRENT_OUTPUT;
    d.cell = 4;
    a = ask("cuda:sm_90", &d.head);
    fine = fine && is_plain_no(&a) && a.option == SEQLSTM_OPTION_CELL;
    d.cell = SEQLSTM_CELL_LSTM;
    d.head.max_rows = INT64_C(1) << 40;
    a = ask("cuda:sm_90", &d.head);
    fine = fine && is_plain_no(&a) && a.option == SEQLSTM_OPTION_SHAPE;
    d.head.op = SEQLSTM_OP_COUNT;
    a = ask("cuda:sm_90", &d.head);
    check(fine && is_plain_no(&a), "unknown bits, cells, operations and batches too large are refused", a.reason);
}

int main(int argc, char **argv)
{
    void *module = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = module ? dlsym(module, SEQLSTM_QUERY_SYMBOL) : NULL;
    seqlstm_backend_query_fn query;
    if (symbol == NULL) {
        printf("Bail out! %s\n", argc > 2 ? dlerror() : "usage: test_generic_lattice MODULE.so docs/cuda.md");
        return 1;
    }
    memcpy(&query, &symbol, sizeof query);
    backend = query(SEQLSTM_ABI_MINOR);
    printf("1..8\n");
    const clock_t from = clock();
    check_recurrent();
    const double mean_ns = (double)(clock() - from) * 1e9 / CLOCKS_PER_SEC / (double)asked;
    check_first();
    check_table(argv[2]);
    check_each_comes_first();
    check_dtypes();
    check_devices();
    check_bad_values();
    char detail[80];
    snprintf(detail, sizeof detail, "%.0f ns, the mean of the lattice", mean_ns);
    check(mean_ns < 1e5, "an answer takes a small part of a millisecond", detail);
    return failed != 0;
}
