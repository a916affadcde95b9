"""Runs a command in a root with the unit's user, group, umask and filter of system calls, as systemd does.

    /usr/bin/python3 sandboxed.py ROOT UNIT COMMAND...

The command does not get the unit's namespaces and restrictions of the file system.
"""

import errno
import grp
import mmap
import os
import pathlib
import pwd
import socket
import subprocess
import sys

import seccomp  # Debian's python3-seccomp

import package

PERSONALITY_LINUX = 0


def calls_of(name):
    """Returns the system calls of systemd's group `name`, or the single call `name`."""
    if not name.startswith("@"):
        return {name}
    listed = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True)
    words = [line.strip() for line in listed.stdout.splitlines()[1:]]
    return set().union(*(calls_of(word) for word in words if word and not word.startswith("#")))


def allowed_calls(lines):
    """Returns the system calls that the lines of SystemCallFilter= allow."""
    allowed = set()
    for line in lines:
        names = set().union(*(calls_of(name) for name in line.removeprefix("~").split()))
        allowed = allowed - names if line.startswith("~") else allowed | names
    return allowed


def filter_of(section):
    """Returns two filters for a [Service] section: one of allowed calls, one of forbidden arguments."""
    assert section["SystemCallErrorNumber"] == ["EPERM"] and section["SystemCallArchitectures"] == ["native"]
    made = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    for name in sorted(allowed_calls(section["SystemCallFilter"])):
        try:
            made.add_rule(seccomp.ALLOW, name)
        except RuntimeError:  # this architecture does not have the call
            pass
    forbidden = seccomp.SyscallFilter(seccomp.ALLOW)
    refused = seccomp.ERRNO(errno.EPERM)
    if section["MemoryDenyWriteExecute"] == ["yes"]:
        both = mmap.PROT_WRITE | mmap.PROT_EXEC
        forbidden.add_rule(refused, "mmap", seccomp.Arg(2, seccomp.MASKED_EQ, both, both))
        for call in ("mprotect", "pkey_mprotect"):
            forbidden.add_rule(refused, call, seccomp.Arg(2, seccomp.MASKED_EQ, mmap.PROT_EXEC, mmap.PROT_EXEC))
    if section["RestrictNamespaces"] == ["yes"]:
        for call in ("unshare", "setns"):
            forbidden.add_rule(refused, call)
    if section["LockPersonality"] == ["yes"]:
        forbidden.add_rule(refused, "personality", seccomp.Arg(0, seccomp.NE, PERSONALITY_LINUX))
    families = {getattr(socket, name).value for name in section["RestrictAddressFamilies"][0].split()}
    for family in range(64):
        if family not in families:
            forbidden.add_rule(seccomp.ERRNO(errno.EAFNOSUPPORT), "socket", seccomp.Arg(0, seccomp.EQ, family))
    return made, forbidden


def main(root, unit, *command):
    section = package.service_section(pathlib.Path(unit))
    # There are two filters, since a filter has one default for calls without a rule.
    filters = filter_of(section)
    os.chroot(root)
    os.chdir("/")
    user, group = pwd.getpwnam(section["User"][0]), grp.getgrnam(section["Group"][0])
    os.setgroups([])
    os.setgid(group.gr_gid)
    os.setuid(user.pw_uid)
    os.umask(int(section["UMask"][0], 8))
    # Loads the stricter filter last, since it forbids the call that loads filters.
    for made in reversed(filters):
        made.load()
    os.execv(command[0], command)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
