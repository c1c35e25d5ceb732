# SPDX-License-Identifier: Apache-2.0
import threading


def run_together(count, work):
    """Runs work(k), for each k below count, on a thread of its own, and waits for all."""
    threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
