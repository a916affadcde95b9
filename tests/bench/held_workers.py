"""Stops the daemon's worker threads, so that accepted events wait in the log. Needs root, as perf does."""

import contextlib
import ctypes
import os

from thread_names import thread_names

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WAIT_ALL_THREADS = 0x40000000  # __WALL

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


def _ptrace(request, thread):
    if _libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace of thread {thread}: {os.strerror(ctypes.get_errno())}")


def worker_threads(pid):
    return [thread for thread, name in thread_names(pid).items() if name.startswith("worker")]


@contextlib.contextmanager
def held_workers(pid):
    """Stops the workers of an idle daemon. An idle worker holds no lock, so no other thread waits for it. The caller may
    kill the daemon meanwhile and wait for it afterwards.

    Enter and leave in one thread: Linux lets only the thread that seized a worker detach it.
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
            except ProcessLookupError:  # The daemon was killed. Its end shows after a wait for each traced thread.
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(thread, WAIT_ALL_THREADS)
