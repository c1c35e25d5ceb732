# SPDX-License-Identifier: Apache-2.0
"""Data in memory: each split becomes the settings of `data:` and the bytes that they name."""
from __future__ import annotations

from ._library import refuse, refuse_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    _Encoded = tuple[dict[str, str], dict[str, bytes]]  # settings of `data:`, and the bytes that they name


def encode_json(value: Any, what: str) -> str:
    """A value of a model file as JSON; numbers and arrays of numpy and paths are what they hold."""
    import json
    import os

    def find_plain(item: Any) -> Any:
        if hasattr(item, 'tolist') or hasattr(item, '__fspath__'):
            return item.tolist() if hasattr(item, 'tolist') else os.fspath(item)
        refuse_type(item, f'a value of {what}', 'a number, a string, a path, a list or a dict')
    try:
        return json.dumps(value, allow_nan=False, default=find_plain)
    except ValueError as reason:  # nan, or a list within itself
        refuse(what, f'{what} cannot be written as JSON: {reason}', 'use finite numbers, and no list within itself')


def encode_array(array: Any, what: str) -> bytes:
    """An array as the bytes of a .npy file."""
    import io

    import numpy as np

    from ._tensors import to_numpy
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(to_numpy(array, what)), allow_pickle=False)
    return out.getvalue()


def _check_lengths(columns: Mapping[str, Sequence[Any]], what: str) -> None:
    if len({len(values) for values in columns.values()}) > 1:
        sizes = ', '.join(f'{name} {len(values)}' for name, values in columns.items())
        refuse(what, f'the columns have different lengths: {sizes}', 'give each column one value for each record')


def encode_table(columns: Mapping[str, Sequence[Any]], what: str) -> bytes:
    """Columns {name: values} as the bytes of a CSV file."""
    import csv
    import io
    _check_lengths(columns, what)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator='\n')
    writer.writerow(columns)
    writer.writerows(zip(*columns.values()))
    return out.getvalue().encode()


