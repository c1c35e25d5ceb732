/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of the frame of a training step (common/cuda_frame.cu) on the emulated device: what the calls of a step
 * read, which states begin at zero, what a step counts for, and what is copied. */
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "common/cuda_frame.h"
#include "seqlstm/ext/draft/frame.h"
#include "emulated_tests.h"

enum : uint32_t {
    SETTLED = SEQLSTM_BIT_ORDER_SETTLED,
    RESET = SEQLSTM_BIT_ORDER_RESET,
    FIRST = SEQLSTM_BIT_ORDER_FIRST,
    UPDATE = SEQLSTM_BIT_ORDER_UPDATE,
    SCALES = SEQLSTM_BIT_ORDER_SCALES,
    GOES_ON = SEQLSTM_BIT_ORDER_GOES_ON,
    SKIP = SEQLSTM_BIT_STEP_SKIP
};
/* Of three slots, the sixth step uses the last. The words of the second copy and of the states need many blocks. */
enum { SLOTS = 3, STEPS = 5, SLOT = 2, SLOT_BYTES = 256, FEW = 9, MANY = 5003 };

/* Everything that a frame names. The other slots hold orders with other numbers. */
struct world {
    alignas(64) unsigned char ring[SLOTS][SLOT_BYTES];
    seqlstm_progress progress = {};
    seqlstm_outcome outcomes[SLOTS] = {};
    seqlstm_step step = {};
    double sums[2] = {11, 12}, squares = 13;
    std::vector<uint32_t> states, from, to_few, to_many;
    seqlstm_frame frame = {};

    world() : states(MANY, 7u), from(MANY), to_few(FEW + 1, 8u), to_many(MANY + 1, 9u)
    {
        memset(ring, 0x3A, sizeof ring);
        for (uint32_t k = 0; k < MANY; k++)
            from[k] = 1000 + k;
        progress.steps = STEPS;
        progress.updates = 40;
        progress.loss = 2;
        progress.weight = 3;
        progress.loss_scale = 8;
        progress.good = 5;
        frame.struct_size = sizeof frame;
        frame.slots = SLOTS;
        frame.slot_bytes = SLOT_BYTES;
        frame.ring = ring;
        frame.progress = &progress;
        frame.outcomes = outcomes;
        frame.step = &step;
        frame.sums = sums;
        frame.squares = &squares;
        frame.states = states.data();
        frame.state_bytes = (MANY - 1) * 4;
        frame.copy_count = 2;
        frame.copies[0] = {to_few.data(), from.data() + 3, 0, FEW * 4};
        frame.copies[1] = {to_many.data(), from.data(), 0, MANY * 4};
        seqlstm_step of_host = {};
        of_host.struct_size = sizeof of_host;
        of_host.seed = 21;
        of_host.update = 22;
        of_host.learning_rate = 0.5f;
        of_host.loss_scale = 4;
        of_host.grad_scale = 0.25f;
        put_step(of_host);
    }
    void put_step(const seqlstm_step &of_host)
    {
        memcpy(ring[SLOT] + SEQLSTM_FRAME_STEP_OFFSET, &of_host, sizeof of_host);
    }
    void put_order(uint32_t flags)
    {
        seqlstm_order order = {};
        order.flags = flags;
        order.good = 1;
        order.updates = 30;
        order.loss = 100;
        order.weight = 200;
        order.good_enough = 6;
        order.scale_most = 64;
        memcpy(ring[SLOT], &order, sizeof order);
    }
    bool run(bool end)
    {
        return (end ? gpu_frame_end(stream, &frame) : gpu_frame_begin(stream, &frame)) == 0 &&
               gpu_stream_synchronize(0, stream, nullptr) == SEQLSTM_OK;
    }
};

static bool complain(const char *end, size_t row, const char *what)
{
    printf("# %s, row %zu: %s\n", end, row, what);
    return false;
}

/* ---- the beginning ---------------------------------------------------------------------------------------------- */

