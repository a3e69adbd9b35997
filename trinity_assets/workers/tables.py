"""The table of a cell's answers, and the digest of what is decided on by those who read it."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import pyarrow as pa

from trinity_assets.spec import digest
from trinity_assets.workers.ledger import SettledAnswer
from trinity_assets.workers.requests import AnswerRequest

ANSWERS_SCHEMA = pa.schema(
    [
        pa.field("task_id", pa.string(), nullable=False),
        pa.field("sample", pa.int64(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("finish_reason", pa.string()),
        pa.field("model_returned", pa.string()),
        pa.field("fingerprint", pa.string()),
        pa.field("input_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("cost_usd", pa.float64()),
        pa.field("latency_s", pa.float64()),
        pa.field("request_digest", pa.string(), nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
    ]
)
"""One row per task and sample; ``cost_usd`` null is unknown, never free."""

_NULLABLE_INTEGERS = {"input_tokens": "Int64", "output_tokens": "Int64"}
_TYPES = {"sample": "int64", "epoch": "int64", "cost_usd": "float64", "latency_s": "float64", **_NULLABLE_INTEGERS}


def answers_frame(settled: Iterable[tuple[AnswerRequest, SettledAnswer]]) -> pd.DataFrame:
    """The table of ``settled`` requests, in their order, in the columns of :data:`ANSWERS_SCHEMA`."""
    rows = [
        {
            "task_id": request.task_id,
            "sample": request.sample,
            "status": str(answer.status),
            "text": answer.text,
            "finish_reason": answer.finish_reason,
            "model_returned": answer.model_returned,
            "fingerprint": answer.fingerprint,
            "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens,
            "cost_usd": answer.cost_usd,
            "latency_s": answer.latency_s,
            "request_digest": answer.request_digest,
            "epoch": answer.epoch,
        }
        for request, answer in settled
    ]
    return pd.DataFrame(rows, columns=pd.Index(ANSWERS_SCHEMA.names)).astype(_TYPES)


def answers_data_version(frame: pd.DataFrame) -> str:
    """The sha256 of (task_id, sample, status, text), whatever the order of rows: no clock, cost, latency or epoch."""
    rows = [
        [str(task_id), int(sample), str(status), text if isinstance(text, str) else None]
        for task_id, sample, status, text in zip(
            frame["task_id"], frame["sample"], frame["status"], frame["text"], strict=True
        )
    ]
    return digest(sorted(rows, key=lambda row: (row[0], row[1])))
