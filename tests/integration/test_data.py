"""Operators change keys and data while the daemon runs: backup and restore, rotation of the master key, new webhook secrets,
export and erasure of a user's data."""

import json
import os
import pathlib
import stat
import subprocess
import unittest

from case import BIN, CONNECTION_TOKEN, SECRET, DaemonCase
from daemon_process import EMAIL, PASSWORD, Daemon

NEW_SECRET = "whsec_dGhlIG5leHQgc2VjcmV0IG9mIHRoZXNlIHRlc3Rz"
LOW_LIMIT = 8  # open files; a restore needs more
ENDPOINTS = 150  # more than two batches of secrets
BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
connections: [{name: crm, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}]
flows:
  - name: Echo
    nodes:
      - updateProfile: {said: "{{input.text}}"}
      - addToContext: {said: "{{input.text}}"}
      - say: "You said {{input.text}}"
  - {name: Lookup, nodes: [{httpRequest: {connection: crm, method: GET, url: "UPSTREAM/orders", storeIn: context.order}},
                           {say: found}]}
  - {name: Sleeper, nodes: [{say: "Good night, {{input.text}}"}, {sleep: {for: 1h}}]}
  - {name: Loop, nodes: [{id: again, addToContext: {said: "{{input.text}}"}}, {goTo: again}]}
endpoints:
  - {name: echo, flow: Echo, output: {webhook: {url: "${HOOK_URL}", secret: "${HOOK_SECRET}"}}}
  - {name: lookup, flow: Lookup}
  - {name: sleeper, flow: Sleeper}
  - {name: loop, flow: Loop}
