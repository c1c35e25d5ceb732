# SPDX-License-Identifier: Apache-2.0
"""Files of other programs, for tests: protocol buffers (ONNX, TensorBoard) and NumPy's .npy; and the checksum of our
own files. Standard library only."""
import ast
import struct

# ---- protocol buffers -----------------------------------------------------------------------------------------


def varint(n):
    n &= (1 << 64) - 1
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def field(number, value):
    """One field: an integer, a float (of four bytes), a text or bytes."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack('<f', value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def read_varint(data, at):
    """The number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def read_fields(data):
    """(number, value) of each field: an integer, a float or bytes."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
            value -= (1 << 64) if value >> 63 else 0
        elif key & 7 == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            kind, size = ('<d', 8) if key & 7 == 1 else ('<f', 4)
            value, at = struct.unpack_from(kind, data, at)[0], at + size
        yield key >> 3, value


# ---- NumPy ----------------------------------------------------------------------------------------------------


def write_npy(shape, data, kind='<f4'):
    """The .npy file of the bytes `data`, or of numbers, which are float32."""
    if not isinstance(data, bytes):
        data = struct.pack(f'<{len(data)}f', *data)
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".ljust(117) + '\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + data


def read_npy(data):
    """(header, bytes) of a .npy file."""
    if data[:8] != b'\x93NUMPY\x01\x00':
        raise ValueError(f'no .npy file of version 1: {data[:20]!r}')
    end = 10 + struct.unpack('<H', data[8:10])[0]
    return ast.literal_eval(data[10:end].decode()), data[end:]


# ---- checksums ------------------------------------------------------------------------------------------------

def make_table64():
    table = list(range(256))
    for _ in range(8):
        table = [entry >> 1 ^ (0xC96C5795D7870F42 if entry & 1 else 0) for entry in table]
    return table


TABLE64 = make_table64()


def crc64(data):
    """CRC-64/XZ, as weights, the cache of costs and caches of tokens have it."""
    crc = 2**64 - 1
    for byte in data:
        crc = crc >> 8 ^ TABLE64[(crc ^ byte) & 255]
    return crc ^ 2**64 - 1
