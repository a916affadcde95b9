"""Tells schemathesis in test_openapi.py how to make valid requests and which objects to spare. SCHEMATHESIS_HOOKS loads it.

KNOWN, a JSON object in the environment, has the credentials of the test: `key`, the id of its API key; `user` and
`email`, its user, with the `password`; and the objects that it may use: `schedule`, an id; `victim` and `victimId`, another user;
`member`, the id of one in the project; `project` and its `locales`, ids; `URLToken`, an Endpoint's; `client`, an OAuth
client's credentials, and `redirectUri`, where it may be sent; `bundle`, of a project; `url`, the service's.
"""

import datetime
import html
import json
import os
import pathlib
import re
import urllib.parse
import urllib.request

import schemathesis

KNOWN = json.loads(os.environ["KNOWN"])
ASKED = os.environ.get("ASKED")  # a file that each request is written to, with names for what services draw by chance
ABSENT = "0" * 24  # an id that nothing has
ID = re.compile(r"[a-z0-9]{24}")
LEAP_YEAR = str((datetime.date.today().year // 4 + 1) * 4)  # it has each day that a year can have
CRONS = ["0 9 * * mon-fri", "*/5 * * * *", "@daily", "30 2 1,15 jan-mar/2 7", "59 23 31 * *"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMON_PASSWORDS = set((ROOT / "store" / "accounts" / "common_passwords.txt").read_text().splitlines())
ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "GMT+01:30"]

refresh_tokens = []  # of answers
cursors = {}  # of answers, with their lists


def is_seconds_to_wait(value):
    return str(value).isdecimal() and 0 < int(value) <= 30


def list_of(case):
    query = case.query or {}
    return json.dumps([case.operation.label, case.path_parameters or {}, query.get("projectId"), query.get("status")],
                      sort_keys=True, default=str)


def protect(operation, case):
    """The key that requests show, the user that they sign in as, with password and roles, the schedule, and the users
    that requests name remain."""
    for ending, name, known in (("revokeApiKey", "keyId", "key"), ("cancelSchedule", "scheduleId", "schedule"),
                                ("cancelTimer", "timerId", "schedule")):
        if operation == ending and (case.path_parameters or {}).get(name) == KNOWN[known]:
            case.path_parameters[name] = ABSENT
    if operation in ("removeUser", "setUserRoles") and (case.path_parameters or {}).get("userId") in (
            KNOWN["user"], KNOWN["victimId"], KNOWN["member"]):
        case.path_parameters["userId"] = ABSENT
    if isinstance(case.body, dict):
        if operation == "setPassword" and case.body.get("user") in (None, "", KNOWN["email"]):
            case.body["user"] = KNOWN["victim"]
        if operation == "deprecatePassword_2_0" and case.body.get("userId") == KNOWN["user"]:
            case.body["userId"] = KNOWN["victimId"]


def of(choices, text):
    """The same choice for the same text."""
    return choices[len(text) % len(choices)]


def use_times_within_reach(times):
    """Of texts in the right form: a moment that is to come, a duration of days, a day and a zone that there are."""
    if times.get("at"):
        times["at"] = LEAP_YEAR + times["at"][4:]
    if times.get("in"):
        count, unit = re.fullmatch("([0-9]+)([a-z]+)", times["in"]).groups()
        times["in"] = f"{int(count) % 1000}{unit}"
    if times.get("cron"):
        times["cron"] = of(CRONS, times["cron"])
    if times.get("timezone"):
        times["timezone"] = of(ZONES, times["timezone"])


def sealed_request():
    """A value of a sign-in page, which only the service can make."""
    query = urllib.parse.urlencode({"response_type": "code", "client_id": KNOWN["client"]["client_id"],
                                    "redirect_uri": KNOWN["redirectUri"]})
    with urllib.request.urlopen(f"{KNOWN['url']}/auth/oauth2/authorize?{query}", timeout=60) as answer:
        return html.unescape(re.search(r'name="request" value="([^"]+)"', answer.read().decode())[1])


def use_refresh_token(form):
    """Whether the form is for one, and there was one left."""
    if form["grant_type"] != "refresh_token" or not refresh_tokens:
        return False
    form["refresh_token"] = refresh_tokens.pop()
    return True


def use_what_there_is(operation, case, kwargs):
    """Puts in values that depend on the state of the service, which no schema describes."""
    query = case.query = case.query or {}
    for name in ("next", "previous"):
        if name in query and cursors.get(query[name]) != list_of(case):
            del query[name]
    if "next" in query:
        query.pop("previous", None)
    if query.keys() & {"next", "previous"}:
        for name in ("sort", "filter"):  # the cursor's own
            query.pop(name, None)
    if operation in ("listSessions", "listDeadLetters", "listSchedules", "listTimers", "exportUserData"):
        query.setdefault("projectId", KNOWN["project"])  # which is required once there are several
    if operation == "listTimers" and not {"URLToken", "userId", "sessionId"} <= query.keys():
        for name in ("URLToken", "userId", "sessionId"):  # they name a session together
            query.pop(name, None)
    if operation == "oauthAuthorize":
        query.update(client_id=KNOWN["client"]["client_id"], redirect_uri=KNOWN["redirectUri"])
    if operation in ("oauthToken", "oauthRevoke"):
        case.body.update(KNOWN["client"])
        for headers in (case.headers, kwargs.get("headers")):
            (headers or {}).pop("Authorization", None)  # a client shows who it is in one way
    if operation == "oauthToken" and not use_refresh_token(case.body):
        case.body.update(grant_type="password", username=KNOWN["email"], password=KNOWN["password"])
    # Every other one, more or less, so that unknown Endpoints are tried as well.
    if isinstance(case.body, dict) and case.body.get("URLToken", "f")[0] in "0123456789":
        case.body["URLToken"] = KNOWN["URLToken"]
    if operation == "updateMember_2_0":
        for locale, place in zip(KNOWN["locales"] * 1000, case.body["allowedLocales"]):
            place["localeId"] = locale
    if operation == "deprecatePassword_2_0":
        case.body["userId"] = KNOWN["victimId"]
    if isinstance(case.body, dict) and str(case.body.get("password")).lower() in COMMON_PASSWORDS:
        case.body["password"] = "a pass phrase that is not common"
    if operation in ("createSchedule", "reschedule", "rescheduleTimer"):
        use_times_within_reach(case.body)
    if operation == "oauthSignIn":
        case.body["request"] = sealed_request()
    if operation == "importProject":
        case.body["text"] = KNOWN["bundle"]
        case.body["environment"] = {**(case.body.get("environment") or {}), "CRM_TOKEN": "a token"}


drawn = {}  # texts that a service draws by chance, and their names


def note(operation, case):
    asked = json.dumps([operation, case.path_parameters, case.query, case.body], sort_keys=True,
                       default=lambda other: repr(other) if isinstance(other, bytes) else type(other).__name__)
    # Ids, tokens and sealed values.
    asked = re.sub(r"[A-Za-z0-9+/=_-]{24,}", lambda found: drawn.setdefault(found[0], f"<{len(drawn)}>"), asked)
    with open(ASKED, "a") as file:
        file.write(asked + "\n")


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = case.operation.definition.raw.get("operationId")
    protect(operation, case)
    if case.meta is not None and case.meta.generation.mode.is_positive:
        use_what_there_is(operation, case, kwargs)
    # A poll without a change would take the whole wait.
    if case.query and is_seconds_to_wait(case.query.get("wait")):
        case.query["wait"] = 0
    if ASKED:
        note(operation, case)


@schemathesis.hook
def after_call(context, case, response):
    if case.operation.path == "/auth/oauth2/token" and response.status_code == 200:
        refresh_tokens.append(response.json()["refresh_token"])
    for name in ("x-next-cursor", "x-previous-cursor"):
        cursors.update((value, list_of(case)) for value in response.headers.get(name) or () if ID.fullmatch(value))
