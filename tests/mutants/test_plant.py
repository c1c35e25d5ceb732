#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests plant.py: every line of a function that may be changed is, in both kinds of lines."""
import contextlib
import io
import pathlib
import tempfile

import plant

SOURCE = """static int f(int a, int b)
{
    int sum = 0;
    char *text = malloc(8);
    if (text == NULL)
        return no_memory(err);
    for (int k = 0; k < a; k++)
        sum += k;
    SEQLSTM_TRY(g(a, b));
    if (a && h(b))
        sum = a - 1;
    free(text);
    if (sum < b)
        return true;
    return sum;
}
"""

PLAIN = """static int f(int a, int b)
{
    int sum = 0;
    char *text = malloc(8);
    if (text == NULL)
        return no_memory(err);
    for (int k = 0; BUG(1, (k + 1 < a), (k < a)); k++)
        sum += k;
    SEQLSTM_TRY(g(a, b));
    if (BUG(2, (1), (a)) && h(b))
        sum = a - BUG(3, (0), (1));
    free(text);
    if (BUG(4, (sum <= b), (sum < b)))
        return true;
    return sum;
}
"""

ERRORS = """static int f(int a, int b)
{
    int sum = 0;
    char *text = malloc(8);
    if (BUG(1, (0), (text == NULL)))
        return no_memory(err);
    for (int k = 0; k < a; k++)
        sum += k;
    if (bug_is(2)) (void)(g(a, b)); else SEQLSTM_TRY(g(a, b));
    if (a && h(b))
        sum = a - 1;
    if (!bug_is(3)) free(text);
    if (sum < b)
        return true;
    return sum;
}
"""


def plant_all(folder, errors):
    path = folder / 'core' / 'f.c'
    path.parent.mkdir(exist_ok=True)
    path.write_text(SOURCE)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        plant.plant(folder, 100, ['core'], 1, errors)
    return path.read_text(), said.getvalue()


def main():
    plant.random.Random.choice = lambda self, changes: changes[0]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text, said = plant_all(folder, False)
        assert text == PLAIN, text
        assert said.splitlines()[0] == '    1 core/f.c:7  k < a -> k + 1 < a', said
        text, said = plant_all(folder, True)
        assert text == ERRORS, text
        assert said.splitlines()[2] == '    3 core/f.c:12  free(text); -> (nothing)', said


if __name__ == '__main__':
    main()
