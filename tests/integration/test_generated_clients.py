"""Generators make clients from the OpenAPI document: each client compiles as a whole, and injects an event.

The generators are openapi-generator for Python, openapi-python-client, and openapi-typescript with openapi-fetch.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parents[1] / "build" / "tools"
PYTHON = TOOLS / "python" / "bin" / "python"
MODULES = TOOLS / "node" / "node_modules"
JARS = sorted((TOOLS / "openapi_generator" / "jars").glob("openapi-generator-cli-*.jar"))
NODE, JAVA = shutil.which("node"), shutil.which("java")


def skip(missing):
    print(f"\n!! SKIPPED: {missing}\n", file=sys.stderr)
    sys.exit(77)


if not (PYTHON.parent / "openapi-python-client").exists():
    skip("openapi-python-client is missing; run `tests/tools/fetch python`")
if NODE is None or not (MODULES / "openapi-typescript").is_dir():
    skip("openapi-typescript is missing; run `tests/tools/fetch node` and install Debian's package nodejs")
if JAVA is None or not JARS:
    skip("openapi-generator is missing; run `tests/tools/fetch openapi_generator` and install Debian's package "
         "default-jre-headless")

from case import ECHO, DaemonCase  # noqa: E402

SAID = "Message was sent to AI for Flow processing"

# Imports each module of the package in argv[1], so that Python compiles the whole client.
IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
"""

OPENAPI_GENERATOR = """
import json, sys
import openapi_client
at = json.load(sys.stdin)
configuration = openapi_client.Configuration(host=at["url"], api_key={"APIKeyHeader": at["key"]})
api = openapi_client.ConversationsApi(openapi_client.ApiClient(configuration))
print(api.inject20(openapi_client.Message(**at["message"])))
"""

OPENAPI_PYTHON_CLIENT = """
import json, sys
from conversed_client import AuthenticatedClient
from conversed_client.api.conversations import inject_2_0
from conversed_client.models import Message
at = json.load(sys.stdin)
client = AuthenticatedClient(at["url"], at["key"], prefix="", auth_header_name="X-API-Key")
print(inject_2_0.sync(client=client, body=Message.from_dict(at["message"])))
"""


class GeneratedClients(DaemonCase):
    bundle = ECHO

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.url = f"http://127.0.0.1:{cls.daemon.ports['api']}/new"
        cls.document = pathlib.Path(cls.folder.name) / "openapi.json"
        with urllib.request.urlopen(f"{cls.url}/openapi.json", timeout=60) as answer:
            cls.document.write_bytes(answer.read())

    def run_tool(self, *command, cwd=None, given=None, **environment):
        done = subprocess.run([str(each) for each in command], cwd=cwd, input=given, text=True, capture_output=True,
                              timeout=300, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def inject_with(self, session, run):
        """Calls `run` with the client's settings as JSON. The message has data and no text, as from another system."""
        message = {"URLToken": self.tokens["echo"], "userId": f"user of {session}", "sessionId": session,
                   "data": {"event": "x", "order": {"lines": [1, 2]}}}
        self.assertEqual(run(json.dumps({"url": self.url, "key": self.key, "message": message})).strip(), SAID)
        self.daemon.wait_idle()
        self.assertEqual(self.texts("echo", session), [""])

    def test_openapi_generator_for_python(self):
        folder = pathlib.Path(self.folder.name) / "openapi_generator"
        self.run_tool(JAVA, "-jar", JARS[-1], "generate", "-g", "python", "-i", self.document, "-o", folder)
        self.run_tool(PYTHON, "-c", IMPORT_ALL, "openapi_client", cwd=folder)
        self.inject_with("og", lambda given: self.run_tool(PYTHON, "-c", OPENAPI_GENERATOR, cwd=folder, given=given))

    def test_openapi_python_client(self):
        folder = pathlib.Path(self.folder.name) / "openapi_python_client"
        folder.mkdir()
        config = folder / "config.json"
        config.write_text(json.dumps({"post_hooks": [],  # no formatters
                                      "content_type_overrides": {"application/yaml": "text/plain"}}))
        self.run_tool(PYTHON.parent / "openapi-python-client", "generate", "--path", self.document, "--meta", "none",
                      "--output-path", folder / "conversed_client", "--config", config, "--fail-on-warning")
        self.run_tool(PYTHON, "-c", IMPORT_ALL, "conversed_client", cwd=folder)
        self.inject_with("opc", lambda given: self.run_tool(PYTHON, "-c", OPENAPI_PYTHON_CLIENT, cwd=folder,
                                                            given=given))

    def test_openapi_typescript(self):
        folder = pathlib.Path(self.folder.name) / "openapi_typescript"
        folder.mkdir()
        (folder / "node_modules").symlink_to(MODULES)
        (folder / "package.json").write_text('{"type": "module"}')
        shutil.copy(HERE / "generated_client.ts", folder)
        self.run_tool(NODE, MODULES / "openapi-typescript" / "bin" / "cli.js", self.document, "-o", "schema.d.ts",
                      cwd=folder)
        # tsc checks the types of all files and compiles them to JavaScript.
        (folder / "tsconfig.json").write_text(json.dumps({
            "files": ["generated_client.ts"],
            "compilerOptions": {"strict": True, "target": "es2022", "module": "nodenext", "lib": ["es2022", "dom"],
                                "types": []}}))
        self.run_tool(NODE, MODULES / "typescript" / "bin" / "tsc", "--project", ".", cwd=folder)
        self.inject_with("ots", lambda given: self.run_tool(NODE, "generated_client.js", cwd=folder, AT=given))


if __name__ == "__main__":
    unittest.main()
