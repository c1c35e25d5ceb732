/* SPDX-License-Identifier: Apache-2.0 */
/* The casts of plugins/common on the emulated device: between all number types, of any number of elements and any
 * alignment, each the nearest number that there is (of two, the even one); and many ranges in one launch. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "common/cuda_cast.h"
#include "seqlstm/ops.h"
#include "emulated_tests.h"

/* ---- number types ----------------------------------------------------------------------------------------------- */

static const uint32_t types[] = {SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT64, SEQLSTM_DTYPE_FLOAT16,
                                 SEQLSTM_DTYPE_BFLOAT16};

static size_t count_bytes(uint32_t type)
{
    return type == SEQLSTM_DTYPE_FLOAT64 ? 8 : type == SEQLSTM_DTYPE_FLOAT32 ? 4 : 2;
}

/* What the word of a type of 16 bits means. The word of the infinity: the power of two where it begins. */
static double decode_size(uint32_t type, int word)
{
    const int fraction = type == SEQLSTM_DTYPE_FLOAT16 ? 10 : 7, bias = type == SEQLSTM_DTYPE_FLOAT16 ? 15 : 127;
    const int e = word >> fraction, rest = word % (1 << fraction);
    return e == 0 ? ldexp(rest, 1 - bias - fraction) : ldexp(rest + (1 << fraction), e - bias - fraction);
}

static int get_infinity(uint32_t type)
{
    return type == SEQLSTM_DTYPE_FLOAT16 ? 0x7C00 : 0x7F80;
}

/* The word that is nearest to x, by a search among all of them. */
static uint16_t find_nearest(uint32_t type, double x)
{
    const double size = fabs(x);
    int below = 0, above = get_infinity(type);
    const int sign = std::signbit(x) ? 0x8000 : 0;
    if (size >= decode_size(type, above))
        return (uint16_t)(sign | above);
    while (above - below > 1) {
        const int middle = (below + above) / 2;
        (decode_size(type, middle) <= size ? below : above) = middle;
    }
    const double half = (decode_size(type, below) + decode_size(type, above)) / 2;
    const bool up = size > half || (size == half && below % 2 == 1);
    return (uint16_t)(sign | (up ? above : below));
}

static void put(uint32_t type, void *at, double x)
{
    const float single = (float)x;
    const uint16_t word = count_bytes(type) == 2 ? find_nearest(type, x) : (uint16_t)0;
    if (type == SEQLSTM_DTYPE_FLOAT64)
        memcpy(at, &x, sizeof x);
    else if (type == SEQLSTM_DTYPE_FLOAT32)
        memcpy(at, &single, sizeof single);
    else
        memcpy(at, &word, sizeof word);
}

static double get(uint32_t type, const void *at)
{
    double x = 0;
    float single = 0;
    uint16_t word = 0;
    if (type == SEQLSTM_DTYPE_FLOAT64) {
        memcpy(&x, at, sizeof x);
        return x;
    }
    if (type == SEQLSTM_DTYPE_FLOAT32) {
        memcpy(&single, at, sizeof single);
        return (double)single;
    }
    memcpy(&word, at, sizeof word);
    const int size = word & 0x7FFF, infinity = get_infinity(type);
    x = size > infinity ? NAN : size == infinity ? INFINITY : decode_size(type, size);
    return word & 0x8000 ? -x : x;
}

/* Are the bytes those of x, of type `type`? Of what is no number, any. */
static bool is_same(uint32_t type, const void *at, double x)
{
    unsigned char wanted[8] = {0};
    if (std::isnan(x))
        return std::isnan(get(type, at));
    put(type, wanted, x);
    return memcmp(at, wanted, count_bytes(type)) == 0;
}

/* ---- one cast --------------------------------------------------------------------------------------------------- */

enum { GUARD = 32 /* bytes around a buffer, which stay */ };

struct buffer {
    std::vector<unsigned char> bytes;
    size_t shift, type_bytes;

    buffer(uint32_t type, size_t elems, size_t shift_elems)
        : bytes((elems + shift_elems) * count_bytes(type) + 2 * GUARD + 16, 0xAB), shift(0),
          type_bytes(count_bytes(type))
    {
        while (((uintptr_t)bytes.data() + GUARD + shift) % 16 != 0)
            shift++;
        shift += GUARD + shift_elems * type_bytes;
    }
    unsigned char *at(size_t k)
    {
        return bytes.data() + shift + k * type_bytes;
    }
    bool is_whole(size_t elems)
    {
        bool whole = true;
        for (size_t k = 0; k < bytes.size(); k++)
            whole = whole && ((k >= shift && k < shift + elems * type_bytes) || bytes[k] == 0xAB);
        return whole;
    }
};

/* Casts values, which type `from` has exactly. */
static bool check_cast(uint32_t from, uint32_t to, const std::vector<double> &values, size_t shift_x, size_t shift_y)
{
    const size_t n = values.size();
    buffer x(from, n, shift_x), y(to, n, shift_y);
    for (size_t k = 0; k < n; k++)
        put(from, x.at(k), values[k]);
    if (gpu_cast(stream, from, to, (int64_t)n, x.at(0), y.at(0)) != 0 ||
        gpu_stream_synchronize(0, stream, nullptr) != SEQLSTM_OK)
        return false;
    for (size_t k = 0; k < n; k++)
        if (!is_same(to, y.at(k), get(from, x.at(k)))) {
            printf("# %u to %u, element %zu of %zu: %a becomes %a\n", from, to, k, n, get(from, x.at(k)),
                   get(to, y.at(k)));
            return false;
        }
    return y.is_whole(n);
}

