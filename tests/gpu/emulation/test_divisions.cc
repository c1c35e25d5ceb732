/* SPDX-License-Identifier: Apache-2.0 */
/* Each way to divide a resident layer among blocks (recurrent/resident) computes what the kernels of single steps do,
 * on the emulated device: blocks of 8, 16 and 32 units, that publish the gradients of gates or parts of that of h, in
 * every number type, for every kind of cell with all that concerns a step. Sequences of different lengths, in either
 * direction. */
#include <cmath>
#include <cstring>
#include <map>

#include "cuda-generic/recurrent/kernels/norm_inputs.h"
#include "cuda-generic/recurrent/kernels/step.h"
#include "cuda-generic/recurrent/resident/resident.h"
#include "seqlstm/ops.h"
#include "emulated_tests.h"

enum { UNITS = 41, SEQUENCES = 5, STEPS = 3, ROWS = 10, MULTIPROCESSORS = 12 };
static const int32_t lengths[SEQUENCES] = {3, 3, 2, 1, 1}, batch_sizes[STEPS] = {5, 3, 2};
static const int64_t row_offsets[STEPS + 1] = {0, 5, 8, 10};
static const uint64_t sequence_ids[SEQUENCES] = {7, 1, 9, 4, 2};
static const uint32_t positions[SEQUENCES] = {0, 3, 0, 8, 1};

/* A cell; `rest` has zoneout, a mask of h, h of another direction, clips and the opposite direction. */
struct cell {
    const char *name;
    uint32_t kind, options;
    bool late, rest;
};

struct number {
    const char *name;
    uint32_t compute;
    double tolerance; /* of values around 1, after all steps */
};

/* A layer with all that it reads and writes; two of the same cell read the same. */
struct full_layer {
    std::map<std::string, std::vector<float>> arrays;
    uint64_t seed = 11;
    cg_layer layer = {};
    seqlstm_recurrent_desc desc = {};

    /* An array to read from, or one to write to, which holds nothing yet. */
    float *read(const char *name, size_t count, float size)
    {
        std::vector<float> &x = arrays[name];
        for (size_t k = 0; k < count; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            x.push_back((float)(int32_t)(seed >> 32) * 0x1p-31f * size);
        }
        return x.data();
    }
    float *write(const char *name, size_t count)
    {
        arrays[name].assign(count, NAN);
        return arrays[name].data();
    }

    full_layer(const cell &c, const number &n)
    {
        const bool lstm = c.kind == SEQLSTM_CELL_LSTM, gru = c.kind == SEQLSTM_CELL_GRU;
        cg_layer &y = layer;
        y.cell = c.kind;
        y.options = c.options;
        y.training = 1;
        y.late = c.late;
        y.normed = (c.options & SEQLSTM_BIT_RECURRENT_LAYER_NORM) != 0;
        y.reverse = c.rest;
        y.gate.kind = SEQLSTM_ACT_SIGMOID;
        y.candidate.kind = y.output.kind = SEQLSTM_ACT_TANH;
        y.gate_clip = c.rest ? 1.5f : 0.0f;
        y.cell_clip = c.rest && lstm ? 0.7f : 0.0f;
        y.zoneout_cell = c.rest && lstm ? 0.2f : 0.0f;
        y.zoneout_hidden = c.rest ? 0.4f : 0.0f;
        y.zoneout_cell_key = 123456789;
        y.zoneout_hidden_key = 987654321;
        y.epsilon = 1e-3f;
        y.gates = lstm ? 4 : gru ? 3 : 1;
        y.input = y.hidden = y.out = UNITS;
        y.gh = y.gates * UNITS;
        desc.cell = c.kind;
        desc.options = c.options;
        if (gru && !c.late)
            desc.options |= SEQLSTM_BIT_RECURRENT_RESET_AFTER;
        desc.hidden = UNITS;
        desc.head.max_sequences = SEQUENCES;
        desc.head.dtype_compute = n.compute;
        for (int place = 0; place < 3; place++)
            desc.activations[place][0].kind = place == SEQLSTM_PLACE_GATE ? SEQLSTM_ACT_SIGMOID : SEQLSTM_ACT_TANH;
        set_axis();
        set_inputs(c);
        set_outputs(lstm, gru);
    }

