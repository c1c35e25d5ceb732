/* SPDX-License-Identifier: Apache-2.0 */
/* All steps of all layers in one launch. See wavefront.h. */
#include "cuda-generic/recurrent/kernels/wavefront.h"
#include "cuda-generic/recurrent/kernels/cell.h"
#include "cuda-generic/device/device.h"

static const int MOST = CG_WAVE_MOST, GATES_MOST = 4, ROWS = GATES_MOST * MOST, THREADS = 2 * ROWS,
                 SLICES = ROWS / MOST, BACK_THREADS = THREADS + MOST;

/* What a block keeps at the start of its shared memory, since registers hold the weights. */
struct cg_wave_block {
    struct cg_layer layer;
    unsigned ticket;
    unsigned reserved0;
};

/* Finds the block's sequence, and its layer in the order in which layers run. All threads call. */
static __device__ void take_ticket(struct cg_wave_block *block, unsigned *tickets, const struct cg_layer *layers,
                                   int count, bool back)
{
    if (threadIdx.x == 0) {
        block->ticket = atomicAdd(tickets, 1u);
        const int turn = (int)(block->ticket % (unsigned)count);
        block->layer = layers[back ? count - 1 - turn : turn];
    }
    __syncthreads();
}

/* The counts of finished steps: of the layer that comes before in this order, and its own, which the next layer
 * reads. */
struct cg_wave_flags {
    const unsigned *theirs; /* NULL: no layer before */
    unsigned *mine;         /* NULL: no layer after */
    unsigned known;
};

static __device__ struct cg_wave_flags find_flags(unsigned *exchange, int64_t b, int64_t turn, int64_t count)
{
    unsigned *own = exchange + b * count + turn;
    return {turn > 0 ? own - 1 : nullptr, turn + 1 < count ? own : nullptr, 0};
}

/* Waits until the first `steps` steps of the layer before are in its records. */
static __device__ void wait_for(struct cg_wave_flags *flags, int64_t steps)
{
    while (flags->known < (unsigned)steps)
        flags->known = gpu_load_acquire(flags->theirs);
}

/* Publishes that `done` of `steps` steps are in the records. All threads have passed a barrier since. */
static __device__ void leave(const struct cg_wave_flags &flags, int64_t done, int64_t steps)
{
    if (threadIdx.x == blockDim.x - 1 && flags.mine && (done % CG_WAVE_STRIDE == 0 || done == steps)) {
        __threadfence();
        gpu_store_release(flags.mine, (unsigned)done);
    }
}

