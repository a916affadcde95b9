"""Holds the daemon's worker threads, so that what it accepts waits in the log. Needs root, as perf does."""

import contextlib
import ctypes
import os
import pathlib

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WAIT_ALL_THREADS = 0x40000000  # __WALL

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


def _ptrace(request, thread):
    if _libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace of thread {thread}: {os.strerror(ctypes.get_errno())}")


def worker_threads(pid):
    return [int(task.name) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            if (task / "comm").read_text().startswith("worker")]


@contextlib.contextmanager
def held_workers(pid):
    """The daemon has to be idle: an idle worker waits without a lock, so that nothing else waits for it. A daemon that is
    killed meanwhile can be waited for afterwards.

    Used by one thread: Linux lets no other thread than the one that seized a thread let go of it.
    """
    threads = worker_threads(pid)
    for thread in threads:
        _ptrace(PTRACE_SEIZE, thread)
        _ptrace(PTRACE_INTERRUPT, thread)
        os.waitpid(thread, WAIT_ALL_THREADS)
    try:
        yield
    finally:
        for thread in threads:
            try:
                _ptrace(PTRACE_DETACH, thread)
            except ProcessLookupError:  # The daemon was killed: its end is seen once its traced threads are waited for.
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(thread, WAIT_ALL_THREADS)