    bool is(const char *name) const
    {
        return arrays.count(name) > 0;
    }

  private:
    std::vector<int32_t> row_sequence, row_step;

    void set_axis()
    {
        for (int t = 0; t < STEPS; t++)
            for (int b = 0; b < batch_sizes[t]; b++) {
                row_sequence.push_back(b);
                row_step.push_back(t);
            }
        layer.axis = {};
        layer.axis.sequences = SEQUENCES;
        layer.axis.steps = STEPS;
        layer.axis.rows = ROWS;
        layer.axis.lengths = lengths;
        layer.axis.batch_sizes = batch_sizes;
        layer.axis.row_offsets = row_offsets;
        layer.axis.row_sequence = row_sequence.data();
        layer.axis.row_step = row_step.data();
        layer.axis.sequence_id = sequence_ids;
        layer.axis.position0 = positions;
    }
    void set_inputs(const cell &c)
    {
        cg_layer &y = layer;
        const size_t gh = (size_t)y.gh, states = SEQUENCES * UNITS;
        const bool lstm = y.cell == SEQLSTM_CELL_LSTM;
        y.w_h = read("w_h", gh * UNITS, 0.3f);
        y.bias = read("bias", gh + (y.cell == SEQLSTM_CELL_GRU ? UNITS : 0), 0.5f);
        y.peephole = c.options & SEQLSTM_BIT_RECURRENT_PEEPHOLE ? read("peephole", 3 * UNITS, 0.5f) : nullptr;
        y.norm = y.normed ? read("norm", 2 * gh + 2 * UNITS, 1.0f) : nullptr;
        y.h0 = read("h0", states, 0.8f);
        y.c0 = lstm ? read("c0", states, 0.8f) : nullptr;
        y.mask_h = c.rest ? read("mask_h", states, 1.5f) : nullptr;
        y.dy_stride = 2 * UNITS;
        y.dy_offset = UNITS;
        y.dy = read("dy", ROWS * 2 * UNITS, 1.0f);
        y.dy_scale = c.rest ? 0.5f : 1.0f;
        y.other_h = c.rest ? read("other_h", ROWS * UNITS, 1.0f) : nullptr;
        y.dhn = read("dhn", states, 1.0f);
        y.dcn = lstm ? read("dcn", states, 1.0f) : nullptr;
        y.z = y.u = read("z", ROWS * gh, 1.0f);
    }
    void set_outputs(bool lstm, bool gru)
    {
        cg_layer &y = layer;
        const size_t gh = (size_t)y.gh, states = SEQUENCES * UNITS, all = ROWS * UNITS, rows = ROWS * gh;
        if (y.normed) {
            arrays["u"] = arrays["z"];
            y.u = arrays["u"].data();
            y.v = write("v", rows);
            y.moments = write("moments", ROWS * 4);
        }
        y.n = gru && !y.late ? write("n", all) : nullptr;
        y.c_raw = lstm ? write("c_raw", all) : nullptr;
        y.c = lstm ? write("c", all) : nullptr;
        y.h = write("h", all);
        y.hm[0] = write("hm0", states);
        y.hm[1] = write("hm1", states);
        y.product = write("product", SEQUENCES * gh);
        y.reset = write("reset", states);
        y.dh0 = write("dh0", states);
        y.dc0 = lstm ? write("dc0", states) : nullptr;
        y.direct = write("direct", states);
        y.back = write("back", states);
        y.dc = write("dc", states);
        y.reset_rows = y.late ? write("reset_rows", all) : nullptr;
        y.dreset = y.late ? write("dreset", states) : nullptr;
        y.pre_u = write("pre_u", rows);
        y.pre_v = gru && !y.late ? write("pre_v", rows) : y.pre_u;
        y.du = y.normed ? write("du", rows) : y.pre_u;
        y.dv = y.normed ? write("dv", rows) : y.pre_v;
        if (y.normed) {
            y.gain_u = write("gain_u", rows);
            y.gain_v = write("gain_v", rows);
            y.gain_c = lstm ? write("gain_c", all) : nullptr;
            y.bias_c = lstm ? write("bias_c", all) : nullptr;
        }
        y.peep = y.peephole ? write("peep", ROWS * 3 * UNITS) : nullptr;
    }
};