/* The row of step number s of `steps`, in the order in which they run. */
static __device__ int64_t find_row(const struct cg_layer &y, int64_t s, int64_t steps, int64_t b)
{
    return cg_row(&y, y.reverse ? steps - 1 - s : s, b);
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS, 1)
    forward(const struct cg_layer *layers, int count, unsigned *exchange, unsigned *tickets)
{
    GPU_SHARED(struct cg_wave_block, block);
    /* h [MOST] masked; x [MOST] masked; z, u [ROWS] of the step */
    float *h = reinterpret_cast<float *>(block + 1), *x = h + MOST, *z = x + MOST, *u = z + ROWS;
    take_ticket(block, tickets, layers, count, false);
    const int64_t turn = block->ticket % (unsigned)count, b = block->ticket / (unsigned)count;
    const struct cg_layer &y = block->layer;
    const float *below = turn > 0 ? layers[turn - 1].h : nullptr;
    struct cg_wave_flags flags = find_flags(exchange, b, turn, count);
    const int64_t n = y.hidden, steps = y.axis.lengths[b];
    const bool feeds = threadIdx.x >= ROWS;
    const int j = (int)threadIdx.x % ROWS;
    const bool apart = cg_is_apart(&y, j / n), multiplies = j < y.gh && !cg_is_unused(&y, j) && (!feeds || below);
    const float mask = feeds && below && j < n ? cg_input_mask(&y, b, j) : 1.0f;
    const float *matrix = feeds ? y.w_x : y.w_h;
    float w[MOST];
    for (int e = 0; e < MOST; e++)
        w[e] = multiplies && e < n ? matrix[j * n + e] : 0.0f;
    if (!feeds && j < MOST)
        h[j] = j < n ? cg_or_zero(y.h0, b * n + j) * cg_or_one(y.mask_h, b * n + j) : 0.0f;
    float coming = 0; /* prefetched: u of the first layer's next step, or x of any other's */
    for (int64_t s = -2; s < steps; s++) {
        const int64_t row = s < 0 ? 0 : find_row(y, s, steps, b), before = s <= 0 ? -1 : find_row(y, s - 1, steps, b);
        float next = coming;
        if (feeds) {
            if (j < MOST)
                x[j] = coming;
            if (s + 2 < steps && j < (below ? n : y.gh)) {
                const int64_t ahead = find_row(y, s + 2, steps, b);
                if (below)
                    wait_for(&flags, s + 3);
                coming = below ? below[ahead * n + j] * mask : y.u[ahead * y.gh + j];
            }
        } else if (s >= 0) {
            float v = 0;
            for (int e = 0; e < MOST; e++)
                v += w[e] * h[e];
            if (j < y.gh)
                z[j] = apart ? v : v + u[j];
        }
        __syncthreads();
        if (feeds) {
            if (below) {
                next = 0;
                for (int e = 0; e < MOST; e++)
                    next += w[e] * x[e];
                if (apart && j < y.gh && s >= -1 && s + 1 < steps)
                    y.u[find_row(y, s + 1, steps, b) * y.gh + j] = next; /* where the cell reads it */
            }
            u[j] = next;
        } else if (s >= 0 && j < n) {
            float sums[4] = {0, 0, 0, 0};
            for (int g = 0; g < GATES_MOST; g++)
                sums[g] = g < y.gates ? z[g * n + j] : 0.0f;
            const int64_t t = y.reverse ? steps - 1 - s : s;
            h[j] = cg_keep(&y, t, b, row, before, j, cg_cell_output(&y, t, b, row, before, j, sums));
        }
        __syncthreads();
        if (s >= 0)
            leave(flags, s + 1, steps);
    }
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

/* What the threads of a block exchange. */
struct cg_wave_sums {
    float dv[ROWS], du[ROWS];                   /* gradients of the gates: its own, and those of the layer above */
    float back[SLICES][MOST], dy[SLICES][MOST]; /* their products with W_h and W_x, slice by slice */
    float dy_now[MOST];
};

static __device__ float add_slices(const float sums[SLICES][MOST], int k)
{
    float sum = 0;
    for (int slice = 0; slice < SLICES; slice++)
        sum += sums[slice][k];
    return sum;
}

/* The cells of a block: thread k computes unit k. */
static __device__ void run_cells(struct cg_layer &y, const struct cg_layer *above, struct cg_wave_sums *shared,
                                 int64_t b, int64_t steps)
{
    const int64_t k = threadIdx.x;
    const float mask = above && k < y.hidden ? cg_input_mask(above, b, k) : 1.0f;
    for (int64_t s = steps + 1; s >= 0; s--) {
        const bool runs = s < steps && k < y.hidden;
        if (runs) {
            const int64_t t = y.reverse ? steps - 1 - s : s, row = cg_row(&y, t, b);
            const int64_t before = s == 0 ? -1 : find_row(y, s - 1, steps, b);
            float u[4] = {0, 0, 0, 0}, v[4] = {0, 0, 0, 0};
            if (above)
                shared->dy_now[k] = add_slices(shared->dy, (int)k) * mask;
            cg_cell_backward(&y, t, b, row, before, k, cg_dh_new(&y, t, row, b, k, y.back[b * y.hidden + k]), u, v);
            for (int g = 0; g < GATES_MOST; g++) {
                if (g >= y.gates)
                    break;
                cg_set_pre(&y, row, g * y.hidden + k, u[g], v[g]);
                shared->dv[g * y.hidden + k] = v[g];
            }
        }
        __syncthreads();
        __syncthreads();
        if (runs)
            y.back[b * y.hidden + k] = add_slices(shared->back, (int)k); /* the same thread reads it in the next step */
    }
}

/* The other threads: thread (slice, k) multiplies column k with a slice of the gates that its half computes on. */
static __device__ void run_products(const struct cg_layer &y, const struct cg_layer *above, struct cg_wave_sums *shared,
                                    struct cg_wave_flags flags, int64_t b, int64_t steps)
{
    const bool feeds = threadIdx.x >= MOST + ROWS;
    const int64_t n = y.hidden;
    const int j = (int)(threadIdx.x - MOST) % ROWS, k = j % MOST, slice = j / MOST, gh = (int)y.gh,
              rows = (gh + SLICES - 1) / SLICES, first = slice * rows;
    const float *matrix = feeds ? (above ? above->w_x : nullptr) : y.w_h, *left = above ? above->du : nullptr;
    const bool fetches = feeds && above && j < gh;
    float *from = feeds ? shared->du : shared->dv, *to = &(feeds ? shared->dy : shared->back)[slice][k];
    float w[MOST]; /* rows <= ROWS / SLICES = MOST */
    for (int e = 0; e < MOST; e++) {
        const int r = first + e;
        w[e] = matrix && e < rows && r < gh && k < n && !cg_is_unused(&y, r) ? matrix[r * n + k] : 0.0f;
    }
    float coming = 0; /* prefetched: du of the next step */
    for (int64_t s = steps + 1; s >= 0; s--) {
        if (fetches) {
            from[j] = coming;
            if (s >= 2) {
                wait_for(&flags, steps - s + 2);
                coming = left[find_row(y, s - 2, steps, b) * gh + j];
            }
        }
        __syncthreads();
        float sum = 0;
        for (int e = 0; e < MOST; e++)
            sum += w[e] * from[first + e];
        *to = sum;
        __syncthreads();
        if (s < steps)
            leave(flags, steps - s, steps);
    }
}

static __global__ void __launch_bounds__(BACK_THREADS, 1)
    backward(const struct cg_layer *layers, int count, unsigned *exchange, unsigned *tickets)
{
    GPU_SHARED(struct cg_wave_block, block);
    struct cg_wave_sums *shared = reinterpret_cast<struct cg_wave_sums *>(block + 1);
    take_ticket(block, tickets, layers, count, true);
    const int64_t turn = block->ticket % (unsigned)count, b = block->ticket / (unsigned)count;
    const struct cg_layer *above = turn > 0 ? &layers[count - turn] : nullptr;
    const int64_t steps = block->layer.axis.lengths[b];
    if (above && threadIdx.x == 0) { /* for each step, in shared memory */
        block->layer.dy = shared->dy_now;
        block->layer.dy_stride = 0;
    }
    for (unsigned j = threadIdx.x; j < ROWS; j += BACK_THREADS)
        shared->dv[j] = shared->du[j] = 0.0f;
    __syncthreads();
    if (threadIdx.x < MOST)
        run_cells(block->layer, above, shared, b, steps);
    else
        run_products(block->layer, above, shared, find_flags(exchange, b, turn, count), b, steps);
}

extern "C" int cg_wave_forward(void *stream, const struct cg_layer *layers, int64_t count, int64_t sequences,
                               uint32_t *exchange)
{
    return GPU_LAUNCH_TICKETS(stream, (unsigned)(sequences * count), THREADS,
                              sizeof(struct cg_wave_block) + (2 * MOST + 2 * ROWS) * sizeof(float), forward, layers,
                              (int)count, exchange, exchange + sequences * count);
}

extern "C" int cg_wave_backward(void *stream, const struct cg_layer *layers, int64_t count, int64_t sequences,
                                uint32_t *exchange)
{
    return GPU_LAUNCH_TICKETS(stream, (unsigned)(sequences * count), BACK_THREADS,
                              sizeof(struct cg_wave_block) + sizeof(struct cg_wave_sums), backward, layers, (int)count,
                              exchange, exchange + sequences * count);
}
