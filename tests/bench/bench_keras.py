#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model of configs/gpu-or-cpu.yaml in Keras, for cells.py: bench_keras.py OPTION BATCH STEPS THREADS [--jit]

Prints the median nanoseconds of a training step (forward, backward, Adam) and the version of Keras. One call of
Keras runs many steps (steps_per_execution), so that its Python code costs nothing. The first call, which compiles,
is not counted. --jit compiles with XLA.
"""
import os
import sys
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('KERAS_BACKEND', 'tensorflow')
import numpy
import tensorflow
import keras

OPTIONS = {
    'plain': {},
    'leaky_relu': {'activation': keras.layers.LeakyReLU(negative_slope=0.05)},
    'recurrent_dropout': {'recurrent_dropout': 0.2},
}
CALL_SECONDS, CALLS, FEATURES = 0.5, 5, 8


def main():
    option, batch, steps, threads = sys.argv[1], *(int(a) for a in sys.argv[2:5])
    tensorflow.config.threading.set_intra_op_parallelism_threads(threads)
    tensorflow.config.threading.set_inter_op_parallelism_threads(threads)
    keras.utils.set_random_seed(1)
    x = numpy.random.default_rng(1).standard_normal((batch, steps, FEATURES), dtype=numpy.float32)
    y = numpy.random.default_rng(2).standard_normal((batch, FEATURES), dtype=numpy.float32)

    def time_steps(count):
        """Seconds of a step: `count` of them in one call; the median of several calls."""
        model = keras.Sequential([
            keras.Input((steps, FEATURES)),
            keras.layers.LSTM(64, return_sequences=True, **OPTIONS[option]),
            keras.layers.Dropout(0.2),
            keras.layers.LSTM(32),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(FEATURES),
        ])
        model.compile(loss='mse', optimizer=keras.optimizers.Adam(clipnorm=1.0), steps_per_execution=count,
                      jit_compile='--jit' in sys.argv)
        data = tensorflow.data.Dataset.from_tensors((x, y)).repeat()
        times = []
        for _ in range(CALLS + 1):
            begin = time.perf_counter()
            model.fit(data, steps_per_epoch=count, epochs=1, verbose=0)
            times.append((time.perf_counter() - begin) / count)
        return sorted(times[1:])[CALLS // 2]

    count = max(1, int(CALL_SECONDS / time_steps(1)))
    print(f'{time_steps(count) * 1e9:.0f} {keras.__version__}')


if __name__ == '__main__':
    main()