def pad(sequences: Iterable[Any], what: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """A list of arrays [T, …] of different lengths as one array [N, longest, …], and the lengths."""
    import numpy as np

    from ._tensors import to_numpy
    arrays = [to_numpy(s, what) for s in sequences]
    if not arrays:
        refuse(what, 'there are no sequences', 'give at least one')
    shapes = sorted({array.shape[1:] for array in arrays})
    if len(shapes) > 1 or any(array.ndim == 0 for array in arrays):
        found = ' and '.join(str(list(shape)) for shape in shapes) if len(shapes) > 1 else 'single numbers'
        refuse(what, f'the sequences do not fit together: their steps are {found}',
               'pass arrays [T, F] with the same F')
    lengths = np.array([len(a) for a in arrays], 'int64')
    padded = np.zeros((len(arrays), max(1, int(lengths.max())), *shapes[0]), np.result_type(*arrays))
    for row, array in zip(padded, arrays):
        row[:len(array)] = array
    return padded, lengths


def are_texts(values: Any) -> bool:
    """Are these strings, in a list, an array or a column of pandas?"""
    if isinstance(values, str) or hasattr(values, 'columns'):  # the items of a table are the names of its columns
        return False
    if hasattr(values, 'dtype') and (getattr(values.dtype, 'kind', '') not in ('O', 'U') or values.ndim != 1):
        return False
    return hasattr(values, '__len__') and len(values) > 0 and all(isinstance(v, str) for v in values)


def _encode_texts(split: str, texts: Any, labels: Any) -> _Encoded:
    settings, lines = {'type': 'lines', 'file': f'memory:{split}'}, list(texts)
    if labels is not None:
        labels = [str(label) for label in labels]
        settings.update(label='first', delimiter='\t')
        if len(labels) != len(lines):
            refuse(f'data.{split}', f'{split}: {len(lines)} texts, but {len(labels)} labels',
                   'give each text one label')
        lines = [f'{label}\t{line}' for label, line in zip(labels, lines)]
    for number, line in enumerate(lines):
        if not line.isprintable() and (line.count('\t') > (labels is not None) or line.splitlines() != [line]):
            refuse(f'data.{split}', f'{split}: text {number} or its label contains a tab or a line break',
                   'replace them by spaces')
    return settings, {split: ('\n'.join(lines) + '\n').encode('utf-8', 'surrogatepass')}


def _encode_pairs(split: str, sides: Mapping[str, Sequence[Any]]) -> _Encoded:
    """Two files of lines, so that the trained decoder reads lines, too: those that `predict` gives it."""
    _check_lengths(sides, f'data.{split}')
    settings: dict[str, str] = {'type': 'lines'}
    files: dict[str, bytes] = {}
    for side, values in sides.items():
        lines = ['' if value is None else str(value) for value in values]
        for number, line in enumerate(lines):
            if line and line.splitlines() != [line]:
                refuse(f'data.{split}', f'{split}: {side} {number} contains a line break', 'replace it by a space')
        name = f'{split}.{side}'
        settings[side] = f'memory:{name}'
        files[name] = ('\n'.join(lines) + '\n').encode('utf-8', 'surrogatepass')
    return settings, files


def _encode_arrays(split: str, x: Any, y: Any, lengths: Any) -> _Encoded:
    if isinstance(x, (list, tuple)):
        if lengths is not None:
            refuse(f'data.{split}', f'{split}: lengths belong to an array: a list has sequences of their own lengths',
                   'leave the lengths out')
        x, lengths = pad(x, f'data.{split}')
        if isinstance(y, (list, tuple)) and y and getattr(y[0], 'ndim', 0) > 0:
            y = pad(y, f'data.{split}')[0]
    settings: dict[str, str] = {'type': 'npy'}
    files: dict[str, bytes] = {}
    for key, array in (('x', x), ('y', y), ('lengths', lengths)):
        if array is not None:
            if are_texts(array):
                refuse(f'data.{split}', f'{split}: {key} are texts, expected numbers',
                       'np.unique(labels, return_inverse=True) numbers classes')
            name = f'{split}.{key}'
            settings[key] = f'memory:{name}'
            files[name] = encode_array(array, f'data.{split}')
    return settings, files


def _read_column(column: Any) -> list[Any]:
    """The values of a column of pandas; a missing one is None, which is an empty field of CSV."""
    missing = column.isna()
    values = column.tolist()
    return [None if gone else value for value, gone in zip(values, missing)] if missing.any() else values


def encode_split(split: str, value: Any) -> _Encoded:
    """`value` is a table (pandas.DataFrame), x, (x, y), (x, y, lengths), or {"x", "y", "lengths"}; or a dict of
    columns {"source": texts, "target": texts} for an encoder and a decoder."""
    if hasattr(value, 'columns') and hasattr(value, 'iloc'):
        titles = [str(name) for name in value.columns]
        twice = [title for title in titles if titles.count(title) > 1]
        if twice:
            refuse(f'data.{split}', f'{split} has two columns `{twice[0]}`', 'rename or drop one of them')
        columns = {str(name): _read_column(value[name]) for name in value.columns}
        return {'type': 'csv', 'file': f'memory:{split}'}, {split: encode_table(columns, f'data.{split}')}
    if value is None or isinstance(value, (str, bytes)) or hasattr(value, '__fspath__'):
        refuse(f'data.{split}', f'{split} is a {type(value).__name__}, expected data',
               'name files in the model instead: {"data": {"train": "train.csv"}}')
    if isinstance(value, dict) and 'x' not in value:
        columns = {name: list(values) for name, values in value.items()}
        if set(columns) == {'source', 'target'}:
            return _encode_pairs(split, columns)
        settings = {'type': 'csv', 'file': f'memory:{split}'}
        settings.update({side: side for side in ('source', 'target') if side in columns})
        return settings, {split: encode_table(columns, f'data.{split}')}
    names = ('x', 'y', 'lengths')
    if isinstance(value, dict):
        unknown = [name for name in value if name not in names]
        if unknown:
            refuse(f'data.{split}', f'{split}: no key `{unknown[0]}` beside x', 'use y or lengths')
        parts = [value.get(name) for name in names]
    elif isinstance(value, tuple):
        if not 1 <= len(value) <= len(names):
            refuse(f'data.{split}', f'{split}: {len(value)} values', 'pass (x, y) or (x, y, lengths)')
        parts = [*value, None, None][:len(names)]
    else:
        parts = [value, None, None]
    if not are_texts(parts[0]):
        return _encode_arrays(split, *parts)
    if parts[2] is not None:
        refuse(f'data.{split}', f'{split}: texts have no lengths', 'pass (texts, labels)')
    return _encode_texts(split, parts[0], parts[1])
