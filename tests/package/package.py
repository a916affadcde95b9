"""The Debian package under test, and roots to install it into."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / "build" / "tools" / "package-root"
SUITE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
# Packages in a root besides the dependencies.
ALSO = ["util-linux"]


class Unavailable(Exception):
    """This machine can't make a root: no debootstrap, no mirror, or not root."""


def find():
    """Returns the package in the folder CONVERSED_TEST_PACKAGE."""
    found = list(pathlib.Path(os.environ["CONVERSED_TEST_PACKAGE"]).glob("conversed_*.deb"))
    if len(found) != 1:
        sys.exit(f"expected one package in {os.environ['CONVERSED_TEST_PACKAGE']}, found {found}")
    return found[0]


def run(*command, **options):
    """Runs a command. Returns its output, or raises AssertionError with it."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def service_section(unit):
    """Returns the [Service] section of a unit as {key: [values]}. A key may have several lines."""
    values, section = {}, None
    for line in unit.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values.setdefault(key, []).append(value)
    return values


def field(package, name):
    return run("dpkg-deb", "-f", package, name).strip()


def providers():
    """Returns {virtual package: an installed package that provides it}."""
    found = {}
    for line in run("dpkg-query", "-W", "-f", "${Package}\\t${Provides}\\n").splitlines():
        name, _, provides = line.partition("\t")
        for virtual in filter(None, re.split(r",\s*", provides)):
            found.setdefault(virtual.split(" ")[0], name)
    return found


def depends(package):
    """Returns the dependencies: the first of alternatives, and a real package for a virtual one, which debootstrap
    does not know."""
    names = {re.split(r"[ |(:]", part.strip())[0] for part in field(package, "Depends").split(",")}
    provided = providers()
    return sorted({provided.get(name, name) for name in names})


def mirror():
    """Returns the Debian mirror of this machine."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"],
                          capture_output=True, text=True)
    for line in done.stdout.splitlines():
        address, _, codename = line.partition(" ")
        if codename == SUITE:
            return address
    return MIRROR


def base_root(package, also):
    """Returns a root with the package's dependencies and `also`. Makes it once for each list of packages."""
    if os.geteuid() != 0:
        raise Unavailable("run as root: only root can make a root")
    if not shutil.which("debootstrap"):
        raise Unavailable("debootstrap is missing")
    wanted = [*depends(package), *ALSO, *also]
    root = CACHE / hashlib.sha256(" ".join([SUITE, *wanted]).encode()).hexdigest()[:16]
    if root.exists():
        return root
    CACHE.mkdir(parents=True, exist_ok=True)
    making = pathlib.Path(tempfile.mkdtemp(prefix="making-", dir=CACHE))
    making.chmod(0o755)
    done = subprocess.run(["debootstrap", "--variant=minbase", f"--include={','.join(wanted)}", SUITE, str(making),
                           mirror()], capture_output=True, text=True)
    if done.returncode != 0:
        shutil.rmtree(making, ignore_errors=True)
        raise Unavailable(f"debootstrap failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    shutil.rmtree(making / "var" / "cache" / "apt" / "archives", ignore_errors=True)
    making.rename(root)
    return root


def repacked(package, version, folder, change=lambda tree: None):
    """Makes the same package with another version, after `change(tree)` of the unpacked tree."""
    tree = pathlib.Path(folder) / f"tree-{version}"
    run("dpkg-deb", "-R", package, tree)
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"(?m)^Version: .*$", f"Version: {version}", control.read_text()))
    change(tree)
    made = pathlib.Path(folder) / f"conversed_{version}_amd64.deb"
    run("dpkg-deb", "--root-owner-group", "-b", tree, made)
    return made


class Root:
    """A copy of the base root that a test may change. One thread."""

    def __init__(self, package, also=()):
        base = base_root(package, also)
        self.folder = tempfile.TemporaryDirectory(prefix="conversed-root-")
        self.path = pathlib.Path(self.folder.name) / "root"
        run("cp", "-a", "--reflink=auto", base, self.path)
        # The package's scripts call systemd-tmpfiles, which needs /proc.
        run("mount", "-t", "proc", "proc", self.path / "proc")
        # The root has no service manager, so maintainer scripts must not start or stop services.
        (self.path / "usr" / "sbin" / "policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (self.path / "usr" / "sbin" / "policy-rc.d").chmod(0o755)

    def run(self, *command, **options):
        """Runs a command in the root."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive",
                       "LC_ALL": "C.UTF-8", **options.pop("environment", {})}
        return run("chroot", self.path, *command, env=environment, **options)

    def install(self, package):
        shutil.copy(package, self.path / "tmp" / package.name)
        return self.run("dpkg", "-i", f"/tmp/{package.name}")

    def file(self, path):
        return self.path / path.lstrip("/")

    def leave_proc(self):
        """Unmounts /proc before the root boots: a booted system mounts its own."""
        if os.path.ismount(self.path / "proc"):
            run("umount", "--lazy", self.path / "proc")

    def close(self):
        self.leave_proc()
        self.folder.cleanup()
