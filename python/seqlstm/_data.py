# SPDX-License-Identifier: Apache-2.0
"""Data in memory: each split becomes the settings of `data:` and the bytes that they name."""
from . import _errors


def encode_array(array):
    """An array as the bytes of a .npy file."""
    import io

    import numpy as np
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)
    return out.getvalue()


def encode_table(columns):
    """Columns {name: values} as the bytes of a CSV file."""
    import csv
    import io
    out = io.StringIO()
    writer = csv.writer(out, lineterminator='\n')
    writer.writerow(columns)
    writer.writerows(zip(*columns.values()))
    return out.getvalue().encode()


def pad(sequences):
    """A list of arrays [T, …] of different lengths as one array [N, longest, …], and the lengths."""
    import numpy as np
    arrays = [np.asarray(s) for s in sequences]
    if not arrays:
        raise _errors.InvalidArgumentError('there are no sequences')
    lengths = np.array([len(a) for a in arrays], 'int64')
    try:
        padded = np.zeros((len(arrays), max(1, int(lengths.max())), *arrays[0].shape[1:]), np.result_type(*arrays))
        for row, array in zip(padded, arrays):
            row[:len(array)] = array
    except (TypeError, ValueError) as reason:
        raise _errors.InvalidArgumentError(f'the sequences do not fit together: {reason}') from None
    return padded, lengths


def are_texts(values):
    """Is this a list of strings?"""
    return not hasattr(values, 'dtype') and len(values) > 0 and all(isinstance(v, str) for v in values)


def _encode_texts(split, texts, labels):
    settings, lines = {'type': 'lines', 'file': f'memory:{split}'}, list(texts)
    if labels is not None:
        labels = [str(label) for label in labels]
        settings.update(label='first', delimiter='\t')
        if len(labels) != len(lines):
            raise _errors.InvalidArgumentError(f'{split}: {len(lines)} texts, but {len(labels)} labels')
        lines = [f'{label}\t{line}' for label, line in zip(labels, lines)]
    for number, line in enumerate(lines):
        if not line.isprintable() and (line.count('\t') > (labels is not None) or len(line.splitlines()) > 1):
            raise _errors.InvalidArgumentError(f'{split}: text {number} or its label contains a tab or a line break')
    return settings, {split: ('\n'.join(lines) + '\n').encode('utf-8', 'surrogatepass')}


def _encode_arrays(split, x, y, lengths):
    if isinstance(x, (list, tuple)):
        x, lengths = pad(x)
        if isinstance(y, (list, tuple)) and y and getattr(y[0], 'ndim', 0) > 0:
            y = pad(y)[0]
    settings, files = {'type': 'npy'}, {}
    for key, array in (('x', x), ('y', y), ('lengths', lengths)):
        if array is not None:
            name = f'{split}.{key}'
            settings[key] = f'memory:{name}'
            files[name] = encode_array(array)
    return settings, files


def encode_split(split, value):
    """`value` is a table (pandas.DataFrame), x, (x, y), (x, y, lengths), or {"x", "y", "lengths"}; or a dict of
    columns {"source": texts, "target": texts} for an encoder and a decoder."""
    if hasattr(value, 'columns') and hasattr(value, 'iloc'):
        columns = {str(name): value[name].tolist() for name in value.columns}
        return {'type': 'csv', 'file': f'memory:{split}'}, {split: encode_table(columns)}
    if isinstance(value, dict) and 'x' not in value:
        columns = {name: list(values) for name, values in value.items()}
        settings = {'type': 'csv', 'file': f'memory:{split}'}
        settings.update({side: side for side in ('source', 'target') if side in columns})
        return settings, {split: encode_table(columns)}
    if isinstance(value, dict):
        parts = [value.get(key) for key in ('x', 'y', 'lengths')]
    elif isinstance(value, tuple):
        parts = [*value, None, None][:3]
    else:
        parts = [value, None, None]
    if are_texts(parts[0]):
        return _encode_texts(split, parts[0], parts[1])
    return _encode_arrays(split, *parts)
