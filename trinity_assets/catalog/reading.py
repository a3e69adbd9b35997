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


class _Loader(yaml.SafeLoader):
    """A value that looks like another type and is none (``2026-13-01``, 5,000 digits) stays the text that it is."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, AttributeError):  # AttributeError: `!!timestamp` before what is no date
            if not isinstance(node, yaml.ScalarNode):
                raise
            self.recursive_objects.pop(node, None)
            return node.value


def read_document(file: Path) -> Document:
    """Read one YAML file; what cannot be read becomes faults, never an exception."""
    try:
        loader = _Loader(file.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        # Constructing merges `<<` into the nodes, where a key that overrides a merged one looks declared twice.
        values = [] if node is None else list(_walk(node, ()))
        data = {} if node is None else loader.construct_document(node)
    except FileNotFoundError:
        return Document(file, {}, [Fault(file, (), None, "there is no such file")])
    except (OSError, UnicodeDecodeError) as error:
        return Document(file, {}, [Fault(file, (), None, f"cannot be read: {error}")])
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = f"not YAML: {getattr(error, 'problem', None) or error}"
        return Document(file, {}, [Fault(file, (), mark.line + 1 if mark else None, problem)])
    except RecursionError:
        return Document(file, {}, [Fault(file, (), None, "nested too deeply, or within itself")])
    document = Document(file, data)
    for path, value, repeated in values:
        document.lines.setdefault(path, value.start_mark.line + 1)
        if repeated:
            problem = f"declared twice, here and on line {document.lines[path]}; rename or remove one"
            document.faults.append(Fault(file, path, value.start_mark.line + 1, problem))
    return document


def _walk(node: yaml.Node, path: FieldPath) -> Iterator[tuple[FieldPath, yaml.Node, bool]]:
    """Every value below ``node`` as (path, the node that marks its line, whether its key repeats an earlier one).

    What a mapping merges (``<<``) comes after its own keys and repeats none.
    """
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
                continue
            name = str(key.value)
            yield (*path, name), key, name in seen
            seen.add(name)
            yield from _walk(value, (*path, name))
        for mapping in merged:
            yield from ((below, marker, False) for below, marker, _ in _walk(mapping, path))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item, False
            yield from _walk(item, (*path, index))
