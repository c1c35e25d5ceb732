# SPDX-License-Identifier: Apache-2.0
"""ONNX files for tests of `import`, built from the field numbers of onnx.proto."""
import struct

from harness import expect, make_values
from formats import field

I, H, O = 2, 3, 1
MODEL = """seqlstm: 1
data: {type: csv, group: g, inputs: [a, b], targets: [y], train: {file: train.csv}, batch_size: 2}
model:
  - {type: lstm, units: 3, return_sequences: true}
  - {type: dense, units: from_target}
train: {loss: mse, epochs: 1}
"""


class Onnx:
    """Builds an ONNX file; values are names."""

    def __init__(self, dims=('b', 't', I), beside=''):
        """With `beside`, the numbers of float tensors are kept in that file; self.numbers is what it holds."""
        self.nodes, self.tensors, self.inputs, self.outputs, self.count = [], b'', self.port('input', dims), b'', 0
        self.beside, self.numbers = beside, b''

    @staticmethod
    def port(name, dims, kind=1):
        shape = b''.join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
        return field(11, field(1, name) + field(2, field(1, field(1, kind) + field(2, shape))))

    def tensor(self, dims, values, name=None):
        self.count += 1
        name = name or f'c{self.count}'
        is_int = values and isinstance(values[0], int)
        raw = struct.pack(f'<{len(values)}{"q" if is_int else "f"}', *values)
        place = field(9, raw)
        if self.beside and not is_int:
            entries = {'location': self.beside, 'offset': str(len(self.numbers)), 'length': str(len(raw))}
            place = b''.join(field(13, field(1, key) + field(2, value)) for key, value in entries.items()) + field(14, 1)
            self.numbers += raw
        self.tensors += field(5, b''.join(field(1, d) for d in dims) + field(2, 7 if is_int else 1) + field(8, name) + place)
        return name

    def node(self, op, inputs, outputs=1, name='', domain='', **attributes):
        self.count += 1
        made = [f'{op.lower()}{self.count}.{k}' for k in range(outputs)]
        text = b''.join(field(1, x) for x in inputs) + b''.join(field(2, x) for x in made) + field(3, name) + \
            field(4, op) + field(7, domain)
        for key, value in attributes.items():
            if isinstance(value, list):
                body = b''.join(field({float: 7, int: 8, str: 9}[type(v)], v) for v in value)
            else:
                body = field({float: 2, int: 3, str: 4}[type(value)], value)
            text += field(5, field(1, key) + body)
        self.nodes.append(text)
        return made[0] if outputs == 1 else made

    def finish(self, *outputs, reverse=False):
        nodes = reversed(self.nodes) if reverse else self.nodes
        ports = b''.join(field(12, field(1, name)) for name in outputs)
        graph = b''.join(field(1, n) for n in nodes) + self.tensors + self.inputs + ports
        return field(1, 8) + field(7, graph) + field(8, field(1, '') + field(2, 17))


W, R, B = make_values(4 * H * I, 1), make_values(4 * H * H, 2), make_values(8 * H, 3)
F, FB = make_values(H * O, 4), [0.25]


def lstm(o, x, states=(), w=None, r=None, lengths='', **attributes):
    """Y as [batch, time, H]."""
    w = w or o.tensor([1, 4 * H, I], W)
    r = r or o.tensor([1, 4 * H, H], R)
    y = o.node('LSTM', [o.node('Transpose', [x], perm=[1, 0, 2]), w, r, o.tensor([1, 8 * H], B), lengths, *states],
               hidden_size=H, name='cell', **attributes)
    return o.node('Transpose', [o.node('Squeeze', [y, o.tensor([1], [1])])], perm=[1, 0, 2])


def dense(o, x):
    return o.node('Add', [o.node('MatMul', [x, o.tensor([H, O], F)]), o.tensor([O], FB)])


def prepare(t, model=MODEL):
    t.write('train.csv', 'g,a,b,y,z\n' + ''.join(f'{g},{k * 0.3 - 1},{k * g / 7},{k % 3},{k % 2}\n' for g in range(3) for k in range(5)))
    t.write('model.yaml', model)
    o = Onnx()
    t.write('plain.onnx', o.finish(dense(o, lstm(o, 'input'))))


def weights(t, name, model='model.yaml'):
    t.run('import', f'{name}.onnx', '--into', model, '--out', name).quiet()
    t.run('export', name, '--file', f'{name}.safetensors')
    return t.read(f'{name}.safetensors')


def refuse(t, name, data, *words):
    t.write(f'{name}.onnx', data)
    t.refuse(2, 'import', f'{name}.onnx', '--into', 'model.yaml', '--out', 'none').says(*words)
    expect(not (t.folder / 'none').exists(), f'{name}: a run folder was made')
