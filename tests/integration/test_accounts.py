"""Administers accounts with conversectl: roles, removal, e-mail domains, passwords. Reads warnings in the daemon's log."""

import pathlib
import subprocess
import unittest

from case import BIN, ECHO, DaemonCase
from daemon_process import EMAIL, ORGANISATION, PASSWORD

BOB, BOB_PASSWORD = "bob@example.com", "bob's own pass phrase"


class Accounts(DaemonCase):
    bundle = ECHO
    settings = f"contact_center: {{secret: {'s' * 40}, organisation: {ORGANISATION}}}\n"

    def run_ctl(self, *arguments, input=None, user=EMAIL, password=PASSWORD):
        """Runs conversectl without --json."""
        return subprocess.run(
            [self.daemon.binaries / "conversectl", "--url", f"http://127.0.0.1:{self.daemon.ports['api']}",
             "--as", user, *arguments],
            capture_output=True, text=True, timeout=60, input=input,
            env={**self.daemon.environment, "CONVERSECTL_PASSWORD": password})

    def add_bob(self, *arguments):
        self.daemon.ctl("user", "add", BOB, *arguments, "--password-stdin", input=BOB_PASSWORD)
        self.addCleanup(self.daemon.ctl, "user", "remove", BOB, check=False)

    def status_with(self, key):
        message = {"URLToken": self.tokens["echo"], "userId": "u", "sessionId": "s", "text": "t"}
        return self.daemon.request("POST", "/v2.0/endpoint/inject", message, {"X-API-Key": key})[0]

    def test_removing_a_user_revokes_the_users_keys(self):
        self.add_bob("--roles", "projectAdmin")
        key = self.daemon.ctl("apikey", "create", "--name", "bob's", "--user", BOB)["key"]
        self.assertEqual(self.status_with(key), 200)
        done = self.run_ctl("user", "remove", BOB)
        self.assertEqual((done.returncode, done.stdout), (0, f"Removed {BOB} and ended the user's keys and tokens\n"))
        self.assertEqual(self.status_with(key), 401)
        self.assertEqual(self.run_ctl("user", "list", user=BOB, password=BOB_PASSWORD).returncode, 1)
        again = self.run_ctl("user", "remove", BOB)
        self.assertEqual(again.returncode, 1)
        self.assertIn(f"there is no user '{BOB}'", again.stderr)

    def test_roles_are_granted_and_revoked(self):
        self.add_bob()
        done = self.run_ctl("user", "roles", BOB, "--roles", "tokenAdmin,userAdmin")
        self.assertEqual((done.returncode, done.stdout),
                         (0, f"The roles of {BOB} in the organisation: tokenAdmin,userAdmin\n"), done.stderr)
        self.assertEqual(self.run_ctl("user", "list", user=BOB, password=BOB_PASSWORD).returncode, 0)
        refused = self.run_ctl("apikey", "create", "--name", "x", "--user", EMAIL, user=BOB, password=BOB_PASSWORD)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("the role platformAdmin is needed", refused.stderr)
        done = self.run_ctl("user", "roles", BOB, "--roles", "")
        self.assertEqual((done.returncode, done.stdout), (0, f"The roles of {BOB} in the organisation: none\n"), done.stderr)
        self.assertEqual(self.run_ctl("user", "list", user=BOB, password=BOB_PASSWORD).returncode, 1)

    def test_the_last_platform_admin_can_not_be_removed_or_demoted(self):
        for arguments in [("remove", EMAIL), ("roles", EMAIL, "--roles", "userAdmin")]:
            done = self.run_ctl("user", *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn("only user who can administer the platform", done.stderr)

    def test_domain_is_closed_to_other_organisations(self):
        admin, password = "admin@other.example", "the other's pass phrase"
        self.daemon.ctl("organisation", "add", "Other", "--admin", admin, "--password-stdin", input=password)
        done = self.run_ctl("organisation", "domains", ORGANISATION, "--domains", "mine.example,ours.example")
        self.assertEqual((done.returncode, done.stdout), (0, f"The e-mail domains of {ORGANISATION}: mine.example,ours.example\n"),
                         done.stderr)
        refused = self.run_ctl("user", "add", "eve@mine.example", user=admin, password=password)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("a domain that belongs to another organisation", refused.stderr)
        self.assertIn("mine.example,ours.example", self.run_ctl("organisation", "list").stdout)
        done = self.run_ctl("organisation", "domains", ORGANISATION, "--domains", "")
        self.assertEqual((done.returncode, done.stdout), (0, f"The e-mail domains of {ORGANISATION}: none\n"), done.stderr)
        self.assertEqual(self.run_ctl("user", "add", "eve@mine.example", user=admin, password=password).returncode, 0)

    def test_every_command_that_sets_a_password_refuses_weak_ones(self):
        self.add_bob()
        for weak, reason in [("elevenchars", "at least 12 characters"), ("Password1234", "one of the most common")]:
            for command in [("user", "add", "new@example.com"), ("user", "passwd", BOB),
                            ("organisation", "add", "New", "--admin", "new@example.com")]:
                done = self.run_ctl(*command, "--password-stdin", input=weak)
                self.assertEqual(done.returncode, 1, command)
                self.assertIn(reason, done.stderr)
            folder = pathlib.Path(self.folder.name) / "none"
            done = subprocess.run(
                [f"{BIN}/conversed", "init", "--organisation", "New", "--admin", EMAIL, "--password-stdin"],
                input=weak, capture_output=True, text=True, timeout=60,
                env={**self.daemon.environment, "CONVERSED_DATA_DIR": str(folder)})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(reason, done.stderr)
            self.assertFalse((folder / "store.db").exists(), "init made a store")
        self.assertEqual(self.run_ctl("user", "list", user=BOB, password=BOB_PASSWORD).returncode, 1,
                         "a user without roles lists users")

    def test_log_and_status_warn_of_unchecked_contact_center_tokens(self):
        warning = "set contact_center.issuer or contact_center.audience"
        self.assertIn(warning, self.daemon.log_path.read_text())
        self.assertIn(warning, self.run_ctl("status").stdout)


if __name__ == "__main__":
    unittest.main()
