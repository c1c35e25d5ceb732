#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer_tritonclient.py PROGRAM: an unmodified tritonclient (PyPI: tritonclient[http]) asks `seqlstm serve`, with JSON and
with binary tensors. Needs the package, so it is in no suite. Ends with status 1 if an answer is wrong."""
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import tritonclient.http as triton


def ask(client, binary):
    texts = triton.InferInput('text', [2], 'BYTES')
    texts.set_data_from_numpy(np.array(['what a lovely film', 'the plot is boring'], dtype=object), binary_data=binary)
    outputs = [triton.InferRequestedOutput(name, binary_data=binary) for name in ('y', 'label')]
    answer = client.infer('classify', [texts], outputs=outputs)
    labels = [label.decode() if isinstance(label, bytes) else label for label in answer.as_numpy('label')]
    return answer.as_numpy('y'), labels


def check(address):
    client = triton.InferenceServerClient(address)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready('classify')
    assert client.get_server_metadata()['name'] == 'seqlstm'
    assert [i['name'] for i in client.get_model_metadata('classify')['inputs']] == ['x', 'lengths', 'text']
    (y, labels), (plain, same) = ask(client, True), ask(client, False)
    assert labels == same == ['good', 'bad'] and np.allclose(y, plain, atol=1e-6) and y.shape == (2, 2), (y, labels)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        for command in (['new', 'model', 'classify'], ['run', 'classify/model.yaml', '-q']):
            subprocess.run([program, *command], cwd=folder, check=True)
        server = subprocess.Popen([program, 'serve', 'classify', '--port', '0'], cwd=folder, stderr=subprocess.PIPE)
        try:
            address = re.search(r'http://(\S+)/', server.stderr.readline().decode())[1]
            check(address)
        finally:
            server.terminate()
            server.wait()
    print('tritonclient: ok')


if __name__ == '__main__':
    main()
