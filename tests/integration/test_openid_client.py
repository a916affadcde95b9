"""openid-client, an independent OAuth client for Node.js, completes both grants, and refreshes and revokes tokens."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from oauth_case import ANN, ANN_PASSWORD, REDIRECT, OauthCase

HERE = pathlib.Path(__file__).resolve().parent
MODULES = HERE.parent.parent / "build" / "tools" / "node" / "node_modules"
NODE = shutil.which("node")

if NODE is None or not (MODULES / "openid-client").is_dir():
    print("\n!! SKIPPED: openid-client is missing; run `tests/tools/fetch node` and install Debian's package nodejs\n",
          file=sys.stderr)
    sys.exit(77)


class OpenidClient(OauthCase):
    def run_scenario(self, name):
        config = {"url": self.url, "redirect": REDIRECT, "username": ANN, "password": ANN_PASSWORD,
                  "shop": self.shop, "app": self.app,
                  "message": {"URLToken": self.tokens["echo"], "userId": "u", "sessionId": "s", "text": "t"}}
        done = subprocess.run([NODE, HERE / "openid_client.js", name], input=json.dumps(config), text=True,
                              capture_output=True, timeout=120, env={**os.environ, "NODE_PATH": str(MODULES)})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_code_grant_of_a_public_client(self):
        self.run_scenario("codeGrantOfAPublicClient")

    def test_code_grant_of_a_confidential_client(self):
        self.run_scenario("codeGrantOfAConfidentialClient")

    def test_password_grant(self):
        self.run_scenario("passwordGrant")

    def test_codes_are_good_once_and_for_their_verifier_only(self):
        self.run_scenario("codesAreGoodOnceAndForTheirVerifierOnly")

    def test_metadata(self):
        self.run_scenario("metadata")

    def test_revocation(self):
        self.run_scenario("revocation")


if __name__ == "__main__":
    unittest.main()
