"""Each way in which a right program is known to be misread, with the reading that is right."""

from __future__ import annotations

from typing import Any

import pytest

from trinity_assets.grading.code_extraction import extract_code
from trinity_assets.grading.extraction import Extraction

ADD_PROMPT = 'import math\n\n\ndef add(x: int, y: int):\n    """Add two numbers."""\n'


def call_add(program: str | None) -> Any:
    assert program is not None
    namespace: dict[str, Any] = {"__name__": "candidate"}
    exec(program, namespace)  # noqa: S102 - the programs of this file, spelled out below
    return namespace["add"](2, 3)


@pytest.mark.parametrize(
    ("completion", "rule"),
    [
        ("```\ndef add(x, y):\n    return x + y\n```", "fenced"),
        ("~~~py\ndef add(x, y):\n    return x + y\n~~~", "fenced"),
        ("1. So:\n\n   ```Python3\n   def add(x, y):\n       return x + y\n   ```\n", "fenced"),
        ("```python\ndef add(x, y):\n    return x - y\n```\nor\n```python\nprint(add(2, 3))\n```", "fenced"),
        ("```python\ndef add(x, y):\n    return x + y\n\ndef half(", "fenced"),
        ("```python\nHere you go:\ndef add(x, y):\n    return x + y\n```", "fenced"),
        ("```python\nfrom __future__ import annotations\ndef add(x: No, y):\n    return x + y\n```", "fenced"),
        ("def add(x, y):\n    return x + y\n```\nI hope it helps.", "unfenced"),
        ("Of course!\n\ndef add(x, y):\n    return x + y\n\nIt adds.", "unfenced"),
        ("import operator\n\ndef add(x, y):\n    return operator.add(x, y)", "unfenced"),
        ("    return x + y", "body"),
        ("    return x + y\n\nIt adds them.", "body"),
        ("```python\n    return x + y\n```", "body"),
        ("    return _plus(x, y)\n\n\ndef _plus(a, b):\n    return math.floor(a + b)\n\ndef add(", "body"),
        ("return x + y", "body"),
    ],
)
def test_the_program_is_found(completion: str, rule: str) -> None:
    found = extract_code(completion, ADD_PROMPT, "add")
    assert found.rule == rule
    assert call_add(found.value) == (-1 if "x - y" in completion else 5)


def test_the_last_defining_block_wins_and_a_rejected_draft_is_ambiguous() -> None:
    blocks = [f"```python\ndef add(x, y):\n    return x {sign} y\n```" for sign in "-+"]
    found = extract_code("\nThat is wrong. Better:\n".join(blocks), ADD_PROMPT, "add")
    assert call_add(found.value) == 5
    assert found.ambiguous


def test_a_signature_alone_is_completed_before_it_is_redefined() -> None:
    found = extract_code("def add(x, y):\n    return x + y", "def add(x, y):\n", "add")
    assert call_add(found.value) == 5
    assert call_add(extract_code("    return x + y", "def add(x, y):\n", "add").value) == 5


def test_prose_in_place_of_a_prompt_is_left_out() -> None:
    found = extract_code("def add(x, y):\n    return x + y\n```", "Write a function add(a, b).", "add")
    assert found == Extraction("def add(x, y):\n    return x + y\n", "unfenced")


@pytest.mark.parametrize("completion", ["I am not able to help with that.", "def plus(x, y", "\0"])
def test_text_without_code_has_no_program(completion: str) -> None:
    assert extract_code(completion, ADD_PROMPT, "add").value is None


COUNTING = "def add(x, y):\n    def step():\n        nonlocal total\n        total += 1\n"


@pytest.mark.parametrize(
    "program",
    [
        f"{COUNTING}    total = x\n    for _ in range(y):\n        step()\n    return total",
        f"{COUNTING}\n    total = x\n    [step() for _ in range(y)]\n    return total\n\n\ndef half(",
        "def add(x, y):\n    class Sum:\n        def step(self):\n            nonlocal total\n            total += y\n"
        "    total = x\n    Sum().step()\n    return total",
        "def add(x, y):\n    def step():\n        global total\n        total = x + y\n    step()\n    return total",
    ],
)
def test_a_name_may_be_declared_before_it_is_bound(program: str) -> None:
    assert call_add(extract_code(f"```python\n{program}\n```", ADD_PROMPT, "add").value) == 5
    assert call_add(extract_code(f"Here:\n\n{program}\n\nIt adds.", ADD_PROMPT, "add").value) == 5


