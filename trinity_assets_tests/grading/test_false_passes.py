"""Wrong programs that public harnesses pass. None passes here, on any tier, and none goes without a verdict."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trinity_assets.grading import python_functions
from trinity_assets.grading.python_functions import grade_function
from trinity_assets.grading.specs import PythonFunctionGrader
from trinity_assets.grading.verdicts import Verdict
from trinity_assets.sandbox.probing import Sandbox
from trinity_assets.sandbox.specs import ProgramLimits
from trinity_assets.sandbox.values import encode
from trinity_assets_tests.needed import needed_tier

TIERS = ["bubblewrap", "landlock"] if sys.platform == "linux" else ["sandbox_exec"]
LIMITS = ProgramLimits(cpu_s=2, wall_s=10, memory_mib=512)
SECRET_NUMBER = 7919

# The checks of one task, as HumanEval writes them: several forms of comparison, and a helper of their own.
PAYLOAD = {
    "prompt": "def twice(x):\n    '''Twice x; of a list, the list of its doubled items.'''\n",
    "entry_point": "twice",
    "test": f"""
def near(a, b):
    return abs(a - b) < 1e-6

def check(candidate):
    assert candidate(1) == 2, "one"
    assert candidate([1, 2]) == [2, 4]
    assert candidate([1, 2])[0] == 2 and len(candidate([1, 2])) == 2
    assert candidate("a") == "aa"
    assert near(candidate(0.5), 1.0)
    assert candidate({SECRET_NUMBER}) == {2 * SECRET_NUMBER}
    assert all(candidate(x) == 2 * x for x in range(5))
    assert list(map(candidate, [1, 2])) == [2, 4]
    assert sorted(candidate([3, 1])) == [2, 6]
""",
}
RIGHT = "def twice(x):\n    return [2 * item for item in x] if isinstance(x, list) else 2 * x\n"

EQUAL = """
class Equal{base}:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    def __gt__(self, other): return True
    def __hash__(self): return 0
    def __abs__(self): return 0.0
    def __sub__(self, other): return self
    def __rsub__(self, other): return self
    def __len__(self): return 2
    def __iter__(self): return iter((self, self))
    def __getitem__(self, i): return self
    def __bool__(self): return True
def twice(x): return Equal({value})
"""

FIRST = '"one" (AssertionError: one)'
"""What the first check says of a function that was called and answered with plain data."""


def framed(*messages: object) -> str:
    """Messages as the program's end of the socket would send them, as a literal."""
    encoded = [encode(message, 1 << 10) for message in messages]
    return repr(b"".join(len(data).to_bytes(4, "big") + data for data in encoded))


