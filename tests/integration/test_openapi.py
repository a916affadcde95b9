"""schemathesis compares the daemon's answers with its OpenAPI document.

It runs all of its checks in all of its phases: examples, coverage, fuzzing, stateful. With CONVERSED_NIGHTLY=1 it sends
several thousand requests. CONVERSED_TEST_SEED repeats a run.
"""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import unittest
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parents[1] / "build" / "tools" / "python" / "bin"
if not (TOOLS / "schemathesis").exists():
    print("skipped: schemathesis is missing; run `tests/tools/fetch python`", file=sys.stderr)
    sys.exit(77)

from case import DaemonCase  # noqa: E402
from daemon_process import EMAIL, PASSWORD  # noqa: E402

NIGHTLY = os.environ.get("CONVERSED_NIGHTLY") == "1"
EXAMPLES = 200 if NIGHTLY else 5  # per operation, in each phase that generates examples
SEED = int(os.environ.get("CONVERSED_TEST_SEED") or (random.randrange(2**32) if NIGHTLY else 1))
VICTIM = "victim@example.com"
REDIRECT = "http://127.0.0.1:9/callback"

BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en, de]}
members: [{email: ann@example.com, name: Ann, roles: [conversationAdmin], allowedLocales: [en]}]
connections: [{name: crm, type: httpBearer, fields: {token: "${CRM_TOKEN}"}}]
lexicons:
  - name: Cities
    slots: [city]
    entries:
      - {mainKeyphrase: Paris, keyphrases: [paree, "city of light"], slots: [city], data: {country: FR}}
      - {mainKeyphrase: Berlin, slots: [city]}
knowledgeStores:
  - name: Manual
    sources:
      - name: FAQ
        chunks: [{text: "Returns take 14 days.", data: {page: 3}}, {text: Two}, {text: "=Three"}]
flows:
  - {name: Echo, nodes: [{say: "{{input.text}}"}]}
  - {name: Loop, nodes: [{id: again, addToContext: {count: 1}}, {goTo: again}]}
endpoints:
  - {name: echo, flow: Echo}
  - {name: loop, flow: Loop}
