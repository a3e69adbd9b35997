"""What hostile programs try: each a function `f(world)` that returns what it got hold of, or nothing.

The world tells a program where everything worth having is (see ``attacking``). Each is sent to a sandbox as it stands
here, below the common lines.
"""

COMMON = """
import os, socket, sys, time, ctypes, signal
CHANNEL = int(sys.orig_argv[-1].split('open(')[1].split(',')[0])

def attempt(*ways):
    got = []
    for way in ways:
        try:
            value = way()
        except (OSError, MemoryError, RuntimeError, ValueError, AttributeError):
            continue
        if value not in (None, False, -1, b"", ""):
            got.append(repr(value)[:80])
    return got

def libc(name, *arguments):
    return getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
"""

CONTAINED = {
    "environment": "def f(w): return sorted(set(os.environ) - {'PWD', 'LC_CTYPE'})",
    "the secret file": "def f(w): return attempt(lambda: open(w['file']).read())",
    "home, keys and the project": """
def f(w):
    way = set(w['interpreter'].split('/'))  # the directories above the interpreter may be seen, and are empty else
    return attempt(*[lambda p=p: sorted(set(os.listdir(p)) - way) or None
                     for p in (w['home'], w['project'], w['directory'], '/root', '/home')],
                   *[lambda p=p: open(p).read() for p in (w['key'], w['project'] + '/pyproject.toml', '/etc/shadow')])
""",
    "processes of others": """
def f(w):
    got = []
    try:
        others = [name for name in os.listdir('/proc') if name.isdigit()]
    except OSError:
        others = []
    for pid in {str(w['parent']), *others}:
        for name in ('environ', 'cmdline', 'mem', 'maps'):
            try:
                with open(f'/proc/{pid}/{name}', 'rb') as file:
                    if w['marker'].encode() in file.read(1 << 16):
                        got.append((pid, name))
            except OSError:
                pass
    return got
""",
    "TCP on loopback": "def f(w): return attempt(lambda: socket.create_connection(('127.0.0.1', w['port']), 1).sendall(b'hi') or 1)",
    "UDP": "def f(w): return attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hi', ('127.0.0.1', w['udp'])))",
    "raw and netlink sockets": """
def f(w):
    return attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1), lambda: socket.socket(16, socket.SOCK_RAW, 0),
                   lambda: socket.socket(socket.AF_INET6), lambda: socket.socket(40, socket.SOCK_STREAM))
""",
    "unix sockets": """
def f(w):
    def send(address):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        return s.sendto(b'hi', address)
    return attempt(lambda: send(w['unix']), lambda: send('\\0' + w['abstract']))
""",
    "fork bomb": """
def f(w):
    n = 0
    try:
        while n < 500:
            if os.fork() == 0:
                time.sleep(60)
            n += 1
    except OSError:
        pass
    return n
""",
    "thread bomb": """
def f(w):
    import threading
    threading.stack_size(1 << 16)
    n = 0
    try:
        while n < 500:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            n += 1
    except RuntimeError:
        pass
    return n
""",
    "vfork, clone and spawn": """
def f(w):
    import subprocess
    return attempt(lambda: subprocess.run([sys.executable, '-c', '0']).returncode == 0,
                   lambda: os.posix_spawn(sys.executable, [sys.executable, '-c', '0'], {}),
                   lambda: libc('syscall', 435, None, 0), lambda: libc('syscall', 56, 17, 0, 0, 0, 0) > 0)
""",
    "memory": "def f(w): return attempt(lambda: len(bytearray(1 << 30)))",
    "forks times memory": """
def f(w):
    n = 0
    try:
        while n < 8:
            if os.fork() == 0:
                x = bytearray(100 << 20); time.sleep(60)
            n += 1
    except OSError:
        pass
    return n
""",
    "memory files and shared memory": """
def f(w):
    import mmap
    return attempt(lambda: os.memfd_create('x'), lambda: libc('shmget', 0, 1 << 28, 0o1600),
                   lambda: mmap.mmap(-1, 1 << 29))
""",
    "filling the disk": """
def f(w):
    written = 0
    for place in ('/tmp', '/dev/shm', '/var/tmp', '/', '/dev', w['directory'], '/run', os.getcwd()):
        try:
            for n in range(200):
                with open(f'{place}/fill-{n}', 'wb', buffering=0) as file:
                    for _ in range(64):
                        written += file.write(bytes(1 << 20))
        except OSError:
            pass
    return written if written > w['may_write'] else 0
""",
    "writing where others read": """
def f(w):
    return attempt(*[lambda p=p: open(p, 'a').write('x') for p in
                     (w['file'], w['directory'] + '/new', sys.prefix + '/lib/new', os.__file__, '/etc/new', w['project'] + '/new')],
                   lambda: os.chmod(w['file'], 0) or 1, lambda: os.truncate(w['file'], 0) or 1, lambda: os.unlink(w['file']) or 1)
""",
    "killing others": """
def f(w):
    return attempt(*[lambda p=p, s=s: os.kill(p, s) is None for p in (w['parent'], os.getppid(), -1, 1) for s in (9, 15, 19)
                     if (p, s) != (-1, 0) and p != os.getpid()],
                   lambda: os.killpg(os.getpgid(0), 9) is None, lambda: signal.pidfd_send_signal(os.pidfd_open(w['parent']), 9) is None)
""",
    "signals by roundabout ways": """
def f(w):
    import fcntl
    r, s = os.pipe()
    return attempt(lambda: fcntl.fcntl(r, fcntl.F_SETOWN, w['parent']) == 0, lambda: fcntl.fcntl(r, 10, 9) == 0,
                   lambda: libc('prctl', 1, 9, 0, 0, 0) == 0, lambda: libc('syscall', 129, w['parent'], 9, None) == 0)
""",
    "others' memory, limits and priorities": """
def f(w):
    import resource
    p = w['parent']
    return attempt(lambda: libc('ptrace', 16, p, 0, 0) == 0, lambda: resource.prlimit(p, resource.RLIMIT_NOFILE, (0, 0)),
                   lambda: os.setpriority(os.PRIO_PROCESS, p, 19) is None, lambda: os.sched_setaffinity(p, {0}) is None,
                   lambda: libc('process_vm_readv', p, None, 0, None, 0, 0) == 0, lambda: libc('syscall', 250, 0, -3, 0, 0, 0))
""",
    "more rights": """
def f(w):
    import resource
    return attempt(lambda: os.setuid(0) is None and os.geteuid() == 0 and open('/etc/shadow').read(),
                   lambda: os.unshare(0x10000000) is None, lambda: libc('unshare', 0x10000000) == 0,
                   lambda: libc('setns', 0, 0) == 0, lambda: libc('mount', b'x', b'/tmp', b'tmpfs', 0, None) == 0,
                   lambda: libc('chroot', b'/tmp') == 0, lambda: os.mknod('/tmp/x', 0o60600, os.makedev(8, 0)) is None,
                   *[lambda n=n: resource.setrlimit(n, (-1, -1)) is None for n in (resource.RLIMIT_CPU, resource.RLIMIT_AS)])
""",
    "wide interfaces of the kernel": """
def f(w):
    return attempt(*[lambda n=n: libc('syscall', n, 0, 0, 0, 0, 0) >= 0 for n in (321, 298, 323, 425, 248, 135, 304, 206, 253, 600)])
""",
    "locks and leases on files that all read": """
def f(w):
    import fcntl
    def lease(path):
        with open(path) as file:
            return fcntl.fcntl(file, 1024, fcntl.F_WRLCK) == 0
    def notified():
        return fcntl.fcntl(os.open(os.path.dirname(os.__file__), os.O_RDONLY), 1026, 1) == 0
    def lock():
        return fcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_EX) is None
    return attempt(lambda: lease(os.__file__), lambda: lease(os.path.dirname(os.__file__) + '/this.py'), notified, lock)
""",
    "semaphores and queues of others": """
def f(w):
    down = (ctypes.c_short * 3)(0, -1, 0o4000)
    return attempt(lambda: libc('semop', w['semaphore'], down, 1) == 0,
                   lambda: libc('syscall', 220, w['semaphore'], down, 1, None) == 0,
                   lambda: libc('mq_unlink', w['queue'].encode()) == 0,
                   lambda: libc('syscall', 241, w['queue'][1:].encode()) == 0)
""",
    "empty files and directories": """
def f(w):
    made = 0
    for place in ('/tmp', '/dev/shm', '/dev', '/', '/var/tmp', os.getcwd()):
        for n in range(50):
            for make in (os.mkdir, os.mkfifo, lambda path: os.symlink('x', path), lambda path: open(path, 'w').close()):
                try:
                    make(f'{place}/{n}-{make}')
                    made += 1
                except OSError:
                    pass
    return made
""",
    "the kernel's settings": """
def f(w):
    places = ('sys/kernel/core_pattern', 'sys/vm/drop_caches', 'sys/kernel/hostname', 'sysrq-trigger', 'sys/fs/file-max')
    return attempt(*[lambda p=p: open('/proc/' + p, 'r+') for p in places], lambda: os.listdir('/sys') or None,
                   lambda: open('/proc/self/oom_score_adj', 'w').write('-1000'), lambda: open('/dev/mem', 'rb').read(1))
""",
    "descriptors of others": """
def f(w):
    got = []
    for n in range(256):
        try:
            mode = os.fstat(n).st_mode
        except OSError:
            continue
        if n > 2 and n != CHANNEL:
            got.append((n, oct(mode)))
    return got
""",
    "a daemon": """
def f(w):
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(30)
            os._exit(0)
    except OSError:
        pass
    try:
        os.setsid()
    except OSError:
        pass
""",
}
"""Attacks that get hold of something, unless they are contained."""

