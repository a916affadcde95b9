"""Every command of conversectl, for people and with --json, on a store with data. test_ctl_jobs.py has the commands of jobs,
test_ctl_deliveries.py those of webhooks that fail."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import test_ctl_deliveries
import test_ctl_jobs
import test_flow_replay
from ctl_case import CTL, ID, RIGHT_TO_LEFT, SHOP, SOURCE, TIME, CtlCase, commands, help_of, rows, sheet, test_name
from daemon_process import EMAIL

HOSTILE = f"red\x1b[31m {RIGHT_TO_LEFT}\x9b1m"
SHOWN = r"red\u001b[31m \u202e\u009b1m"
MALLORY = f"mal{RIGHT_TO_LEFT}lory"
SHOWN_MALLORY = r"mal\u202elory"
NEW_PASSWORD = "another horse, another battery"


class Commands(CtlCase):
    bundle = SHOP

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.project = cls.report["project"]["_id"]

    def session(self, endpoint, name, user=None):
        return ("--endpoint", self.tokens[endpoint], "--user", user or f"user of {name}", "--session", name)

    def dead_letter(self, name):
        return super().dead_letter(name, text=HOSTILE, userId=MALLORY)

    def schedule(self, name):
        return self.daemon.ctl("inject", *self.session("web", name, MALLORY), "--text", "later", "--in", "2h")["_id"]

    def until(self, found):
        """Calls `found` until its result is true. Returns the result."""
        for _ in range(1200):
            if result := found():
                return result
            self.assertFalse(self.daemon.wait_end(0.05), "the daemon ended")
        self.fail("the condition never became true")

    def test_receipt(self):
        letter = self.daemon.ctl("deadletters", "show", self.dead_letter("told"))
        receipt = self.json("receipt", letter["eventId"])
        self.assertIn(letter["_id"], [step.get("deadLetter") for step in receipt["steps"]])
        text = self.people("receipt", letter["eventId"])
        self.assertIn(f"Event {letter['eventId']} of {SHOWN_MALLORY}, session told", text)
        self.assertIn(f"accepted: inject \"{SHOWN}\", by {EMAIL}", text)
        self.assertIn(f"dead letter {letter['_id']}", text)

    def timer(self, name):
        self.say("sleeper", name, "hi", {"Prefer": "respond-async"}, userId=MALLORY)
        return self.until(lambda: next((timer["_id"] for timer in self.daemon.manage("GET", "timers")["items"]
                                        if timer["sessionId"] == name), None))

    # --- Projects ------------------------------------------------------------------------------

    def bundle_file(self):
        return pathlib.Path(self.folder.name) / "bundle.yaml"

    def test_import(self):
        text = self.people("import", self.bundle_file())
        self.assertIn(f"Imported Shop ({self.project})", text)
        self.assertIn(f"Loop \\u202e", text)
        self.assertRegex(text, rf"Endpoint\tweb\t{self.tokens['web']}\n")
        self.assertIn("no problems", self.people("import", "--check", self.bundle_file()))
        self.assertEqual(self.json("import", self.bundle_file()), self.report)

    def test_import_reports_the_lines_of_problems(self):
        path = pathlib.Path(self.folder.name) / "bad.yaml"
        path.write_text(f'conversed: 1\nproject: {{name: P}}\nflows: [{{name: F, nodes: [{{"{RIGHT_TO_LEFT}": Hi}}]}}]\n')
        errors = self.run_ctl("import", path, code=1).stderr
        self.assertRegex(errors, r"bad.yaml:3:\d+: flows")
        self.assertIn(r"\u202e", errors)
        path.write_text("a: [\n")
        self.assertRegex(self.run_ctl("import", path, code=1).stderr, r"bad.yaml:\d+:\d+: is not valid YAML")

    def test_import_shows_warnings_beside_problems(self):
        path = pathlib.Path(self.folder.name) / "warned.yaml"
        path.write_text('conversed: 1\nproject: {name: Shop}\nflows: [{name: F, nodes: [{say: "{{contxt.a}}"}]}]\nmembers: 5\n')
        errors = self.run_ctl("import", path, code=1).stderr
        self.assertRegex(errors, r"warned.yaml:4:\d+: members: ")
        self.assertRegex(errors, r"warned.yaml:3:\d+: warning: Flow 'F', nodes\[0\]: 'contxt' is neither .*did you mean 'context'")
        path.write_text(path.read_text().replace("members: 5\n", ""))
        checked = self.run_ctl("import", "--check", path)
        self.assertIn("no problems", checked.stdout)
        self.assertIn("did you mean 'context'", checked.stderr)

    def test_import_lists_its_changes(self):
        self.assertIn("would change nothing", self.people("import", "--plan", self.bundle_file()))
        path = pathlib.Path(self.folder.name) / "planned.yaml"
        path.write_text(self.bundle_file().read_text().replace("name: loop,", "name: other,"))
        planned = self.people("import", "--plan", path)
        self.assertIn("new\tEndpoint\tother", planned)
        self.assertIn("left over\tEndpoint\tloop", planned)
        self.assertNotIn("changed\t", planned)

    def test_import_refuses_a_file_that_is_not_utf8(self):
        path = pathlib.Path(self.folder.name) / "latin1.yaml"
        path.write_bytes("conversed: 1\nproject: {name: Käse}\n".encode("latin-1"))
        self.assertIn("is not UTF-8", self.run_ctl("import", path, code=1).stderr)

    def test_export(self):
        text = self.people("export", "Shop")
        self.assertIn(r'name: "Loop \u202e"', text)
        self.assertEqual(self.json("export", "Shop")["text"], text)
        self.assertIn("CRM_TOKEN", self.run_ctl("export", self.project).stderr)

    def test_projects_list(self):
        self.row(self.people("projects", "list"), ID=self.project, NAME="Shop")
        self.assertEqual([item["name"] for item in self.json("projects", "list")["items"]], ["Shop"])

    def test_endpoints_list(self):
        self.row(self.people("endpoints", "list"), NAME="web", FLOW="Orders", WEBHOOK="yes", URLTOKEN=self.tokens["web"])
        self.row(self.people("endpoints", "list", "--project", "Shop"), NAME="loop", FLOW=r"Loop \u202e", WEBHOOK="no")
        self.assertEqual({item["name"]: item["URLToken"] for item in self.json("endpoints", "list")["items"]}, self.tokens)

    def test_flows_list(self):
        flow = next(flow for flow in self.report["flows"] if flow["name"] == "Orders")
        self.row(self.people("flows", "list"), ID=flow["_id"], NAME="Orders")
        self.assertIn("Sleeper", [item["name"] for item in self.json("flows", "list", "--project", self.project)["items"]])

    def test_apikey_create(self):
        self.assertRegex(self.people("apikey", "create", "--name", "one"), r"^\S{20,}\n$")
        self.assertEqual(self.json("apikey", "create", "--name", "two")["user"], EMAIL)

    def test_apikey_list(self):
        key = self.daemon.ctl("apikey", "create", "--name", RIGHT_TO_LEFT)["_id"]
        row = self.row(self.people("apikey", "list"), ID=key, USER=EMAIL, NAME=r"\u202e")
        self.assertRegex(row["CREATED"], f"^{TIME}$")
        self.assertIn(key, [item["_id"] for item in self.json("apikey", "list")["items"]])

    def test_apikey_revoke(self):
        first, second = (self.daemon.ctl("apikey", "create", "--name", "short-lived")["_id"] for _ in range(2))
        self.assertEqual(self.people("apikey", "revoke", first), f"Revoked {first}\n")
        self.assertEqual(self.json("apikey", "revoke", second), {})

    # --- Accounts ------------------------------------------------------------------------------

    def test_user_add(self):
        text = self.people("user", "add", "ann@example.com", "--roles", "projectAdmin", "--project", "Shop")
        self.assertRegex(text, rf"^Added ann@example.com \({ID}\), without a password")
        made = self.json("user", "add", "bea@example.com", "--password-stdin", input=NEW_PASSWORD + "\n")
        self.assertEqual(made["email"], "bea@example.com")
        of_project = "projectAdmin, tokenAdmin, memberManager, conversationAdmin, proactiveAdmin, connectionAdmin"
        refused = self.run_ctl("user", "add", "cy@example.com", "--roles", "foo", code=1).stderr
        self.assertIn(f"there is no role foo; there are: {of_project}, userAdmin, platformAdmin\n", refused)
        refused = self.run_ctl("user", "add", "cy@example.com", "--roles", "userAdmin", "--project", "Shop", code=1).stderr
        self.assertIn(f"there is no role userAdmin in a project; there are: {of_project}\n", refused)
        for command in ("add", "roles"):
            self.assertIn(f"of {of_project}, userAdmin, platformAdmin", " ".join(help_of(("user", command)).split()))

    def test_user_list(self):
        self.daemon.ctl("user", "add", "cleo@example.com", "--name", RIGHT_TO_LEFT, "--roles", "userAdmin,projectAdmin")
        self.row(self.people("user", "list"), EMAIL="cleo@example.com", NAME=r"\u202e", PASSWORD="no",
                 ROLES="userAdmin,projectAdmin")
        self.row(self.people("user", "list"), EMAIL=EMAIL, PASSWORD="yes")
        self.assertIn("cleo@example.com", [user["email"] for user in self.json("user", "list")["items"]])

    def test_user_passwd(self):
        self.daemon.ctl("user", "add", "dora@example.com")
        options = {"input": NEW_PASSWORD + "\n"}
        self.assertEqual(self.people("user", "passwd", "dora@example.com", "--password-stdin", **options),
                         "Changed the password of dora@example.com\n")
        self.assertEqual(self.json("user", "passwd", "dora@example.com", "--password-stdin", **options), {})
        self.assertIn("no password on standard input",
                      self.run_ctl("user", "passwd", "dora@example.com", "--password-stdin", input="", code=1).stderr)

    def test_user_roles(self):
        self.daemon.ctl("user", "add", "finn@example.com")
        self.assertEqual(self.people("user", "roles", "Finn@example.com", "--roles", "tokenAdmin,userAdmin"),
                         "The roles of finn@example.com in the organisation: tokenAdmin,userAdmin\n")
        self.row(self.people("user", "list"), EMAIL="finn@example.com", ROLES="tokenAdmin,userAdmin")
        self.assertEqual(self.json("user", "roles", "finn@example.com", "--roles", "")["roles"], [])
        self.assertEqual(self.people("user", "roles", "finn@example.com", "--roles", ""),
                         "The roles of finn@example.com in the organisation: none\n")

    def test_user_remove(self):
        ids = [self.daemon.ctl("user", "add", f"{name}@example.com")["_id"] for name in ("gus", "gil")]
        self.assertEqual(self.people("user", "remove", "gus@example.com"),
                         "Removed gus@example.com and ended the user's keys and tokens\n")
        self.assertEqual(self.json("user", "remove", ids[1]), {})
        self.assertIn("there is no user 'gus@example.com'", self.run_ctl("user", "remove", "gus@example.com", code=1).stderr)

    def test_oauth_client_add(self):
        text = self.people("oauth-client", "add", "--name", "one", "--password-grant")
        self.assertRegex(text, rf"^Client id: +{ID}\nClient secret: \S+\nKeep it")
        made = self.json("oauth-client", "add", "--name", "two", "--public", "--redirect-uri", "https://shop.example/back")
        self.assertIsNone(made["clientSecret"])

    def test_oauth_client_list(self):
        uris = ("https://a.example/back", "https://b.example/back")
        made = self.daemon.ctl("oauth-client", "add", "--name", RIGHT_TO_LEFT, "--public", "--redirect-uri", uris[0],
                               "--redirect-uri", uris[1])
        self.row(self.people("oauth-client", "list"), ID=made["clientId"], NAME=r"\u202e", KIND="public",
                 PASSWORD_GRANT="no", REDIRECT_URIS=",".join(uris))
        self.assertIn(made["clientId"], [item["clientId"] for item in self.json("oauth-client", "list")["items"]])

    def test_oauth_client_remove(self):
        first, second = (self.daemon.ctl("oauth-client", "add", "--name", "gone", "--password-grant")["clientId"]
                         for _ in range(2))
        self.assertEqual(self.people("oauth-client", "remove", first), f"Removed {first} and ended its tokens\n")
        self.assertEqual(self.json("oauth-client", "remove", second), {})

    def test_organisation_add(self):
        def add(run, name):
            return run("organisation", "add", name, "--admin", f"{name}@example.com", "--password-stdin",
                       input=NEW_PASSWORD + "\n")
        self.assertRegex(add(self.people, "one"), rf"^Added one \({ID}\)\n$")
        self.assertEqual(add(self.json, "two")["name"], "two")

    def test_organisation_domains(self):
        self.daemon.ctl("organisation", "add", "three", "--admin", "three@three.example", "--password-stdin",
                        input=NEW_PASSWORD + "\n")
        domains = ("--domains", "three.example,3.example")
        self.assertEqual(self.people("organisation", "domains", "Test", *domains),
                         "The e-mail domains of Test: 3.example,three.example\n"
                         "A user of another organisation keeps three@three.example\n")
        self.row(self.people("organisation", "list"), NAME="Test", DOMAINS="3.example,three.example")
        self.assertEqual(self.json("organisation", "domains", "Test", "--domains", "")["domains"], [])
        self.assertEqual(self.people("organisation", "domains", "Test", "--domains", ""), "The e-mail domains of Test: none\n")

    def test_organisation_list(self):
        self.inject("web", "counted", text="hi")
        row = self.row(self.people("organisation", "list"), NAME="Test")
        self.assertGreater(int(row["INJECTS"]), 0)
        self.assertEqual(int(row["MODEL TOKENS"]), 0)
        self.assertRegex(row["MONTH"], r"^\d{4}-\d\d$")
        self.assertIn("Test", [item["name"] for item in self.json("organisation", "list")["items"]])

    # --- Conversations -------------------------------------------------------------------------

    def test_inject(self):
        self.assertRegex(self.people("inject", *self.session("web", "injected"), "--text", "hi"), rf"^Accepted as {ID}\n$")
        self.assertRegex(self.json("inject", *self.session("web", "injected"), "--data", '{"event": "packed"}')["_id"], ID)
        text = self.people("inject", *self.session("web", "injected"), "--text", "hi", "--cron", "0 9 * * mon-fri",
                           "--preview")
        self.assertRegex(text, rf"^The message would come at\n(  {TIME}\n){{10}}$")
        text = self.people("inject", *self.session("web", "injected"), "--text", "hi", "--in", "1h")
        self.assertRegex(text, rf"^Scheduled as {ID}; it comes at\n  {TIME}\n$")

    def test_chat(self):
        text = self.people("chat", self.tokens["web"], "--user", MALLORY, input=HOSTILE + "\n")
        self.assertIn(f"< You said: {SHOWN}\n", text)
        said = self.run_ctl("--json", "chat", self.tokens["web"], input="one\ntwo\n").stdout.splitlines()
        self.assertEqual([json.loads(line)["text"] for line in said][1:], ["You said: one", "You said: two"])
        self.json("chat", self.tokens["sleeper"], input="hi\n")

    def test_chat_indents_further_lines_of_a_text(self):
        self.say("web", "lines", "hi")
        self.inject("web", "lines", data={"event": "a\n< b"})
        self.assertTrue(self.outputs("web", "lines", after=2, wait=30))
        text = self.people("chat", self.tokens["web"], "--user", "user of lines", "--session", "lines", input="")
        self.assertIn("< Something happened to your order: a\n  < b.\n", text)

    def test_sessions_list(self):
        self.say("web", "listed", "hi for the list", userId=MALLORY)
        text = self.people("sessions", "list")
        row = self.row(text, ENDPOINT="web", USER=SHOWN_MALLORY, SESSION="listed", STATE="idle", INBOX="0", OUTPUTS="2")
        self.assertRegex(row["LAST ACTIVITY"], f"^{TIME}$")
        self.assertEqual(self.people("sessions", "list", "--project", "Shop", "--limit", "100"), text)
        chosen = ("--endpoint", "web", "--user", MALLORY, "--text", "YOU SAID: hi for")
        self.assertEqual([item["sessionId"] for item in self.json("sessions", "list", *chosen, "--state", "idle")["items"]], ["listed"])
        self.assertEqual(self.people("sessions", "list", *chosen, "--state", "busy"), "No sessions.\n")
        self.assertIn("listed", [item["sessionId"] for item in self.json("sessions", "list")["items"]])

    def test_sessions_show(self):
        self.say("web", "shown", HOSTILE, userId=MALLORY)
        shown = self.people("sessions", "show", *self.session("web", "shown", MALLORY))
        self.assertEqual(sheet(shown)["outputs/1/text"], f"You said: {SHOWN}")
        self.assertRegex(sheet(shown)["lastActivityAt"], f"^{TIME}$")
        whole = self.json("sessions", "show", *self.session("web", "shown", MALLORY))
        self.assertEqual(whole["outputs"][-1]["text"], f"You said: {HOSTILE}")

    def test_sessions_reset(self):
        self.say("web", "reset", "hi")
        self.assertEqual(self.people("sessions", "reset", *self.session("web", "reset")),
                         "Reset. The events in its inbox run now.\n")
        self.assertEqual(self.json("sessions", "reset", *self.session("web", "reset")), {})

    def test_deadletters_list(self):
        letter = self.dead_letter("listed letter")
        row = self.row(self.people("deadletters", "list"), ID=letter, STATE="new", TYPE="inject", USER=SHOWN_MALLORY,
                       SESSION="listed letter")
        self.assertRegex(row["CREATED"], f"^{TIME}$")
        self.assertIn(r"\u202e", row["REASON"])
        self.run_ctl("deadletters", "discard", letter)
        for state in ("all", "discarded"):
            self.row(self.people("deadletters", "list", "--state", state, "--project", "Shop"), ID=letter, STATE="discarded")
            self.assertIn(letter, [item["_id"] for item in self.json("deadletters", "list", "--state", state)["items"]])
        self.assertNotIn(letter, self.people("deadletters", "list", "--state", "new", "--limit", "100"))

    def test_deadletters_show(self):
        letter = self.dead_letter("shown letter")
        shown = sheet(self.people("deadletters", "show", letter))
        self.assertEqual((shown["text"], shown["userId"]), (SHOWN, SHOWN_MALLORY))
        whole = self.json("deadletters", "show", letter)
        self.assertEqual((whole["text"], whole["userId"]), (HOSTILE, MALLORY))

    def test_deadletters_groups(self):
        self.dead_letter("grouped letter")
        row = self.row(self.people("deadletters", "groups", "--project", "Shop"), WHAT="event", FLOW=r"Loop \u202e 1")
        self.assertGreater(int(row["COUNT"]), 0)
        group = next(each for each in self.json("deadletters", "groups")["items"] if each["flow"] == f"Loop {RIGHT_TO_LEFT}")
        self.assertEqual((group["flowVersion"], group["kind"]), (1, "event"))
        chosen = ("--flow", group["flow"], "--flow-version", "1", "--node", group["node"], "--reason", group["reason"])
        self.assertIn("grouped letter", self.people("deadletters", "list", "--limit", "100", *chosen))
        self.assertEqual(self.people("deadletters", "list", "--node", "elsewhere"), "No dead letters.\n")

    def test_deadletters_try(self):
        letter = self.dead_letter("tried letter")
        tried = self.json("deadletters", "try", letter, "--flow-version", "1")
        self.assertEqual((tried["flow"], tried["flowVersion"], tried["outputs"]), (f"Loop {RIGHT_TO_LEFT}", 1, []))
        self.assertIn(tried["failedAt"], tried["error"])
        self.assertEqual({node["node"] for node in tried["nodes"]}, {tried["failedAt"], "nodes[1]"})
        text = self.people("deadletters", "try", letter, "--answers", "[]")
        loop = r"Loop \u202e"
        self.assertIn(f"Flow {loop}, version 1\n  {loop}: {tried['failedAt']} addToContext", text)
        self.assertIn("context.said: nothing -> ", text)
        self.assertIn(f"! fails at {tried['failedAt']}: ", text)
        self.assertEqual(self.daemon.ctl("deadletters", "show", letter)["state"], "new")
        self.assertIn("no such version", self.run_ctl("deadletters", "try", letter, "--flow-version", "99", code=1).stderr)
        self.assertIn("--answers", self.run_ctl("deadletters", "try", letter, "--answers", "{", code=1).stderr)

    def test_dead_letters_that_options_choose_are_replayed_and_discarded(self):
        name = "chosen letter"
        first = self.dead_letter(name)
        chosen = self.session("loop", name, MALLORY)
        self.assertEqual(self.people("deadletters", "replay", *chosen), "1 changed, 0 skipped\n")
        self.until(lambda: self.daemon.manage("GET", f"deadletters/{first}")["state"] == "replayed")
        self.letter_of(name)
        job = self.json("deadletters", "discard", *chosen)
        self.assertEqual((job["type"], job["status"], job["data"]["changed"]), ("discardDeadLetters", "done", 1))
        begun = self.people("deadletters", "discard", *chosen, "--background")
        self.assertRegex(begun, f"^Begun. Follow it by: conversectl jobs watch {ID}\n$")
        self.assertIn("--all", self.run_ctl("deadletters", "replay", "--project", "Shop", code=2).stderr)

    def test_deadletters_replay(self):
        letter = self.dead_letter("first replayed")
        self.assertIn("Appended again", self.people("deadletters", "replay", letter))
        self.assertNotEqual(self.letter_of("first replayed"), letter, "the failed replay made no new dead letter")
        letter = self.dead_letter("second replayed")
        self.assertRegex(self.json("deadletters", "replay", letter)["_id"], ID)
        self.row(self.people("deadletters", "list", "--state", "replayed"), ID=letter, STATE="replayed")

    def test_deadletters_discard(self):
        self.assertEqual(self.people("deadletters", "discard", self.dead_letter("first discarded")), "Discarded.\n")
        self.assertEqual(self.json("deadletters", "discard", self.dead_letter("second discarded")), {})

    # --- Data ----------------------------------------------------------------------------------

    def test_backup(self):
        text = self.people("backup", "--name", "named")
        self.assertRegex(text, r"^Made \S+/named \(\d+ bytes\), on the daemon's machine.\nThe master key")
        self.assertGreater(self.json("backup")["bytes"], 0)

    def test_restore(self):
        backup = self.daemon.ctl("backup", "--name", "restored")["path"]
        key = pathlib.Path(self.folder.name) / "data" / "master.key"
        for number, run in enumerate((self.people, self.json)):
            folder = pathlib.Path(self.folder.name) / f"restored {number}"
            settings = pathlib.Path(self.folder.name) / f"restored {number}.yaml"
            settings.write_text(f"data_dir: {folder}\n")
            done = run("restore", backup, "--config", settings, "--key", key)
            self.assertTrue((folder / "store.db").exists())
            if run == self.people:
                self.assertEqual(done, f"Restored {backup} into {folder}. The daemon can be started.\n")
            else:
                self.assertEqual(done["dataDir"], str(folder))

    def test_rotate_key(self):
        self.assertRegex(self.people("rotate-key"), r"^The master key is number \d+ now; \d+ secrets were sealed with it")
        self.assertGreater(self.json("rotate-key")["resealed"], 0)

    def test_webhook_secret(self):
        self.assertRegex(self.people("webhook-secret"), r"^whsec_[\w+/]{32,}=*\n$")
        self.assertRegex(self.json("webhook-secret")["secret"], r"^whsec_")

    def test_users_data_export(self):
        self.say("web", "exported", HOSTILE, userId=MALLORY)
        exported = json.loads(self.people("users-data", "export", MALLORY, "--project", "Shop"))
        self.assertEqual(exported["userId"], MALLORY)
        self.assertIn("exported", json.dumps(exported["items"]))
        self.assertEqual(self.json("users-data", "export", MALLORY)["userId"], MALLORY)

    def test_users_data_erase(self):
        for run, user in ((self.people, "eva"), (self.json, "eve")):
            self.say("web", f"session of {user}", "hi", userId=user)
            self.until(lambda: "lag" not in self.daemon.status()[0])  # an erasure conflicts with unfinished events
            erased = run("users-data", "erase", user, "--project", self.project)
            if run == self.people:
                self.assertRegex(erased, "^Erased 1 sessions with 2 outputs, ")
            else:
                self.assertEqual((erased["sessions"], erased["outputs"]), (1, 2))

    # --- Flows ---------------------------------------------------------------------------------

    def test_flow_check(self):
        self.assertEqual(self.people("flow", "check", SOURCE / "config" / "demo" / "shop.yaml").count("no findings"), 1)
        path = pathlib.Path(self.folder.name) / "warned.yaml"
        path.write_text(f'conversed: 1\nproject: {{name: P}}\nflows: [{{name: F, nodes: [{{"{RIGHT_TO_LEFT}": Hi}}]}}]\n')
        self.assertRegex(self.people("flow", "check", path, code=1), r"warned.yaml:3:\d+: error: .*\\u202e")
        self.assertEqual([(found["line"], found["severity"]) for found in self.json("flow", "check", path, code=1)],
                         [(3, "error")])

    def test_flow_new(self):
        for number, run in enumerate((self.people, self.json)):
            path = pathlib.Path(self.folder.name) / f"new{number}.yaml"
            made = run("flow", "new", path)
            tests = path.with_suffix(".test.yaml")
            if run == self.people:
                self.assertTrue(made.startswith(f"Wrote {path} and {tests}. Go on with:\n"), made)
            else:
                self.assertEqual(made, {"bundle": str(path), "tests": str(tests)})
            self.assertTrue(path.exists() and tests.exists())

    def test_flow_schema(self):
        bundle = json.loads(self.people("flow", "schema"))
        self.assertEqual(bundle, self.json("flow", "schema", "bundle"))
        self.assertEqual(self.daemon.request("GET", "/schemas/bundle.json")[:2], (200, bundle))
        test = self.json("flow", "schema", "test")
        self.assertEqual(set(test["required"]), {"bundle", "tests"})
        self.assertEqual(self.daemon.request("GET", "/schemas/test.json")[:2], (200, test))

    def test_flow_chat(self):
        path = pathlib.Path(self.folder.name) / "chat.yaml"
        path.write_text("conversed: 1\nproject: {name: P}\nflows: [{name: F, nodes: [{say: \"You said {{input.text}}.\"}]}]\n")
        line = f"{HOSTILE}\n"
        self.assertEqual(self.people("flow", "chat", path, input=line), f"> {SHOWN}\n< You said {SHOWN}.\n")
        self.assertEqual(self.json("flow", "chat", path, input=line), {"text": f"You said {HOSTILE}.", "data": None})

    def test_flow_graph(self):
        of_daemon = self.people("flow", "graph", "Orders", "--project", "Shop")
        self.assertTrue(of_daemon.startswith("flowchart"), of_daemon)
        self.assertIn("How many stars", of_daemon)
        self.assertEqual(self.people("flow", "graph", self.bundle_file(), "Orders"), of_daemon)
        self.assertEqual(self.people("flow", "graph", self.bundle_file()), of_daemon)
        self.assertEqual(self.people("flow", "graph", self.report["flows"][0]["_id"]).split()[0], of_daemon.split()[0])
        self.assertTrue(self.people("flow", "graph", f"Loop {RIGHT_TO_LEFT}", "--format", "dot").startswith("digraph"))
        for source in (("Orders",), (self.bundle_file(), "Orders")):
            self.assertEqual(self.json("flow", "graph", *source),
                             {"name": "Orders", "format": "mermaid", "text": of_daemon})
        self.assertIn("there is no Flow 'Ordres'; there are: ", self.run_ctl("flow", "graph", "Ordres", code=1).stderr)

    def test_flow_test(self):
        path = SOURCE / "tests" / "flows" / "faq.test.yaml"
        text = self.people("flow", "test", path)
        count = len(re.findall(r"^ok    .*: .* \([\d.e-]+ ms\)$", text, re.MULTILINE))
        self.assertGreater(count, 0, text)
        report = self.json("flow", "test", path)
        self.assertEqual([(suite["file"], suite["passed"], len(suite["tests"])) for suite in report],
                         [(str(path), True, count)])

    def test_flow_versions(self):
        self.load(self.bundle.replace("Good night.", "Sleep well."))
        newest = self.json("flow", "versions", "Sleeper")["items"][0]["version"]
        row = self.row(self.people("flow", "versions", "Sleeper"), VERSION=str(newest), BY=EMAIL, ROLLBACK_TO="-")
        self.assertRegex(row["CREATED"], f"^{TIME}$")

    def test_flow_diff(self):
        self.load(self.bundle.replace("Sorry, a number", f"{RIGHT_TO_LEFT}A number"))
        text = self.people("flow", "diff", "Orders")
        self.assertRegex(text, r"^Orders: version \d+ to \d+\n")
        self.assertIn(r'-> "\u202eA number', text)
        self.assertEqual(self.json("flow", "diff", "Orders")["changes"][0]["change"], "changed")

    def test_flow_rollback(self):
        first = self.daemon.ctl("flow", "versions", "Sleeper")["items"][-1]["version"]
        for run, other in ((self.people, "One."), (self.json, "Two.")):
            self.load(self.bundle.replace("Good night.", other))
            done = run("flow", "rollback", "Sleeper", first)
            if run == self.people:
                self.assertRegex(done, rf"^Sleeper is at version \d+, which is equal to version {first}\n$")
            else:
                self.assertEqual(done["restoredFrom"], first)

    def test_flow_ramp(self):
        path = pathlib.Path(self.folder.name) / "held.yaml"
        for run, text in ((self.people, "Once."), (self.json, "Twice.")):
            path.write_text(self.bundle.replace("Good night.", text).replace("UPSTREAM", self.upstream.url))
            held = [flow for flow in self.daemon.ctl("import", "--hold", str(path))["flows"] if flow["name"] == "Sleeper"][0]["version"]
            done = run("flow", "ramp", "Sleeper", held, "10%", "--max-errors", "2%")
            stopped = run("flow", "ramp", "Sleeper", "--stop")
            if run == self.people:
                self.assertIn(f"A ramp gives version {held} to 10 % of the sessions", done)
                self.assertIn(f"The ramp of version {held} was stopped", stopped)
            else:
                self.assertEqual((done["version"], done["share"], done["maxErrors"]), (held, 10, 2))
                self.assertEqual(stopped["ending"], "stopped")

    # --- Deletions -----------------------------------------------------------------------------

    def with_spare(self, parts):
        """Imports the bundle with two more Flows, and maybe two Endpoints."""
        flows = "".join(f"  - {{name: Spare {n}, nodes: [{{say: hi}}]}}\n" for n in (1, 2))
        endpoints = "".join(f"  - {{name: spare {n}, flow: Spare {n}}}\n" for n in (1, 2)) if parts == "endpoints" else ""
        self.addCleanup(self.load, self.bundle)
        self.load(self.bundle.replace("\nendpoints:\n", f"\n{flows}endpoints:\n{endpoints}", 1))

    def test_flows_delete(self):
        self.with_spare("flows")
        self.assertIn("\n  Flow Sleeper: the Endpoint sleeper runs it; ", self.run_ctl("flows", "delete", "Sleeper", code=1).stderr)
        self.row(self.people("flows", "delete", "Sleeper", "--preview", code=1), TO_DELETE="Flow", NAME="Sleeper",
                 USED_BY="the Endpoint sleeper runs it; give the Endpoint another Flow, or delete the Endpoint")
        self.assertIn("can be deleted", self.people("flows", "delete", "Spare 1", "--preview"))
        self.assertEqual(self.people("flows", "delete", "Spare 1"), "Deleted the Flow Spare 1\n")
        self.assertEqual(self.json("flows", "delete", "Spare 2")["usages"], [])
        self.assertNotIn("Spare", self.people("flows", "list"))

    def test_endpoints_delete(self):
        self.with_spare("endpoints")
        self.schedule("kept endpoint")
        self.assertRegex(self.run_ctl("endpoints", "delete", "web", code=1).stderr, r"\n  Endpoint web: scheduled injects: \d+; ")
        self.assertEqual(self.people("endpoints", "delete", "spare 1"), "Deleted the Endpoint spare 1\n")
        self.assertEqual(self.json("endpoints", "delete", "spare 2")["name"], "spare 2")
        self.assertNotIn("spare", self.people("endpoints", "list"))
        for name in ("Spare 1", "Spare 2"):
            self.people("flows", "delete", name)

    def test_projects_delete(self):
        bundle = "conversed: 1\nproject: {name: Spare, locales: [en]}\nflows: [{name: Main, nodes: [{say: hi}]}]\nendpoints: [{name: web, flow: Main}]\n"
        self.load(bundle)
        self.addCleanup(self.load, self.bundle)
        made = self.json("inject", "--project", "Spare", "--endpoint", "web", "--user", "ann", "--session", "s", "--text", "x", "--in", "1h")
        self.assertIn("\n  Endpoint web: scheduled injects: 1; cancel them", self.run_ctl("projects", "delete", "Spare", code=1).stderr)
        self.row(self.people("projects", "delete", "Spare", "--preview", code=1), TO_DELETE="Endpoint", NAME="web",
                 USED_BY="scheduled injects: 1; cancel them")
        self.people("schedules", "cancel", made["_id"])
        self.assertIn("can be deleted", self.people("projects", "delete", "Spare", "--preview"))
        self.assertEqual(self.people("projects", "delete", "Spare"), "Deleted the project Spare\n")
        self.assertNotIn("Spare", self.people("projects", "list"))
        self.load(bundle)
        self.assertEqual(self.json("projects", "delete", "Spare")["name"], "Spare")
        self.assertIn("deleteProject", self.people("audit", "--limit", "20"))

    # --- Connections ---------------------------------------------------------------------------

    def test_connections_list(self):
        self.row(self.people("connections", "list", "--project", "Shop"), TYPE="httpBearer", NAME="crm")
        self.assertEqual([item["name"] for item in self.json("connections", "list")["items"]], ["crm"])

    def test_connections_usages(self):
        self.say("web", "uses crm", "hi", userId=MALLORY)
        text = self.people("connections", "usages", "crm")
        self.assertIn("crm (httpBearer), for ", text)
        flows, sessions = re.split(r"(?:at least )?\d+ sessions? may reach these Nodes\n", text.split("\n", 1)[1])
        self.assertEqual(rows(flows)[0]["FLOW"], "Orders")
        row = self.row(sessions, USER=SHOWN_MALLORY, SESSION="uses crm")
        self.assertRegex(row["LAST ACTIVITY"], f"^{TIME}$")
        usages = self.json("connections", "usages", self.report["connections"][0]["_id"], "--limit", "1")
        self.assertEqual(len(usages["sessions"]["items"]), 1)
        if usages["sessions"]["next"] is not None:
            self.assertIn("more with --after ", self.run_ctl("connections", "usages", "crm", "--limit", "1").stderr)

    # --- Time ----------------------------------------------------------------------------------

    def test_schedules_list(self):
        once = self.schedule("listed schedule")
        rule = self.daemon.ctl("inject", *self.session("web", "rule"), "--text", "x", "--cron", "0 9 * * *", "--timezone",
                               "Europe/Berlin")["_id"]
        text = self.people("schedules", "list", "--project", "Shop")
        row = self.row(text, ID=once, USER=SHOWN_MALLORY, SESSION="listed schedule", RULE="once")
        self.assertRegex(row["COMES"], f"^{TIME}$")
        self.row(text, ID=rule, RULE="0 9 * * * Europe/Berlin")
        self.assertIn(once, [item["_id"] for item in self.json("schedules", "list")["items"]])

    def test_schedules_show(self):
        schedule = self.schedule("shown schedule")
        shown = sheet(self.people("schedules", "show", schedule))
        self.assertEqual((shown["userId"], shown["text"]), (SHOWN_MALLORY, "later"))
        self.assertEqual(self.json("schedules", "show", schedule)["userId"], MALLORY)

    def test_schedules_preview(self):
        schedule = self.schedule("previewed")
        self.assertRegex(self.people("schedules", "preview", schedule), rf"^  {TIME}\n$")
        self.assertEqual(len(self.json("schedules", "preview", schedule)["next"]), 1)

    def test_schedules_cancel(self):
        self.assertEqual(self.people("schedules", "cancel", self.schedule("first cancelled")), "Cancelled.\n")
        self.assertEqual(self.json("schedules", "cancel", self.schedule("second cancelled")), {})

    def test_schedules_reschedule(self):
        schedule = self.schedule("moved")
        self.assertRegex(self.people("schedules", "reschedule", schedule, "--in", "3h", "--preview"),
                         rf"^The message would come at\n  {TIME}\n$")
        self.assertRegex(self.people("schedules", "reschedule", schedule, "--in", "3h"), f"^Scheduled as {schedule}; ")
        self.assertEqual(self.json("schedules", "reschedule", schedule, "--cron", "0 9 * * *")["cron"], "0 9 * * *")

    def test_timers_list(self):
        timer = self.timer("listed timer")
        row = self.row(self.people("timers", "list", "--project", "Shop"), ID=timer, KIND="sleep", USER=SHOWN_MALLORY,
                       SESSION="listed timer")
        self.assertRegex(row["DUE"], f"^{TIME}$")
        self.timer("another timer")
        self.assertRegex(self.run_ctl("timers", "list", "--limit", "1").stderr, r"^more with --after \S+\n$")
        self.assertEqual(len(self.json("timers", "list", "--limit", "1")["items"]), 1)
        self.assertEqual(self.people("timers", "list", *self.session("web", "none")), "No timers.\n")

    def test_timers_cancel(self):
        self.schedule("cancelled timer")
        self.schedule("cancelled timer")
        options = ("--kind", "schedule", *self.session("web", "cancelled timer", MALLORY))
        first, second = (timer["_id"] for timer in self.daemon.ctl("timers", "list", *options)["items"])
        self.assertEqual(self.people("timers", "cancel", first), "Cancelled.\n")
        self.assertEqual(self.json("timers", "cancel", second), {})

    def test_timers_reschedule(self):
        timer = self.timer("moved timer")
        self.row(self.people("timers", "reschedule", timer, "--in", "2h"), ID=timer, KIND="sleep", SESSION="moved timer")
        self.assertEqual(self.json("timers", "reschedule", timer, "--in", "3h")["_id"], timer)

    def test_audit(self):
        key = self.daemon.ctl("apikey", "create", "--name", "audited")["_id"]
        self.daemon.ctl("apikey", "revoke", key)
        text = self.people("audit", "--actor", EMAIL, "--operation", "revokeApiKey")
        self.row(text, WHO=EMAIL, OPERATION="revokeApiKey", STATUS="204", OBJECT=f"keyId={key}")
        self.row(self.people("audit", "--about", key), OPERATION="revokeApiKey", OBJECT=f"keyId={key}")
        self.dead_letter("audited")
        self.daemon.ctl("users-data", "export", MALLORY)
        self.assertIn(SHOWN_MALLORY, self.people("audit", "--operation", "exportUserData"))
        entry = self.json("audit", "--operation", "revokeApiKey", "--limit", "1")["items"][0]
        self.assertEqual((entry["actor"], entry["object"], entry["status"]), (EMAIL, f"keyId={key}", 204))

    def test_version(self):
        version = self.daemon.ctl("status")["version"]
        url = f"http://127.0.0.1:{self.daemon.ports['api']}"
        self.assertEqual(self.people("--version"), f"conversectl {version}\nconversed {version} at {url}\n")
        self.assertEqual(self.json("--version"), {"version": version, "daemon": version})
        alone = subprocess.run([CTL, "--version"], capture_output=True, text=True, timeout=60, env={})
        self.assertEqual((alone.returncode, alone.stdout, alone.stderr), (0, f"conversectl {version}\n", ""))

    def test_completion(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.people("completion", shell)
            self.assertIn("__complete", script)
            self.assertEqual(self.json("completion", shell), {"shell": shell, "script": script})

    def test_tokens_create(self):
        made = self.run_ctl("tokens", "create", "--name", "script", "--scope", "read", "--scope", "userAdmin", "--expires", "2h")
        self.ran.add(("people", "tokens", "create"))
        self.assertRegex(made.stdout, r"^cvm_\S{80,}\n$")
        self.assertIn("Keep it: it is not shown again.", made.stderr)
        self.assertEqual(self.json("tokens", "create", "--name", "x", "--scope", "all")["scopes"], ["all"])

    def test_tokens_list(self):
        token = self.daemon.ctl("tokens", "create", "--name", RIGHT_TO_LEFT, "--scope", "read")
        row = self.row(self.people("tokens", "list"), ID=token["_id"], USER=EMAIL, SCOPES="read", NAME=r"\u202e")
        self.assertRegex(row["EXPIRES"], f"^{TIME}$")
        self.assertNotIn(token["token"], json.dumps(self.json("tokens", "list")))

    def test_tokens_revoke(self):
        first, second = (self.daemon.ctl("tokens", "create", "--name", "short-lived", "--scope", "all")["_id"] for _ in range(2))
        self.assertEqual(self.people("tokens", "revoke", first), f"Revoked {first}\n")
        self.assertEqual(self.json("tokens", "revoke", second), {})

    def with_home(self):
        """Gives conversectl a folder for its login, which the test removes."""
        home = tempfile.TemporaryDirectory(prefix="conversed-home-")
        self.addCleanup(home.cleanup)
        self.daemon.environment["XDG_CONFIG_HOME"] = home.name
        self.addCleanup(self.daemon.environment.pop, "XDG_CONFIG_HOME")

    def test_login(self):
        self.with_home()
        url = f"http://127.0.0.1:{self.daemon.ports['api']}"
        self.assertRegex(self.people("login", url), rf"^Signed in at {url} as {EMAIL} until {TIME}\n$")
        self.assertEqual(self.json("login")["email"], EMAIL)

    def test_logout(self):
        self.with_home()
        url = f"http://127.0.0.1:{self.daemon.ports['api']}"
        self.run_ctl("login")
        self.assertEqual(self.people("logout", url), f"Signed out at {url}\n")
        self.run_ctl("login")
        self.assertEqual(self.json("logout"), {"url": url})
        self.assertIn("you are not signed in", self.run_ctl("logout", code=1).stderr)

    def test_status(self):
        shown = sheet(self.people("status"))
        self.assertEqual(shown["store/healthy"], "yes")
        self.assertEqual(self.json("status")["version"], shown["version"])


class Completeness(unittest.TestCase):
    def test_every_command_has_a_test_that_runs_it_for_people_and_for_programs(self):
        tests = {name for case in (Commands, test_ctl_deliveries.DeliveryCommands, test_ctl_jobs.JobCommands, test_flow_replay.FlowReplay) for name in dir(case)}
        untested = ["conversectl " + " ".join(path) for path in commands() if test_name(path) not in tests]
        self.assertEqual(untested, [], f"write a test of each in {__file__}")


if __name__ == "__main__":
    unittest.main()
