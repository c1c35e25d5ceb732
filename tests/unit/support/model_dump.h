/* SPDX-License-Identifier: Apache-2.0 */
/* All that a loaded model holds, as text. Members that are zero are left out; kinds are numbers. */
#ifndef SL_TESTS_MODEL_DUMP_H
#define SL_TESTS_MODEL_DUMP_H

#include <string.h>

#include "base/value/buf.h"
#include "model/model.h"

#define DUMP_INT(object, member)                                                                                       \
    do {                                                                                                               \
        if ((object)->member)                                                                                          \
            sl_buf_printf(out, " " #member "=%lld", (long long)(object)->member);                                      \
    } while (0)

#define DUMP_NUMBER(object, member)                                                                                    \
    do {                                                                                                               \
        if ((object)->member != 0)                                                                                     \
            sl_buf_printf(out, " " #member "=%.9g", (double)(object)->member);                                         \
    } while (0)

/* Of a path that was made absolute, the name. */
#define DUMP_TEXT(object, member)                                                                                      \
    do {                                                                                                               \
        const char *text_ = (object)->member;                                                                          \
        if (text_)                                                                                                     \
            sl_buf_printf(out, " " #member "=%s", *text_ == '/' ? strrchr(text_, '/') : text_);                        \
    } while (0)

#define DUMP_PERIOD(object, member)                                                                                    \
    do {                                                                                                               \
        if ((object)->member.unit != SL_PERIOD_NONE)                                                                   \
            sl_buf_printf(out, " " #member "=%.9g%c", (object)->member.count, "?uets"[(object)->member.unit]);         \
    } while (0)

#define DUMP_LIST(object, member)                                                                                      \
    for (size_t k_ = 0; k_ < (object)->member.count; k_++)                                                             \
    sl_buf_printf(out, " " #member "[%d]=%s", (int)k_, (object)->member.items[k_])

#define DUMP_METRICS(object, member)                                                                                   \
    for (size_t k_ = 0; k_ < (object)->member.count; k_++)                                                             \
    sl_buf_printf(out, " " #member "[%d]=%s", (int)k_, sl_metric_get_name((object)->member.items[k_]))

static inline void dump_activation(struct sl_buf *out, const char *name, const struct sl_activation *a)
{
    if (a->kind || a->alpha != 0 || a->beta != 0)
        sl_buf_printf(out, " %s=%s(%.9g, %.9g)", name, sl_activation_kind_get_name(a->kind), a->alpha, a->beta);
}

static inline void dump_initializer(struct sl_buf *out, const char *name, const struct sl_initializer *i)
{
    if (i->kind == SL_INITIALIZER_ZEROS)
        return;
    sl_buf_printf(out, " %s={kind=%d", name, (int)i->kind);
    DUMP_NUMBER(i, value);
    DUMP_NUMBER(i, min);
    DUMP_NUMBER(i, max);
    DUMP_NUMBER(i, mean);
    DUMP_NUMBER(i, stddev);
    DUMP_NUMBER(i, gain);
    sl_buf_append_char(out, '}');
}

static inline void dump_regularizer(struct sl_buf *out, const char *name, const struct sl_regularizer *r)
{
    if (r->l1 != 0 || r->l2 != 0)
        sl_buf_printf(out, " %s={%.9g, %.9g}", name, r->l1, r->l2);
}

/* ---- layers ----------------------------------------------------------------------------------------- */

static inline void dump_recurrent(struct sl_buf *out, const struct sl_recurrent *r)
{
    static const char *const sides[2] = {"forward", "backward"};
    DUMP_INT(r, units);
    DUMP_INT(r, layers);
    DUMP_INT(r, direction);
    DUMP_INT(r, merge);
    for (int d = 0; d < 2; d++) {
        sl_buf_printf(out, " %s:", sides[d]);
        dump_activation(out, "candidate", &r->activation[d]);
        dump_activation(out, "gate", &r->recurrent_activation[d]);
        dump_activation(out, "output", &r->output_activation[d]);
    }
    DUMP_INT(r, use_bias);
    DUMP_INT(r, unit_forget_bias);
    DUMP_INT(r, reset_after);
    dump_initializer(out, "kernel", &r->kernel_initializer);
    dump_initializer(out, "recurrent", &r->recurrent_initializer);
    dump_initializer(out, "bias", &r->bias_initializer);
    dump_initializer(out, "projection", &r->projection_initializer);
    dump_initializer(out, "peephole", &r->peephole_initializer);
    dump_regularizer(out, "kernel", &r->kernel_regularizer);
    dump_regularizer(out, "recurrent", &r->recurrent_regularizer);
    dump_regularizer(out, "bias", &r->bias_regularizer);
    DUMP_NUMBER(r, dropout);
    DUMP_NUMBER(r, recurrent_dropout);
    DUMP_NUMBER(r, zoneout_cell);
    DUMP_NUMBER(r, zoneout_hidden);
    DUMP_NUMBER(r, weight_drop);
    DUMP_INT(r, peephole);
    DUMP_INT(r, projection);
    DUMP_NUMBER(r, cell_clip);
    DUMP_NUMBER(r, gate_clip);
    DUMP_INT(r, coupled_gates);
    DUMP_INT(r, layer_norm);
    DUMP_NUMBER(r, layer_norm_epsilon);
    DUMP_INT(r, return_sequences);
    if (r->initial_state.from)
        sl_buf_printf(out, " initial_state=%s(%d, bridge %d)", r->initial_state.from, r->initial_state.layer,
                      (int)r->initial_state.bridge);
    DUMP_INT(r, gives_state);
}

static inline void dump_dense(struct sl_buf *out, const struct sl_dense *d)
{
    DUMP_INT(d, units);
    dump_activation(out, "activation", &d->activation);
    DUMP_INT(d, use_bias);
    dump_initializer(out, "kernel", &d->kernel_initializer);
    dump_initializer(out, "bias", &d->bias_initializer);
    dump_regularizer(out, "kernel", &d->kernel_regularizer);
    dump_regularizer(out, "bias", &d->bias_regularizer);
    DUMP_TEXT(d, tie);
    if (d->tie)
        DUMP_INT(d, tie_layer);
}

static inline void dump_embedding(struct sl_buf *out, const struct sl_embedding *e)
{
    DUMP_INT(e, dim);
    DUMP_TEXT(e, weights);
    DUMP_TEXT(e, share);
    if (e->share)
        DUMP_INT(e, share_layer);
    dump_initializer(out, "values", &e->initializer);
    dump_regularizer(out, "values", &e->regularizer);
}

static inline void dump_options(struct sl_buf *out, const struct sl_layer *l)
{
    if (sl_layer_is_recurrent(l))
        dump_recurrent(out, &l->recurrent);
    if (l->kind == SL_LAYER_DENSE || l->kind == SL_LAYER_OUTPUT)
        dump_dense(out, &l->dense);
    if (l->kind == SL_LAYER_EMBEDDING)
        dump_embedding(out, &l->embedding);
    if (l->kind == SL_LAYER_ACTIVATION)
        dump_activation(out, "activation", &l->activation);
    if (l->kind == SL_LAYER_DROPOUT)
        sl_buf_printf(out, " rate=%.9g mask=%d", l->dropout.rate, (int)l->dropout.mask);
    if (l->kind == SL_LAYER_LAYER_NORM)
        sl_buf_printf(out, " epsilon=%.9g", l->layer_norm.epsilon);
    if (l->kind == SL_LAYER_POOL)
        sl_buf_printf(out, " mode=%d", (int)l->pool.mode);
    if (l->kind == SL_LAYER_ATTENTION) {
        const struct sl_attention *a = &l->attention;
        DUMP_INT(a, score);
        DUMP_INT(a, units);
        dump_initializer(out, "kernel", &a->kernel_initializer);
        DUMP_INT(a, input_feeding);
    }
}

static inline void dump_layer(struct sl_buf *out, const struct sl_layer *l)
{
    sl_buf_printf(out, "layer %d %s %s %s from", l->index, sl_layer_kind_get_name(l->kind), l->name,
                  l->side == SL_SIDE_ENCODER ? "encoder" : "decoder");
    for (size_t k = 0; k < l->from_count; k++)
        sl_buf_printf(out, " %d", l->from[k]);
    DUMP_INT(l, output_used);
    DUMP_INT(l, trainable);
    DUMP_INT(l, output_shape);
    sl_buf_append_text(out, ";");
    dump_options(out, l);
    sl_buf_printf(out, " @%d:%d", l->place.line, l->place.column);
    for (size_t k = 0; k < l->places.count; k++)
        sl_buf_printf(out, " %s@%d:%d", l->places.items[k].path, l->places.items[k].key.line,
                      l->places.items[k].key.column);
    sl_buf_append_char(out, '\n');
}

/* ---- data ------------------------------------------------------------------------------------------- */

static inline void dump_tokenizer(struct sl_buf *out, const char *name, const struct sl_tokenizer *t)
{
    if (t->type == SL_TOKENIZER_NONE)
        return;
    sl_buf_printf(out, "%s type=%d", name, (int)t->type);
    DUMP_INT(t, vocab_size);
    DUMP_INT(t, min_count);
    DUMP_INT(t, lowercase);
    DUMP_LIST(t, specials);
    DUMP_TEXT(t, vocab);
    DUMP_INT(t, shared);
    DUMP_TEXT(t, model);
    DUMP_INT(t, method);
    sl_buf_append_char(out, '\n');
}

static inline void dump_table(struct sl_buf *out, const struct sl_source *s)
{
    DUMP_TEXT(s, delimiter);
    DUMP_INT(s, decimal);
    DUMP_INT(s, header);
    DUMP_INT(s, encoding);
    DUMP_TEXT(s, comment);
    DUMP_LIST(s, columns);
    DUMP_TEXT(s, rows.first);
    DUMP_TEXT(s, rows.last);
    DUMP_LIST(s, inputs);
    DUMP_LIST(s, targets);
    DUMP_TEXT(s, group);
    DUMP_TEXT(s, text);
    DUMP_TEXT(s, label.column);
    DUMP_INT(s, label.type);
    DUMP_TEXT(s, time.column);
    DUMP_TEXT(s, time.format);
    DUMP_NUMBER(s, time.step);
    DUMP_INT(s, time.step_unit);
    DUMP_INT(s, time.gaps);
    DUMP_INT(s, window.length);
    DUMP_INT(s, window.horizon);
    DUMP_INT(s, window.stride);
    DUMP_INT(s, scale.type);
    DUMP_INT(s, scale.fit);
    DUMP_INT(s, scale.targets);
    DUMP_INT(s, missing.type);
    DUMP_INT(s, missing.targets);
    DUMP_LIST(s, missing.values);
    DUMP_INT(s, missing.limit);
}

static inline void dump_generator(struct sl_buf *out, const struct sl_source *s)
{
    sl_buf_printf(out, " generator=%s", sl_generator_get_name(s->generator));
    DUMP_INT(s, size);
    DUMP_INT(s, has_seed);
    DUMP_INT(s, seed);
    DUMP_INT(s, length_min);
    DUMP_INT(s, length_max);
    DUMP_INT(s, features);
    DUMP_INT(s, horizon);
    DUMP_NUMBER(s, noise);
    DUMP_INT(s, symbols);
    DUMP_INT(s, delay);
    DUMP_INT(s, digits);
}

static inline void dump_source(struct sl_buf *out, enum sl_split split, const struct sl_source *s)
{
    if (s->origin == SL_SOURCE_NONE)
        return;
    sl_buf_printf(out, "%s %s", sl_split_get_name(split), sl_source_type_get_name(s->type));
    DUMP_NUMBER(s, split);
    DUMP_TEXT(s, file);
    DUMP_TEXT(s, source_file);
    DUMP_TEXT(s, target_file);
    DUMP_TEXT(s, source_column);
    DUMP_TEXT(s, target_column);
    DUMP_TEXT(s, x);
    DUMP_TEXT(s, y);
    DUMP_TEXT(s, lengths);
    dump_table(out, s);
    if (s->type == SL_SOURCE_GENERATOR)
        dump_generator(out, s);
    sl_buf_printf(out, " @%d:%d\n", s->place.line, s->place.column);
}

static inline void dump_data(struct sl_buf *out, const struct sl_data_config *d)
{
    for (enum sl_split split = SL_SPLIT_TRAIN; split < SL_SPLIT_COUNT; split++)
        dump_source(out, split, &d->splits[split]);
    dump_tokenizer(out, "tokenizer", &d->tokenizer);
    dump_tokenizer(out, "source_tokenizer", &d->source_tokenizer);
    sl_buf_append_text(out, "batching");
    DUMP_INT(d, pairs);
    DUMP_INT(d, batch_size);
    DUMP_INT(d, shuffle);
    DUMP_INT(d, batching.unit);
    DUMP_INT(d, batching.bucketing.kind);
    DUMP_INT(d, batching.bucketing.count);
    for (size_t k = 0; k < d->batching.bucketing.edge_count; k++)
        DUMP_INT(d, batching.bucketing.edges[k]);
    DUMP_INT(d, batching.pool);
    DUMP_INT(d, batching.padding);
    DUMP_INT(d, batching.max_tokens);
    DUMP_INT(d, batching.bptt);
    DUMP_INT(d, batching.max_length);
    DUMP_INT(d, batching.on_overflow);
    sl_buf_append_char(out, '\n');
}

/* ---- training --------------------------------------------------------------------------------------- */

static inline void dump_optimizer(struct sl_buf *out, const struct sl_optimizer *o)
{
    sl_buf_printf(out, "optimizer kind=%d", (int)o->kind);
    DUMP_NUMBER(o, learning_rate);
    DUMP_NUMBER(o, momentum);
    DUMP_NUMBER(o, beta_1);
    DUMP_NUMBER(o, beta_2);
    DUMP_NUMBER(o, epsilon);
    DUMP_INT(o, amsgrad);
    DUMP_NUMBER(o, rho);
    DUMP_INT(o, centered);
    DUMP_NUMBER(o, initial_accumulator);
    DUMP_INT(o, patience);
    DUMP_NUMBER(o, weight_decay);
    sl_buf_append_char(out, '\n');
}

static inline void dump_schedule(struct sl_buf *out, const struct sl_schedule *s)
{
    sl_buf_printf(out, "schedule %s", sl_schedule_kind_get_name(s->kind));
    DUMP_PERIOD(s, warmup);
    DUMP_PERIOD(s, start);
    DUMP_PERIOD(s, every);
    DUMP_NUMBER(s, factor);
    DUMP_PERIOD(s, over);
    DUMP_NUMBER(s, max);
    DUMP_NUMBER(s, rise);
    DUMP_NUMBER(s, divide_start);
    DUMP_NUMBER(s, divide_end);
    DUMP_TEXT(s, monitor);
    DUMP_INT(s, patience);
    DUMP_NUMBER(s, min_delta);
    DUMP_INT(s, cooldown);
    DUMP_NUMBER(s, min_learning_rate);
    sl_buf_append_char(out, '\n');
}

static inline void dump_teacher(struct sl_buf *out, const struct sl_teacher_forcing *t)
{
    sl_buf_printf(out, "teacher_forcing kind=%d", (int)t->kind);
    DUMP_NUMBER(t, probability);
    DUMP_NUMBER(t, from);
    DUMP_NUMBER(t, to);
    DUMP_PERIOD(t, over);
    DUMP_NUMBER(t, k);
    DUMP_PERIOD(t, every);
    DUMP_INT(t, own);
    sl_buf_append_char(out, '\n');
}

static inline void dump_train(struct sl_buf *out, const struct sl_train_config *t)
{
    sl_buf_printf(out, "train %s loss=%s", sl_task_get_name(t->task), sl_loss_kind_get_name(t->loss.kind));
    DUMP_INT(t, loss.reduction);
    DUMP_NUMBER(t, loss.delta);
    DUMP_NUMBER(t, loss.label_smoothing);
    DUMP_TEXT(t, loss.ignore);
    DUMP_NUMBER(t, clip_norm);
    DUMP_NUMBER(t, clip_value);
    DUMP_INT(t, epochs);
    DUMP_INT(t, updates);
    DUMP_PERIOD(t, max_time);
    DUMP_INT(t, accumulate);
    DUMP_METRICS(t, metrics);
    DUMP_PERIOD(t, validate.every);
    DUMP_METRICS(t, validate.metrics);
    DUMP_PERIOD(t, checkpoint.every);
    DUMP_INT(t, checkpoint.keep_last);
    DUMP_INT(t, checkpoint.keep_best);
    DUMP_TEXT(t, checkpoint.monitor);
    DUMP_INT(t, checkpoint.mode);
    DUMP_INT(t, early_stopping.enabled);
    DUMP_TEXT(t, early_stopping.monitor);
    DUMP_INT(t, early_stopping.mode);
    DUMP_INT(t, early_stopping.patience);
    DUMP_NUMBER(t, early_stopping.min_delta);
    DUMP_INT(t, early_stopping.restore_best);
    DUMP_PERIOD(t, early_stopping.start);
    DUMP_INT(t, ema.enabled);
    DUMP_NUMBER(t, ema.decay);
    DUMP_PERIOD(t, ema.start);
    DUMP_TEXT(t, init_from);
    DUMP_INT(t, on_divergence);
    DUMP_INT(t, balanced_classes);
    for (size_t k = 0; k < t->class_weight_count; k++)
        sl_buf_printf(out, " class_weight[%s]=%.9g", t->class_weights[k].label, t->class_weights[k].weight);
    sl_buf_append_char(out, '\n');
    dump_optimizer(out, &t->optimizer);
    dump_schedule(out, &t->schedule);
    dump_teacher(out, &t->teacher_forcing);
}

/* ---- the rest --------------------------------------------------------------------------------------- */

static inline void dump_backends(struct sl_buf *out, const struct sl_model *m)
{
    sl_buf_append_text(out, "backends");
    DUMP_INT(m, all_backends);
    for (size_t b = 0; b < m->backend_count; b++) {
        const struct sl_backend_entry *e = &m->backends[b];
        sl_buf_append_text(out, ";");
        DUMP_TEXT(e, id);
        DUMP_TEXT(e, file);
        DUMP_INT(e, require);
        for (size_t k = 0; k < e->option_count; k++)
            sl_buf_printf(out, " %s=%s@%d:%d", e->options[k].key, e->options[k].value, e->options[k].place.line,
                          e->options[k].value_place.column);
        sl_buf_printf(out, " @%d:%d", e->place.line, e->place.column);
    }
    sl_buf_append_text(out, ";");
    DUMP_INT(m, dispatch.policy);
    DUMP_INT(m, dispatch.fallback);
    for (size_t k = 0; k < m->dispatch.pin_count; k++)
        sl_buf_printf(out, " pin[%s]=%s@%d:%d", m->dispatch.pins[k].layer, m->dispatch.pins[k].backend,
                      m->dispatch.pins[k].place.line, m->dispatch.pins[k].place.column);
    sl_buf_append_char(out, '\n');
}

static inline void dump_model(struct sl_buf *out, const struct sl_model *m)
{
    sl_buf_printf(out, "model %s version=%lld seed=%llu", m->name, (long long)m->version, (unsigned long long)m->seed);
    DUMP_INT(m, deterministic);
    DUMP_INT(m, encoder_count);
    if (m->feeding.present)
        sl_buf_printf(out, " feeding=%d to %d", m->feeding.giver, m->feeding.reader);
    if (m->embedding)
        sl_buf_printf(out, " embedding=%s", m->embedding->name);
    DUMP_INT(m, device);
    DUMP_INT(m, precision);
    DUMP_INT(m, parallel.data);
    DUMP_INT(m, parallel.pipeline);
    DUMP_INT(m, parallel.pieces);
    DUMP_INT(m, parallel.shards);
    DUMP_INT(m, parallel.reduce.how);
    DUMP_INT(m, parallel.reduce.dtype);
    DUMP_INT(m, parallel.compress.kind);
    DUMP_INT(m, parallel.compress.rank);
    DUMP_TEXT(m, output.dir);
    DUMP_INT(m, output.tensorboard);
    DUMP_INT(m, output.weight_histograms);
    DUMP_PERIOD(m, log.every);
    DUMP_INT(m, log.jsonl);
    sl_buf_append_text(out, "\ndecode");
    DUMP_INT(m, decode.beam);
    DUMP_INT(m, decode.length_penalty.kind);
    DUMP_NUMBER(m, decode.length_penalty.alpha);
    DUMP_INT(m, decode.max_length);
    DUMP_INT(m, decode.n_best);
    DUMP_NUMBER(m, decode.temperature);
    DUMP_INT(m, decode.top_k);
    DUMP_NUMBER(m, decode.top_p);
    sl_buf_append_char(out, '\n');
    dump_data(out, &m->data);
    for (size_t k = 0; k < m->layer_count; k++)
        dump_layer(out, &m->layers[k]);
    dump_train(out, &m->train);
    dump_backends(out, m);
    sl_buf_append_text(out, "places");
    for (size_t k = 0; k < m->places.count; k++) {
        const struct sl_place_entry *e = &m->places.items[k];
        sl_buf_printf(out, " %s@%d:%d+%d=%d:%d+%d", e->path, e->key.line, e->key.column, e->key.length, e->value.line,
                      e->value.column, e->value.length);
    }
    sl_buf_append_char(out, '\n');
}

#endif
