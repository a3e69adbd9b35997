"""Each way in which a right program is known to be misread, with the reading that is right."""

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


class TestCode:
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
    def test_finds_the_program(self, completion: str, rule: str):
        found = extract_code(completion, ADD_PROMPT, "add")
        assert found.rule == rule
        assert call_add(found.value) == (-1 if "x - y" in completion else 5)

    def test_the_last_defining_block_wins_and_a_rejected_draft_is_ambiguous(self):
        blocks = [f"```python\ndef add(x, y):\n    return x {sign} y\n```" for sign in "-+"]
        found = extract_code("\nThat is wrong. Better:\n".join(blocks), ADD_PROMPT, "add")
        assert call_add(found.value) == 5
        assert found.ambiguous

    def test_a_signature_alone_is_completed_before_it_is_redefined(self):
        found = extract_code("def add(x, y):\n    return x + y", "def add(x, y):\n", "add")
        assert call_add(found.value) == 5
        assert call_add(extract_code("    return x + y", "def add(x, y):\n", "add").value) == 5

    def test_prose_in_place_of_a_prompt_is_left_out(self):
        found = extract_code("def add(x, y):\n    return x + y\n```", "Write a function add(a, b).", "add")
        assert found == Extraction("def add(x, y):\n    return x + y\n", "unfenced")

    @pytest.mark.parametrize("completion", ["I am not able to help with that.", "def plus(x, y", "\0"])
    def test_text_without_code_has_no_program(self, completion: str):
        assert extract_code(completion, ADD_PROMPT, "add").value is None