def test_a_declared_name_that_nothing_binds_ends_the_program() -> None:
    stub = "def add(x, y):\n    return 5\n\ndef other():\n    def step():\n        nonlocal total\n    return 1\n"
    found = extract_code(f"```python\n{stub}```", ADD_PROMPT, "add")
    assert call_add(found.value) == 5
    assert "nonlocal" not in str(found.value)


def blocks(*contents: str) -> str:
    return "\nthen\n".join(f"```python\n{content}\n```" for content in contents)


@pytest.mark.parametrize(
    "earlier",
    [
        ["import operator", "def plus(a, b):\n    return operator.add(a, b)"],
        ["from operator import add as plus"],
        ["def _more(n):\n    return n + OFFSET\n", "OFFSET = 0\ndef plus(a, b):\n    return _more(a + b)"],
        ["def plus(a, b):\n    return a * b", "def plus(a, b):\n    return a + b"],
    ],
)
def test_what_a_program_uses_of_the_blocks_above_goes_before_it(earlier: list[str]) -> None:
    completion = blocks(*earlier, "def add(x, y):\n    return plus(x, y)")
    assert call_add(extract_code(completion, ADD_PROMPT, "add").value) == 5


@pytest.mark.parametrize(
    "earlier",
    [
        "import numpy_is_not_here",
        "plus = print('example')",
        "plus = add(2, 2)\nimport math",
        "def plus(a, b, c=(",
        "pip",
    ],
)
def test_a_block_above_that_is_not_used_or_does_more_than_define_is_left_out(earlier: str) -> None:
    program = "def add(x, y):\n    return plus(x, y)\n\ndef plus(a, b):\n    return a + b"
    assert earlier not in str(extract_code(blocks(earlier, program), ADD_PROMPT, "add").value)
    calling = extract_code(blocks(earlier, "def add(x, y):\n    return plus(x, y)"), ADD_PROMPT, "add")
    assert earlier not in str(calling.value)


ADD = "def add(x, y):\n    return x + y"
INDENTED = "    def add(x, y):\n        return x + y"
DOCSTRING = 'def add(x, y):\n    """Add.\n\n    # so:\n    ```\n    add(1, 2)\n    ```\n    """\n    return x + y'


@pytest.mark.parametrize(
    ("completion", "rule"),
    [
        (f"```python\n{INDENTED}\n```", "fenced"),
        (INDENTED, "unfenced"),
        (f"- So:\n    ```python\n{ADD}\n    ```", "fenced"),
        (f"```python\n{DOCSTRING}\n```\nIt adds.\n```\nadd(1, 2)\n```", "fenced"),
        (blocks("x = 1", DOCSTRING, "print(add(1, 2))"), "fenced"),
        (f'```python\n{ADD}\n\ndef half():\n    """Half\n```\nThe rest is easy.\n```\nx\n```', "fenced"),
        (f"```{{.python}}\n{ADD}\n```", "fenced"),
        (f"```{{.python .numberLines}}\n{ADD}\n```", "fenced"),
        (f"```ipython\n{ADD}\n```", "fenced"),
        (f"```python-repl\n{ADD}\n```", "fenced"),
        ("```pycon\n>>> def add(x, y):\n...     return x + y\n...\n>>> add(1, 2)\n3\n```", "fenced"),
        (f"> So:\n>\n> ```python\n> {ADD.replace(chr(10), chr(10) + '> ')}\n> ```", "fenced"),
        (f"So:\n> ```python\n> {ADD.replace(chr(10), chr(10) + '> ')}\n> ```\nDone.", "fenced"),
        (f"> {ADD.replace(chr(10), chr(10) + '> ')}", "unfenced"),
        (f"```python\nif True:\n{INDENTED}\n```", "fenced"),
        (f"```python\ntry:\n    import nothing_here\nexcept ImportError:\n{INDENTED}\n```", "fenced"),
        (blocks("add = lambda x, y: x + y", "print(add(2, 3))"), "fenced"),
        (f"if True:\n{INDENTED}\n", "unfenced"),
    ],
)
def test_the_program_is_found_in_every_wrapping(completion: str, rule: str) -> None:
    found = extract_code(completion, ADD_PROMPT, "add")
    assert (call_add(found.value), found.rule) == (5, rule)


def test_a_body_that_defines_a_function_of_the_same_name_stays_a_body() -> None:
    body = "    def add(a, b):\n        return a + b\n    return add(x, y)"
    assert extract_code(body, ADD_PROMPT, "add").rule == "body"
    assert call_add(extract_code(body, ADD_PROMPT, "add").value) == 5
