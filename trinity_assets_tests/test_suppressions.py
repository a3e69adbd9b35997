"""Every suppression of the static-security rules says why it is right."""

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SUPPRESSED = re.compile(r"#\s*noqa:\s*(?P<codes>[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)(?P<reason>.*)")
BLANKET = re.compile(r"#\s*noqa\b(?!:)")


def test_every_suppressed_security_rule_has_its_reason() -> None:
    bare, counted = [], 0
    for folder in ("trinity_assets", "trinity_assets_tests", "bench", "studies", "data"):
        for path in sorted((PROJECT / folder).rglob("*.py")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                assert not BLANKET.search(line), f"{path}:{number} suppresses every rule"
                found = SUPPRESSED.search(line)
                if found and re.search(r"\bS\d", found["codes"]):
                    counted += 1
                    if not re.match(r" - \w.{5,}", found["reason"]):
                        bare.append(f"{path.relative_to(PROJECT)}:{number}")
    assert bare == []
    assert counted > 20