/* Halves between neighbours of `type`, what is next to them in type `of`, and the neighbours; with both signs. */
static std::vector<double> list_halves(uint32_t type, uint32_t of)
{
    const int infinity = get_infinity(type), normal = type == SEQLSTM_DTYPE_FLOAT16 ? 1 << 10 : 1 << 7;
    std::vector<double> values = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e-300, -1e-300, 5e-324};
    for (int word = 0; word < infinity; word++) {
        const bool edge = word < 70 || abs(word - normal) < 40 || word > infinity - 40;
        if (!edge && word % 13 != 0)
            continue;
        const double half = (decode_size(type, word) + decode_size(type, word + 1)) / 2;
        const double less = of == SEQLSTM_DTYPE_FLOAT64 ? nextafter(half, 0) : (double)nextafterf((float)half, 0);
        const double more =
            of == SEQLSTM_DTYPE_FLOAT64 ? nextafter(half, 1e308) : (double)nextafterf((float)half, INFINITY);
        for (double x : {decode_size(type, word), less, half, more}) {
            values.push_back(x);
            values.push_back(-x);
        }
    }
    return values;
}

static bool check_halves()
{
    bool good = true;
    for (uint32_t type : {SEQLSTM_DTYPE_FLOAT16, SEQLSTM_DTYPE_BFLOAT16})
        for (uint32_t of : {SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT64})
            good = check_cast(of, type, list_halves(type, of), 0, 0) && good;
    return good;
}

/* Every word of a type of 16 bits in every other type. */
static bool check_words()
{
    bool good = true;
    for (uint32_t from : {SEQLSTM_DTYPE_FLOAT16, SEQLSTM_DTYPE_BFLOAT16}) {
        std::vector<double> values = {NAN, INFINITY, -INFINITY};
        for (int word = 0; word < get_infinity(from); word += 7) {
            values.push_back(decode_size(from, word));
            values.push_back(-decode_size(from, word));
        }
        for (uint32_t to : types)
            good = check_cast(from, to, values, 0, 0) && good;
    }
    return good;
}

/* Few elements and many, from and to addresses with and without the alignment of four elements. */
static bool check_sizes()
{
    bool good = true;
    for (uint32_t from : types)
        for (uint32_t to : types)
            for (size_t n : {1, 3, 4, 5, 1027})
                for (size_t shifts = 0; shifts < 4; shifts++) {
                    std::vector<double> values;
                    for (size_t k = 0; k < n; k++)
                        values.push_back(ldexp((double)(k % 251) - 125.25 - (double)(k % 7) / 64, (int)(k % 9) - 4));
                    good = check_cast(from, to, values, shifts % 2, shifts / 2) && good;
                }
    return good;
}

/* ---- many ranges ------------------------------------------------------------------------------------------------ */

/* Of different sizes, aligned and not, one of them empty. `add`: to what is there, in float32. */
static bool check_ranges(uint32_t from, uint32_t to, bool add, const std::vector<size_t> &sizes)
{
    std::vector<buffer> x, y;
    std::vector<gpu_cast_part> parts;
    bool good = true;
    for (size_t p = 0; p < sizes.size(); p++) {
        x.emplace_back(from, sizes[p], p % 3 == 1);
        y.emplace_back(to, sizes[p], p % 4 == 2);
        for (size_t k = 0; k < sizes[p]; k++) {
            put(from, x[p].at(k), 0.25 * (double)(p + 1) + (double)(k % 16));
            put(to, y[p].at(k), 64 - (double)(k % 5));
        }
    }
    for (size_t p = 0; p < sizes.size(); p++)
        parts.push_back({x[p].at(0), y[p].at(0), (int64_t)sizes[p]});
    if (gpu_cast_parts(stream, from, to, parts.data(), (int64_t)parts.size(), add) != 0 ||
        gpu_stream_synchronize(0, stream, nullptr) != SEQLSTM_OK)
        return false;
    for (size_t p = 0; p < sizes.size(); p++) {
        for (size_t k = 0; k < sizes[p] && good; k++) {
            const double wanted = get(from, x[p].at(k)) + (add ? 64 - (double)(k % 5) : 0);
            good = is_same(to, y[p].at(k), wanted);
            if (!good)
                printf("# %u to %u, range %zu, element %zu: %g, expected %g\n", from, to, p, k, get(to, y[p].at(k)),
                       wanted);
        }
        good = good && y[p].is_whole(sizes[p]);
    }
    return good;
}

static bool check_all_ranges()
{
    const std::vector<size_t> some = {5, 0, 4, 2051, 8, 1, 1024, 0}, none = {0, 0};
    std::vector<size_t> most;
    bool good = true;
    for (size_t p = 0; p < GPU_CAST_PARTS; p++)
        most.push_back(1 + 3 * (p % 5));
    for (uint32_t narrow : {SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT16, SEQLSTM_DTYPE_BFLOAT16})
        for (const auto &sizes : {some, none, most}) {
            good = check_ranges(SEQLSTM_DTYPE_FLOAT32, narrow, false, sizes) && good;
            good = check_ranges(narrow, SEQLSTM_DTYPE_FLOAT32, false, sizes) && good;
            good = check_ranges(narrow, SEQLSTM_DTYPE_FLOAT32, true, sizes) && good;
        }
    return good;
}

int main()
{
    return run_tests({{"halves between neighbours", check_halves},
                      {"all numbers of 16 bits", check_words},
                      {"any number of elements", check_sizes},
                      {"many ranges", check_all_ranges}});
}
