"""conversectl login: how the password is asked for, where the token is kept, and when it ends."""

import base64
import json
import os
import pathlib
import pty
import subprocess
import tempfile
import termios
import unittest

from case import ECHO
from ctl_case import CTL, CtlCase
from daemon_process import EMAIL, PASSWORD


class Login(CtlCase):
    bundle = ECHO

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="conversed-home-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.file = self.home / "conversectl" / "credentials"
        self.url = f"http://127.0.0.1:{self.daemon.ports['api']}"

    def ctl(self, *arguments, code=0, **environment):
        """Runs conversectl with nothing but the home folder."""
        done = subprocess.run([CTL, *arguments], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                              env={"XDG_CONFIG_HOME": str(self.home), **environment})
        self.assertEqual(done.returncode, code, (arguments, done))
        return done

    def login(self, *arguments):
        return self.ctl("--as", EMAIL, "login", self.url, *arguments, CONVERSECTL_PASSWORD=PASSWORD)

    def kept(self):
        return json.loads(self.file.read_text())["logins"][self.url]

    def test_later_commands_need_neither_url_nor_password(self):
        self.assertIn(f"Signed in at {self.url} as {EMAIL} until ", self.login().stdout)
        self.assertIn("Tests", self.ctl("projects", "list").stdout)
        self.assertIn("Tests", self.ctl("--as", EMAIL, "projects", "list").stdout)
        self.assertIn("no password", self.ctl("--as", "ann@example.com", "projects", "list", code=1).stderr)
        self.assertIn("no user is named", self.ctl("--url", self.url + "0", "projects", "list", code=1).stderr)

    def test_address_and_password_are_asked_for_without_an_echo(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        process = subprocess.Popen([CTL, "login", self.url], stdin=slave, stdout=subprocess.PIPE, stderr=slave, text=True,
                                   env={"XDG_CONFIG_HOME": str(self.home)})
        for cleanup in (process.stdout.close, process.wait, process.kill):
            self.addCleanup(cleanup)
        shown = ""

        def answer(prompt, text):
            nonlocal shown
            while not shown.endswith(prompt):
                shown += os.read(master, 4096).decode()
            while "Password" in prompt and termios.tcgetattr(slave)[3] & termios.ECHO:
                pass
            os.write(master, text.encode() + b"\n")

        answer("E-mail address: ", EMAIL)
        answer(f"Password of {EMAIL}: ", PASSWORD)
        self.assertIn("Signed in at", process.stdout.read())
        self.assertEqual(process.wait(60), 0)
        os.close(slave)
        try:
            while part := os.read(master, 4096).decode():
                shown += part
        except OSError:
            pass  # the terminal has no writer any more
        self.assertNotIn(PASSWORD, shown)

    def test_a_file_that_can_not_be_read_is_an_error_unless_an_address_is_given(self):
        self.login()
        self.file.write_text("{")
        for command in (("projects", "list"), ("chat", "web")):
            self.assertIn("is damaged", self.ctl(*command, code=1, CONVERSECTL_AS=EMAIL, CONVERSECTL_PASSWORD=PASSWORD).stderr)
        self.assertIn("Tests", self.ctl("--url", self.url, "projects", "list", CONVERSECTL_AS=EMAIL,
                                        CONVERSECTL_PASSWORD=PASSWORD).stdout)

    def test_the_file_is_its_owners_alone(self):
        self.login()
        self.assertEqual((self.file.stat().st_mode & 0o777, self.file.parent.stat().st_mode & 0o777), (0o600, 0o700))
        self.assertNotIn(PASSWORD, self.file.read_text())

    def test_a_file_that_others_can_read_is_refused(self):
        self.login()
        for path, mode in ((self.file, 0o640), (self.file, 0o604), (self.file.parent, 0o750)):
            with self.subTest(path=path, mode=oct(mode)):
                before = path.stat().st_mode
                path.chmod(mode)
                self.assertIn("other users can read it", self.ctl("--url", self.url, "projects", "list", code=1).stderr)
                path.chmod(before)
        self.ctl("projects", "list")

    def test_a_damaged_file_is_an_error_that_names_it(self):
        self.login()
        for text in ("", "[]", "{", json.dumps({"logins": {self.url: 5}}), json.dumps({"logins": 5})):
            self.file.write_text(text)
            done = subprocess.run([CTL, "--url", self.url, "projects", "list"], capture_output=True, text=True, timeout=60,
                                  stdin=subprocess.DEVNULL, env={"XDG_CONFIG_HOME": str(self.home)})
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(f"{self.file}: is damaged", done.stderr)

    def test_a_new_login_ends_the_one_before_it(self):
        self.login()
        first = self.kept()
        self.login("--scope", "read", "--expires", "1h")
        tokens = {item["_id"]: item for item in self.daemon.ctl("tokens", "list")["items"]}
        self.assertNotIn(first["_id"], tokens)
        self.assertEqual(tokens[self.kept()["_id"]]["scopes"], ["read"])
        self.assertIn("403", str(self.daemon.request("POST", "/management/key/rotate", {}, self.basic())[0]))

    def basic(self):
        return {"Authorization": "Basic " + base64.b64encode(f"{EMAIL}:{self.kept()['token']}".encode()).decode()}

    def test_logout_revokes_the_token_and_forgets_it(self):
        self.login()
        basic = self.basic()
        self.assertEqual(self.daemon.request("GET", "/management/projects", None, basic)[0], 200)
        self.ctl("logout")
        self.assertEqual(self.daemon.request("GET", "/management/projects", None, basic)[0], 401)
        self.assertNotIn(self.url, self.file.read_text())

    def test_a_revoked_login_says_how_to_go_on(self):
        self.login()
        self.daemon.ctl("tokens", "revoke", self.kept()["_id"])
        self.assertIn("has ended: sign in again by `conversectl login`", self.ctl("projects", "list", code=1).stderr)

    def test_a_credential_is_made_with_the_password_alone(self):
        self.login()
        refused = self.ctl("apikey", "create", "--name", "x", code=1).stderr
        self.assertIn("no password", refused)
        self.assertIn("this command needs the password, not the token of the login", refused)
        self.assertTrue(self.ctl("apikey", "create", "--name", "x", CONVERSECTL_PASSWORD=PASSWORD).stdout)
        self.assertTrue(self.ctl("--as", EMAIL, "apikey", "create", "--name", "x", CONVERSECTL_PASSWORD=PASSWORD).stdout)

    def test_scripts_send_a_token_in_place_of_the_password(self):
        token = self.daemon.ctl("tokens", "create", "--name", "script", "--scope", "projectAdmin")["token"]
        options = {"CONVERSECTL_AS": EMAIL, "CONVERSECTL_PASSWORD": token, "CONVERSECTL_URL": self.url}
        self.assertIn("Tests", self.ctl("projects", "list", **options).stdout)
        self.assertIn("lacks the scope platformAdmin", self.ctl("status", code=1, **options).stderr)

    def test_no_token_is_in_the_log(self):
        self.login()
        token = self.kept()["token"]
        self.ctl("projects", "list")
        self.daemon.request("GET", "/management/projects", None, {"Authorization": f"Basic {token}"})
        self.ctl("logout")
        log = self.daemon.log_path.read_text()
        self.assertIn("createManagementToken", log)
        self.assertNotIn(token.rsplit("_", 1)[1], log)


if __name__ == "__main__":
    unittest.main()
