"""The Debian package that is tested, and roots to install it into."""

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
# Beside what the package depends on: runs a command as the unit does.
ALSO = ["util-linux"]


class Unavailable(Exception):
    """This machine can't make a root: no debootstrap, no mirror, or no right to."""


def find():
    """The one package in the folder that CONVERSED_TEST_PACKAGE names."""
    found = list(pathlib.Path(os.environ["CONVERSED_TEST_PACKAGE"]).glob("conversed_*.deb"))
    if len(found) != 1:
        sys.exit(f"expected one package in {os.environ['CONVERSED_TEST_PACKAGE']}, found {found}")
    return found[0]


def run(*command, **options):
    """Runs a command and gives what it printed; what it printed is the error, if it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def service_section(unit):
    """The [Service] section of a unit as {key: [values]}: a key may come more than once."""
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
    """Virtual package → one that provides it, of those installed here, where the package was built."""
    found = {}
    for line in run("dpkg-query", "-W", "-f", "${Package}\\t${Provides}\\n").splitlines():
        name, _, provides = line.partition("\t")
        for virtual in filter(None, re.split(r",\s*", provides)):
            found.setdefault(virtual.split(" ")[0], name)
    return found


def depends(package):
    """The packages it depends on; of alternatives the first, for virtual ones (debootstrap knows none) a real one."""
    names = {re.split(r"[ |(:]", part.strip())[0] for part in field(package, "Depends").split(",")}
    provided = providers()
    return sorted({provided.get(name, name) for name in names})


def mirror():
    """Where this machine gets Debian's packages from."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"],
                          capture_output=True, text=True)
    for line in done.stdout.splitlines():
        address, _, codename = line.partition(" ")
        if codename == SUITE:
            return address
    return MIRROR


def base_root(package, also):
    """A root with all that the package depends on, and more; made once, and again when that changes."""
    if os.geteuid() != 0:
        raise Unavailable("only root can make a root")
    if not shutil.which("debootstrap"):
        raise Unavailable("there is no debootstrap")
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
    """The same package under another version, after `change` of its unpacked tree."""
    tree = pathlib.Path(folder) / f"tree-{version}"
    run("dpkg-deb", "-R", package, tree)
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"(?m)^Version: .*$", f"Version: {version}", control.read_text()))
    change(tree)
    made = pathlib.Path(folder) / f"conversed_{version}_amd64.deb"
    run("dpkg-deb", "--root-owner-group", "-b", tree, made)
    return made


class Root:
    """A copy of the base root, to be changed at will. One thread."""

    def __init__(self, package, also=()):
        base = base_root(package, also)
        self.folder = tempfile.TemporaryDirectory(prefix="conversed-root-")
        self.path = pathlib.Path(self.folder.name) / "root"
        run("cp", "-a", "--reflink=auto", base, self.path)
        # systemd-tmpfiles, as the package calls it, works through /proc.
        run("mount", "-t", "proc", "proc", self.path / "proc")
        # What maintainer scripts start or stop has to be told by a service manager, which is not here.
        (self.path / "usr" / "sbin" / "policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (self.path / "usr" / "sbin" / "policy-rc.d").chmod(0o755)

    def run(self, *command, **options):
        """Runs a command inside."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive",
                       "LC_ALL": "C.UTF-8", **options.pop("environment", {})}
        return run("chroot", self.path, *command, env=environment, **options)

    def install(self, package):
        shutil.copy(package, self.path / "tmp" / package.name)
        return self.run("dpkg", "-i", f"/tmp/{package.name}")

    def file(self, path):
        return self.path / path.lstrip("/")

    def leave_proc(self):
        """For a system that is booted here, and has processes of its own."""
        if os.path.ismount(self.path / "proc"):
            run("umount", "--lazy", self.path / "proc")

    def close(self):
        self.leave_proc()
        self.folder.cleanup()
