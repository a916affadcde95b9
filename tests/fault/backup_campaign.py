#!/usr/bin/env python3
"""Makes backups of a daemon under load, restores them, and counts effects as the kill campaign does.

`conversectl backup` runs while 8 clients send numbered injects into 50 sessions. Then the campaign kills the daemon with
-9 and restores each backup into an empty folder. A daemon processes the events in it. Then:
  - an inject that was answered 2xx before the begin of the backup has its effects exactly once,
  - any other inject has its effects at most once,
  - the effects within a session have the order of sending,
  - the state of a session counted each effect once,
  - each stored output reached the webhook, before the backup or after the restore.
"""

import argparse
import copy
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from campaign import Client, Sending, Session, all_outputs, violations_of  # noqa: E402
from daemon_process import Daemon, Failed  # noqa: E402
from kill_campaign import BUNDLE, CLIENTS, SESSIONS  # noqa: E402
from webhook_receiver import Receiver  # noqa: E402


class BackupCampaign:
    def __init__(self, options, folder):
        self.options = options
        self.random = random.Random(options.seed)
        self.folder = pathlib.Path(folder)
        self.receiver = Receiver("whsec_dGhlIHNlY3JldCBvZiB0aGUgY2FtcGFpZ24=")
        self.environment = {"HOOK_URL": self.receiver.url, "HOOK_SECRET": self.receiver.secret}
        self.daemon = Daemon(options.bin, self.folder / "first", environment=self.environment)
        self.restored = []
        self.sessions = [Session(i) for i in range(SESSIONS)]

    def set_up(self):
        bundle = self.daemon.folder / "bundle.yaml"
        bundle.write_text(BUNDLE)
        self.daemon.init()
        if not self.daemon.start():
            raise Failed("the daemon ended at its first start")
        self.url_token = self.daemon.ctl("import", str(bundle))["endpoints"][0]["urlToken"]
        self.key = self.daemon.ctl("apikey", "create", "--name", "campaign")["key"]

    def sent(self):
        return sum(len(session.accepted) for session in self.sessions)

    def known_now(self):
        """Copies the clients' knowledge while they continue to send."""
        while True:
            try:
                return copy.deepcopy(self.sessions)
            except RuntimeError:  # a set grew during the copy
                pass

    def wait_for_load(self, more):
        """Waits until the daemon accepted `more` further injects."""
        until, deadline = self.sent() + more, time.monotonic() + 120
        while self.sent() < until:
            if time.monotonic() > deadline or self.daemon.wait_end(0.01):
                raise Failed(f"no load: the daemon accepted only {self.sent()} injects")

    def back_up_under_load(self):
        """Returns [(the clients' knowledge before the backup, the backup's folder)]. Kills the daemon at the end."""
        clients = [Client([self.daemon], self.sessions[i::CLIENTS], self.url_token, self.key, self.random.random())
                   for i in range(CLIENTS)]
        for client in clients:
            client.start()
        backups = []
        for _ in range(self.options.backups):
            self.wait_for_load(self.random.randint(200, 600))
            before = self.known_now()
            accepted = sum(len(session.accepted) for session in before)
            name = f"backup-{len(backups)}"
            backups.append((before, pathlib.Path(self.daemon.ctl("backup", "--name", name)["path"])))
            print(f"backup {backups[-1][1].name}: {accepted} accepted before, {self.sent() - accepted} meanwhile",
                  flush=True)
        self.wait_for_load(200)
        self.daemon.kill()
        for client in clients:
            client.halted.set()
        for client in clients:
            client.join()
        return backups

    def restore(self, number, backup):
        daemon = Daemon(self.options.bin, self.folder / f"restored-{number}", environment=self.environment)
        self.restored.append(daemon)
        daemon.ports = {"api": 0}
        daemon.ctl("restore", str(backup), "--config", str(daemon.config), "--key",
                   str(self.daemon.folder / "data" / "master.key"))
        return daemon

    def check(self, number, before, backup):
        daemon = self.restore(number, backup)
        if not daemon.start():
            raise Failed(f"the daemon of {backup.name} did not start")
        daemon.wait_idle()
        found = []
        delivered = {(body["sessionId"], seq, body["output"]["text"]) for _, seq, body in self.receiver.deliveries}
        for latest, then in zip(self.sessions, before):
            # The backup may or may not have an event that was answered later.
            then.unknown = (latest.accepted | latest.unknown | then.unknown) - then.accepted
            outputs = all_outputs(daemon, self.url_token, then)
            found += violations_of(then, outputs)
            found += [f"{then.session_id}: output {output['seq']} never reached the webhook" for output in outputs
                      if (then.session_id, output["seq"], output["text"]) not in delivered]
        found += [f"dead letter: {letter['reason']}" for letter in daemon.ctl("deadletters", "list")["items"]]
        accepted = sum(len(session.accepted) for session in before)
        print(f"{backup.name}: {accepted} injects must have effects, {len(found)} violations", flush=True)
        # The restored daemon takes new injects.
        status, _ = Client([daemon], [], self.url_token, self.key, 0).send(None, daemon, Session(SESSIONS + number),
                                                                            Sending(1, False))
        if status != 200:
            found.append(f"{backup.name}: an inject after the restore was answered {status}")
        if daemon.terminate() != 0:
            found.append(f"{backup.name}: the restored daemon did not stop cleanly")
        return found

    def run(self):
        self.set_up()
        found = []
        for number, (before, backup) in enumerate(self.back_up_under_load()):
            found += self.check(number, before, backup)
        return found

    def stop(self):
        for daemon in [self.daemon, *self.restored]:
            daemon.kill()
        self.receiver.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of conversed and conversectl")
    parser.add_argument("--backups", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="conversed-fault-") as folder:
        campaign = BackupCampaign(options, folder)
        try:
            found = campaign.run()
        finally:
            campaign.stop()
    for line in found[:20]:
        print("violation:", line)
    print("no violations" if not found else f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
