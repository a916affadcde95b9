"""What schemathesis has to know, or to leave alone, in test_openapi.py; schemathesis loads it (SCHEMATHESIS_HOOKS).

KNOWN, a JSON object in the environment, has what the test signs in with: `key`, the id of its API key; `user` and
`email`, its user; and what it may use: `victim` and `victimId`, another user; `project` and its `locales`, ids;
`URLToken`, an Endpoint's; `client`, an OAuth client's credentials, and `redirectUri`, where it may be sent.
"""

import json
import os
import re

import schemathesis

KNOWN = json.loads(os.environ["KNOWN"])
ABSENT = "0" * 24  # an id that nothing has
ID = re.compile(r"[a-z0-9]{24}")

cursors = {}  # those that answers had, with the lists that they are of


def is_seconds_to_wait(value):
    return str(value).isdecimal() and 0 < int(value) <= 30


def list_of(case):
    query = case.query or {}
    return json.dumps([case.operation.label, case.path_parameters or {}, query.get("projectId"), query.get("status")],
                      sort_keys=True, default=str)


def protect(operation, case):
    """The key that the other requests show, the user that they sign in as, and that user's password remain."""
    if operation == "revokeApiKey" and (case.path_parameters or {}).get("keyId") == KNOWN["key"]:
        case.path_parameters["keyId"] = ABSENT
    if isinstance(case.body, dict):
        if operation == "setPassword" and case.body.get("user") in (None, "", KNOWN["email"]):
            case.body["user"] = KNOWN["victim"]
        if operation == "deprecatePassword" and case.body.get("userId") == KNOWN["user"]:
            case.body["userId"] = KNOWN["victimId"]


def use_what_there_is(operation, case):
    """What only the state of the service makes right, no schema can say."""
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
    # Every other one, more or less, so that unknown Endpoints are tried as well.
    if isinstance(case.body, dict) and case.body.get("URLToken", "f")[0] in "0123456789":
        case.body["URLToken"] = KNOWN["URLToken"]
    if operation == "updateMember":
        for locale, place in zip(KNOWN["locales"] * 1000, case.body["allowedLocales"]):
            place["localeId"] = locale
    if operation == "deprecatePassword":
        case.body["userId"] = KNOWN["victimId"]


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = case.operation.definition.raw.get("operationId")
    protect(operation, case)
    if case.meta is not None and case.meta.generation.mode.is_positive:
        use_what_there_is(operation, case)
    # A poll for what does not come would take as long as it says.
    if case.query and is_seconds_to_wait(case.query.get("wait")):
        case.query["wait"] = 0


@schemathesis.hook
def after_call(context, case, response):
    for name in ("x-next-cursor", "x-previous-cursor"):
        cursors.update((value, list_of(case)) for value in response.headers.get(name) or () if ID.fullmatch(value))
