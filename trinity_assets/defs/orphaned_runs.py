"""Runs whose process is gone: which process executes a run, as its tag says, and the end of those that none does."""

from __future__ import annotations

import socket

import dagster as dg
import psutil

PROCESS_TAG = "trinity/process"
"""Which process of which machine executes the run."""


def process_tag() -> str:
    """This machine and process, as a run's tag says who executes it."""
    return f"{socket.gethostname()}:{_identity(psutil.Process())}"


def release_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """End runs whose process on this machine is gone, and free their pool slots; returns their ids.

    A killed process leaves its run "started" and its place in the provider's pool taken, and the next run would wait
    for that place forever.
    """
    released: list[str] = []
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING])):
        host, _, identity = run.tags.get(PROCESS_TAG, "").partition(":")
        if host != socket.gethostname() or _alive(identity):
            continue
        instance.report_run_failed(run, message="The process that executed this run was killed.")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        released.append(run.run_id)
    return released


def _identity(process: psutil.Process) -> str:
    """Process id and start time, since ids are used again (in a restarted container, at once)."""
    return f"{process.pid}-{process.create_time():.2f}"


def _alive(identity: str) -> bool:
    try:
        return _identity(psutil.Process(int(identity.partition("-")[0]))) == identity
    except (psutil.NoSuchProcess, ValueError):
        return False
