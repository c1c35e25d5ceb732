#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package and CUDA, without a GPU: models run on the emulated device, and tensors in its memory come through
DLPack. test_devices.py FOLDER: that of the emulated plugins, with libgpu_emulation.so"""
import ctypes
import sys
import unittest

import numpy as np

import seqlstm
from models import make_arrays, make_model, silent
from scratch import folders

FOLDER = sys.argv.pop()
DEVICE, UP, DOWN = 0, 1, 2  # SEQLSTM_MEMORY_DEVICE, SEQLSTM_COPY_TO_DEVICE, SEQLSTM_COPY_TO_HOST
CPU, CUDA = (1, 0), (2, 0)  # devices of DLPack
HELD = []  # structs that a capsule points to


class DLTensor(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('device_type', ctypes.c_int32), ('device_id', ctypes.c_int32),
                ('ndim', ctypes.c_int32),
                ('code', ctypes.c_uint8), ('bits', ctypes.c_uint8), ('lanes', ctypes.c_uint16),
                ('shape', ctypes.POINTER(ctypes.c_int64)), ('strides', ctypes.POINTER(ctypes.c_int64)),
                ('byte_offset', ctypes.c_uint64)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [('tensor', DLTensor), ('context', ctypes.c_void_p), ('deleter', ctypes.c_void_p)]


class OldTensor:
    """As a tensor on a GPU of a library that copies none to the host."""

    runtime = ctypes.CDLL(f'{FOLDER}/libgpu_emulation.so')

    def __init__(self, array):
        self.shape, self.bytes, self.memory = array.shape, array.nbytes, ctypes.c_void_p()
        self.call('gpu_allocate', ctypes.c_uint32(DEVICE), ctypes.c_uint64(array.nbytes), ctypes.byref(self.memory))
        self.stream = ctypes.c_void_p()
        self.call('gpu_stream_create', ctypes.byref(self.stream))
        self.copy(UP, self.memory, array.ctypes.data_as(ctypes.c_void_p))

    def call(self, name, *arguments):
        assert getattr(self.runtime, name)(0, *arguments, None) == 0

    def copy(self, direction, to, from_):
        self.call('gpu_copy', self.stream, ctypes.c_uint32(direction), to, from_, ctypes.c_uint64(self.bytes))

    def __dlpack_device__(self):
        return CUDA

    def __dlpack__(self, stream=None):
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        managed = DLManagedTensor(DLTensor(self.memory, *CUDA, len(shape), 2, 32, 1, shape, None, 0), None, None)
        HELD.extend([shape, managed, self])
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(managed), b'dltensor', None)


class Tensor(OldTensor):
    """As a tensor of PyTorch on a GPU: its library copies it to the device that is asked for (DLPack 1.0)."""

    def __dlpack__(self, stream=None, dl_device=None, **_):
        if dl_device in (None, CUDA):
            return super().__dlpack__(stream)
        assert dl_device == CPU
        array = np.empty(self.shape, 'float32')
        self.copy(DOWN, array.ctypes.data_as(ctypes.c_void_p), self.memory)
        return array.__dlpack__()


class Devices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = seqlstm.train(make_model(), data={'train': make_arrays()}, folder=next(folders), on_progress=silent,
                                 backend='cuda-generic', backend_folders=[FOLDER])

    @classmethod
    def tearDownClass(cls):
        cls.run_.close()

    def test_models_run_on_the_device(self):
        self.assertEqual({layer['backend'] for layer in self.run_.plan['layers']}, {'cuda-generic'})
        x, _ = make_arrays()
        host = seqlstm.open(self.run_.folder, backend='reference', backend_folders=[FOLDER]).predict(x)
        np.testing.assert_allclose(self.run_.predict(x), host, rtol=1e-4, atol=1e-5)
        stream = self.run_.stream()
        np.testing.assert_allclose([stream(step) for step in x[0]][-1], host[0], rtol=1e-4, atol=1e-5)

    def test_tensors_in_its_memory_are_copied(self):
        x, y = make_arrays()
        np.testing.assert_array_equal(self.run_.predict(Tensor(x)), self.run_.predict(x))
        np.testing.assert_array_equal(self.run_.stream()(Tensor(x[0])), self.run_.stream()(x[0]))
        tensors = {'train': (Tensor(x), Tensor(y.astype('float32')))}
        other = seqlstm.train(make_model(), data=tensors, folder=next(folders), on_progress=silent,
                              backend='cuda-generic', backend_folders=[FOLDER])
        np.testing.assert_array_equal(other.predict(x), self.run_.predict(x))
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, r'cannot be read.*pass tensor\.float\(\)\.cpu\(\)'):
            self.run_.predict(OldTensor(x))


if __name__ == '__main__':
    unittest.main()
