#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer_openai.py PROGRAM: an unmodified OpenAI client (PyPI: openai) asks `seqlstm serve` for texts, whole and as events.
Needs the package, so it is in no suite. Ends with status 1 if an answer is wrong."""
import pathlib
import re
import subprocess
import sys
import tempfile

import openai


def check(address):
    client = openai.OpenAI(base_url=f'http://{address}/v1', api_key='none')
    assert [model.id for model in client.models.list()] == ['language_model']
    settings = {'model': 'language_model', 'prompt': 'the ', 'max_tokens': 30, 'seed': 3, 'temperature': 0.8}
    answer = client.completions.create(n=2, **settings)
    assert [choice.index for choice in answer.choices] == [0, 1] and answer.usage.completion_tokens >= 2, answer
    text, reason = '', None
    for event in client.completions.create(stream=True, **settings):
        text += event.choices[0].text
        reason = event.choices[0].finish_reason or reason
    assert text == answer.choices[0].text and reason == answer.choices[0].finish_reason, (text, answer)
    for wrong, kind in (({'model': 'other'}, openai.NotFoundError), ({'logprobs': 3}, openai.BadRequestError)):
        try:
            client.completions.create(**{**settings, **wrong})
        except kind as error:
            assert 'other' in str(error) or 'logprobs' in str(error), error
        else:
            raise AssertionError(wrong)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        for command in (['new', 'model', 'language_model'], ['run', 'language_model/model.yaml', '-q']):
            subprocess.run([program, *command], cwd=folder, check=True)
        server = subprocess.Popen([program, 'serve', 'language_model', '--port', '0'], cwd=folder, stderr=subprocess.PIPE)
        try:
            check(re.search(r'http://(\S+?)/;', server.stderr.readline().decode())[1])
        finally:
            server.terminate()
            server.wait()
    print('openai: ok')


if __name__ == '__main__':
    main()