""" + "".join(f'  - {{name: more{n}, flow: Echo, output: {{webhook: {{url: "${{HOOK_URL}}", secret: "${{HOOK_SECRET}}"}}}}}}\n'
              for n in range(ENDPOINTS))


class DataCase(DaemonCase):
    bundle = BUNDLE

    @property
    def data(self):
        return self.daemon.folder / "data"

    def key_file(self):
        return (self.data / "master.key").read_text().splitlines()

    def fails(self, *arguments):
        """Runs a command and checks that it fails. Returns its message."""
        done = subprocess.run([self.daemon.binaries / "conversectl", "--url",
                               f"http://127.0.0.1:{self.daemon.ports['api']}", *arguments],
                              capture_output=True, text=True, env=self.daemon.environment, timeout=120)
        self.assertEqual(done.returncode, 1, done.stdout)
        return done.stderr

    def in_files(self, text):
        """Returns the files of the data folder that contain this text. Skips backups."""
        return [path.name for path in self.data.rglob("*")
                if path.is_file() and "backups" not in path.parts and text.encode() in path.read_bytes()]

    def expect_working_secrets(self, session):
        """Checks that the daemon can open the secrets of the Connection and of the webhook."""
        self.upstream.requests.clear()
        self.assertEqual(self.say("lookup", session, "x")[1]["text"], "found")
        self.assertEqual(self.upstream.requests[-1][1]["Authorization"], f"Bearer {CONNECTION_TOKEN}")
        bad = self.receiver.bad_signatures
        self.assertEqual(self.inject("echo", session, text="signed")[0], 200)
        self.assertTrue(self.receiver.wait_for(
            lambda all: any(body["sessionId"] == session for _, _, body in all), 30))
        self.assertEqual(self.receiver.bad_signatures, bad)


class Keys(DataCase):
    def test_the_new_key_opens_all_secrets_and_the_old_key_is_removed(self):
        old = self.key_file()
        report = self.daemon.ctl("rotate-key")
        # The secrets of ENDPOINTS + 1 webhooks and of one Connection, each with its source in the bundle.
        self.assertEqual(report["resealed"], 2 * (ENDPOINTS + 2))
        new = self.key_file()
        self.assertEqual(len(new), 1)
        self.assertNotIn(old[0].split()[1], new[0])
        kept = pathlib.Path(report["replacedKey"])
        self.assertEqual(kept.parent, self.data)
        self.assertEqual(kept.read_text().splitlines(), old)
        for file in (self.data / "master.key", kept):
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        self.expect_working_secrets("rotated")
        self.assertEqual(self.daemon.terminate(), 0)
        self.daemon.start()
        self.expect_working_secrets("rotated and restarted")

    def test_a_killed_rotation_continues_at_the_next_start(self):
        for point in ("keys.after_add", "keys.after_batch:2"):
            with self.subTest(point):
                before = self.key_file()[-1]
                self.daemon.terminate()
                self.daemon.start({"CONVERSED_TEST_KILL_AT": point})
                self.fails("rotate-key")
                self.assertTrue(self.daemon.wait_end(60))
                self.assertIn(before, self.key_file())
                self.assertEqual(len(self.key_file()), 2)
                self.daemon.start()
                self.wait_for_log("secrets sealed anew by the newest master key")
                self.assertEqual(len(self.key_file()), 1)
                self.assertNotIn(before, self.key_file())
                self.expect_working_secrets(f"after {point}")

    def wait_for_log(self, line):
        """Waits for the line in the log of this start. Earlier starts had an older key."""
        began = self.daemon.log_path.read_text().rindex('listening')
        for _ in range(600):
            if line in self.daemon.log_path.read_text()[began:]:
                return
            self.assertFalse(self.daemon.wait_end(0.1), "the daemon ended")
        self.fail(f"not logged: {line}")


class GivenKey(DataCase):
    def test_the_key_of_the_service_manager_is_used_and_never_written(self):
        credentials = pathlib.Path(self.folder.name) / "credentials"
        credentials.mkdir()
        self.daemon.terminate()
        key = credentials / "master.key"
        (self.data / "master.key").rename(key)
        key.chmod(0o400)
        self.daemon.environment["CREDENTIALS_DIRECTORY"] = str(credentials)
        self.daemon.start()
        self.expect_working_secrets("given")
        text = key.read_text()
        self.assertIn("credential", self.fails("rotate-key"))
        self.assertEqual(key.read_text(), text)
        self.assertFalse((self.data / "master.key").exists())
        # The operator adds a line and restarts, as the message says.
        self.daemon.terminate()
        key.chmod(0o600)
        key.write_text(text + "2 " + os.urandom(32).hex() + "\n")
        self.daemon.start()
        Keys.wait_for_log(self, "secrets sealed anew by the newest master key")
        self.daemon.terminate()
        key.write_text(key.read_text().splitlines()[1] + "\n")
        self.daemon.start()
        self.expect_working_secrets("by the second key alone")
        # The daemon refuses a key that never sealed its secrets.
        self.daemon.terminate()
        key.write_text("3 " + os.urandom(32).hex() + "\n")
        self.assertFalse(self.daemon.start())
        self.assertIn("is not the one", self.daemon.log_path.read_text())


class WebhookSecrets(DataCase):
    def test_a_delivery_is_signed_with_the_new_and_the_old_secret(self):
        self.daemon.environment["HOOK_SECRET"] = NEW_SECRET
        self.tokens = self.load(BUNDLE)
        self.receiver.signed_by.clear()
        self.receiver.secrets = [SECRET, NEW_SECRET]
        self.assertEqual(self.inject("echo", "two", text="x")[0], 200)
        self.assertTrue(self.receiver.wait_for(lambda all: any(body["sessionId"] == "two" for _, _, body in all), 30))
        self.assertEqual(self.receiver.signed_by, [[NEW_SECRET, SECRET]])


class UsersData(DataCase):
    settings = "api: {turn_timeout: 500ms}\n"  # clients of the Endpoint `sleeper` wait this long

    def setUp(self):
        self.receiver.secrets = [SECRET]

    def fill(self, user, mark):
        """Makes sessions with all kinds of data. Their names and texts contain the user and `mark`."""
        for endpoint, text in (("echo", f"words-{mark}"), ("sleeper", f"words-{mark}")):
            body = {"userId": user, "sessionId": f"{user}-{endpoint}", "text": text}
            status, answer, _ = self.daemon.request("POST", f"/{self.tokens[endpoint]}", body,
                                                    {"Idempotency-Key": f"{endpoint}-{mark[:3]}"})
            if endpoint == "echo":
                self.assertEqual(status, 200, answer)
        for session in ("sleeper", "loop"):  # the first event waits in the inbox, the second becomes a dead letter
            body = {"URLToken": self.tokens[session], "userId": user, "sessionId": f"{user}-{session}",
                    "text": f"words-{mark}"}
            self.assertEqual(self.daemon.request("POST", "/v2.0/endpoint/inject", body, {"X-API-Key": self.key})[0], 200)
        self.daemon.ctl("inject", "--endpoint", self.tokens["echo"], "--user", user, "--session", f"{user}-echo",
                        "--text", f"words-{mark}", "--in", "2h")

    def wait_finished(self):
        """Waits until the log is consumed and all deliveries are done. wait_idle() would wait for the sleeping session."""
        for _ in range(600):
            status, body, _ = self.daemon.request("GET", "/management/status", basic=True)
            if status == 200 and body["queue"]["lag"] == 0 and body["counts"]["pendingDeliveries"] == 0:
                return
            self.assertFalse(self.daemon.wait_end(0.05))
        self.fail("not finished")

    def export(self, user):
        return self.daemon.ctl("users-data", "export", user)["items"]

    def test_user_is_exported_and_erased_without_a_trace(self):
        self.fill("ann-of-the-test", "ANNSWORDS")
        self.fill("bob-of-the-test", "BOBSWORDS")
        self.wait_finished()
        items = self.export("ann-of-the-test")
        kinds = {item["kind"] for item in items}
        self.assertEqual(kinds, {"profile", "session", "output", "receipt", "waitingEvent", "timer", "deadLetter",
                                 "answer", "schedule"})
        text = json.dumps(items)
        self.assertIn("ANNSWORDS", text)
        self.assertNotIn("BOBSWORDS", text)
        self.assertTrue(self.in_files("ANNSWORDS"))

        erased = self.daemon.ctl("users-data", "erase", "ann-of-the-test")
        self.assertEqual((erased["sessions"], erased["profiles"], erased["deadLetters"], erased["queue"]),
                         (3, 1, 1, "cleared"))
        self.assertEqual(self.in_files("ANNSWORDS"), [])
        self.assertEqual(self.in_files("ann-of-the-test"), [])
        self.assertEqual(self.in_files("echo-ANN"), [], "an Idempotency-Key")
        # The audit trail names the user again from here on, because each export is an entry.
        self.assertEqual(self.export("ann-of-the-test"), [])
        self.assertTrue(self.in_files("echo-BOB"))
        self.assertEqual({item["kind"] for item in self.export("bob-of-the-test")}, kinds)

        # The erasure removed the Idempotency-Key, so a repeat is a new message.
        said = {"userId": "ann-of-the-test", "sessionId": "ann-of-the-test-echo", "text": "words-ANNSWORDS"}
        status, answer, _ = self.daemon.request("POST", f"/{self.tokens['echo']}", said, {"Idempotency-Key": "echo-ANN"})
        self.assertEqual((status, answer["text"]), (200, "You said words-ANNSWORDS"))
        # The user can begin a new conversation.
        status, answer, _ = self.daemon.request("POST", f"/{self.tokens['echo']}", {
            "userId": "ann-of-the-test", "sessionId": "ann-of-the-test-echo", "text": "again"})
        self.assertEqual((status, answer["text"]), (200, "You said again"))

    def test_wrong_requests_for_a_users_data_are_refused(self):
        self.assertEqual(self.daemon.request("GET", "/management/usersdata?userId=ann")[0], 401)
        self.assertEqual(self.daemon.request("GET", "/management/usersdata?userId=ann&projectId=" + "z" * 24,
                                             basic=True)[0], 404)
        self.assertEqual(self.daemon.request("GET", "/management/usersdata", basic=True)[0], 400)
        self.assertEqual(self.daemon.request("POST", "/management/usersdata/erase", {}, basic=True)[0], 400)


class Backups(DataCase):
    def test_a_daemon_continues_from_a_restored_backup(self):
        self.assertEqual(self.say("echo", "kept", "one")[0], 200)
        made = self.daemon.ctl("backup", "--name", "first")
        self.assertIn("first", self.fails("backup", "--name", "first"))
        self.assertIn("name", self.fails("backup", "--name", "../../etc"))
        self.assertEqual(self.say("echo", "lost", "two")[0], 200)
        other = Daemon(BIN, pathlib.Path(self.folder.name) / "restored",
                       environment={"HOOK_URL": self.receiver.url, "HOOK_SECRET": SECRET})
        self.addCleanup(other.kill)
        other.ports = {"api": 0}
        key = str(self.data / "master.key")
        # Refused: a folder in use, then a restore without the key.
        for arguments, word in (((str(self.daemon.config),), "in use"), ((str(other.config),), "master key")):
            self.assertIn(word, self.fails("restore", made["path"], "--config", *arguments))
        other.ctl("restore", made["path"], "--config", str(other.config), "--key", key)
        self.assertTrue(other.start())
        other.wait_idle()

        def texts(session):
            status, page, _ = other.request(
                "GET", f"/{self.tokens['echo']}/outputs?userId=user%20of%20{session}&sessionId={session}")
            self.assertEqual(status, 200, page)
            return [item["text"] for item in page["items"]]

        self.assertEqual(texts("kept"), ["You said one"])
        self.assertEqual(texts("lost"), [])
        self.assertEqual(other.terminate(), 0)

    def test_an_older_backup_is_restored_with_the_replaced_key(self):
        made = self.daemon.ctl("backup")
        kept = self.daemon.ctl("rotate-key")["replacedKey"]
        other = Daemon(BIN, pathlib.Path(self.folder.name) / "older")
        for key, refused in (((self.data / "master.key"), True), (kept, False)):
            arguments = ["restore", made["path"], "--config", str(other.config), "--key", str(key)]
            if refused:
                self.assertIn("does not open", self.fails(*arguments))
            else:
                self.daemon.ctl(*arguments)

    def test_a_restore_does_not_keep_to_a_low_soft_limit_of_open_files(self):
        made = self.daemon.ctl("backup")
        restored = pathlib.Path(self.folder.name) / "limited"
        environment = {**self.daemon.environment, "CONVERSED_DATA_DIR": str(restored)}
        done = subprocess.run(
            ["prlimit", f"--nofile={LOW_LIMIT}:1024", self.daemon.binaries / "conversectl", "restore", made["path"], "--config",
             self.daemon.config, "--key", self.data / "master.key"],
            capture_output=True, text=True, env=environment, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_backup_has_no_secret_in_clear(self):
        path = pathlib.Path(self.daemon.ctl("backup")["path"])
        for file in filter(pathlib.Path.is_file, path.rglob("*")):
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600, file)
            for secret in (SECRET, CONNECTION_TOKEN, PASSWORD):
                self.assertNotIn(secret.encode(), file.read_bytes(), file)

    def test_backup_and_rotate_key_need_the_role_platform_admin(self):
        self.daemon.ctl("user", "add", "ann@example.com", "--roles", "projectAdmin", "--password-stdin", input=PASSWORD)
        environment = dict(self.daemon.environment, CONVERSECTL_AS="ann@example.com")
        self.assertNotEqual(environment["CONVERSECTL_AS"], EMAIL)
        for command in ("backup", "rotate-key"):
            done = subprocess.run([BIN + "/conversectl", "--url", f"http://127.0.0.1:{self.daemon.ports['api']}", command],
                                  capture_output=True, text=True, env=environment, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn("platformAdmin", done.stderr)


if __name__ == "__main__":
    unittest.main()
