"""Plain values as bytes: the only language that trusted and untrusted code share.

None, bool, int, str, float, complex, bytes, list, tuple, dict, set, frozenset and range travel by exact type, and so do
the standard library's Fraction, Decimal and deque; other iterators and the views of a dict as what they yield. Nothing
else does: what is read back never has a method that somebody else wrote. A value is a tag, then its length in decimal
digits and a colon where it has one, then its content; ints are hexadecimal and floats are ``float.hex``, so that both
are exact at any size.

This module is also loaded inside the sandbox, so it imports nothing, and its inner values have no types to name.
"""

MAX_DEPTH = 100
"""How deep containers may nest."""


class NotPlainError(Exception):
    """A value has a type that does not travel; the message names it."""


class TooLargeError(Exception):
    """A value takes more bytes, or nests deeper, than is allowed."""


class MalformedError(Exception):
    """Bytes that no ``encode`` wrote."""


# Containers of the standard library that stand for a plain one whatever their own equality says.
_STAND_INS = {"Counter": dict, "OrderedDict": dict, "defaultdict": dict}
_CONTAINERS = {list: "l", tuple: "t", set: "s", frozenset: "z"}
_VIEWS: dict[type, str] = {type({}.keys()): "K", type({}.values()): "V", type({}.items()): "I"}


def encode(value: object, max_bytes: int, max_depth: int = MAX_DEPTH) -> bytes:
    """The bytes of a value.

    A subclass of a plain type counts as that type unless it brings its own equality.

    Raises:
        NotPlainError: it holds something that does not travel.
        TooLargeError: it takes more than ``max_bytes`` or nests deeper than ``max_depth``.
    """
    writer = _Writer(max_bytes, max_depth)
    writer.value(value, max_depth)
    return b"".join(writer.parts)


class _Writer:
    """Writes one value into ``parts``, refusing what does not travel as soon as it is met."""

    def __init__(self, max_bytes: int, max_depth: int) -> None:
        self.parts: list[bytes] = []
        self._max_bytes, self._max_depth = max_bytes, max_depth
        self._room = max_bytes

    def _write(self, data: bytes) -> None:
        self._room -= len(data)
        if self._room < 0:
            raise TooLargeError(f"more than {self._max_bytes} bytes")
        self.parts.append(data)

    def _sized(self, tag: str, data: bytes) -> None:
        self._write(f"{tag}{len(data)}:".encode())
        self._write(data)

    def _many(self, tag: str, items, depth: int) -> None:
        """Items of unknown number: each after a comma, a full stop at the end."""
        self._write(tag.encode())
        for item in items:
            self._write(b",")
            self.value(item, depth)
        self._write(b".")

    def value(self, value, depth: int) -> None:
        """Write one value, of containers with up to ``depth`` more inside each other."""
        if depth < 0:
            raise TooLargeError(f"nested deeper than {self._max_depth}")
        kind = _plain_type(value)
        if value is None or kind is bool:
            self._write(b"N" if value is None else b"T" if value else b"F")
        elif kind is int:
            self._sized("i", int.__format__(value, "x").encode())
        elif kind is float:
            self._sized("f", float.hex(value).encode())
        elif kind is complex:
            self._sized("c", f"{value.real.hex()} {value.imag.hex()}".encode())
        elif kind is str:
            self._sized("u", str.encode(value, "utf-8", "surrogatepass"))
        elif kind in (bytes, bytearray):
            self._sized("b", bytes(value))
        elif kind is range:
            self._many("r", (value.start, value.stop, value.step), depth)
        elif kind is dict:
            self._many("d", (part for pair in dict.items(value) for part in pair), depth - 1)
        elif kind in _CONTAINERS:
            self._many(_CONTAINERS[kind], kind.__iter__(value), depth - 1)
        elif type(value) in _VIEWS:
            self._many(_VIEWS[type(value)], value, depth - 1)
        elif _is(value, "fractions", "Fraction"):
            self._many("q", (int(value.numerator), int(value.denominator)), depth)
        elif _is(value, "decimal", "Decimal"):
            self._sized("D", str(value).encode())
        elif _is(value, "collections", "deque"):
            self._many("Q", value, depth - 1)
        elif type(value).__module__ in ("builtins", "itertools") and hasattr(type(value), "__next__"):
            self._many("g", value, depth - 1)
        else:
            raise NotPlainError(type(value).__name__)


def _is(value: object, module: str, name: str) -> bool:
    """Whether a value is of a class with this name there; the module itself is not imported for it."""
    return type(value).__module__ == module and type(value).__name__ == name


def _plain_type(value):
    """The plain type that a value travels as; None where there is none, or where it is told by other means."""
    kind = type(value)
    if kind.__module__ == "collections" and kind.__name__ in _STAND_INS and isinstance(value, dict):
        return dict
    for plain in (bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range):
        if kind is plain or (isinstance(value, plain) and kind.__eq__ is plain.__eq__):
            return plain
    return None


def decode(data: bytes, max_depth: int = MAX_DEPTH) -> object:
    """The value that ``encode`` wrote.

    Raises:
        MalformedError: the bytes are of no value, or of one that nests too deep or cannot exist (an unhashable key).
    """
    try:
        value, end = _read(data, 0, max_depth)
    except (ValueError, IndexError, TypeError, ArithmeticError) as error:
        raise MalformedError(str(error)) from None
    if end != len(data):
        raise MalformedError(f"{len(data) - end} bytes too many")
    return value


def _read(data: bytes, at: int, depth: int) -> tuple[object, int]:
    if depth < 0:
        raise MalformedError("nested too deep")
    tag = chr(data[at])
    at += 1
    if tag in "NTF":
        return {"N": None, "T": True, "F": False}[tag], at
    if tag in "ifcubD":
        colon = data.index(b":", at, at + 12)
        end = colon + 1 + int(data[at:colon])
        if not data[at:colon].isdigit() or end > len(data):
            raise MalformedError("a length that does not fit")
        return _scalar(tag, data[colon + 1 : end]), end
    if tag not in "dlstzrgKVIqQ":
        raise MalformedError(f"unknown tag {tag!r}")
    items: list[object] = []
    while data[at] == 0x2C:
        item, at = _read(data, at + 1, depth - 1)
        items.append(item)
    if data[at] != 0x2E:
        raise MalformedError("an item without an end")
    return _container(tag, items), at + 1


def _scalar(tag: str, content: bytes) -> object:
    if tag == "i":
        return int(content, 16)
    if tag == "u":
        return content.decode("utf-8", "surrogatepass")
    if tag == "b":
        return content
    if tag == "D":
        from decimal import Decimal

        return Decimal(content.decode("ascii"))
    if tag == "f":
        return float.fromhex(content.decode("ascii"))
    real, imaginary = content.decode("ascii").split(" ")
    return complex(float.fromhex(real), float.fromhex(imaginary))


def _container(tag: str, items: list) -> object:
    if tag == "d":
        return dict(zip(items[::2], items[1::2], strict=True))
    if tag == "r":
        return range(*items)
    if tag == "q":
        from fractions import Fraction

        return Fraction(*items)
    if tag == "Q":
        from collections import deque

        return deque(items)
    if tag == "g":
        return iter(items)
    if tag == "K":
        return dict.fromkeys(items).keys()
    if tag == "V":
        return dict(enumerate(items)).values()
    if tag == "I":
        return dict(items).items()
    return {"l": list, "t": tuple, "s": set, "z": frozenset}[tag](items)
