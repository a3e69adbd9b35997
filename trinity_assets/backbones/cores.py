"""One prompt to a core: how the forward passes share a machine.

torch's default, every core on one prompt, meets at a barrier after each of a layer's small products. On two cores that
other processes were using too, that took 37 s for prompts that one core did in 3 s. Prompts are independent, so each
gets one core, and a feature has the same bits whatever the number of cores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

_THREAD_SETTING = threading.Lock()
"""torch's thread count is the process's: one pool at a time may lower it and put it back."""


@contextmanager
def core_pool() -> Iterator[ThreadPoolExecutor]:
    """A pool of as many threads as torch would use (cores, or ``OMP_NUM_THREADS``), in each of which it uses one.

    What was not begun when the block is left is cancelled, and torch's thread count is as before.
    """
    import torch

    with _THREAD_SETTING:
        cores = torch.get_num_threads()
        torch.set_num_threads(1)
        pool = ThreadPoolExecutor(cores, "backbone", initializer=torch.set_num_threads, initargs=(1,))
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(cores)
