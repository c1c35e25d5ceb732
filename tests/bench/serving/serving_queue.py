# SPDX-License-Identifier: Apache-2.0
"""The queue of an ideal server: one worker that nothing disturbs but pauses of its processor, and threads that read and write beside it.

Requests are (time, steps). The worker computes batches as core/serve/compute does: as many sequences as batch_costs.h chooses; of whole sequences,
those that length_window.h chooses; or of at most so many steps of each sequence, which others join between two batches; or of texts that are being
written, a few tokens of each. A batch takes a time of its own, and times for each step of its longest sequence, for each row and for each sequence.
Times are seconds."""
import bisect
import collections
import math

Costs = collections.namedtuple('Costs', 'batch step row sequence')
# way: 'whole', 'steps' or 'texts'; most: sequences of a batch; chunk: steps of a batch, or tokens; front: what reading a request, writing its answer
# and waking threads takes, beside the worker; tokens: of a text, for each step of its source
Server = collections.namedtuple('Server', 'costs way most chunk front tokens', defaults=('whole', 64, 32, 0.0, 1.0))


class Pauses:
    """Times (begin, seconds) in which a processor does nothing. One that is slow has some in each millisecond."""

    def __init__(self, pauses=()):
        self.begins, self.ends = [], []
        for begin, seconds in sorted(pauses):
            if self.ends and begin <= self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], begin + seconds)
            else:
                self.begins.append(begin)
                self.ends.append(begin + seconds)

    def resume(self, now):
        """The first time from `now` on at which there is no pause."""
        k = bisect.bisect_right(self.begins, now) - 1
        return max(now, self.ends[k]) if k >= 0 else now

    def touch(self, begin, end):
        """Whether there is a pause between these times."""
        k = bisect.bisect_left(self.begins, end)
        return k > 0 and self.ends[k - 1] > begin

    def work(self, now, seconds):
        """When so much work has ended that began at `now`."""
        now = self.resume(now)
        k = bisect.bisect_right(self.begins, now)
        while k < len(self.begins) and self.begins[k] < now + seconds:
            seconds -= self.begins[k] - now
            now = self.ends[k]
            k += 1
        return now + seconds


def choose(queue, most):
    """The sequence that has waited longest, and those of the nearest lengths; and the rest."""
    if len(queue) <= most:
        return queue, []
    if most == 0:
        return [], queue
    oldest = queue[0][1]
    distance = sorted(abs(job[1] - oldest) for job in queue)[most - 1]
    taken, rest = [], []
    for job in queue:
        (taken if len(taken) < most and abs(job[1] - oldest) <= distance else rest).append(job)
    return taken, rest


def choose_count(costs, steps):
    """How many of the sequences that run or wait are in the next batch, with so many steps left: see batch_costs.h."""
    count = len(steps)
    batch, each = costs.batch + costs.step * max(steps), costs.row * sum(steps) / count + costs.sequence
    return max(min(count, 4), min(count, math.ceil(2.5 * math.sqrt(2 * count * batch / each)))) if each > 0 else count


def cost(costs, steps):
    return costs.batch + costs.step * max(steps) + costs.row * sum(steps) + costs.sequence * len(steps)


class Worker:
    """What it has begun: lists of request, and steps that are left."""

    def __init__(self, server):
        self.server, self.running = server, []

    def take(self, queue):
        """Begins with some of those that wait; returns the others."""
        server, most = self.server, self.server.most
        left = [run[1] for run in self.running] + [job[1] for job in queue]
        if server.way != 'texts' and left:
            most = min(most, choose_count(server.costs, left))
        room = max(0, most - len(self.running))
        if server.way == 'whole':
            begun, queue = choose(queue, room)
        else:
            begun, queue = queue[:room], queue[room:]
        ratio = server.tokens if server.way == 'texts' else 1
        self.running += [[job, max(1, round(job[1] * ratio))] for job in begun]
        return queue

    def compute(self):
        """A batch: the work, and the requests that have ended."""
        server, left = self.server, [run[1] for run in self.running]
        if server.way == 'texts':
            steps = [min(server.chunk, min(left))] * len(left)
        elif server.way == 'steps':
            steps = [min(server.chunk, one) for one in left]
        else:
            steps = left
        for run, done in zip(self.running, steps):
            run[1] -= done
        ended = [run[0] for run in self.running if run[1] == 0]
        self.running = [run for run in self.running if run[1] > 0]
        return cost(server.costs, steps), ended


def simulate(server, requests, worker_pauses=Pauses(), front_pauses=Pauses()):
    """Seconds that each request takes, in the order of their ends. Half of what the front takes comes before the worker, and half after it."""
    half, worker = server.front / 2, Worker(server)
    seen = [(front_pauses.resume(time) + half, time, steps) for time, steps in requests]
    now, following, queue, took = 0.0, 0, [], []
    while following < len(seen) or queue or worker.running:
        if not queue and not worker.running:
            now = max(now, seen[following][0])
        now = worker_pauses.resume(now)
        while following < len(seen) and seen[following][0] <= now:
            queue.append(seen[following][1:])
            following += 1
        queue = worker.take(queue)
        work, ended = worker.compute()
        now = worker_pauses.work(now, work)
        answered = front_pauses.resume(now) + half
        took += [answered - time for time, _ in ended]
    return took


def find_p99(took):
    return sorted(took)[int(0.99 * (len(took) - 1))]


# ---- what a server was measured to take --------------------------------------------------------------------------


def solve(rows, values):
    """Least squares. Columns that say nothing of their own get 0."""
    width = len(rows[0])
    matrix = [[sum(row[i] * row[j] for row in rows) for j in range(width)] + [sum(row[i] * v for row, v in zip(rows, values))] for i in range(width)]
    scale = [matrix[i][i] ** 0.5 or 1.0 for i in range(width)]
    matrix = [[matrix[i][j] / scale[i] / scale[j] for j in range(width)] + [matrix[i][width] / scale[i]] for i in range(width)]
    for i in range(width):
        pivot = max(range(i, width), key=lambda k: abs(matrix[k][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        if abs(matrix[i][i]) < 1e-9:
            matrix[i] = [0.0] * (width + 1)
            matrix[i][i] = 1.0
        for k in range(width):
            if k != i:
                factor = matrix[k][i] / matrix[i][i]
                matrix[k] = [a - factor * b for a, b in zip(matrix[k], matrix[i])]
    return [matrix[i][width] / matrix[i][i] / scale[i] for i in range(width)]


def fit(batches):
    """Costs of batches (seconds, steps, sequences, rows). Those that took far longer than others alike were disturbed, and do not count. A cost that
    comes out below 0 is left out."""
    def features(batch, used):
        return [one for one, use in zip((1.0, batch[1], batch[3], batch[2]), used) if use]
    used, kept = [True] * 4, batches
    while True:
        for _ in range(4):
            found = solve([features(batch, used) for batch in kept], [batch[0] for batch in kept])
            rest = [abs(batch[0] - sum(a * b for a, b in zip(found, features(batch, used)))) for batch in batches]
            limit = 5 * sorted(rest)[len(rest) // 2] + 1e-9
            kept = [batch for batch, off in zip(batches, rest) if off <= limit]
        costs = iter(found)
        all_four = [next(costs) if use else 0.0 for use in used]
        if min(all_four) >= 0:
            return Costs(*all_four)
        used[all_four.index(min(all_four))] = False
