"""litellm, imported where it is needed and made quiet: no network at import, no retries, no log noise."""

from __future__ import annotations

import functools
import logging
import os
from typing import Any


def keep_litellm_offline() -> None:
    """Let litellm read the price list that it brings along; without this its import fetches one from the network."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


@functools.cache
def load_litellm() -> Any:
    """The litellm module, 4 to 6 seconds after the first call in a process."""
    keep_litellm_offline()
    import litellm

    litellm.suppress_debug_info = True
    litellm.drop_params = False
    litellm.num_retries = 0
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def no_hidden_retries(route: str) -> dict[str, Any]:
    """The arguments that make one ``acompletion`` one HTTP request.

    ``max_retries=0`` alone is dropped for routes that do not list it as a parameter, and their SDK then retries twice
    on its own (nvidia_nim and deepinfra: measured 3 requests, and a Retry-After slept through). Naming it as allowed
    helps; other routes would send it in the body (anthropic), so only OpenAI-compatible ones get it.
    """
    arguments: dict[str, Any] = {"num_retries": 0, "max_retries": 0}
    if route in load_litellm().openai_compatible_providers:
        arguments["allowed_openai_params"] = ["max_retries"]
    return arguments
