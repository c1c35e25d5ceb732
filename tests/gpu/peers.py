# SPDX-License-Identifier: Apache-2.0
"""The peers of timings.py: one training step of the same models in PyTorch, eager, with the whole step in a CUDA graph,
and as a loop over LSTM cells written by hand, which is the alternative there to an option that cuDNN lacks."""
import statistics
import time

from sizes import shrink

WORDS = shrink(1000)
NARROW = ('bfloat16', 'float16')
SAMPLES, SAMPLE_SECONDS, COUNT_MOST = 5, 0.1, 1000


def make_cell_layer(torch, hidden, option):
    """An LSTM as a loop over steps, with the options that nn.LSTM lacks."""
    class CellLoop(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.x = torch.nn.Linear(hidden, 4 * hidden)
            self.h = torch.nn.Linear(hidden, 4 * hidden, bias=False)
            self.peep = torch.nn.Parameter(torch.zeros(3, hidden))
            self.norm = torch.nn.LayerNorm(4 * hidden)

        def forward(self, x):
            h = c = x.new_zeros(x.shape[1], hidden)
            mask = torch.nn.functional.dropout(torch.ones_like(h), 0.2)
            outputs, sums = [], self.x(x)
            for u in sums:
                v = self.h(h * mask if 'recurrent_dropout' in option else h)
                z = self.norm(u) + self.norm(v) if 'layer_norm' in option else u + v
                i, f, g, o = z.chunk(4, -1)
                if 'peephole' in option:
                    i, f = i + self.peep[0] * c, f + self.peep[1] * c
                act = torch.nn.functional.leaky_relu if 'leaky' in option else torch.tanh
                new = torch.sigmoid(f) * c + torch.sigmoid(i) * act(g)
                if 'cell_clip' in option:
                    new = new.clamp(-3, 3)
                if 'zoneout' in option:
                    new = torch.where(torch.rand_like(new) < 0.1, c, new)
                if 'peephole' in option:
                    o = o + self.peep[2] * new
                c, h = new, torch.sigmoid(o) * act(new)
                outputs.append(h)
            return torch.stack(outputs), None
    return CellLoop()


def make_step(torch, case, loop):
    exact = case['dtype'] != 'tf32'
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = not exact
    hidden, rate, device = shrink(case['hidden']), case.get('dropout', 0), case.get('device', 'cuda')
    words = shrink(case['words']) if 'words' in case else WORDS
    embedding = torch.nn.Embedding(words, hidden, device=device)
    lstm = (make_cell_layer(torch, hidden, case['option']) if loop
            else torch.nn.LSTM(hidden, hidden, case.get('layers', 1), dropout=rate)).to(device)
    output = torch.nn.Linear(hidden, words, device=device)
    if case['dtype'] in NARROW:  # weights are converted: autocast would compute every LSTM in float16
        for module in (embedding, lstm, output):
            module.to(getattr(torch, case['dtype']))
    drop = torch.nn.Dropout(rate)
    parameters = [*embedding.parameters(), *lstm.parameters(), *output.parameters()]
    fast = {'capturable': True, 'fused': True} if device == 'cuda' else {}
    optimizer = torch.optim.SGD(parameters, lr=1e-3) if 'clip' in case else torch.optim.Adam(parameters, lr=1e-3, **fast)
    x = torch.randint(words, (shrink(case['steps']), shrink(case['batch'])), device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        y, _ = lstm(drop(embedding(x)))
        loss = torch.nn.functional.cross_entropy(output(drop(y)).view(-1, words).float(), x.view(-1))
        loss.backward()
        if 'clip' in case:
            torch.nn.utils.clip_grad_norm_(parameters, case['clip'])
        optimizer.step()
    return step


def capture_step(torch, step):
    """The step as a CUDA graph, after it has warmed up."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def time_step(torch, case, graphed=False, loop=False):
    """{'ms': the median of the samples, 'all': the samples} or {'why': what prevented it}."""
    wait = torch.cuda.synchronize if case.get('device', 'cuda') == 'cuda' else lambda: None
    try:
        step = make_step(torch, case, loop)
        if graphed:
            step = capture_step(torch, step).replay
        step()
        wait()
        start = time.perf_counter()
        step()
        wait()
        count = max(1, min(COUNT_MOST, int(SAMPLE_SECONDS / max(time.perf_counter() - start, 1e-6))))
        each = []
        for _ in range(SAMPLES):
            wait()
            start = time.perf_counter()
            for _ in range(count):
                step()
            wait()
            each.append((time.perf_counter() - start) / count * 1e3)
        return {'ms': statistics.median(each), 'all': each}
    except Exception as error:  # whatever PyTorch says is the result
        return {'why': str(error).split('\n')[0][:200]}