"""

# The probability that schemathesis draws the value of an existing object for a parameter.
KNOWN = 0.6


class AgainstTheDocument(DaemonCase):
    bundle = BUNDLE
    # All requests come from one address, most of them with wrong credentials.
    settings = "sign_in: {account_failures: 1000000, address_failures: 0}\n"

    def known_values(self):
        """Returns values of existing objects for parameters: `place.name` to value."""
        report = self.report
        store = report["knowledgeStores"][0]
        return {
            "path.projectId": report["project"]["_id"],
            "query.projectId": report["project"]["_id"],
            "path.userId": report["members"][0]["_id"],
            "path.connectionId": report["connections"][0]["_id"],
            "path.flowId": report["flows"][0]["_id"],
            "path.lexiconId": report["lexicons"][0]["_id"],
            "path.knowledgeStoreId": store["_id"],
            "path.sourceId": store["sources"][0]["_id"],
            "path.scheduleId": self.schedule,
            "path.timerId": self.schedule,
            "path.deadLetterId": self.letter,
            "path.URLToken": report["endpoints"][0]["urlToken"],
            "query.URLToken": report["endpoints"][0]["urlToken"],
        }

    def settings_of_schemathesis(self, examples):
        lines = [
            f"seed = {SEED}",
            'base-url = "http://127.0.0.1:%d/new"' % self.daemon.ports["api"],
            "continue-on-failure = true",
            "request-timeout = 60",
            '[auth.openapi.APIKeyHeader]', f'api_key = "{self.key}"',
            '[auth.openapi.BasicAuth]', f'username = "{EMAIL}"', f'password = "{PASSWORD}"',
            # The server answers 501 to methods that it does not know (RFC 9110, 15.6.2).
            "[phases.coverage]",
            'unexpected-methods = ["GET", "PUT", "POST", "DELETE", "PATCH", "TRACE"]',
            "[checks]", "enabled = true",
            "[generation]", f"max-examples = {examples}", 'database = "none"',
        ]
        # Values of answers, such as ids and times, differ in each run. With them a seed would not repeat a run.
        for phase in ("examples", "coverage", "fuzzing"):
            lines += [f"[phases.{phase}.extra-data-sources]", "responses = false"]
        lines += ["[phases.fuzzing.error-feedback]", "enabled = false"]
        known = self.known_values()
        for name, value in known.items():
            lines += [f'[dictionaries.{name.replace(".", "-")}]', f'values = ["{value}"]']
        lines.append("[parameters]")
        for name in known:
            lines.append(f'"{name}" = {{dictionary = "{name.replace(".", "-")}", probability = {KNOWN}}}')
        return "\n".join(lines) + "\n"

    def test_the_document_is_valid_openapi(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.daemon.ports['api']}/new/openapi.json", timeout=60) as answer:
            document = answer.read()
        # Only the Python of build/tools has openapi_spec_validator.
        check = "import json, sys, openapi_spec_validator; openapi_spec_validator.validate(json.load(sys.stdin))"
        done = subprocess.run([TOOLS / "python", "-c", check], input=document, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())

    def run_schemathesis(self, *options, examples=EXAMPLES, asked=""):
        """Runs schemathesis. Returns its output, and whether it found no violation. Writes each request to the file `asked`, if
        given."""
        folder = pathlib.Path(self.folder.name) / "schemathesis"
        folder.mkdir()
        victim = self.daemon.ctl("user", "add", VICTIM, "--password-stdin", input="the victim's pass phrase")
        users = {user["email"]: user["_id"] for user in self.daemon.ctl("user", "list")["items"]}
        keys = self.daemon.ctl("apikey", "list")["items"]
        client = self.daemon.ctl("oauth-client", "add", "--name", "Shop", "--redirect-uri", REDIRECT,
                                 "--password-grant")
        self.assertEqual(self.inject("loop", "s", text="a dead letter")[0], 200)
        self.daemon.wait_idle()
        self.letter = self.daemon.ctl("deadletters", "list")["items"][0]["_id"]
        self.schedule = self.daemon.ctl("inject", "--endpoint", self.tokens["echo"], "--user", "u", "--session", "s",
                                        "--text", "later", "--cron", "@yearly")["_id"]
        (folder / "schemathesis.toml").write_text(self.settings_of_schemathesis(examples))
        url = f"http://127.0.0.1:{self.daemon.ports['api']}"
        known = {"key": keys[0]["_id"], "user": users[EMAIL], "email": EMAIL, "password": PASSWORD, "victim": VICTIM,
                 "victimId": victim["_id"], "member": self.report["members"][0]["_id"],
                 "schedule": self.schedule, "project": self.report["project"]["_id"],
                 "locales": [each["_id"] for each in self.report["project"]["locales"]],
                 "URLToken": self.tokens["echo"], "redirectUri": REDIRECT, "bundle": BUNDLE, "url": url,
                 "client": {"client_id": client["clientId"], "client_secret": client["clientSecret"]}}
        print(f"schemathesis with seed {SEED}, {examples} examples an operation and phase", file=sys.stderr)
        done = subprocess.run(
            [TOOLS / "schemathesis", "--no-color", "run", *options, f"{url}/new/openapi.json"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "KNOWN": json.dumps(known), "ASKED": str(asked), "PYTHONPATH": str(HERE),
                 # The order of a set of texts depends on the seed of their hashes.
                 "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "SCHEMATHESIS_HOOKS": "openapi_hooks"})
        return done.stdout, done.returncode == 0

    def test_schemathesis_finds_no_violation(self):
        output, found_no_violation = self.run_schemathesis("--phases", "examples,coverage,fuzzing,stateful")
        print(output, file=sys.stderr)
        self.assertTrue(found_no_violation, "schemathesis found a violation; its report is above")
        self.assertFalse(self.daemon.wait_end(0), "the daemon ended")
        tested = re.search(r"(\d+) generated", output)
        self.assertIsNotNone(tested, "schemathesis did not print the number of requests")
        self.assertGreater(int(tested.group(1)), 600)
        self.assertNotIn("mostly rejected", output, "the document lacks a requirement of an operation")

    def test_the_same_seed_sends_the_same_requests_to_the_same_state(self):
        asked = []
        for _ in range(2):
            class Fresh(AgainstTheDocument):
                pass
            self.addCleanup(Fresh.doClassCleanups)
            Fresh.setUpClass()
            log = pathlib.Path(Fresh.folder.name) / "asked"
            Fresh().run_schemathesis("--phases", "examples,coverage,fuzzing", "--include-path-regex",
                                     "/(endpoint|schedules|timers|snippets|oauth2)", examples=5, asked=log)
            asked.append(log.read_text().splitlines())
        self.assertGreater(len(asked[0]), 100)
        for first, second in zip(*asked):
            self.assertEqual(first, second)
        self.assertEqual(len(asked[0]), len(asked[1]))


if __name__ == "__main__":
    unittest.main()
