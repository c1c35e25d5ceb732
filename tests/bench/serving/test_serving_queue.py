#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The queue that serving.py compares servers with: what is known of queues, and pauses whose effect can be told by hand."""
import random
import sys

sys.dont_write_bytecode = True
import serving_queue as q
from serving_queue import Costs, Pauses, Server

MS = 1e-3


def close(got, wanted, tolerance=1e-9):
    if not abs(got - wanted) <= tolerance:
        raise AssertionError(f'{got}, expected {wanted}')


def all_close(got, wanted):
    if len(got) != len(wanted):
        raise AssertionError(f'{got}, expected {wanted}')
    for one, other in zip(got, wanted):
        close(one, other)


def test_work_goes_on_after_pauses():
    pauses = Pauses([(2, 1), (2.5, 1), (10, 5)])  # two that overlap: 2 to 3.5
    for now, seconds, end in ((0, 2, 2), (0, 2.5, 4), (1, 7.4, 9.9), (1, 8, 15.5), (3, 1, 4.5), (20, 1, 21), (12, 1, 16)):
        close(pauses.work(now, seconds), end)
    for now, begin in ((0, 0), (2, 3.5), (3.4, 3.5), (3.5, 3.5), (11, 15), (15, 15)):
        close(pauses.resume(now), begin)
    for begin, end, touched in ((0, 2, False), (0, 2.1, True), (2.5, 2.6, True), (3.5, 10, False), (3.4, 4, True), (11, 20, True), (15, 20, False)):
        assert pauses.touch(begin, end) == touched, (begin, end)
    assert not Pauses().touch(0, 1)


def test_one_at_a_time_is_the_known_queue():
    """Random arrivals, equal times D, load r: they wait r / (2 (1 - r)) D on average (Pollaczek and Khinchin)."""
    server = Server(Costs(1, 0, 0, 0), most=1)
    for load in (0.5, 0.7, 0.9):
        source, now, requests = random.Random(3), 0.0, []
        for _ in range(200000):
            now += source.expovariate(load)
            requests.append((now, 1))
        took = q.simulate(server, requests)
        wanted = 1 + load / (2 * (1 - load))
        close(sum(took) / len(took), wanted, 0.05 * wanted)


def test_a_pause_delays_what_comes_in_it():
    server = Server(Costs(1 * MS, 0, 0, 0), most=1, front=0.2 * MS)
    requests = [(1.0, 1), (1.010, 1), (1.011, 1), (1.020, 1)]
    all_close(q.simulate(server, requests), [1.2 * MS] * 4)
    pause = Pauses([(1.0095, 4 * MS)])  # to 1.0135: then two that wait, one after the other
    all_close(q.simulate(server, requests, pause), [1.2 * MS, 4.6 * MS, 4.6 * MS, 1.2 * MS])
    middle = Pauses([(1.0103, 4 * MS)])  # in the middle of the second
    all_close(q.simulate(server, requests, middle), [1.2 * MS, 5.2 * MS, 5.2 * MS, 1.2 * MS])
    # in the front: the worker sees both at 1.0136, and the second one after the first
    all_close(q.simulate(server, requests, Pauses(), pause), [1.2 * MS, 4.7 * MS, 4.7 * MS, 1.2 * MS])


def test_whole_sequences_of_the_nearest_lengths():
    server = Server(Costs(1, 0.1, 0.01, 0.001), most=2)
    # the first alone; then 9, which has waited longest, with 8 and not with 1
    requests = [(0, 5), (0.1, 9), (0.2, 1), (0.3, 8)]
    first, second, third = 1.551, 1 + 0.9 + 0.17 + 0.002, 1 + 0.1 + 0.01 + 0.001
    all_close(q.simulate(server, requests), [first, first + second - 0.1, first + second - 0.3, first + second + third - 0.2])


def test_a_part_of_many_is_a_batch():
    """Of 200 that wait 159, where a batch takes as long as ten sequences: 2.5 sqrt(2 * 200 * 10) = 158.1."""
    costs = Costs(6, 0.2, 0.09, 0.1)  # of 20 steps: 10, and 1 for each of 10 rows
    close(q.choose_count(costs, [20] * 100 + [0] * 100), 159)
    close(q.choose_count(costs, [20] * 10 + [0] * 10), 20)
    close(q.choose_count(Costs(0, 0, 1, 0), [5] * 50), 4)  # nothing is gained by a batch: a few
    close(q.choose_count(Costs(1, 0, 0, 0), [5] * 50), 50)
    close(q.choose_count(Costs(1, 0, 0, 0), [5]), 1)


def test_others_join_between_steps():
    server = Server(Costs(1, 0.1, 0, 0), way='steps', most=2, chunk=4)
    # 4 of 6; 2 of it with the second; the third waits for a place, and joins the rest of the second
    requests = [(0, 6), (0.5, 5), (0.6, 1)]
    all_close(q.simulate(server, requests), [1.4 + 1.4, 2.8 + 1.1 - 0.5, 2.8 + 1.1 - 0.6])


def test_texts_stop_where_one_ends():
    server = Server(Costs(1, 0.1, 0, 0), way='texts', most=8, chunk=4, tokens=2)
    # six tokens and two: 4 of the first; 2 of both; none are left
    all_close(q.simulate(server, [(0, 3), (0.5, 1)]), [1.4 + 1.2, 2.6 - 0.5])


def test_costs_are_found_again():
    costs, source = Costs(21e-6, 5.9e-6, 7.1e-6, 4e-6), random.Random(5)
    batches = []
    for k in range(3000):
        lengths = [1 + int(source.expovariate(0.1)) for _ in range(source.randint(1, 64))]
        took = q.cost(costs, lengths) * source.uniform(0.98, 1.02) + (5e-3 if k % 50 == 0 else 0)
        batches.append((took, max(lengths), len(lengths), sum(lengths)))
    found = q.fit(batches)
    for lengths in ([12], [30, 5, 1, 9], [20] * 64):
        close(q.cost(found, lengths), q.cost(costs, lengths), 0.05 * q.cost(costs, lengths))
    # all of one length and number: what they take is told all the same
    alike = q.fit([(0.5, 10, 4, 40)] * 10)
    close(q.cost(alike, [10] * 4), 0.5)


def main():
    tests = [test for name, test in globals().items() if name.startswith('test_')]
    for test in tests:
        test()
    print(f'{len(tests)} passed')


main()
