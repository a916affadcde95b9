"""Hooks of schemathesis for test_openapi.py: they make requests valid and keep requests from deleting needed objects.

SCHEMATHESIS_HOOKS loads this file. KNOWN in the environment is a JSON object with
  - the credentials of the test: `key` is the id of its API key, `user` the id of its user, with `email` and `password`,
  - ids that requests may use: `schedule`, `project`, its `locales`, and `member`, a member of the project,
  - another user for requests that change a user: `victimId`, and `victim`, the e-mail address,
  - `URLToken` of an Endpoint, `bundle` of a project, and `url` of the service,
  - `client`, the credentials of an OAuth client, and `redirectUri`, its redirect URI.
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
ASKED = os.environ.get("ASKED")  # a file for one line per request, with names in place of random values
ABSENT = "0" * 24  # an id without an object
ID = re.compile(r"[a-z0-9]{24}")
LEAP_YEAR = str((datetime.date.today().year // 4 + 1) * 4)  # so that 29 February is valid
CRONS = ["0 9 * * mon-fri", "*/5 * * * *", "@daily", "30 2 1,15 jan-mar/2 7", "59 23 31 * *"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMON_PASSWORDS = set((ROOT / "store" / "accounts" / "common_passwords.txt").read_text().splitlines())
ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "GMT+01:30"]

refresh_tokens = []  # unused refresh tokens of answers
cursors = {}  # cursors of answers, each with the list that it belongs to


def is_seconds_to_wait(value):
    return str(value).isdecimal() and 0 < int(value) <= 30


def list_of(case):
    query = case.query or {}
    return json.dumps([case.operation.label, case.path_parameters or {}, query.get("projectId"), query.get("status")],
                      sort_keys=True, default=str)


def protect(operation, case):
    """Redirects requests that would remove the test's API key, its schedule, its project or its users, or change the
    user's password or roles."""
    for ending, name, known in (("revokeApiKey", "keyId", "key"), ("cancelSchedule", "scheduleId", "schedule"),
                                ("cancelTimer", "timerId", "schedule"), ("deleteProject", "projectId", "project")):
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
    """Chooses by the text's length, so that the same text gets the same choice."""
    return choices[len(text) % len(choices)]


def use_times_within_reach(times):
    """Replaces well-formed values by usable ones: a future date, a short duration, a possible rule, an existing zone."""
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
    """Reads the field `request` from a sign-in page. Only the service can make its value."""
    query = urllib.parse.urlencode({"response_type": "code", "client_id": KNOWN["client"]["client_id"],
                                    "redirect_uri": KNOWN["redirectUri"]})
    with urllib.request.urlopen(f"{KNOWN['url']}/auth/oauth2/authorize?{query}", timeout=60) as answer:
        return html.unescape(re.search(r'name="request" value="([^"]+)"', answer.read().decode())[1])


def use_refresh_token(form):
    """Fills an unused refresh token into a form of the refresh grant. Returns False for other grants or without a token."""
    if form["grant_type"] != "refresh_token" or not refresh_tokens:
        return False
    form["refresh_token"] = refresh_tokens.pop()
    return True


def use_known_values(operation, case, kwargs):
    """Replaces values that must fit the state of the service. A schema can't describe them."""
    query = case.query = case.query or {}
    for name in ("next", "previous"):
        if name in query and cursors.get(query[name]) != list_of(case):
            del query[name]
    if "next" in query:
        query.pop("previous", None)
    if query.keys() & {"next", "previous"}:
        for name in ("sort", "filter"):  # the cursor has them
            query.pop(name, None)
    by_filter = ("listDeadLetters", "replayDeadLetters", "discardDeadLetters", "listDeliveries", "retryDeliveries",
                 "dropDeliveries")
    if operation in ("listSessions", *by_filter, "listSchedules", "listTimers", "exportUserData"):
        query.setdefault("projectId", KNOWN["project"])  # required if the user has several projects
    if operation == "listTimers" and not {"URLToken", "userId", "sessionId"} <= query.keys():
        for name in ("URLToken", "userId", "sessionId"):  # only the three together name a session
            query.pop(name, None)
    if operation in by_filter and not {"URLToken", "userId", "sessionId"} <= query.keys():
        for name in ("userId", "sessionId"):
            query.pop(name, None)
    if operation == "oauthAuthorize":
        query.update(client_id=KNOWN["client"]["client_id"], redirect_uri=KNOWN["redirectUri"])
    if operation in ("oauthToken", "oauthRevoke"):
        case.body.update(KNOWN["client"])
        for headers in (case.headers, kwargs.get("headers")):
            (headers or {}).pop("Authorization", None)  # a client must authenticate in only one way
    if operation == "oauthToken" and not use_refresh_token(case.body):
        case.body.update(grant_type="password", username=KNOWN["email"], password=KNOWN["password"])
    # Replaces about half of the URLTokens, so that requests also name unknown Endpoints.
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
    if operation == "createManagementToken" and case.body.get("expires"):
        count, unit = re.fullmatch("([0-9]+)([a-z]+)", case.body["expires"]).groups()
        case.body["expires"] = f"{int(count) % 366 + 1}{unit}"
    if operation == "oauthSignIn":
        case.body["request"] = sealed_request()
    if operation == "importProject":
        case.body["text"] = KNOWN["bundle"]
        case.body["environment"] = {**(case.body.get("environment") or {}), "CRM_TOKEN": "a token"}


drawn = {}  # random texts of the service, and their names in ASKED


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
        use_known_values(operation, case, kwargs)
    # Without a change a poll lasts for its whole wait.
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
