/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a plugin, as the core calls them: watched (watch.h), and with results that can be believed. The core
 * calls no function of a table in another way, but the allocation of memory and the streams of a device (domain.h).
 *
 * All of them: an OK without a result becomes INTERNAL with a message that names plugin and function; a status that
 * does not exist becomes INTERNAL; the texts of an error are ended, and hold no control characters; `err` may be NULL.
 * Arguments, results and thread classes are those of <seqlstm/backend.h>.
 */
#ifndef SL_REGISTRY_PLUGIN_H
#define SL_REGISTRY_PLUGIN_H

#include <seqlstm/backend.h>
#include <seqlstm/ext/rebind.h>

#include "registry/watch/running.h"

/* No buffer is larger: 64 TiB, half of the addresses that a program has. */
#define SL_PLUGIN_BYTES_MOST ((uint64_t)1 << 46)

seqlstm_status sl_plugin_open(const struct seqlstm_backend *table, const struct seqlstm_host *host,
                              const struct seqlstm_setting *settings, uint32_t setting_count,
                              struct seqlstm_instance **out_instance, struct seqlstm_error *err);
void sl_plugin_close(const struct seqlstm_backend *table, struct seqlstm_instance *instance);
seqlstm_status sl_plugin_count_devices(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                       uint32_t *out_count, struct seqlstm_error *err);
/* Texts of `info` are cleaned. */
seqlstm_status sl_plugin_describe_device(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                         uint32_t device, struct seqlstm_device_info *info, struct seqlstm_error *err);
/* Without the checks of answer.h. */
seqlstm_status sl_plugin_supports(const struct seqlstm_backend *table, const char *device_class,
                                  const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                                  struct seqlstm_error *err);

/* If it fails, *out_op is NULL. */
seqlstm_status sl_plugin_create_op(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                   uint32_t device, const struct seqlstm_desc *desc, const char *variant,
                                   struct seqlstm_op **out_op, struct seqlstm_error *err);
/* Sizes beyond SL_PLUGIN_BYTES_MOST are an error. */
seqlstm_status sl_plugin_get_sizes(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                                   struct seqlstm_sizes *sizes, struct seqlstm_error *err);
/* If it fails, *out_binding is NULL. */
seqlstm_status sl_plugin_bind(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                              struct seqlstm_queue *queue, const struct seqlstm_bind *bind,
                              struct seqlstm_binding **out_binding, struct seqlstm_error *err);
/* NULL: the backend does not have the extension. */
const struct seqlstm_rebind *sl_plugin_find_rebind(const struct seqlstm_backend *table,
                                                   struct seqlstm_instance *instance);
/* `extension`: of this backend. After an error the binding can only be destroyed. */
seqlstm_status sl_plugin_rebind(const struct seqlstm_backend *table, const struct seqlstm_rebind *extension,
                                struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                const struct seqlstm_bind *bind, struct seqlstm_error *err);
seqlstm_status sl_plugin_pack(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                              struct seqlstm_queue *queue, void *const *slots, void *packed,
                              const struct seqlstm_step *step, struct seqlstm_error *err);
seqlstm_status sl_plugin_forward(const struct seqlstm_backend *table, struct seqlstm_binding *binding,
                                 struct seqlstm_queue *queue, const struct seqlstm_forward *args,
                                 struct seqlstm_error *err);
/* The same for a binding that has run before: sl_watch_begin_again. */
seqlstm_status sl_plugin_forward_again(const struct seqlstm_backend *table, struct seqlstm_binding *binding,
                                       struct seqlstm_queue *queue, const struct seqlstm_forward *args,
                                       struct seqlstm_error *err);
seqlstm_status sl_plugin_backward(const struct seqlstm_backend *table, struct seqlstm_binding *binding,
                                  struct seqlstm_queue *queue, const struct seqlstm_backward *args,
                                  struct seqlstm_error *err);
/* The table's estimate is not NULL. */
seqlstm_status sl_plugin_estimate(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                                  const struct seqlstm_bind *bind, struct seqlstm_cost *cost,
                                  struct seqlstm_error *err);
void sl_plugin_destroy_binding(const struct seqlstm_backend *table, struct seqlstm_binding *binding);
void sl_plugin_destroy_op(const struct seqlstm_backend *table, struct seqlstm_op *op);

/* NULL also where the table has no get_extension. */
const void *sl_plugin_get_extension(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                    const char *id);

/* After a function of an extension: what it returned, made a status that exists, and the texts of its error cleaned. */
seqlstm_status sl_plugin_check_status(const struct seqlstm_backend *table, enum sl_plugin_function function,
                                      seqlstm_status status, struct seqlstm_error *err);

#endif
