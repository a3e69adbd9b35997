"""Steps that grade hold no provider's key: what runs there is not asked, and some of it was written by strangers."""

import multiprocessing
import os
from collections.abc import Iterable


def drop_keys(variables: Iterable[str]) -> None:
    """Take the providers' keys out of this step's environment, where the step is a process of its own.

    A step that runs in the run's process leaves them to the others.
    """
    if multiprocessing.parent_process() is not None:
        for variable in variables:
            os.environ.pop(variable, None)