/* ---- both ways to run it ---------------------------------------------------------------------------------------- */

static bool ends(int code)
{
    return code == 0 && gpu_stream_synchronize(0, stream, nullptr) == SEQLSTM_OK;
}

static int step_forward(const cg_layer *y, uint32_t compute, int64_t turn)
{
    const int64_t t = cg_step_at(y, turn), m = batch_sizes[t];
    const int32_t parity = (int32_t)(turn % 2);
    int code = cg_step_product(stream, y, CG_PRODUCT_H, compute, t, parity, m, y->late ? 2 * UNITS : y->gh);
    code = code ? code : cg_step_cell(stream, y, y->late ? CG_PHASE_RESET : CG_PHASE_WHOLE, t, parity, m);
    if (y->late) {
        code = code ? code : cg_step_product(stream, y, CG_PRODUCT_RESET, compute, t, parity, m, UNITS);
        code = code ? code : cg_step_cell(stream, y, CG_PHASE_OUTPUT, t, parity, m);
    }
    return code;
}

static int step_backward(const cg_layer *y, uint32_t compute, int64_t turn)
{
    const int64_t t = cg_step_at(y, STEPS - 1 - turn), m = batch_sizes[t];
    int code = cg_step_cell_back(stream, y, y->late ? CG_PHASE_RESET : CG_PHASE_WHOLE, t, m);
    if (y->late) {
        code = code ? code : cg_step_product(stream, y, CG_PRODUCT_BACK_RESET, compute, t, 0, m, UNITS);
        code = code ? code : cg_step_cell_back(stream, y, CG_PHASE_OUTPUT, t, m);
    }
    return code ? code : cg_step_product(stream, y, CG_PRODUCT_BACK, compute, t, 0, m, UNITS);
}

static bool run_steps(full_layer &p)
{
    const cg_layer *y = &p.layer;
    const uint32_t compute = p.desc.head.dtype_compute;
    int code = cg_step_begin(stream, y, SEQUENCES, UNITS);
    for (int64_t turn = 0; code == 0 && turn < STEPS; turn++)
        code = step_forward(y, compute, turn);
    code = code ? code : cg_step_begin_back(stream, y, SEQUENCES, UNITS, UNITS);
    for (int64_t turn = 0; code == 0 && turn < STEPS; turn++)
        code = step_backward(y, compute, turn);
    return ends(code ? code : cg_step_finish_back(stream, y, SEQUENCES, UNITS, UNITS));
}

static bool run_pass(full_layer &p, cg_resident_pass pass, int32_t units)
{
    cg_resident r;
    if (!cg_resident_divide(&p.desc, pass, units, 1, MULTIPROCESSORS, 227 * 1024, &r))
        return false;
    std::vector<uint32_t> exchange((size_t)cg_resident_exchange_words(&r, SEQUENCES), 0x7FFF7FFFu); /* NaN */
    for (int64_t k = 0; k < cg_resident_counter_words(&r); k++)
        exchange[(size_t)k] = 0;
    return ends(pass == CG_RESIDENT_FORWARD ? cg_resident_forward(stream, &p.layer, &r, exchange.data(), SEQUENCES)
                                            : cg_resident_backward(stream, &p.layer, &r, exchange.data(), SEQUENCES));
}

static bool run_resident_forward(full_layer &p, int32_t units)
{
    return (!p.layer.normed || ends(cg_norm_inputs(stream, &p.layer, 1, ROWS))) &&
           run_pass(p, CG_RESIDENT_FORWARD, units);
}

static bool run_resident_backward(full_layer &p, cg_resident_pass pass, int32_t units)
{
    const cg_layer *y = &p.layer;
    return ends(cg_step_begin_back(stream, y, SEQUENCES, UNITS, UNITS)) && run_pass(p, pass, units) &&
           ends(cg_step_finish_back(stream, y, SEQUENCES, UNITS, UNITS)) &&
           (!y->normed || ends(cg_norm_inputs_back(stream, y, 1, ROWS)));
}

