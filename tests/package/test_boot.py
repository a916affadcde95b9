"""Boots a root with systemd, and enables, reloads, kills and stops the service in it.

Only a real systemd shows the service's namespaces, capabilities and system calls.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import unittest

import package

PASSWORD = "correct horse battery staple"
# Runs in the booted root after its start. Prints one JSON object a line.
SCRIPT = """#!/bin/sh
exec > /var/tmp/seen 2> /var/tmp/errors
says() { printf '{"name": "%s", "value": "%s"}\\n' "$1" "$2"; }
show() { systemctl show conversed -P "$1"; }
until_active() {  # systemd restarts the service after RestartSec
  for _ in $(seq 300); do
    [ "$(show ActiveState)" = active ] && [ "$(show MainPID)" != "$1" ] && return
    sleep 0.1
  done
}
systemctl enable --now conversed
says started "$(show ActiveState)"
systemctl stop conversed
echo 'PASSWORD' | conversed init --organisation Shop --admin you@example.com --password-stdin \
  --config /etc/conversed/conversed.yaml > /dev/null
systemctl start conversed
says status "$(show StatusText)"
pid=$(show MainPID)
says user "$(stat -c %U /proc/$pid)"
says capabilities "$(sed -n 's/^CapBnd:\\t//p' /proc/$pid/status)"
says seccomp "$(sed -n 's/^Seccomp:\\t//p' /proc/$pid/status)"
for kind in mnt ipc user uts; do
  [ "$(readlink /proc/$pid/ns/$kind)" = "$(readlink /proc/1/ns/$kind)" ] || says namespace $kind
done
says owner "$(stat -c '%U %a' /var/lib/conversed)"
systemctl reload conversed; says reloaded $?
says 'same process' "$([ "$(show MainPID)" = "$pid" ] && echo yes)"
kill -KILL "$pid"
until_active "$pid"
says restarts "$(show NRestarts)"
systemctl stop conversed
says result "$(show Result)"
systemd-analyze security --no-pager conversed | sed -n 's/.*exposure level for conversed.service: \\([0-9.]*\\).*/\\1/p' |
  while read -r level; do says exposure "$level"; done
systemctl --no-block poweroff
""".replace("PASSWORD", PASSWORD)
UNIT = """[Unit]
Description=Inspects conversed
After=multi-user.target
[Service]
ExecStart=/usr/local/bin/look
[Install]
WantedBy=multi-user.target
"""


ALSO = ["systemd-sysv", "dbus"]


def look():
    """Boots a root with the package. Returns {name: values} of the script's output."""
    if not shutil.which("systemd-nspawn"):
        raise package.Unavailable("systemd-nspawn is missing")
    found = package.find()
    root = package.Root(found, ALSO)
    try:
        root.install(found)
        script = root.file("/usr/local/bin/look")
        script.write_text(SCRIPT)
        script.chmod(0o755)
        root.file("/etc/systemd/system/look.service").write_text(UNIT)
        root.run("systemctl", "enable", "look.service")
        root.leave_proc()
        done = subprocess.run(
            ["systemd-nspawn", "--register=no", "--keep-unit", "--private-network", "--boot",
             f"--directory={root.path}", f"--machine={pathlib.Path(root.folder.name).name}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240,
            check=False)
        if not root.file("/var/tmp/seen").exists():
            raise package.Unavailable(f"the root did not boot:\n{done.stdout[-2000:]}")
        seen = {}
        for line in root.file("/var/tmp/seen").read_text().splitlines():
            entry = json.loads(line)
            seen.setdefault(entry["name"], []).append(entry["value"])
        seen["errors"] = [root.file("/var/tmp/errors").read_text()]
        return seen
    finally:
        root.close()


class Boot(unittest.TestCase):
    seen = {}

    def one(self, name):
        self.assertEqual(len(self.seen.get(name, [])), 1, f"{name}: {self.seen}")
        return self.seen[name][0]

    def test_enable_now_starts_the_service(self):
        self.assertEqual(self.one("started"), "active")
        self.assertIn("Ready", self.one("status"))

    def test_the_service_is_isolated_from_the_machine(self):
        self.assertEqual(self.one("user"), "conversed", self.seen["errors"])
        self.assertEqual(int(self.one("capabilities"), 16), 0)
        self.assertEqual(self.one("seccomp"), "2")
        self.assertEqual(self.seen["namespace"], ["mnt", "ipc", "user", "uts"])
        self.assertEqual(self.one("owner"), "conversed 700")
        self.assertLessEqual(float(self.one("exposure")), 1.1)

    def test_a_reload_keeps_the_process(self):
        self.assertEqual(self.one("reloaded"), "0")
        self.assertEqual(self.one("same process"), "yes")

    def test_systemd_restarts_a_killed_daemon_and_a_stop_is_clean(self):
        self.assertEqual(self.one("restarts"), "1")
        self.assertEqual(self.one("result"), "success")


if __name__ == "__main__":
    try:
        Boot.seen = look()
    except package.Unavailable as missing:
        print(f"\n!! SKIPPED: this test boots a root with systemd: {missing}\n", file=sys.stderr)
        sys.exit(package.SKIPPED)
    unittest.main()
