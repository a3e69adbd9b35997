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
from trinity_assets.sandbox.tiers import LADDER

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

WRONG = {
    "equal to everything": EQUAL.format(base="", value=""),
    "an int that is equal to everything": EQUAL.format(base="(int)", value="0"),
    "a float that is equal to everything": EQUAL.format(base="(float)", value="0.0"),
    "a text that is equal to everything": EQUAL.format(base="(str)", value="''"),
    "a list that is equal to everything": EQUAL.format(base="(list)", value="()"),
    "a dict that is equal to everything": EQUAL.format(base="(dict)", value="()"),
    "walking frames": """
import subprocess
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
    "looking for the expected value": f"""
import gc, sys
def twice(x):
    for thing in gc.get_objects():
        if isinstance(thing, (dict, tuple, list)):
            values = list(thing.values()) if isinstance(thing, dict) else list(thing)
            if {2 * SECRET_NUMBER} in [v for v in values if type(v) is int]: return {2 * SECRET_NUMBER}
    for module in list(sys.modules.values()):
        if hasattr(module, 'check'): return 2 * x
    return 0
""",
    "leaving with success at import": "import os\nos._exit(0)\n" + RIGHT,
    "leaving with success in the call": "import os\ndef twice(x): os._exit(0)\n",
    "leaving by SystemExit": "def twice(x): raise SystemExit(0)\n",
    "leaving by sys.exit at import": "import sys\nsys.exit(0)\n",
    "an interrupt": "def twice(x): raise KeyboardInterrupt\n",
    "the end of an iteration": "def twice(x): raise StopIteration\n",
    "a generator's exit": "def twice(x): raise GeneratorExit\n",
    "hiding the failure at exit": "import atexit, os\natexit.register(os._exit, 0)\ndef twice(x): return 0\n",
    "an exception hook": "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\ndef twice(x): return 0\n",
    "other builtins": """
import builtins
builtins.abs = lambda x: 0
builtins.len = lambda x: 2
builtins.all = builtins.sorted = builtins.list = lambda *a: True
builtins.AssertionError = type('AssertionError', (Exception,), {})
def twice(x): return 0
""",
    "its own checks": "def twice(x): return 0\ndef check(candidate): pass\ndef near(a, b): return True\n",
    "its own checks in the module of the checks": """
import subprocess
import sys
for name in ('checks', '__main__', 'program'):
    module = sys.modules.setdefault(name, type(sys)(name))
    module.check = lambda candidate: None
def twice(x): return 0
""",
    "a forged answer": r"""
import os
def twice(x):
    for fd in range(3, 64):
        try: os.write(fd, b'\0\0\0\x16t,u6:passed,u6:passed.')
        except OSError: pass
    return 0
""",
    "forged answers ahead of time": r"""
import os
for fd in range(3, 64):
    try: os.write(fd, (b'\0\0\0\x13t,u8:returned,T,N.') * 40)
    except OSError: pass
def twice(x): return 0
""",
    "printing a verdict": "print('passed')\nimport sys\nsys.stdout.flush()\ndef twice(x): return 0\n",
    "another sum": "def twice(x): return True\n",
    "nothing at all": "def twice(x): pass\n",
    "a generator": "def twice(x):\n    yield 2\n    yield 4\n",
    "changing its argument": "def twice(x):\n    if isinstance(x, list): x.clear()\n    return 0\n",
    "not a number": "def twice(x): return float('nan')\n",
    "a name bound to no function": "twice = 2\n",
    "another name": "def double(x): return 2 * x\n",
    "a class of that name": "class twice:\n    def __init__(self, x): pass\n    def __eq__(self, other): return True\n",
}


def verdict(program: str, tier: str, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    monkeypatch.setattr(python_functions, "find_sandbox", lambda **_: Sandbox(LADDER[tier]))
    grader = PythonFunctionGrader(kind="python_function", limits=LIMITS)
    return grade_function(grader, f"```python\n{program}\n```", PAYLOAD)


@pytest.mark.parametrize("tier", TIERS)
def test_the_right_program_passes(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict(RIGHT, tier, monkeypatch) == Verdict(1.0, "fenced", False, "")


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("trick", WRONG)
def test_a_wrong_program_does_not(trick: str, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = verdict(WRONG[trick], tier, monkeypatch)
    assert given.score == 0
    assert given.reason


@pytest.mark.parametrize("trick", ["equal to everything", "leaving with success at import", "its own checks"])
def test_the_tricks_work_where_program_and_checks_share_an_interpreter(trick: str) -> None:
    script = f"{PAYLOAD['prompt']}    pass\n{PAYLOAD['test']}\n{WRONG[trick]}\ncheck(twice)\n"
    ran = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True)
    assert ran.returncode == 0
