#include "tests/unit/api/authorization_samples.h"

#include <array>
#include <nlohmann/json.hpp>

#include "store/model/ids.h"

namespace conversed::api::test {
namespace {

using nlohmann::json;

std::string id(const Objects& objects, std::string_view parameter) {
  return objects.ids.find(parameter)->second;
}

json message(const Objects& objects) {
  return {{"URLToken", id(objects, "URLToken")},
          {"userId", "u"},
          {"sessionId", "s"},
          {"text", "hello"}};
}
std::string message_body(const Objects& objects) {
  return message(objects).dump();
}
std::string session_body(const Objects& objects) {
  auto body = message(objects);
  body.erase("text");
  return body.dump();
}
HeaderList session_query(const Objects& objects) {
  return {{"URLToken", id(objects, "URLToken")}, {"userId", "u"}, {"sessionId", "s"}};
}
HeaderList project_query(const Objects& objects) {
  return {{"projectId", id(objects, "projectId")}};
}
HeaderList dry_run_query(const Objects& /*objects*/) {
  return {{"dryRun", "true"}};
}
std::string unique_email() {
  return model::new_id() + "@new.example";
}

std::string no_body(const Objects& /*objects*/) {
  return {};
}
HeaderList no_query(const Objects& /*objects*/) {
  return {};
}

struct Extra {
  std::string_view operation;
  std::string (*body)(const Objects&) = no_body;
  HeaderList (*query)(const Objects&) = no_query;
  std::optional<Scope> scope = std::nullopt;
};

const std::array extras{
    Extra{"inject_2_0", message_body},
    Extra{"notify_2_0", message_body},
    Extra{"managementInject", message_body},
    Extra{"createSchedule",
          [](const Objects& objects) {
            auto body = message(objects);
            body["in"] = "1h";
            return body.dump();
          }},
    Extra{"listSchedules", no_body, project_query},
    Extra{"reschedule",
          [](const Objects&) {
            return json{{"in", "2h"}}.dump();
          }},
    Extra{"listTimers", no_body, project_query},
    Extra{"rescheduleTimer",
          [](const Objects&) {
            return json{{"in", "2h"}}.dump();
          }},
    Extra{"switchProactive",
          [](const Objects&) {
            return json{{"on", false}}.dump();
          }},
    Extra{"injectByToken", message_body},
    Extra{"notifyByToken", message_body},
    Extra{"createToken_2_0", [](const Objects&) { return std::string("{}"); }},
    Extra{"updateMember_2_0",
          [](const Objects&) {
            return json{{"allowedLocales", json::array()}}.dump();
          }},
    Extra{"setUpProactive_2_0"},
    Extra{"getChunkCount_2_0", no_body, no_query, Scope::membership},
    Extra{"listTasks_2_0", no_body, project_query},
    Extra{"cancelTask_2_0"},
    Extra{"manageTasks", no_body, project_query, Scope::project},
    Extra{"manageTask", no_body, no_query, Scope::project},
    Extra{"manageCancelTask"},
    Extra{"deprecatePassword_2_0",
          [](const Objects& objects) {
            return json{{"userId", id(objects, "userId")}}.dump();
          }},
    Extra{"importProject",
          [](const Objects& objects) {
            return json{{"text", "conversed: 1\nproject: {name: " + objects.project_name +
                                     ", locales: [en]}\n"}}
                .dump();
          },
          [](const Objects&) {
            return HeaderList{{"dryRun", "true"}};
          },
          Scope::named},
    Extra{"createApiKey",
          [](const Objects& objects) {
            return json{{"name", "k"}, {"user", objects.email}}.dump();
          }},
    Extra{"createManagementToken",
          [](const Objects&) {
            return json{{"name", "t"}, {"scopes", {"all"}}}.dump();
          }},
    // Sets the same password again, so that the user's Basic credentials stay valid.
    Extra{"setPassword",
          [](const Objects& objects) {
            return json{{"user", objects.email}, {"password", "secret secret"}}.dump();
          }},
    Extra{"createUser",
          [](const Objects&) {
            return json{{"email", unique_email()}}.dump();
          }},
    Extra{"createOauthClient",
          [](const Objects&) {
            return json{{"name", "App"}, {"passwordGrant", true}}.dump();
          }},
    Extra{"setUserRoles",
          [](const Objects&) {
            return json{{"roles", {"tokenAdmin"}}}.dump();
          }},
    Extra{"setOrganisationDomains",
          [](const Objects&) {
            return json{{"domains", json::array()}}.dump();
          }},
    Extra{"createOrganisation",
          [](const Objects&) {
            return json{
                {"name", model::new_id()}, {"admin", unique_email()}, {"password", "secret secret"}}
                .dump();
          }},
    Extra{"listEndpoints", no_body, project_query, Scope::project},
    Extra{"listFlows", no_body, project_query},
    Extra{"rollBackFlow",
          [](const Objects&) {
            return json{{"version", 1}}.dump();
          }},
    Extra{"setFlowRamp",
          [](const Objects&) {
            return json{{"version", 2}, {"share", 10}}.dump();
          }},
    Extra{"deleteFlow", no_body, dry_run_query},
    Extra{"deleteEndpoint", no_body, dry_run_query},
    Extra{"deleteProject", no_body, dry_run_query},
    Extra{"listConnections", no_body, project_query},
    Extra{"listSessions", no_body, project_query},
    Extra{"showSession", no_body, session_query},
    Extra{"hearSession", no_body, session_query},
    Extra{"groupDeadLetters", no_body, project_query},
    Extra{"resetSession", session_body},
    Extra{"listDeadLetters", no_body, project_query},
    Extra{"listDeliveries", no_body, project_query},
    Extra{"retryDelivery"},
    Extra{"dropDelivery"},
    Extra{"resumeEndpoint"},
    Extra{"whySession", no_body, session_query},
    Extra{"backUp", [](const Objects&) { return std::string("{}"); }},
    Extra{"rotateKey"},
    Extra{"exportUserData", no_body,
          [](const Objects& objects) {
            return HeaderList{{"projectId", id(objects, "projectId")}, {"userId", "u"}};
          }},
    Extra{"eraseUserData",
          [](const Objects&) {
            return json{{"userId", "somebody"}}.dump();
          },
          project_query},
    Extra{"replayDeadLetter"},
    Extra{"replayDeadLetters", no_body, project_query},
    Extra{"discardDeadLetters", no_body, project_query},
    Extra{"tryDeadLetter", [](const Objects&) { return std::string("{}"); }},
    Extra{"retryDeliveries", no_body, project_query},
    Extra{"dropDeliveries", no_body, project_query},
    Extra{"discardDeadLetter"},
    // Open operations. Without credentials they refuse these requests for another reason than a
    // role.
    Extra{"message", [](const Objects&) { return std::string("{}"); }},
    Extra{"outputs", no_body, session_query},
    Extra{"oauthSignIn", [](const Objects&) { return std::string("request=none"); }},
    Extra{"oauthToken",
          [](const Objects& objects) {
            return "grant_type=refresh_token&refresh_token=unknown&client_id=" +
                   id(objects, "clientId");
          }},
    Extra{"oauthRevoke",
          [](const Objects& objects) {
            return "token=unknown&client_id=" + id(objects, "clientId");
          }},
};

const Extra* find_extra(std::string_view operation) {
  for (const Extra& each : extras) {
    if (each.operation == operation) return &each;
  }
  return nullptr;
}

Scope scope_of(const Operation& operation) {
  if (operation.credential == Credential::open) return Scope::open;
  if (operation.role == Role::platform_admin) return Scope::installation;
  if (operation.role == Role::user_admin) return Scope::organisation;
  const bool is_management = operation.credential == Credential::basic;
  if (is_management && operation.role == Role::member) return Scope::account;
  return Scope::project;
}

// Nothing if the path names a parameter that no Objects have.
std::optional<std::string> fill_in(std::string_view path, const Objects& objects) {
  std::string filled;
  while (true) {
    const auto begin = path.find('{');
    filled += path.substr(0, begin);
    if (begin == std::string_view::npos) return filled;
    const auto end = path.find('}', begin);
    const auto value = objects.ids.find(path.substr(begin + 1, end - begin - 1));
    if (value == objects.ids.end()) return std::nullopt;
    filled += value->second;
    path.remove_prefix(end + 1);
  }
}

}  // namespace

std::optional<SampleRequest> sample_request(const Operation& operation, const Objects& objects) {
  const Extra* extra = find_extra(operation.id);
  const bool needs_body = operation.method != Method::get && operation.method != Method::delete_;
  auto path = fill_in(operation.path, objects);
  if (!path || (needs_body && extra == nullptr)) return std::nullopt;
  SampleRequest sample;
  sample.sent.method = operation.method;
  sample.sent.path = *std::move(path);
  sample.scope = scope_of(operation);
  if (extra != nullptr) {
    sample.sent.body = extra->body(objects);
    sample.sent.query = extra->query(objects);
    sample.scope = extra->scope.value_or(sample.scope);
  }
  const bool is_management = operation.credential == Credential::basic;
  // The API documents 400 for every refusal of this operation.
  if (operation.id == "deprecatePassword_2_0") sample.hidden_status = 400;
  // True if the path names the object by its id. A name can be guessed, and a list belongs to its
  // administrators.
  const bool by_id = operation.path.find('{') != std::string_view::npos;
  sample.refused_unseen = sample.scope == Scope::named ||
                          (is_management && (sample.scope == Scope::organisation ||
                                             (sample.scope == Scope::account && !by_id)));
  return sample;
}

}  // namespace conversed::api::test
