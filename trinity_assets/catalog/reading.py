"""YAML text to plain data, keeping what PyYAML throws away: the line of every value, and keys that repeat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FieldPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Fault:
    """One thing wrong in a catalog: the file, the line, the path of the field in the file, and what to do."""

    file: Path
    path: FieldPath
    line: int | None
    problem: str

    def __str__(self) -> str:
        where = str(self.file) if self.line is None else f"{self.file}:{self.line}"
        dotted = ".".join(str(part) for part in self.path)
        return f"{where}: {dotted}: {self.problem}" if dotted else f"{where}: {self.problem}"


@dataclass(frozen=True)
class Document:
    """A file's data, the faults found while reading it, and the lines of its values."""

    file: Path
    data: Any
    faults: list[Fault] = field(default_factory=list)
    lines: dict[FieldPath, int] = field(default_factory=dict)

    def fault(self, path: FieldPath, problem: str) -> Fault:
        """A fault at ``path``, with the line of the closest enclosing value that has one."""
        line = next((self.lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.lines), None)
        return Fault(self.file, path, line, problem)


def read_document(file: Path) -> Document:
    """Read one YAML file; what cannot be read becomes faults, never an exception."""
    try:
        node = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        data = {} if node is None else _DATA.construct_document(node)
    except FileNotFoundError:
        return Document(file, {}, [Fault(file, (), None, "there is no such file")])
    except (OSError, UnicodeDecodeError) as error:
        return Document(file, {}, [Fault(file, (), None, f"cannot be read: {error}")])
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = f"not YAML: {getattr(error, 'problem', None) or error}"
        return Document(file, {}, [Fault(file, (), mark.line + 1 if mark else None, problem)])
    document = Document(file, data)
    if node is not None:
        for path, value, repeated in _walk(node, ()):
            document.lines.setdefault(path, value.start_mark.line + 1)
            if repeated:
                problem = f"declared twice, here and on line {document.lines[path]}; rename or remove one"
                document.faults.append(Fault(file, path, value.start_mark.line + 1, problem))
    return document


def _walk(node: yaml.Node, path: FieldPath) -> Iterator[tuple[FieldPath, yaml.Node, bool]]:
    """Every value below ``node`` as (path, the node that marks its line, whether its key repeats an earlier one)."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            yield (*path, name), key, name in seen
            seen.add(name)
            yield from _walk(value, (*path, name))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item, False
            yield from _walk(item, (*path, index))


_DATA = yaml.SafeLoader("")
