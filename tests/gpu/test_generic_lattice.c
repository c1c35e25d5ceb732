/* SPDX-License-Identifier: Apache-2.0 */
/* What cuda-generic supports, asked without a device: `supports` over the lattice of recurrent options, all operations,
 * dtypes and device classes, compared with the rules, which are written down here a second time.
 *
 *   test_generic_lattice MODULE.so      TAP on stdout */
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

static bool is_answered_right(const struct seqlstm_recurrent_desc *d)
{
    const struct seqlstm_answer a = ask("cuda:sm_90", &d->head);
    if (!is_meaningful(d))
        return is_plain_no(&a) && a.variant_count == 0;
    const bool late = d->cell == SEQLSTM_CELL_GRU && !(d->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER);
    const bool masked = d->head.mode == SEQLSTM_MODE_TRAINING && d->recurrent_dropout > 0;
    const bool folds = !masked && d->zoneout_hidden == 0 &&
                       !(d->options & (SEQLSTM_BIT_RECURRENT_LAYER_NORM | SEQLSTM_BIT_RECURRENT_STEPWISE));
    const bool flat = d->projection == 0 || folds, one = flat && !late,
               lone = one && !(d->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM);
    const bool few = d->hidden == 65 || (late && d->hidden < 65); /* units that fit the smallest kernels of clusters */
    return a.accepted && has_variant(&a, "step_graph") &&
           has_variant(&a, "grid") == (lone && d->hidden <= 4096 && d->head.max_sequences <= 512) &&
           has_clusters(&a, flat && few, flat && (few || d->hidden == 200),
                        flat && (d->hidden == 200 || d->hidden == 512)) &&
           has_variant(&a, "resident") == (flat && d->hidden > 64 && d->hidden <= 2048) &&
           has_variant(&a, "small") == (one && d->hidden <= 128);
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
        struct seqlstm_recurrent_desc d = make(SEQLSTM_CELL_LSTM, 0, SEQLSTM_BIT_RECURRENT_OUTPUT, 256, 1);
        d.hidden = cases[k].hidden;
        d.head.max_sequences = cases[k].sequences;
        d.head.dtype_compute = cases[k].compute;
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
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = module ? dlsym(module, SEQLSTM_QUERY_SYMBOL) : NULL;
    seqlstm_backend_query_fn query;
    if (symbol == NULL) {
        printf("Bail out! %s\n", argc > 1 ? dlerror() : "usage: test_generic_lattice MODULE.so");
        return 1;
    }
    memcpy(&query, &symbol, sizeof query);
    backend = query(SEQLSTM_ABI_MINOR);
    printf("1..6\n");
    const clock_t from = clock();
    check_recurrent();
    const double mean_ns = (double)(clock() - from) * 1e9 / CLOCKS_PER_SEC / (double)asked;
    check_first();
    check_dtypes();
    check_devices();
    check_bad_values();
    char detail[80];
    snprintf(detail, sizeof detail, "%.0f ns, the mean of the lattice", mean_ns);
    check(mean_ns < 1e5, "an answer takes a small part of a millisecond", detail);
    return failed != 0;
}
