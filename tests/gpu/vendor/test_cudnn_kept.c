/* SPDX-License-Identifier: Apache-2.0 */
/* What an instance of cuda-cudnn keeps: thousands of random takes and leaves against a list that does the same in the
 * simplest way. Every network is destroyed once, or taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "common/cuda_runtime.h"
#include "kept.h"

struct cdn_functions cdn;

enum { TURNS = 4000, KEYS = 12 };

static int destroyed[TURNS + 1]; /* of each network, how often */
static int32_t current;          /* device */

seqlstm_status gpu_use(int32_t ordinal, struct seqlstm_error *err)
{
    (void)err;
    current = ordinal;
    return SEQLSTM_OK;
}

static int32_t made_on[TURNS + 1];

static cudnnStatus_t destroy_network(cudnnRNNDescriptor_t rnn)
{
    const intptr_t number = (intptr_t)rnn;
    assert_true(number >= 1 && number <= TURNS);
    assert_int_equal(current, made_on[number]);
    destroyed[number]++;
    return CUDNN_STATUS_SUCCESS;
}

/* Keys that differ in one member each. */
static struct cdn_network_key make_key(uint32_t which)
{
    struct cdn_network_key key;
    memset(&key, 0, sizeof key);
    int32_t *const members[] = {&key.ordinal,    &key.sequences, &key.layers, &key.mode,
                                &key.directions, &key.type,      &key.math,   &key.uniform};
    if (which < 8)
        *members[which] = 1;
    key.input = which == 8;
    key.hidden = which == 9;
    key.output = which == 10;
    key.clip = which == 11 ? 0.5f : 0;
    return key;
}

/* The same list: networks in the order in which they were left. */
struct plain {
    struct {
        uint32_t key;
        intptr_t network;
    } left[CDN_KEPT_NETWORKS + 1];
    int count;
};

static intptr_t remove_plain(struct plain *plain, int k)
{
    const intptr_t network = plain->left[k].network;
    plain->count--;
    memmove(&plain->left[k], &plain->left[k + 1], (size_t)(plain->count - k) * sizeof plain->left[0]);
    return network;
}

static intptr_t take_plain(struct plain *plain, uint32_t key)
{
    for (int k = 0; k < plain->count; k++)
        if (plain->left[k].key == key)
            return remove_plain(plain, k);
    return 0;
}

static void networks_are_kept_as_in_a_list(void **state)
{
    (void)state;
    static struct cdn_kept kept;
    static int expected[TURNS + 1];
    struct plain plain = {.count = 0};
    cdn.DestroyRNNDescriptor = destroy_network;
    cdn_kept_init(&kept);
    for (intptr_t turn = 1; turn <= TURNS; turn++) {
        const uint64_t dice = seqlstm_mix64(5, (uint64_t)turn, 0);
        const uint32_t which = (uint32_t)(dice >> 8) % KEYS;
        const struct cdn_network_key key = make_key(which);
        if (dice % 5 < 2) {
            assert_int_equal((intptr_t)cdn_kept_take(&kept, &key), take_plain(&plain, which));
        } else {
            made_on[turn] = key.ordinal;
            cdn_kept_leave(&kept, &key, (cudnnRNNDescriptor_t)turn);
            plain.left[plain.count].key = which;
            plain.left[plain.count++].network = turn;
            if (plain.count > CDN_KEPT_NETWORKS)
                expected[remove_plain(&plain, 0)]++;
        }
        assert_int_equal(kept.network_count, plain.count);
        assert_memory_equal(destroyed, expected, sizeof expected);
    }
    cdn_kept_deinit(&kept);
    while (plain.count > 0)
        expected[remove_plain(&plain, 0)]++;
    assert_memory_equal(destroyed, expected, sizeof expected);
}

/* What has passed counts for the same descriptor, variant and device, and for nothing that differs in one of them; the
 * newest are kept. */
static void trials_count_for_the_same_alone(void **state)
{
    (void)state;
    static struct cdn_kept kept;
    static const char *const variants[] = {"standard", "standard_layers", "small_h"};
    struct seqlstm_recurrent_desc desc;
    memset(&desc, 0, sizeof desc);
    cdn_kept_init(&kept);
    for (int passed = 0; passed < 2 * 3 * 2; passed++) {
        for (int k = 0; k < 2 * 3 * 2; k++) {
            desc.hidden = k % 2;
            assert_int_equal(cdn_kept_has_passed(&kept, &desc, variants[k / 2 % 3], k / 6), k < passed);
        }
        desc.hidden = passed % 2;
        cdn_kept_add_passed(&kept, &desc, variants[passed / 2 % 3], passed / 6);
    }
    for (int64_t k = 0; k < CDN_KEPT_TRIALS + 5; k++) {
        desc.hidden = 100 + k;
        cdn_kept_add_passed(&kept, &desc, "standard", 0);
    }
    for (int64_t k = 0; k < CDN_KEPT_TRIALS + 5; k++) {
        desc.hidden = 100 + k;
        assert_int_equal(cdn_kept_has_passed(&kept, &desc, "standard", 0), k >= 5);
    }
    cdn_kept_deinit(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_are_kept_as_in_a_list),
        cmocka_unit_test(trials_count_for_the_same_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
