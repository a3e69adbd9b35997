"""A model served in this process: llama.cpp's own HTTP server on a free local port, gone when the block ends.

In process, so that nothing outlives a step that is killed. Answers at temperature 0 do not depend on what else is being
asked: no prompt cache of the server's own choosing (``prefixes`` says why) and slots with memory of their own. Measured
on a CPU: log probabilities equal to the last bit for one, four and eight questions at a time, in any order.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trinity_assets.errors import DistributionError, ProviderError
from trinity_assets.files import distribution_file
from trinity_assets.workers.specs import EmbeddedProvider

logger = logging.getLogger(__name__)

SET_UP = "run the project's set-up (make setup) again"
_SILENT = -1
"""llama.cpp's verbosity without a line on stderr."""


def model_file(provider: EmbeddedProvider) -> Path:
    """Where the provider's file lies, looked up in the package's own list of files; the package is never imported.

    Raises:
        ProviderError: the package is not installed, or has no such file.
    """
    try:
        return distribution_file(provider.package, provider.file)
    except DistributionError as error:
        raise ProviderError(f"provider {provider.name}: {error}") from None


@contextlib.contextmanager
def serve(provider: EmbeddedProvider) -> Iterator[str]:
    """Serve the model while the ``with`` block lasts; yields its URL, of which ``/v1`` speaks the OpenAI protocol.

    Raises:
        ProviderError: the file or the runtime is missing, or the server does not start.
    """
    path = model_file(provider)
    with tempfile.TemporaryDirectory(prefix="trinity-slots-") as states:
        server = _start(provider, path, states)
        logger.info("%s: serving %s with %d slots", provider.name, path.name, provider.slots)
        try:
            yield server.listening_address
        finally:
            # The server ends with its object: it has no other way to stop. Measured at 0.1 s, threads joined.
            del server
            gc.collect()


def _start(provider: EmbeddedProvider, path: Path, states: str) -> Any:
    try:
        xllamacpp: Any = importlib.import_module("xllamacpp")
    except ImportError:
        raise ProviderError(f"provider {provider.name} needs xllamacpp, which is not installed; {SET_UP}") from None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.model_alias = {path.name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.verbosity = _SILENT
    parameters.ui = False
    parameters.warmup = False
    parameters.n_parallel = provider.slots
    parameters.n_ctx = provider.slots * provider.context
    parameters.kv_unified = False
    parameters.cache_prompt = False
    parameters.cache_ram_mib = 0
    parameters.endpoint_slots = True
    parameters.slot_save_path = f"{states}/"
    for cpu in (parameters.cpuparams, parameters.cpuparams_batch):
        cpu.n_threads = provider.threads
        cpu.poll = 0
    try:
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise ProviderError(f"provider {provider.name}: llama.cpp cannot serve {path}: {error}") from error
