# SPDX-License-Identifier: Apache-2.0
"""PyTorch as far as the scripts of run.sh use it, for a machine without it: tensors without values, and a CUDA graph
whose kernels the profiler sees. What is not here is an error, as in PyTorch."""
import contextlib
import types

from . import profiler

KERNELS = ('void nll_loss_forward_reduce_cuda_kernel_2d(float)', 'void gemm(float)', 'void fused_adam(float)')
CELLS, PARTS = 2, 4


class Tensor:
    """No values: every operation gives another one."""
    shape = (2, 2, 2)

    def __iter__(self):
        return iter([Tensor() for _ in range(CELLS)])

    def chunk(self, count, dimension):
        return [Tensor() for _ in range(count)]


def give_tensor(*arguments, **options):
    return Tensor()


for name in ('__add__', '__radd__', '__mul__', '__rmul__', '__lt__', '__getitem__', 'new_zeros', 'clamp', 'view', 'float', 'to', 'backward'):
    setattr(Tensor, name, give_tensor)
tanh = sigmoid = where = rand_like = ones_like = stack = randint = randn = give_tensor
float32, bfloat16, float16 = 'torch.float32', 'torch.bfloat16', 'torch.float16'


class Module:
    def __init__(self, *arguments, **options):
        pass

    def to(self, *arguments):
        return self

    def parameters(self):
        return [Tensor()]

    def __call__(self, *arguments):
        return self.forward(*arguments)

    def forward(self, *arguments):
        return Tensor()


class LSTM(Module):
    def forward(self, *arguments):
        return Tensor(), (Tensor(), Tensor())


class Optimizer:
    def __init__(self, parameters, lr, **options):
        pass

    def zero_grad(self, set_to_none):
        pass

    def step(self):
        pass


functional = types.SimpleNamespace(dropout=give_tensor, leaky_relu=give_tensor, cross_entropy=give_tensor)
nn = types.SimpleNamespace(Module=Module, Linear=Module, LayerNorm=Module, Embedding=Module, Dropout=Module, LSTM=LSTM,
                           Parameter=give_tensor, functional=functional, utils=types.SimpleNamespace(clip_grad_norm_=give_tensor))
optim = types.SimpleNamespace(Adam=Optimizer, SGD=Optimizer)
zeros = give_tensor
inference_mode = contextlib.nullcontext
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=False)),
                                 cudnn=types.SimpleNamespace(allow_tf32=True))


class Graph:
    def replay(self):
        for kernel in KERNELS:
            profiler.note(kernel)


class Stream:
    def wait_stream(self, other):
        pass


cuda = types.SimpleNamespace(is_available=lambda: True, synchronize=lambda: None, Stream=Stream, current_stream=Stream,
                             stream=contextlib.nullcontext, graph=contextlib.nullcontext, CUDAGraph=Graph)
