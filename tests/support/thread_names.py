"""Names of a process's threads."""

import contextlib
import pathlib


def thread_names(pid):
    """Returns the name of each thread by its id. Omits threads that end meanwhile."""
    names = {}
    for folder in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            names[int(folder.name)] = (folder / "comm").read_text().strip()
    return names
