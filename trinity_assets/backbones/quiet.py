"""Loading models without their loaders' noise."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Keep transformers' progress bars and warnings out of a step's log while a model loads; errors still raise.

    The bars are written to standard error with no switch that works after import, so it is redirected meanwhile.
    """
    from transformers.utils import logging as transformers_logging

    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        with redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        transformers_logging.set_verbosity(verbosity)
