"""The untrusted end: what runs inside the sandbox, around the program.

It says that it is ready, loads the program it is sent, and then calls the program's function with what
it is sent, for as long as the trusted end asks. Nothing here is trusted: once the program runs, it may rewrite all of
this. What keeps it honest is that it never holds a test or an expected value, and that its replies are only data.

The standard library is imported lazily, since every graded completion starts this once.
"""

# No `Any` here: importing typing would cost every start.
# mypy: disable-error-code="no-untyped-def"

import sys

from trinity_assets.sandbox.values import NotPlainError, TooLargeError, decode, encode

MODULE = "program"


def serve(channel, descriptor: int) -> None:
    """Serve one program on ``channel``, a buffered reader of the socket ``descriptor``, and leave."""
    import os

    def receive_bytes():
        return channel.read(int.from_bytes(channel.read(4), "big"))

    def value_of(data):
        return decode(data)

    def send(reply: tuple, max_bytes: int = 1 << 16) -> None:
        data = encode(reply, max_bytes)
        data = len(data).to_bytes(4, "big") + data
        while data:
            data = data[os.write(descriptor, data) :]

    limits = value_of(receive_bytes())
    if limits["processes"] > 1:
        import resource

        resource.setrlimit(resource.RLIMIT_NPROC, (limits["processes"],) * 2)
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    os.close(silence)
    send(("ready",))
    program, name = value_of(receive_bytes())
    try:
        function = load(program, name)
    except BaseException as error:
        send(("raised", *described(error)))
        return
    send(("loaded", callable(function)))
    while True:
        before = receive_bytes()
        arguments, named = value_of(before)
        try:
            result = function(*arguments, **named)
        except BaseException as error:
            send(("raised", *described(error)))
            continue
        try:
            # Sorting in place and its like return None: only then are the arguments part of the result.
            left = (arguments, named)
            changed = result is None and encode(left, limits["reply_bytes"]) != before
            send(("returned", result, left if changed else None), limits["reply_bytes"])
        except NotPlainError as error:
            send(("opaque", str(error), is_true(result)))
        except TooLargeError as error:
            send(("too large", str(error)))
        except BaseException as error:
            send(("raised", *described(error)))


def load(program: str, name: str):
    """Run ``program`` as a module of its own and give what it binds to ``name``, None if nothing."""
    module = type(sys)(MODULE)
    sys.modules[MODULE] = module  # dataclasses look their module up
    exec(compile(program, f"<{MODULE}>", "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - see the module's text
    return module.__dict__.get(name)


def is_true(value) -> bool:
    """Whether a value counts as true; one that cannot say counts as true, as most objects do."""
    try:
        return bool(value)
    except BaseException:
        return True


def described(error: BaseException) -> tuple[str, str, tuple[str, ...]]:
    """The name of an exception's class, its message, and the names of its bases, short enough for any reply."""
    bases = tuple(base.__name__[:100] for base in type(error).__mro__[:20])
    try:
        return bases[0], str(error)[:500], bases
    except BaseException:
        return bases[0], "", bases
