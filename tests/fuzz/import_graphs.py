#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Imports random ONNX graphs and compares each with onnxruntime.

import_graphs.py SEQLSTM [--count N] [--seed S]     exit 1 if a graph is imported with other results, or refused
                                                    although the model file describes it, or if fewer than 5 of 8
                                                    are imported; 77 without numpy, onnx and onnxruntime

Each graph is one or two recurrent layers and a dense layer. Its nodes are in random order; its weights stand behind
Transpose, Reshape, Concat, Slice and others; operators without effect lie between the layers; initial states of zero
come in several forms. About one graph in four also has a change that the model file does not mention, such as a Clip
or an initial state that is not zero: it must be refused, unless it happens to change nothing. Graph N of a seed is
always the same: `--seed N --count 1` repeats it.
"""
import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f'skipped: {missing}')
    sys.exit(77)

BATCH, STEPS = 3, 5
GATES = {'LSTM': 4, 'GRU': 3, 'RNN': 1}
DIRECTIONS = {'forward': 'forward', 'reverse': 'backward', 'bidirectional': 'bidirectional'}
BOUND = 2e-5  # sums of at most 12 products of float32, in another order


class Graph:
    """An ONNX graph in the making; each method that adds a node returns the name of its (first) output."""

    def __init__(self, rng, inputs):
        self.rng, self.nodes, self.initializers, self.count = rng, [], [], 0
        names = [rng.choice(['b', BATCH]), rng.choice(['t', STEPS]), inputs]
        self.inputs = [helper.make_tensor_value_info('x', onnx.TensorProto.FLOAT, names)]

    def name(self, prefix='v'):
        self.count += 1
        return f'{prefix}{self.count}'

    def constant(self, value):
        """A constant as an initializer, a node, or an input with a default value."""
        name, value = self.name('c'), np.asarray(value)
        if self.rng.random() < 0.2:
            self.nodes.append(helper.make_node('Constant', [], [name], value=numpy_helper.from_array(value)))
            return name
        self.initializers.append(numpy_helper.from_array(value, name))
        if self.rng.random() < 0.2:
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            self.inputs.append(helper.make_tensor_value_info(name, kind, value.shape))
        return name

    def integers(self, *values):
        return self.constant(np.array(values, np.int64))

    def node(self, operator, inputs, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        label = self.rng.choice(['', self.name('node_')])
        self.nodes.append(helper.make_node(operator, inputs, names, name=label, **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, value):
        """A constant float32 tensor, often behind nodes that rearrange it."""
        rng, value = self.rng, np.asarray(value, np.float32)
        form, axis = rng.randrange(9), max(value.ndim - 2, 0)
        if form == 0 and value.ndim >= 2:
            order = rng.sample(range(value.ndim), value.ndim)
            back = [int(k) for k in np.argsort(order)]
            return self.node('Transpose', [self.constant(value.transpose(order))], perm=back)
        if form == 1:
            return self.node('Reshape', [self.constant(value.ravel()), self.integers(*value.shape)])
        if form == 2 and value.shape[0] == 1:
            return self.node('Unsqueeze', [self.constant(value[0]), self.integers(0)])
        if form == 3 and value.shape[axis] > 1:
            parts = np.split(value, [rng.randrange(1, value.shape[axis])], axis)
            return self.node('Concat', [self.constant(part) for part in parts], axis=axis)
        if form == 4:
            longer = self.constant(np.concatenate([value, np.ones_like(value)]))
            return self.node('Slice', [longer, self.integers(0), self.integers(value.shape[0]), self.integers(0)])
        if form == 5:
            return self.node('Identity', [self.constant(value)])
        return self.constant(value)

    def shuffle(self):
        """Puts the nodes in another order in which each follows what it reads."""
        known = {i.name for i in self.inputs} | {i.name for i in self.initializers} | {''}
        left, order = self.nodes, []
        while left:
            node = self.rng.choice([n for n in left if known.issuperset(n.input)])
            left = [n for n in left if n is not node]
            order.append(node)
            known.update(node.output)
        self.nodes = order

    def model(self, output):
        result = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, 'graph', self.inputs, [result], self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def without_effect(graph, x, width):
    """x behind at most one operator that leaves every number as it is, or in its place."""
    zeros, ones = np.zeros(width, np.float32), np.ones(width, np.float32)
    form = graph.rng.randrange(14)
    if form == 0:
        return graph.node('Identity', [x])
    if form == 1:
        return graph.node('Dropout', [x])
    if form == 2:
        return graph.node('Mul', [graph.constant(ones), x])
    if form == 3:
        return graph.node('Add', [x, graph.constant(zeros)])
    if form == 4:
        return graph.node('Sub', [x, graph.constant(zeros)])
    if form == 5:
        return graph.node('Div', [x, graph.constant(np.float32(1))])
    if form == 6 and width > 1:
        parts = graph.node('Split', [x, graph.integers(1, width - 1)], 2, axis=-1)
        return graph.node('Concat', parts, axis=-1)
    if form == 7:
        return graph.node('Squeeze', [graph.node('Unsqueeze', [x, graph.integers(0)]), graph.integers(0)])
    return x


# What the model file does not mention, at a value x.
CHANGES_OF_VALUE = {
    'Relu': lambda graph, x, width: graph.node('Relu', [x]),
    'Neg': lambda graph, x, width: graph.node('Neg', [x]),
    'Abs': lambda graph, x, width: graph.node('Abs', [x]),
    'Softplus': lambda graph, x, width: graph.node('Softplus', [x]),
    'Mul': lambda graph, x, width: graph.node('Mul', [x, graph.constant(np.full(width, 1.5, np.float32))]),
    'Add': lambda graph, x, width: graph.node('Add', [x, graph.constant(np.full(width, 0.3, np.float32))]),
    'PRelu': lambda graph, x, width: graph.node('PRelu', [x, graph.constant(np.full(1, 0.2, np.float32))]),
    'Clip': lambda graph, x, width: graph.node('Clip', [x, *(graph.constant(np.float32(end)) for end in (-0.3, 0.3))]),
}
CHANGES_OF_LAYER = ['initial state', 'computed state', 'activation', 'order']


class Case:
    """One random graph with its model file and the changes that the model file does not mention."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.width, self.hidden, self.outputs = rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), rng.choice([1, 2])
        self.operator = rng.choice(['LSTM', 'LSTM', 'GRU', 'RNN'])
        self.direction = rng.choice(['forward', 'forward', 'reverse', 'bidirectional'])
        self.directions = 2 if self.direction == 'bidirectional' else 1
        self.sequences = rng.random() < 0.5  # the layers give a value per step, not per sequence
        self.relu = rng.random() < 0.15
        self.change = rng.choice([*CHANGES_OF_VALUE, *CHANGES_OF_LAYER]) if rng.random() < 0.25 else None
        self.change_at = rng.choice(['input', 'hidden', 'output'])
        self.graph, self.layers = Graph(rng, self.width), []
        self.onnx = self.graph.model(self.build())

    def between(self, x, width, place):
        x = without_effect(self.graph, x, width)
        if self.change in CHANGES_OF_VALUE and self.change_at == place:
            x = CHANGES_OF_VALUE[self.change](self.graph, x, width)
        return x

    def initial_state(self, x):
        """The input for the initial state, or None."""
        graph, shape = self.graph, (self.directions, BATCH, self.hidden)
        if self.change == 'initial state':
            return graph.constant(self.numbers.standard_normal(shape).astype(np.float32))
        if self.change == 'computed state':
            mean = graph.node('ReduceMean', [x], axes=[0, 2], keepdims=1)
            return graph.node('Expand', [mean, graph.integers(*shape)])
        form = self.rng.randrange(8)
        if form == 0:
            return graph.constant(np.zeros(shape, np.float32))
        if form in (1, 2):
            batch = graph.node('Gather', [graph.node('Shape', [x]), graph.integers(1)])
            parts = [graph.integers(self.directions), batch, graph.integers(self.hidden)]
            wanted = graph.node('Concat', parts, axis=0)
            if form == 1:
                zeros = graph.constant(np.zeros((self.directions, 1, self.hidden), np.float32))
                return graph.node('Expand', [zeros, wanted])
            return graph.node('ConstantOfShape', [wanted], value=numpy_helper.from_array(np.zeros(1, np.float32)))
        return None

    def recurrent(self, x, name, source=''):
        """A recurrent layer on x [T, B, width], and its line of the model file."""
        graph, rows = self.graph, GATES[self.operator] * self.hidden
        draw = lambda *shape: self.numbers.standard_normal((self.directions, *shape)) * 0.5
        shapes = [(rows, self.width), (rows, self.hidden), (2 * rows,)]
        inputs = [x, *(graph.weight(draw(*shape)) for shape in shapes)]
        state = self.initial_state(x)
        if state:
            inputs += ['', state]
        attributes = {'hidden_size': self.hidden, 'direction': self.direction}
        if self.operator == 'GRU':
            attributes['linear_before_reset'] = 1
        if self.relu or self.change == 'activation':
            cell = {'LSTM': ['Sigmoid', 'Relu', 'Relu'], 'GRU': ['Sigmoid', 'Relu'], 'RNN': ['Relu']}[self.operator]
            attributes['activations'] = cell * self.directions
        outputs = graph.node(self.operator, inputs, 3 if self.operator == 'LSTM' else 2, **attributes)
        said = ', activation: relu' if self.relu != (self.change == 'activation') else ''
        direction, sequences = DIRECTIONS[self.direction], str(self.sequences).lower()
        self.layers.append(f'{{type: {self.operator.lower()}, name: {name}, units: {self.hidden}, direction: {direction}, '
                           f'return_sequences: {sequences}{said}{source}}}')
        return self.steps(outputs[0]) if self.sequences else self.last(outputs[0], outputs[1])

    def steps(self, y):
        """[B, T, directions H] of Y [T, directions, B, H]"""
        graph = self.graph
        if self.directions == 2:
            joined = graph.node('Reshape', [graph.node('Transpose', [y], perm=[0, 2, 1, 3]), graph.integers(0, 0, -1)])
        else:
            joined = graph.node('Squeeze', [y, graph.integers(1)])
        return graph.node('Transpose', [joined], perm=[1, 0, 2])

    def last(self, y, y_h):
        """[B, directions H] of Y_h [directions, B, H], or of the last step of Y"""
        graph, rng = self.graph, self.rng
        if self.directions == 2:
            ends = [graph.node('Gather', [y_h, graph.constant(np.array(k, np.int64))], axis=0) for k in (0, 1)]
            return graph.node('Concat', ends[::-1] if self.change == 'order' else ends, axis=-1)
        if self.direction == 'forward' and rng.random() < 0.4:
            flat = graph.node('Squeeze', [y, graph.integers(1)])
            return graph.node('Gather', [flat, graph.constant(np.array(-1, np.int64))], axis=0)
        return graph.node('Squeeze', [y_h, graph.integers(0)])

    def dense(self, x, width):
        graph, rng = self.graph, self.rng
        weight = self.numbers.standard_normal((width, self.outputs)) * 0.5
        bias = self.numbers.standard_normal(self.outputs)
        form = rng.randrange(3)
        if form == 0 and not self.sequences:
            return graph.node('Gemm', [x, graph.weight(weight.T), graph.weight(bias)], transB=1)
        if form == 1 and self.sequences:
            ends = [graph.node('Shape', [x]), graph.integers(0), graph.integers(2)]
            shape = graph.node('Concat', [graph.node('Slice', ends), graph.integers(self.outputs)], axis=0)
            rows = graph.node('Reshape', [x, graph.integers(-1, width)])
            x = graph.node('Reshape', [graph.node('MatMul', [rows, graph.weight(weight)]), shape])
        else:
            x = graph.node('MatMul', [x, graph.weight(weight)])
        return graph.node('Add', rng.sample([x, graph.weight(bias)], 2))

    def build(self):
        graph, rng = self.graph, self.rng
        x = graph.node('Transpose', [self.between('x', self.width, 'input')], perm=[1, 0, 2])
        width = self.directions * self.hidden
        if rng.random() < 0.25:
            parts = [self.recurrent(x, 'a'), self.recurrent(x, 'b', ', from: input')]
            first, second = ('b', 'a') if self.change == 'order' else ('a', 'b')
            self.layers.append(f'{{type: concat, from: [{first}, {second}]}}')
            value, width = graph.node('Concat', parts, axis=-1), 2 * width
        else:
            value = self.recurrent(x, 'a')
        value = self.dense(self.between(value, width, 'hidden'), width)
        activation = rng.choice(['', '', '', 'Tanh', 'Relu', 'Sigmoid'])
        if activation:
            value = graph.node(activation, [value])
        said = f', activation: {activation.lower()}' if activation else ''
        self.layers.append(f'{{type: dense, units: from_target{said}}}')
        output = graph.node('Identity', [self.between(value, self.outputs, 'output')])
        if rng.random() < 0.5:
            graph.shuffle()
        return output

    def model_file(self):
        data = 'data:\n  train: {type: npy, x: x.npy, y: y.npy, lengths: lengths.npy}\n'
        layers = ''.join(f'  - {layer}\n' for layer in self.layers)
        return f'seqlstm: 1\n{data}model:\n{layers}train: {{epochs: 1, loss: mse}}\n'


