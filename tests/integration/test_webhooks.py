"""The receivers of docs/webhooks.md accept only genuine deliveries, and the OpenAPI document describes each delivery."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

from case import SECRET, DaemonCase, Receiver
from ports import free_port  # case.py adds its folder to the path

NODE = shutil.which("node")
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "webhooks.md"
CODE = dict(re.findall(r"```(python|js)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL))
# Headers of every HTTP request.
PLAIN_HEADERS = {"host", "user-agent", "accept", "content-type", "content-length"}
BUNDLE = """
conversed: 1
project: {name: Tests, locales: [en]}
flows:
  - {name: Echo, nodes: [{say: "{{input.text}}"}]}
endpoints:
"""


class Keeper(Receiver):
    """Keeps the headers of the last delivery, with names in lower case."""

    def take(self, headers, body):
        self.headers = {name.lower(): value for name, value in headers.items()}
        super().take(headers, body)


class Webhooks(DaemonCase):
    @classmethod
    def bring_up(cls):
        super().bring_up()
        cls.keeper = Keeper(SECRET)
        cls.addClassCleanup(cls.keeper.stop)
        cls.ports = {"python": free_port(), "js": free_port()}
        urls = {name: f"http://127.0.0.1:{port}/" for name, port in cls.ports.items()}
        cls.bundle = BUNDLE + "\n".join(
            f'  - {{name: {name}, flow: Echo, output: {{webhook: {{url: "{url}", secret: "${{HOOK_SECRET}}"}}}}}}'
            for name, url in {**urls, "kept": cls.keeper.url}.items())

    def post(self, port, body, headers):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", body, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            return refused.code

    def check_receiver(self, name, *command):
        """Checks that the receiver prints a genuine delivery, and that it refuses all others and prints nothing."""
        port = self.ports[name]
        receiver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                    env={**os.environ, "HOOK_SECRET": SECRET, "PORT": str(port)})
        self.addCleanup(receiver.stdout.close)
        self.addCleanup(receiver.wait)
        self.addCleanup(receiver.kill)
        self.assertEqual(self.inject(name, "s", text="grüße")[0], 200)
        sent = json.loads(receiver.stdout.readline())
        self.assertEqual((sent["userId"], sent["sessionId"], sent["output"]["text"]), ("user of s", "s", "grüße"))

        now, body = str(int(time.time())), json.dumps(sent).encode()
        old = str(int(time.time()) - 3600)
        headers = {"webhook-id": "a" * 24, "webhook-timestamp": now}
        signature = Receiver.signature(SECRET, headers, body)
        wrong = {"no signature": headers,
                 "another body's": {**headers, "webhook-signature": Receiver.signature(SECRET, headers, b"{}")},
                 "another key's": {**headers, "webhook-signature": Receiver.signature(
                     "whsec_" + "QUFB" * 8, headers, body)},
                 "another id": {**headers, "webhook-id": "b" * 24, "webhook-signature": signature},
                 "an old one": {**headers, "webhook-timestamp": old, "webhook-signature": Receiver.signature(
                     SECRET, {**headers, "webhook-timestamp": old}, body)}}
        for kind, given in wrong.items():
            self.assertEqual(self.post(port, body, given), 401, kind)
        # After a change of the secret a delivery has two signatures for a while.
        both = {**headers, "webhook-signature": f"v1,{'A' * 43}= {signature}"}
        self.assertEqual(self.post(port, body, both), 204)
        self.assertEqual(json.loads(receiver.stdout.readline()), sent, "the receiver printed a delivery that it refused")

    def test_the_python_receiver_accepts_only_genuine_deliveries(self):
        self.check_receiver("python", sys.executable, "-c", CODE["python"])

    @unittest.skipIf(NODE is None, "Node.js is missing; install Debian's package nodejs")
    def test_the_node_receiver_accepts_only_genuine_deliveries(self):
        self.check_receiver("js", NODE, "-e", CODE["js"])

    def documented(self):
        status, document, _ = self.daemon.request("GET", "/openapi.json")
        self.assertEqual(status, 200)
        reference = document["webhooks"]["output"]["$ref"]
        self.assertEqual(reference, "#/components/pathItems/Delivery")
        return document["components"]["pathItems"]["Delivery"]["post"]

    def check_object(self, value, schema):
        self.assertEqual(set(value), set(schema["properties"]))
        self.assertEqual(set(value), set(schema["required"]))
        types = {"string": str, "object": dict}
        for name, member in schema["properties"].items():
            if "type" in member:
                self.assertIsInstance(value[name], types[member["type"]], name)

    def test_the_openapi_document_describes_a_delivery(self):
        post = self.documented()
        trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "vendor=value"}
        self.assertEqual(self.inject("kept", "s", headers=trace, text="hello")[0], 200)
        self.assertTrue(self.keeper.wait_for(lambda deliveries: deliveries, 60))
        documented = {each["name"].lower(): each for each in post["parameters"]}
        sent = self.keeper.headers
        self.assertEqual(set(sent) - PLAIN_HEADERS, set(documented))
        for name, parameter in documented.items():
            schema = parameter["schema"]
            if schema["type"] == "integer":
                self.assertGreaterEqual(int(sent[name]), schema["minimum"], name)
            else:
                self.assertRegex(sent[name], schema.get("pattern", ".+"), name)
                self.assertLessEqual(len(sent[name]), schema.get("maxLength", len(sent[name])), name)
        body = self.keeper.deliveries[0][2]
        content, = post["requestBody"]["content"].items()
        self.assertTrue(sent["content-type"].startswith(content[0]))
        schema = content[1]["schema"]
        self.check_object(body, schema)
        self.check_object(body["output"], schema["properties"]["output"])
        self.check_object(schema["examples"][0], schema)
        self.assertEqual(set(post["responses"]), {"2XX", "410", "default"})


if __name__ == "__main__":
    unittest.main()