ENDED = {
    "an endless loop": ("def f(w):\n while True: pass", "timeout"),
    "ignoring every signal": (
        "def f(w):\n for s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n  except (OSError, ValueError): pass\n"
        " signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n while True: pass",
        "timeout",
    ),
    "waiting for ever": ("def f(w): time.sleep(600)", "timeout"),
    "endless output": (
        "def f(w):\n while True:\n  os.write(1, b'x' * 65536); os.write(2, b'x' * 65536); print('x' * 9999)",
        "timeout",
    ),
    "eating every exception": (
        "def f(w):\n while True:\n  try: \n   while True: pass\n  except BaseException: pass",
        "timeout",
    ),
    "a lower limit of its own": (
        "import resource\ntry: resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nexcept (OSError, ValueError): pass\n"
        "libc('prlimit', 0, 0, (ctypes.c_ulong * 2)(0, 0), None)\ndef f(w):\n while True: pass",
        "timeout",
    ),
    "leaving": ("def f(w): os._exit(0)", "failure"),
    "leaving with the status of a kill": ("def f(w): os._exit(137)", "failure"),
    "killing itself": ("def f(w):\n os.kill(os.getpid(), 9)\n time.sleep(600)", "raised"),
    "killing itself by a timer": (
        "def f(w):\n e = (ctypes.c_int * 16)(0, 0, 9, 0); t = ctypes.c_int()\n"
        " assert libc('timer_create', 0, e, ctypes.byref(t)) == -1\n raise OSError('refused')",
        "raised",
    ),
    "calls of another architecture": ("def f(w): return libc('syscall', 0x40000000 | 39)", "failure"),
    "a crash": ("def f(w): ctypes.string_at(0)", "failure"),
    "endless recursion": ("def f(w):\n sys.setrecursionlimit(1 << 30)\n g = lambda: g()\n g()", "timeout"),
    "aborting": ("def f(w): os.abort()", "failure"),
    "closing its channel": ("def f(w):\n os.close(CHANNEL)\n time.sleep(600)", "failure"),
    "an answer that is too large": ("def f(w): return 'x' * (1 << 20)", "failure"),
    "an answer that nests too deep": ("def f(w):\n x = []\n for _ in range(5000): x = [x]\n return x", "failure"),
    "an answer that holds itself": ("def f(w):\n x = []\n x.append(x)\n return x", "failure"),
    "an endless answer": ("import itertools\ndef f(w): return itertools.count()", "failure"),
    "a forged answer to the loading": (
        "os.write(CHANNEL, b'\\0\\0\\0\\x0et,u6:raised,N.')\ntime.sleep(600)\ndef f(w): pass",
        "failure",
    ),
    "a garbage answer": ("def f(w):\n os.write(CHANNEL, b'\\0\\0\\0\\x04junk')\n time.sleep(600)", "failure"),
    "an answer without an end": (
        "def f(w):\n os.write(CHANNEL, b'\\xff\\xff\\xff\\xff')\n while True: os.write(CHANNEL, bytes(65536))",
        "failure",
    ),
    "exhausting the reader": (
        "def f(w):\n data = b't' + b',t' * 30000\n os.write(CHANNEL, len(data).to_bytes(4, 'big') + data)\n"
        " time.sleep(600)",
        "failure",
    ),
}
"""Attacks that must end, and how: ``timeout``, ``failure`` (of the program), ``raised`` (an exception, refused)."""
