"""Functions in completions, judged by a benchmark's own checks.

The checks run here, in a process that is trusted; the completed function runs in a sandbox of its own and is called
through a proxy. It never sees a check or an expected value and can answer with plain data only, so there is nothing in
the checks' process that it could rewrite, compare to everything, or leave early.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import random
import sys
import traceback
from dataclasses import dataclass
from typing import Any

from trinity_assets.errors import GraderError
from trinity_assets.grading.code_extraction import completed_prompt, extract_code
from trinity_assets.grading.specs import PythonFunctionGrader
from trinity_assets.grading.verdicts import Payload, Verdict, nothing_found
from trinity_assets.sandbox.candidate import Candidate, CandidateError, CandidateTimeoutError
from trinity_assets.sandbox.probing import find_sandbox

SEED = 0
"""Seeds ``random`` before the checks: some of HumanEval's draw their arguments."""

_CONTEXT, _DEFINITIONS, _STATEMENT = "<context>", "<definitions>", "<statement>"


@dataclass(frozen=True)
class Checks:
    """A benchmark's checks of one function.

    context: Python that the checks may use (a prompt's imports and helpers), empty where the prompt is prose.
    definitions: what is run before the function is called at all. statement: what calls it.
    """

    function: str
    context: str
    definitions: str
    statement: str


def read_checks(payload: Payload) -> Checks:
    """The checks in a gold payload, as HumanEval writes them (``test``, ``entry_point``) or as MBPP does (``tests``).

    Raises:
        GraderError: the payload holds neither, or its code is none.
    """
    prompt = str(payload.get("prompt") or "")
    if payload.get("test"):
        function = payload.get("entry_point")
        if not isinstance(function, str) or not function.isidentifier():
            raise GraderError("the gold payload has a 'test' and no 'entry_point'; map it under the benchmark's fields")
        checks = Checks(function, completed_prompt(prompt), str(payload["test"]), f"check({function})")
    elif payload.get("tests"):
        tests = "\n".join(_lines(payload["tests"], "tests"))
        imports = "\n".join([*_modules_used(tests), *_lines(payload.get("imports") or [], "imports")])
        function = payload.get("entry_point") or tested_function(tests)
        checks = Checks(str(function), completed_prompt(prompt), imports, tests)
    else:
        raise GraderError("the gold payload has neither 'test' nor 'tests'; map one under the benchmark's fields")
    for code in (checks.definitions, checks.statement):
        try:
            compile(code, _DEFINITIONS, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise GraderError(f"the gold payload's checks are not Python: {error}; correct the source") from error
    return checks


def tested_function(tests: str) -> str:
    """The function that assert statements are about: the one name that they call and that is not Python's own.

    Raises:
        GraderError: they call none or several.
    """
    try:
        calls = [
            node.func.id
            for node in ast.walk(ast.parse(tests))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
    except SyntaxError as error:
        raise GraderError(f"the gold payload's tests are not Python: {error}; correct the source") from error
    # A task may ask for a function with the name of a builtin one (MBPP's 126 asks for `sum`).
    named = {call for call in calls if not hasattr(builtins, call)} or set(calls)
    if len(named) != 1:
        found = ", ".join(sorted(named)) or "none"
        raise GraderError(f"the tests do not say which function they are about ({found}); map 'entry_point' to a field")
    return named.pop()


def _modules_used(tests: str) -> list[str]:
    """Imports of the standard library's modules that tests use as ``module.name``.

    MBPP's were run beside the solution, and some leave its imports to it (596 uses ``sys``).
    """
    with contextlib.suppress(SyntaxError):
        used = {
            node.value.id
            for node in ast.walk(ast.parse(tests))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        return [f"import {name}" for name in sorted(used & sys.stdlib_module_names)]
    return []


def sandbox_facts(grader: PythonFunctionGrader) -> dict[str, str]:
    """Find the sandbox, and tell which it is and under which interpreter and limits programs run.

    Raises:
        SandboxError: none holds on this machine.
    """
    sandbox = find_sandbox(allow_unsandboxed=grader.allow_unsandboxed)
    limits = ", ".join(f"{name} {value}" for name, value in grader.limits.model_dump().items())
    return {"sandbox": sandbox.tier.name, "python": sandbox.python, "limits": limits}


def grade_function(grader: PythonFunctionGrader, completion: str, payload: Payload) -> Verdict:
    """Run the checks of ``payload`` on the function in ``completion``: 1 if all of them pass, else 0.

    Raises:
        GraderError: the payload holds no checks or vacuous ones, or no sandbox could run the function.
    """
    checks = read_checks(payload)
    found = extract_code(completion, str(payload.get("prompt") or ""), checks.function)
    if found.value is None:
        return nothing_found(found)
    sandbox = find_sandbox(allow_unsandboxed=grader.allow_unsandboxed)
    with Candidate(sandbox.tier, grader.limits) as candidate:
        fault = _run(checks, found.value, candidate)
    return Verdict(float(fault is None), found.rule, found.ambiguous, fault or "")


def _run(checks: Checks, program: str, candidate: Candidate) -> str | None:
    """Why the program fails its checks, None when it passes them."""
    namespace: dict[str, Any] = {"__name__": "checks"}
    random.seed(SEED)
    try:
        for code, name in ((checks.context, _CONTEXT), (checks.definitions, _DEFINITIONS)):
            exec(compile(code, name, "exec", dont_inherit=True), namespace)  # noqa: S102 - the benchmark's own code
    except Exception as error:
        raise GraderError(
            f"the benchmark's own checks cannot be prepared: {type(error).__name__}: {error}; correct the gold, or "
            "install what they import"
        ) from error
    try:
        candidate.load(program, checks.function)
        namespace[checks.function] = candidate
        exec(compile(checks.statement, _STATEMENT, "exec", dont_inherit=True), namespace)  # noqa: S102 - as above
    except (CandidateError, GraderError):
        pass  # the candidate keeps it, also from checks that catch everything
    except BaseException as error:
        returned = (
            f"; it returned a {candidate.opaque}, and only plain data can be compared" if candidate.opaque else ""
        )
        return _told(candidate, _failed_check(error, checks) + returned)
    if candidate.failure is None and candidate.calls == 0:
        raise GraderError(f"the checks pass without calling {checks.function}; correct the gold")
    return _told(candidate, None)


def _told(candidate: Candidate, failed_check: str | None) -> str | None:
    """The failure of the program itself, where there was one, is the reason for all that followed."""
    if candidate.failure is None:
        return failed_check
    if isinstance(candidate.failure, GraderError):
        raise candidate.failure
    return (
        f"timeout: {candidate.failure}"
        if isinstance(candidate.failure, CandidateTimeoutError)
        else str(candidate.failure)
    )


def _failed_check(error: BaseException, checks: Checks) -> str:
    """The check that failed, as it is written, and how."""
    written = {_DEFINITIONS: checks.definitions, _STATEMENT: checks.statement}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in written]
    line = _statement(written[frames[-1].filename], frames[-1]) if frames else ""
    how = type(error).__name__ + (f": {error}" if str(error) else "")
    return f"{line} ({how})" if line else how


def _statement(code: str, frame: traceback.FrameSummary) -> str:
    """The statement of ``code`` that a frame stands at, on one line however many it takes."""
    first = frame.lineno or 1
    lines = code.splitlines()[first - 1 : frame.end_lineno or first]
    return " ".join(line.strip() for line in lines)


def _lines(value: Any, name: str) -> list[str]:
    lines = [value] if isinstance(value, str) else value
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise GraderError(f"the gold payload's {name!r} are no list of Python statements")
    return lines