def compare(program, case, folder):
    """`imported`, `refused`, or what is wrong"""
    x = case.numbers.standard_normal((BATCH, STEPS, case.width)).astype(np.float32)
    session = onnxruntime.InferenceSession(case.onnx.SerializeToString(), providers=['CPUExecutionProvider'])
    wanted = session.run(None, {'x': x})[0]
    onnx.save(case.onnx, folder / 'm.onnx')
    np.save(folder / 'x.npy', x)
    np.save(folder / 'y.npy', np.zeros(wanted.shape, np.float32))
    np.save(folder / 'lengths.npy', np.full(BATCH, STEPS, np.int32))
    (folder / 'model.yaml').write_text(case.model_file())
    run = lambda *arguments: subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
    done = run('import', 'm.onnx', '--into', 'model.yaml', '--out', 'run')
    if done.returncode == 2 and case.change:
        return 'refused'
    if done.returncode:
        return f'exit status {done.returncode}: {done.stderr}'
    rows = run('predict', 'run', '--input', 'x.npy', '--lengths', 'lengths.npy', '--json').stdout.splitlines()
    if len(rows) != BATCH:
        return f'{len(rows)} rows predicted: {done.stderr}'
    error = max(np.abs(np.ravel(json.loads(row)['values']) - np.ravel(right)).max() for row, right in zip(rows, wanted))
    return 'imported' if error <= BOUND else f'differs by {error:.3g} (change: {case.change}): {done.stderr}'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program', type=pathlib.Path)
    parser.add_argument('--count', type=int, default=400)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    verdicts = collections.Counter()
    for seed in range(options.seed, options.seed + options.count):
        with tempfile.TemporaryDirectory() as folder:
            verdict = compare(options.program.resolve(), Case(seed), pathlib.Path(folder))
        good = verdict in ('imported', 'refused')
        verdicts[verdict if good else 'wrong'] += 1
        if not good:
            print(f'graph {seed}: {verdict}', flush=True)
    print(f'{options.count} graphs: {verdicts["imported"]} imported and equal to onnxruntime, '
          f'{verdicts["refused"]} refused, {verdicts["wrong"]} wrong')
    return 1 if verdicts['wrong'] or (options.count >= 100 and 8 * verdicts['imported'] < 5 * options.count) else 0


if __name__ == '__main__':
    sys.exit(main())
