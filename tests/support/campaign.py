"""The load of the campaigns, and the count of its effects: numbered injects and messages into sessions.

Each session has one client, which sends one number after the other. At the end
  - a sending that was answered 2xx, at once or after repeats under its key, has its effects exactly once,
  - a sending of unknown outcome (5xx, broken connection) without repeats has its effects at most once,
  - the effects within a session have the order of sending,
  - the state of a session counted each effect once,
  - an output in the answer to a message, 200 or 202, did not reach the webhook,
  - the other outputs of injects and of cut messages did, each under one id, first arrivals in order.
A Flow says `NUMBER COUNT`, where COUNT is the number of the session's events with effects so far.
"""

import contextlib
import dataclasses
import http.client
import random
import threading

from daemon_process import Failed


TAKEN = (200, 202)  # 202: a message whose Flow continues after the answer


class Session:
    """A client's knowledge of one session. One thread at a time."""

    def __init__(self, number):
        self.user_id = f"user-{number}"
        self.session_id = f"session-{number}"
        self.next_n = 1
        self.unresolved = None  # the keyed Sending to repeat until its outcome is known
        self.accepted = set()
        self.unknown = set()
        self.asked = set()  # sent as users' messages: their answers may have the output
        self.answered = set()  # messages whose first answer had the output
        self.cut = set()  # messages whose first answer was a 202 without the output, so the webhook gets it


@dataclasses.dataclass(frozen=True)
class Sending:
    n: int
    keyed: bool
    message: bool = False  # a user's message, whose answer has the Flow's outputs; otherwise an inject


@dataclasses.dataclass
class Habits:
    """The shares of sendings with a key, and of users' messages."""

    keyed: float = 0.5
    messages: float = 0.0
    patience: float = 20  # seconds that an answer may take


class Client(threading.Thread):
    """Sends to its sessions through any of the daemons until halted. After a failure it picks a daemon again."""

    def __init__(self, daemons, sessions, url_token, key, seed, habits=None):
        super().__init__(daemon=True)
        self.daemons = list(daemons)
        self.sessions = sessions
        self.url_token = url_token
        self.key = key
        self.random = random.Random(seed)
        self.habits = habits or Habits()
        self.halted = threading.Event()
        self.requests = 0
        self.statuses = {}  # the number of answers by status; None: no answer
        self.too_late = 0  # requests without an answer within the patience
        self.wrong = []  # answers that no daemon may give

    def run(self):
        while not self.halted.is_set():
            daemon = self.random.choice(self.daemons)
            try:
                with contextlib.closing(daemon.connect(timeout=self.habits.patience)) as connection:
                    while self.take_turn(daemon, connection) in TAKEN and not self.halted.is_set():
                        pass
            except (OSError, KeyError):  # the daemon does not listen, or was never started
                pass
            self.halted.wait(0.05)  # the client pauses after a failure

    def take_turn(self, daemon, connection):
        """Sends the next number. Returns the status of the answer, or None."""
        session = self.random.choice(self.sessions)
        sending, status, said = session.unresolved or self.next_sending(session), None, ""
        try:
            status, said = self.send(connection, daemon, session, sending)
        except (OSError, http.client.HTTPException) as error:
            self.too_late += isinstance(error, TimeoutError)
        except Failed as wrong:
            self.wrong.append(str(wrong))
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.note(session, sending, status, said)
        return status

    def next_sending(self, session):
        return Sending(session.next_n, self.random.random() < self.habits.keyed,
                       self.random.random() < self.habits.messages)

    def send(self, connection, daemon, session, sending):
        """Returns the answer's status and body. Raises `Failed` if no daemon may give such an answer."""
        headers = {"X-API-Key": self.key}
        if sending.keyed:
            headers["Idempotency-Key"] = f"{session.session_id}-{sending.n}"
        self.requests += 1
        body = {"userId": session.user_id, "sessionId": session.session_id, "data": {"n": sending.n}}
        if sending.message:
            status, answer, _ = daemon.request("POST", f"/{self.url_token}", body, headers, connection)
        else:
            status, answer, _ = daemon.request("POST", "/v2.0/endpoint/inject", {"URLToken": self.url_token, **body},
                                               headers, connection)
        # A daemon that was frozen answers 408 to a request that it had not read.
        if 400 <= status < 500 and status != 408:
            raise Failed(f"{session.session_id}: {sending.n} was refused: {status} {answer}")
        said = answer["text"] if sending.message and status in TAKEN else ""
        if sending.message and (status == 200 or said) and said.split()[:1] != [str(sending.n)]:
            raise Failed(f"{session.session_id}: {sending.n} was answered with {said!r}")
        return status, said

    def note(self, session, sending, status, said):
        n = sending.n
        first = n == session.next_n
        if first:
            session.next_n += 1
        if sending.message:
            session.asked.add(n)
        if status in TAKEN:
            if sending.message and first:
                (session.answered if said else session.cut).add(n)
            session.accepted.add(n)
            session.unknown.discard(n)
            session.unresolved = None
            return
        session.unknown.add(n)
        session.unresolved = sending if sending.keyed else None

    def resolve(self, session, attempts=200):
        """Repeats the session's unresolved sending until its outcome is known."""
        for _ in range(attempts):
            if session.unresolved is None:
                return
            sending, status, said = session.unresolved, None, ""
            daemon = self.random.choice(self.daemons)
            try:
                status, said = self.send(None, daemon, session, sending)
            except (OSError, KeyError, http.client.HTTPException):
                pass
            self.note(session, sending, status, said)
            if status not in TAKEN:
                self.halted.wait(0.05)
        if session.unresolved is not None:
            raise Failed(f"{session.session_id}: {session.unresolved} was never accepted")


