"""What the process that collectors are forked from has imported."""

from trinity_assets.workers.litellm_library import load_litellm

load_litellm()
