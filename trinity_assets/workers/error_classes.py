"""The error classes that code decides by. What providers' errors mean is in ``provider_errors``."""

from __future__ import annotations

TIMEOUT = "timeout"
"""The call ran into the worker's own time limit."""

RATE_LIMITED = "rate_limited"
"""The provider says that it is asked too fast."""

CONFIGURATION = "configuration"
"""The provider refuses a parameter."""

KILLED = "killed"
"""The call's process died or stood still while it was under way: nobody knows how it came out."""

NOT_ASKED = "not_asked"
"""The question was never asked, because the asking had ended."""