def violations_of(session, outputs, strict=True):
    """Returns the violations of one session. Without `strict`, an unanswered sending may take effect after later ones:
    a daemon that was frozen still reads the requests in its sockets."""
    found = []
    numbers = [int(output["text"].split()[0]) for output in outputs]
    counts = [int(output["text"].split()[1]) for output in outputs]
    name = session.session_id
    for n in sorted(session.accepted):
        if numbers.count(n) != 1:
            found.append(f"{name}: {n} was accepted and has its effects {numbers.count(n)} times")
    for n in sorted(set(numbers)):
        if numbers.count(n) > 1 and n not in session.accepted:
            found.append(f"{name}: {n} has an unknown outcome and has its effects {numbers.count(n)} times")
        if n not in session.accepted and n not in session.unknown:
            found.append(f"{name}: {n} has effects and was never sent")
    ordered = [n for n in numbers if strict or n in session.accepted]
    if ordered != sorted(ordered):
        found.append(f"{name}: effects out of order: {ordered}")
    if counts != list(range(1, len(counts) + 1)):
        found.append(f"{name}: the state counted {counts}")
    return found


def delivery_violations(session, outputs, deliveries):
    """Returns the violations in the session's deliveries. `deliveries` are those of a Receiver."""
    found = []
    first_arrivals = {}  # webhook-id: (sequence, number)
    for id_, sequence, body in deliveries:
        if body["sessionId"] == session.session_id:
            first_arrivals.setdefault(id_, (sequence, int(body["output"]["text"].split()[0])))
    delivered = [n for _, n in first_arrivals.values()]
    for n in (int(output["text"].split()[0]) for output in outputs):
        count = delivered.count(n)
        if n in session.answered and count > 0:
            found.append(f"{session.session_id}: {n} was answered and also delivered")
        elif count > 1 or (count == 0 and (n not in session.asked or n in session.cut)):
            found.append(f"{session.session_id}: {n} was delivered {count} times")
    if strangers := set(delivered) - {int(output["text"].split()[0]) for output in outputs}:
        found.append(f"{session.session_id}: {sorted(strangers)} were delivered but are no outputs")
    sequence = [seq for seq, _ in first_arrivals.values()]
    if sequence != sorted(sequence):
        found.append(f"{session.session_id}: deliveries out of order: {sequence}")
    return found


def all_outputs(daemon, url_token, session):
    items, after = [], 0
    while True:
        status, page, _ = daemon.request(
            "GET", f"/{url_token}/outputs?userId={session.user_id}&sessionId={session.session_id}&after={after}")
        if status != 200:
            raise Failed(f"outputs: {status} {page}")
        if not page["items"]:
            return items
        items += page["items"]
        after = page["items"][-1]["seq"]


def check_effects(daemon, url_token, sessions, deliveries, strict=True):
    """Returns (violations, number of outputs)."""
    found, count = [], 0
    for session in sessions:
        outputs = all_outputs(daemon, url_token, session)
        count += len(outputs)
        found += violations_of(session, outputs, strict)
        found += delivery_violations(session, outputs, deliveries)
    found += [f"dead letter: {letter['reason']}" for letter in daemon.ctl("deadletters", "list")["items"]]
    return found, count
