"""Runs fakellm from PyPI: an independent server of OpenAI's protocol with canned answers, on a free port."""

import http.client
import json
import os
import pathlib
import re
import subprocess
import threading

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "build" / "tools" / "python" / "bin" / "python"


class LanguageModel:
    """`rules` is fakellm's YAML. `stats` counts the answers of each rule. One thread."""

    def __init__(self, folder, rules):
        config = pathlib.Path(folder) / "fakellm.yaml"
        config.write_text(rules)
        self.process = subprocess.Popen(
            [PYTHON, "-m", "uvicorn", "fakellm.server:app", "--host", "127.0.0.1", "--port", "0", "--no-access-log"],
            env={**os.environ, "FAKELLM_CONFIG": str(config)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True)
        self.port = None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found.group(1))
                break
        if self.port is None:
            self.process.wait()
            raise RuntimeError("fakellm did not start: " + "".join(said))
        # A full pipe would block fakellm, so a thread reads the rest of its output.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def stats(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/_fakellm/stats")
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def stop(self):
        self.process.terminate()
        self.process.wait()