static bool check_begin()
{
    static const struct {
        uint32_t flags, of_host; /* flags of the order, of the step block */
        double loss;             /* of the earlier steps of the update */
        uint32_t stopped, reset;
        bool skips, cleared;
    } rows[] = {
        {0, 0, 2, 0, 0, false, false},
        {0, SKIP, 2, 0, 0, true, false},
        {0, 0, INFINITY, 0, 0, true, false},
        {0, 0, -INFINITY, 0, 0, true, false},
        {0, 0, (double)NAN, 0, 0, true, false},
        {0, 0, 2, 1, 0, true, false},
        {FIRST, 0, INFINITY, 0, 0, false, false}, /* of the update before */
        {FIRST, 0, 2, 1, 0, true, false},
        {0, 0, 2, 0, 1, false, true},
        {RESET, 0, 2, 0, 0, false, true},
        {RESET | FIRST, 0, 2, 0, 1, false, true},
        {SETTLED, 0, INFINITY, 1, 1, false, false}, /* the host has seen to all that */
        {SETTLED, SKIP, 2, 0, 0, true, false},
        {SETTLED | RESET, 0, 2, 0, 0, false, true},
        {SETTLED | RESET, 0, 2, 0, 1, false, true},
        {UPDATE | SCALES | GOES_ON, 0, 2, 0, 0, false, false},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        world w;
        seqlstm_step of_host = {};
        memcpy(&of_host, w.ring[SLOT] + SEQLSTM_FRAME_STEP_OFFSET, sizeof of_host);
        of_host.flags = rows[k].of_host;
        w.put_step(of_host);
        w.put_order(rows[k].flags);
        w.progress.loss = rows[k].loss;
        w.progress.stopped = rows[k].stopped;
        w.progress.reset = rows[k].reset;
        const seqlstm_progress before = w.progress;
        if (!w.run(false))
            return complain("begin", k, "does not run");
        const bool settled = rows[k].flags & SETTLED;
        if (w.step.flags != (rows[k].skips ? (uint32_t)SKIP : 0u))
            return complain("begin", k, "skips");
        if (w.step.update != (settled ? 22u : 41u) || w.step.loss_scale != (settled ? 4.0f : 8.0f) ||
            w.step.grad_scale != (settled ? 0.25f : 0.125f) || w.step.seed != 21 || w.step.learning_rate != 0.5f)
            return complain("begin", k, "the step block");
        for (uint32_t e = 0; e < MANY; e++)
            if (w.states[e] != (rows[k].cleared && e < MANY - 1 ? 0u : 7u))
                return complain("begin", k, "states");
        if (w.sums[0] != 0 || w.sums[1] != 0 || w.squares != 0)
            return complain("begin", k, "sums");
        if (memcmp(&before, &w.progress, sizeof before) != 0)
            return complain("begin", k, "progress");
    }
    return true;
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

struct end_row {
    uint32_t flags;
    double loss, weight, squares; /* of this step */
    uint32_t good, stopped;       /* before */
    float used;                   /* loss scale of the step */
    struct {
        double loss, weight;
        uint64_t updates;
        float scale;
        uint32_t good, stopped, reset;
    } after;
};

/* Before: 40 updates, a loss of 2 of the weight 3, a loss scale of 8. The host says: 30 updates, 100 of 200, 1 good. */
static const end_row end_rows[] = {
    /* one of several steps of an update */
    {0, 10, 4, 9, 5, 0, 8, {12, 7, 40, 8, 5, 0, 0}},
    {FIRST, 10, 4, 9, 5, 0, 8, {10, 4, 40, 8, 5, 0, 0}},
    {SETTLED, 10, 4, 9, 5, 1, 2, {110, 204, 30, 2, 1, 0, 0}},
    {SETTLED | FIRST, 10, 4, 9, 5, 1, 2, {110, 204, 30, 2, 1, 0, 0}},
    {0, INFINITY, 4, 9, 5, 0, 8, {INFINITY, 7, 40, 8, 5, 0, 0}},
    /* an update */
    {UPDATE, 10, 4, 9, 5, 0, 8, {12, 7, 41, 8, 5, 0, 0}},
    {UPDATE | FIRST, 10, 4, 9, 5, 0, 8, {10, 4, 41, 8, 5, 0, 0}},
    {UPDATE | SETTLED, 10, 4, 9, 5, 1, 2, {110, 204, 31, 2, 1, 0, 0}},
    {UPDATE, 10, 4, 9, 5, 1, 8, {12, 7, 40, 8, 5, 1, 0}},       /* which has stopped */
    {UPDATE | FIRST, 0, 0, 9, 5, 0, 8, {0, 0, 40, 8, 5, 0, 0}}, /* of no weight */
    {UPDATE | FIRST, 10, 0, 9, 5, 0, 8, {10, 0, 40, 8, 5, 0, 0}},
    /* that is not finite */
    {UPDATE, INFINITY, 4, 9, 5, 0, 8, {INFINITY, 7, 40, 8, 5, 1, 0}},
    {UPDATE | GOES_ON, INFINITY, 4, 9, 5, 0, 8, {INFINITY, 7, 40, 8, 5, 0, 1}},
    {UPDATE, 10, 4, INFINITY, 5, 0, 8, {12, 7, 40, 8, 5, 1, 0}},
    {UPDATE | GOES_ON, 10, 4, INFINITY, 5, 0, 8, {12, 7, 40, 8, 5, 0, 1}},
    {UPDATE, 10, 4, (double)NAN, 5, 0, 8, {12, 7, 40, 8, 5, 1, 0}},
    {UPDATE, 10, 4, -1, 5, 0, 8, {12, 7, 40, 8, 5, 1, 0}}, /* whose root is no number */
    /* with a loss scale that follows */
    {UPDATE | SCALES, 10, 4, 9, 3, 0, 8, {12, 7, 41, 8, 4, 0, 0}},
    {UPDATE | SCALES, 10, 4, 9, 5, 0, 8, {12, 7, 41, 16, 0, 0, 0}},
    {UPDATE | SCALES, 10, 4, 9, 5, 0, 64, {12, 7, 41, 64, 0, 0, 0}},
    {UPDATE | SCALES, 10, 4, 9, 5, 0, 48, {12, 7, 41, 64, 0, 0, 0}},
    {UPDATE | SCALES, 10, 4, 9, 6, 0, 8, {12, 7, 41, 8, 7, 0, 0}},
    {UPDATE | SCALES, 10, 4, INFINITY, 5, 0, 8, {12, 7, 40, 4, 0, 0, 0}},
    {UPDATE | SCALES | GOES_ON, 10, 4, INFINITY, 3, 0, 8, {12, 7, 40, 4, 0, 0, 0}},
    {UPDATE | SCALES, 10, 4, INFINITY, 3, 0, 1, {12, 7, 40, 1, 4, 1, 0}}, /* that cannot become smaller */
    {UPDATE | SCALES, INFINITY, 4, 9, 3, 0, 8, {INFINITY, 7, 40, 8, 3, 1, 0}},
    {UPDATE | SCALES | SETTLED, 10, 4, 9, 5, 1, 2, {110, 204, 31, 2, 2, 0, 0}},
    {SCALES, 10, 4, INFINITY, 5, 0, 8, {12, 7, 40, 8, 5, 0, 0}}, /* no update */
    /* gradients whose squares are finite with their scale, or without it alone */
    {UPDATE, 10, 4, 1e308, 5, 0, 0x1p-10f, {12, 7, 40, 0x1p-10f, 5, 1, 0}},
    {UPDATE, 10, 4, 1e305, 5, 0, 0x1p-10f, {12, 7, 40, 0x1p-10f, 5, 1, 0}},
    {UPDATE, 10, 4, 1e308, 5, 0, 1024, {12, 7, 41, 1024, 5, 0, 0}},
};

static bool is_same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || a == b;
}

