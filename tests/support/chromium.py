"""A headless Chromium that a test drives by the DevTools protocol, over a pipe."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]


class Browser:
    """One browser with one page. One thread at a time. Use it as a context."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="conversed-chromium-", ignore_cleanup_errors=True)
        commands, self.writer = os.pipe()
        self.reader, answers = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to descriptor 4.
        command = f'exec "$@" 3<&{commands} 4>&{answers}'
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+b")
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", command, "bash", CHROMIUM, *FLAGS, "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={self.folder.name}/profile", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, pass_fds=(commands, answers), start_new_session=True)
        os.close(commands)
        os.close(answers)
        self.pending = b""
        self.last = 0
        self.events = []
        self.session = None
        target = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        os.killpg(self.process.pid, 9)
        self.process.wait()
        os.close(self.writer)
        os.close(self.reader)
        self.log.close()
        self.folder.cleanup()

    def message(self, deadline):
        """The browser's next message."""
        while b"\0" not in self.pending:
            ready, _, _ = select.select([self.reader], [], [], max(0, deadline - time.monotonic()))
            part = os.read(self.reader, 1 << 20) if ready else b""
            if not part:
                self.log.seek(0)
                raise RuntimeError("the browser does not answer; its output:\n" + self.log.read().decode(errors="replace")[-4000:])
            self.pending += part
        text, self.pending = self.pending.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, timeout=120, **parameters):
        """Calls a method of the protocol. Returns its result. Keeps the events that come before it in `events`."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self.message(deadline)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """Runs JavaScript in the page. Returns its value, that of a promise when it is fulfilled."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{script[:200]}: {done['exceptionDetails'].get('exception', {}).get('description')}")
        return done["result"].get("value")

    def wait_until(self, condition, seconds=60):
        """Waits until the JavaScript expression is true, looking at each change of the page."""
        self.run("""new Promise((resolve, reject) => {
            const look = () => { if (%s) { watch.disconnect(); resolve(); } };
            const watch = new MutationObserver(look);
            watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
            setTimeout(() => reject(new Error('not within %d s; the page: ' + document.body.innerText.slice(0, 2000))), %d);
            look();
        })""" % (condition, seconds, seconds * 1000))

    def open(self, address):
        self.call("Page.navigate", url=address)

    def look(self, width, height, scheme):
        """Sets the size of the window and the preferred colors."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    def picture(self, path, whole=True):
        """Writes a PNG of the page."""
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(picture["data"]))

    def problems(self):
        """Errors of scripts, and of the console, so far."""
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"].get("exception", {}).get("description"))
            if event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error":
                found.append([each.get("description", each.get("value")) for each in event["params"]["args"]])
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"] + " " + event["params"]["entry"].get("url", ""))
        return found
