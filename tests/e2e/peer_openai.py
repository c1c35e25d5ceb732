#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer_openai.py PROGRAM: an unmodified OpenAI client (PyPI: openai) asks `seqlstm serve` for texts, whole and as events.
Needs the package, so it is in no suite. Ends with status 1 if an answer is wrong."""
import pathlib
import sys

import openai

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli/serve'))
from serving import serve_new


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
    with serve_new(sys.argv[1], 'language_model') as server:
        check(f'{server.host}:{server.port}')
    print('openai: ok')


if __name__ == '__main__':
    main()
