/* SPDX-License-Identifier: Apache-2.0 */
/* See cases.h. */
#include "conformance/collectives/cases.h"

const struct sl_trial_case sl_trial_cases[] = {
    {"all_reduce", SL_TRIAL_USUAL, sl_trial_all_reduce},
    {"shared", SL_TRIAL_USUAL, sl_trial_shared},
    {"reduce_scatter", SL_TRIAL_USUAL, sl_trial_reduce_scatter},
    {"all_gather", SL_TRIAL_USUAL, sl_trial_all_gather},
    {"broadcast", SL_TRIAL_USUAL, sl_trial_broadcast},
    {"send_receive", SL_TRIAL_USUAL, sl_trial_send_receive},
    {"barrier", SL_TRIAL_USUAL, sl_trial_barrier},
    {"groups", SL_TRIAL_USUAL, sl_trial_groups},
    {"many", SL_TRIAL_USUAL, sl_trial_many},
    {"rounding", SL_TRIAL_USUAL, sl_trial_rounding},
    {"ordered_sum", SL_TRIAL_USUAL, sl_trial_ordered_sum},
    {"time_out", SL_TRIAL_USUAL, sl_trial_time_out},
    {"late_peer", SL_TRIAL_USUAL, sl_trial_late_peer},
    {"death", SL_TRIAL_LAST_DIES, sl_trial_death},
    {"leaving", SL_TRIAL_USUAL, sl_trial_leaving},
    {"abort", SL_TRIAL_USUAL, sl_trial_abort},
    {"large", SL_TRIAL_LARGE, sl_trial_large},
    {"times", SL_TRIAL_TIMES, sl_trial_time},
    {0},
};
