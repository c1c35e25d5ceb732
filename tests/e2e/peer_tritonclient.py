#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer_tritonclient.py PROGRAM: an unmodified tritonclient (PyPI: tritonclient[http]) asks `seqlstm serve`, with JSON and
with binary tensors, and in a sequence of requests. Needs the package, so it is in no suite. Ends with status 1 if an answer
is wrong."""
import pathlib
import sys

import numpy as np
import tritonclient.http as triton

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli/serve'))
from serving import serve_new


def ask(client, binary):
    texts = triton.InferInput('text', [2], 'BYTES')
    texts.set_data_from_numpy(np.array(['what a lovely film', 'the plot is boring'], dtype=object), binary_data=binary)
    outputs = [triton.InferRequestedOutput(name, binary_data=binary) for name in ('y', 'label')]
    answer = client.infer('classify', [texts], outputs=outputs)
    labels = [label.decode() if isinstance(label, bytes) else label for label in answer.as_numpy('label')]
    return answer.as_numpy('y'), labels


def follow(client, ids, **more):
    x = triton.InferInput('x', [len(ids)], 'INT32')
    x.set_data_from_numpy(np.array(ids, dtype=np.int32))
    return client.infer('language_model', [x], **more).as_numpy('y')[-1]


def check(address):
    client = triton.InferenceServerClient(address)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready('classify')
    assert client.get_server_metadata()['name'] == 'seqlstm'
    assert [i['name'] for i in client.get_model_metadata('classify')['inputs']] == ['x', 'lengths', 'text']
    (y, labels), (plain, same) = ask(client, True), ask(client, False)
    assert labels == same == ['good', 'bad'] and np.allclose(y, plain, atol=1e-6) and y.shape == (2, 2), (y, labels)
    follow(client, [3, 4], sequence_id=9, sequence_start=True)
    last = follow(client, [5, 3], sequence_id=9, sequence_end=True)
    assert np.allclose(last, follow(client, [3, 4, 5, 3]), atol=1e-6), last


def main():
    with serve_new(sys.argv[1], 'classify', 'language_model') as server:
        check(f'{server.host}:{server.port}')
    print('tritonclient: ok')


if __name__ == '__main__':
    main()
