"""A GGUF file as a model directory, converted once per file and kept in the user's cache.

transformers reads GGUF itself, but parses the header several times and unpacks every block in Python: half a minute for
135 M parameters, each time. The directory that it saves afterwards loads in a second, with the same bits.
"""

from __future__ import annotations

import logging
import shutil
import time
import uuid
from pathlib import Path

import platformdirs

from trinity_assets.backbones.quiet import quiet_loading
from trinity_assets.errors import BackboneError
from trinity_assets.progress import duration

logger = logging.getLogger(__name__)


def converted_directory(gguf: Path, sha256: str, cache: Path | None = None) -> Path:
    """The Hugging Face layout of the model in ``gguf`` (whose bytes hash to ``sha256``): float32, without LM head.

    ``cache`` is where conversions are kept, by default the user's cache directory. A directory appears there complete
    or not at all; of two processes that convert at once, both use the first one's.

    Raises:
        BackboneError: the file cannot be converted, or the cache cannot be written.
    """
    target = (cache or platformdirs.user_cache_path("trinity-assets") / "backbones") / sha256
    if target.is_dir():
        return target
    started = time.monotonic()
    logger.info("converting %s to safetensors, once", gguf.name)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.mkdir(parents=True)
        _convert(gguf, temporary)
        if not target.is_dir():
            temporary.rename(target)
    except Exception as error:  # a damaged file leads the reader into errors of any class
        if not target.is_dir():
            raise BackboneError(
                f"cannot convert {gguf} into {target}: {error!r}. Check that the file is a whole GGUF file of a "
                "supported language model, and that the directory can be written"
            ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    logger.info("converted %s in %s", gguf.name, duration(time.monotonic() - started))
    return target


def _convert(gguf: Path, directory: Path) -> None:
    import torch
    from transformers import AutoModel, PreTrainedTokenizerFast

    with quiet_loading():
        # Not AutoTokenizer: for the same tokenizer it first parses the file once more to learn the architecture.
        PreTrainedTokenizerFast.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(directory)
        unpacked = AutoModel.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
        # transformers refuses to save a model that came from a GGUF file, though its weights are plain by now.
        if hasattr(unpacked.config, "quantization_config"):
            del unpacked.config.quantization_config
        model = AutoModel.from_config(unpacked.config)
        model.load_state_dict(unpacked.state_dict())
        model.save_pretrained(directory)
