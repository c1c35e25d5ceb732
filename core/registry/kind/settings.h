/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the user's `options:` for a plugin against those that its table declares: an unknown key or a value of the
 * wrong type never reaches the plugin. */
#ifndef SL_REGISTRY_KIND_SETTINGS_H
#define SL_REGISTRY_KIND_SETTINGS_H

#include <seqlstm/backend.h>

/* Errors: INVALID_CONFIG names key, value and what was expected; *out_wrong (may be NULL) is then the
 * setting's index, else -1. */
seqlstm_status sl_settings_check(const char *id, const struct seqlstm_option *options, uint32_t option_count,
                                 const struct seqlstm_setting *settings, uint32_t setting_count, int32_t *out_wrong,
                                 struct seqlstm_error *err);

#endif