WRONG: dict[str, tuple[str, str]] = {
    "equal to everything": (
        EQUAL.format(base="", value=""),
        "it returned a Equal, and only plain data can be compared",
    ),
    "an int that is equal to everything": (
        EQUAL.format(base="(int)", value="0"),
        "it returned a Equal, and only plain data can be compared",
    ),
    "a float that is equal to everything": (
        EQUAL.format(base="(float)", value="0.0"),
        "it returned a Equal, and only plain data can be compared",
    ),
    "a text that is equal to everything": (
        EQUAL.format(base="(str)", value="''"),
        "it returned a Equal, and only plain data can be compared",
    ),
    "a list that is equal to everything": (
        EQUAL.format(base="(list)", value="()"),
        "it returned a Equal, and only plain data can be compared",
    ),
    "a dict that is equal to everything": (
        EQUAL.format(base="(dict)", value="()"),
        "it returned a Equal, and only plain data can be compared",
    ),
    "walking frames": (
        """
import sys
def twice(x):
    frame = sys._getframe()
    while frame:
        for name in ('candidate', 'check', 'near'):
            for scope in (frame.f_locals, frame.f_globals):
                if name in scope: scope[name] = lambda *a: True
        for value in list(frame.f_locals.values()):
            if isinstance(value, list): value.append('passed')
        frame = frame.f_back
    return None
""",
        FIRST,
    ),
    "looking for the expected value": (
        f"""
import gc, sys
def twice(x):
    if x != {SECRET_NUMBER}:
        return [2 * item for item in x] if isinstance(x, list) else 2 * x
    lying_around = set()
    for thing in gc.get_objects() + [vars(module) for module in list(sys.modules.values())]:
        values = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (tuple, list, set)) else ()
        lying_around |= {{value for value in list(values) if type(value) is int and value > x and value % x == 0}}
    return min(lying_around, default=0)
""",
        f"assert candidate({SECRET_NUMBER}) == {2 * SECRET_NUMBER} (AssertionError)",
    ),
    "leaving with success at import": ("import os\nos._exit(0)\n" + RIGHT, "left early with status 0"),
    "leaving with success in the call": ("import os\ndef twice(x): os._exit(0)\n", "left early with status 0"),
    "leaving by SystemExit": ("def twice(x): raise SystemExit(0)\n", "(RaisedError: SystemExit: 0)"),
    "leaving by sys.exit at import": ("import sys\nsys.exit(0)\n" + RIGHT, "SystemExit: 0"),
    "an interrupt": ("def twice(x): raise KeyboardInterrupt\n", "(RaisedError: KeyboardInterrupt: )"),
    "the end of an iteration": ("def twice(x): raise StopIteration\n", "(RaisedError: StopIteration: )"),
    "a generator's exit": ("def twice(x): raise GeneratorExit\n", "(RaisedError: GeneratorExit: )"),
    "hiding the failure at exit": ("import atexit, os\natexit.register(os._exit, 0)\ndef twice(x): return 0\n", FIRST),
    "an exception hook": ("import sys, os\nsys.excepthook = lambda *a: os._exit(0)\ndef twice(x): return 0\n", FIRST),
    "other builtins": (
        """
import builtins
builtins.abs = lambda x: 0
builtins.len = lambda x: 2
builtins.all = builtins.sorted = builtins.list = lambda *a: True
builtins.AssertionError = type('AssertionError', (Exception,), {})
def twice(x): return 0
""",
        "left early with status 1",
    ),
    "its own checks": ("def twice(x): return 0\ndef check(candidate): pass\ndef near(a, b): return True\n", FIRST),
    "its own checks in the module of the checks": (
        """
import sys
for name in ('checks', '__main__', 'program'):
    module = sys.modules.setdefault(name, type(sys)(name))
    module.check = lambda candidate: None
def twice(x): return 0
""",
        FIRST,
    ),
    "a forged answer": (
        r"""
import os
def twice(x):
    for fd in range(3, 64):
        try: os.write(fd, b'\0\0\0\x16t,u6:passed,u6:passed.')
        except OSError: pass
    return 0
""",
        "answered something that is no answer",
    ),
    "forged answers ahead of time": (
        f"""
import os
for fd in range(3, 64):
    try: os.write(fd, {framed(("loaded", True), *[("returned", True, None)] * 40)})
    except OSError: pass
def twice(x): return 0
""",
        FIRST,
    ),
    "printing a verdict": ("print('passed')\nimport sys\nsys.stdout.flush()\ndef twice(x): return 0\n", FIRST),
    "true for everything": ("def twice(x): return True\n", FIRST),
    "nothing at all": ("def twice(x): pass\n", FIRST),
    "a generator": ("def twice(x):\n    yield 2\n    yield 4\n", FIRST),
    "changing its argument": ("def twice(x):\n    if isinstance(x, list): x.clear()\n    return 0\n", FIRST),
    "not a number": ("def twice(x): return float('nan')\n", FIRST),
    "a name bound to no function": ("twice = 2\n", "defines no function twice"),
    "another name": ("def double(x): return 2 * x\n", FIRST),
    "a class of that name": (
        "class twice:\n    def __init__(self, x): pass\n    def __eq__(self, other): return True\n",
        "it returned a twice, and only plain data can be compared",
    ),
}


WITHOUT_THE_FUNCTION = {"another name"}
"""These bind nothing to the name that is asked for, so they are read as the best that there is."""


def verdict(program: str, tier: str, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    sandbox = Sandbox(needed_tier(tier))
    monkeypatch.setattr(python_functions, "find_sandbox", lambda **_: sandbox)
    grader = PythonFunctionGrader(kind="python_function", limits=LIMITS)
    return grade_function(grader, f"```python\n{program}\n```", PAYLOAD)


@pytest.mark.parametrize("tier", TIERS)
def test_the_right_program_passes(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict(RIGHT, tier, monkeypatch) == Verdict(1.0, "fenced", False, "")


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("trick", WRONG)
def test_a_wrong_program_does_not(trick: str, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, reason = WRONG[trick]
    given = verdict(program, tier, monkeypatch)
    assert given.score == 0
    assert given.rule == ("fenced_other" if trick in WITHOUT_THE_FUNCTION else "fenced")
    assert reason in given.reason  # so it was the trick that ran, and not something before it that failed


@pytest.mark.parametrize("trick", ["equal to everything", "leaving with success at import", "its own checks"])
def test_the_tricks_work_where_program_and_checks_share_an_interpreter(trick: str) -> None:
    script = f"{PAYLOAD['prompt']}    pass\n{PAYLOAD['test']}\n{WRONG[trick][0]}\ncheck(twice)\n"
    ran = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True)
    assert ran.returncode == 0