/* ---- comparison ------------------------------------------------------------------------------------------------- */

/* Rows of f with coupled gates hold nothing. */
static bool is_unused(const full_layer &p, const char *name, size_t k)
{
    const std::vector<float> &x = p.arrays.at(name);
    if (strcmp(name, "peep") == 0)
        return cg_is_coupled(&p.layer) && k / UNITS % 3 == 1;
    return x.size() == (size_t)p.layer.gh * ROWS && cg_is_unused(&p.layer, (int64_t)(k % (size_t)p.layer.gh));
}

static const char *const records[] = {"z", "n", "c_raw", "c", "h", "v"};
static const char *const gradients[] = {"pre_u",  "pre_v",  "du",     "dv",     "dh0",  "dc0",
                                        "gain_u", "gain_v", "gain_c", "bias_c", "peep", "reset_rows"};

template <size_t COUNT>
static bool agree(const full_layer &expected, const full_layer &got, const char *const (&names)[COUNT],
                  double tolerance)
{
    for (const char *name : names) {
        if (!expected.is(name))
            continue;
        const std::vector<float> &a = expected.arrays.at(name), &b = got.arrays.at(name);
        for (size_t k = 0; k < a.size(); k++)
            if (!is_unused(expected, name, k) &&
                !(fabs((double)a[k] - (double)b[k]) <= tolerance * fmax(1, fabs((double)a[k])))) {
                printf("# %s[%zu] is %.9g, expected %.9g\n", name, k, (double)b[k], (double)a[k]);
                return false;
            }
    }
    return true;
}

static bool check(const cell &c, const number &n)
{
    full_layer expected(c, n);
    bool good = run_steps(expected);
    for (int32_t units = 8; units <= 32; units *= 2) {
        full_layer got(c, n);
        bool same = run_resident_forward(got, units) && agree(expected, got, records, n.tolerance);
        for (int pass = CG_RESIDENT_BACKWARD; pass <= CG_RESIDENT_SCATTER; pass++) {
            for (const char *name : gradients)
                if (got.is(name))
                    got.write(name, got.arrays[name].size());
            same = run_resident_backward(got, (cg_resident_pass)pass, units) &&
                   agree(expected, got, gradients, n.tolerance) && same;
        }
        if (!same)
            printf("# blocks of %d units\n", (int)units);
        good = good && same;
    }
    return good;
}

int main()
{
    enum { NORM = SEQLSTM_BIT_RECURRENT_LAYER_NORM, PEEPHOLE = SEQLSTM_BIT_RECURRENT_PEEPHOLE };
    static const cell cells[] = {
        {"lstm", SEQLSTM_CELL_LSTM, 0, false, false},
        {"lstm, everything", SEQLSTM_CELL_LSTM, PEEPHOLE, false, true},
        {"lstm, coupled gates", SEQLSTM_CELL_LSTM, PEEPHOLE | SEQLSTM_BIT_RECURRENT_COUPLED_GATES, false, true},
        {"lstm, layer norm", SEQLSTM_CELL_LSTM, NORM | PEEPHOLE, false, true},
        {"gru", SEQLSTM_CELL_GRU, 0, false, true},
        {"gru, late", SEQLSTM_CELL_GRU, 0, true, true},
        {"gru, layer norm", SEQLSTM_CELL_GRU, NORM, false, true},
        {"rnn", SEQLSTM_CELL_RNN, 0, false, true},
        {"rnn, layer norm", SEQLSTM_CELL_RNN, NORM, false, true},
    };
    static const number numbers[] = {{"float32", SEQLSTM_DTYPE_FLOAT32, 1e-4},
                                     {"float16", SEQLSTM_DTYPE_FLOAT16, 4e-3}};
    std::vector<emulated_test> tests;
    for (const cell &c : cells)
        for (const number &n : numbers)
            tests.push_back({std::string(c.name) + ", " + n.name, [&] { return check(c, n); }});
    return run_tests(tests);
}
