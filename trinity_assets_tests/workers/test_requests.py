"""What is part of a request's digest."""

from __future__ import annotations

from trinity_assets.spec import digest
from trinity_assets.workers.requests import answer_requests
from trinity_assets_tests.workers.conftest import MakeWorker


def test_requests_without_a_purpose_have_the_digests_that_ledgers_know(make_worker: MakeWorker) -> None:
    (request,) = answer_requests(make_worker(), {"t": "q"}, epoch=1)
    known = {
        "provider": {"name": "scripted"},
        "model": "plain",
        "messages": [{"role": "user", "content": "q"}],
        "sampling": {"temperature": 0.0, "max_tokens": 16},
        "sample": 0,
        "epoch": 1,
    }
    assert request.digest == digest(known)
    (watched,) = answer_requests(make_worker(), {"t": "q"}, epoch=1, purpose="sentinel")
    assert watched.digest == digest(known | {"purpose": "sentinel"})