static bool check_end()
{
    for (size_t k = 0; k < sizeof end_rows / sizeof *end_rows; k++) {
        const end_row &row = end_rows[k];
        world w;
        w.put_order(row.flags);
        w.progress.good = row.good;
        w.progress.stopped = row.stopped;
        w.progress.reset = 1;
        w.step.loss_scale = row.used;
        w.sums[0] = row.loss;
        w.sums[1] = row.weight;
        w.squares = row.squares;
        if (!w.run(true))
            return complain("end", k, "does not run");
        const seqlstm_progress &now = w.progress;
        if (now.steps != STEPS + 1)
            return complain("end", k, "steps");
        if (!is_same(now.loss, row.after.loss) || !is_same(now.weight, row.after.weight))
            return complain("end", k, "sums of the update");
        if (now.updates != row.after.updates || now.stopped != row.after.stopped || now.reset != row.after.reset)
            return complain("end", k, "what it counts for");
        if (now.loss_scale != row.after.scale || now.good != row.after.good)
            return complain("end", k, "the loss scale");
        for (int slot = 0; slot < SLOTS; slot++) {
            const seqlstm_outcome &out = w.outcomes[slot];
            const bool own = slot == SLOT;
            if (out.step != (own ? STEPS + 1u : 0u) || !is_same(out.loss, own ? row.loss : 0) ||
                !is_same(out.weight, own ? row.weight : 0) || !is_same(out.squares, own ? row.squares : 0) ||
                out.loss_scale != (own ? row.used : 0.0f))
                return complain("end", k, "outcomes");
        }
        for (uint32_t e = 0; e < MANY; e++)
            if (w.states[e] != 7)
                return complain("end", k, "states");
    }
    return true;
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

/* Each to its own place, wholly and no further; at the beginning also out of the slot of the step. */
static bool check_copies()
{
    for (int end = 0; end < 2; end++)
        for (int of_slot = 0; of_slot <= !end; of_slot++) {
            world w;
            const uint32_t offset = SEQLSTM_FRAME_STEP_OFFSET + 104;
            w.put_order(0);
            for (int slot = 0; slot < SLOTS; slot++)
                for (uint32_t e = 0; e < FEW; e++) {
                    const uint32_t word = 100 * (uint32_t)slot + e;
                    memcpy(w.ring[slot] + offset + 4 * e, &word, 4);
                }
            if (of_slot)
                w.frame.copies[0] = {w.to_few.data(), nullptr, offset, FEW * 4};
            if (!w.run(end))
                return complain("copies", (size_t)of_slot, "do not run");
            for (uint32_t e = 0; e <= FEW; e++)
                if (w.to_few[e] != (e == FEW ? 8u : of_slot ? 200 + e : 1003 + e))
                    return complain("copies", (size_t)of_slot, "the first");
            for (uint32_t e = 0; e <= MANY; e++)
                if (w.to_many[e] != (e == MANY ? 9u : 1000 + e))
                    return complain("copies", (size_t)of_slot, "the second");
        }
    return true;
}

int main()
{
    return run_tests(
        {{"the beginning of a step", check_begin}, {"the end of a step", check_end}, {"copies", check_copies}});
}
