#include "api/audit_trail.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/auth/credentials.h"
#include "store/model/ids.h"
#include "store/model/json.h"
#include "store/text/utf8.h"

namespace conversed::api {
namespace {

using model::Result;
using nlohmann::json;

// Members of a body and parameters of a query that name an object, or that choose the dead letters
// or deliveries that a job changes. None of them is a secret.
constexpr auto names = std::to_array<std::string_view>(
    {"user", "email", "name", "admin", "roles", "URLToken", "projectId", "version", "reason",
     "flow", "flowVersion", "share", "maxErrors", "hold", "node", "state", "olderThan",
     "newerThan"});
// Longer bodies name no object beside their path.
constexpr std::size_t max_named_body_bytes = 64UL * 1024;
constexpr std::size_t max_text_bytes = 512;  // of each part

std::string cut(std::string_view text) {
  return std::string(text::cut(text, max_text_bytes));
}

void add(std::string& object, std::string_view name, const std::string& value) {
  if (value.empty()) return;
  if (!object.empty()) object += ", ";
  object.append(name).append("=").append(cut(value));
}

std::string text_of(const json& body, std::string_view name) {
  const auto member = body.find(name);
  if (member == body.end() || member->is_null()) return {};
  return member->is_string() ? member->get<std::string>() : member->dump();
}

// The body as a JSON object. Empty if the body is too large or no JSON object.
json named_body(const Request& request) {
  if (request.body.empty() || request.body.size() > max_named_body_bytes) return json::object();
  auto body = model::parse_json(request.body);
  return body && body->is_object() ? *std::move(body) : json::object();
}

// A scalar of YAML within a JSON text: what stands before its end. Empty if it has an escape, or if
// its end is not sure.
std::string_view scalar_in_json(std::string_view text, bool in_flow_style) {
  const auto up_to = [&](std::string_view end) -> std::string_view {
    const auto found = text.find(end);
    return found == std::string_view::npos ? std::string_view() : text.substr(0, found);
  };
  std::string_view scalar;
  if (text.starts_with("\\\"")) {
    text.remove_prefix(2);
    scalar = up_to("\\\"");
  } else if (text.starts_with('\'')) {
    text.remove_prefix(1);
    scalar = up_to("'");
    if (text.substr(scalar.size()).starts_with("''")) return {};
  } else {
    scalar = text.substr(0, text.find_first_of(in_flow_style ? "\\\",}" : "\\\""));
    const auto rest = text.substr(scalar.size());
    if (rest.starts_with('\\') && !rest.starts_with("\\n") && !rest.starts_with("\\r")) return {};
    scalar = scalar.substr(0, scalar.find(" #"));
    while (scalar.ends_with(' ')) scalar.remove_suffix(1);
  }
  return scalar.find('\\') == std::string_view::npos ? scalar : std::string_view();
}

// The name of the project in a bundle, which is a JSON text of the body. Empty: not found, or not
// sure. Reads no more than the bundle's beginning, and does not parse it.
std::string project_in_bundle(std::string_view body) {
  body = body.substr(0, max_named_body_bytes);
  const auto behind = [](std::string_view text, std::string_view key) -> std::string_view {
    for (auto at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
      auto rest = text.substr(at + key.size());
      while (!rest.empty() && (rest.front() == '\\' || rest.front() == '"')) rest.remove_prefix(1);
      const bool is_word = at > 0 &&
                           (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0) &&
                           !text.substr(0, at).ends_with("\\n");
      if (!is_word && rest.starts_with(':')) return rest.substr(1);
    }
    return {};
  };
  const auto skip_blanks = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of(' '), text.size()));
  };
  const auto project = skip_blanks(behind(body, "project"));
  const auto name = scalar_in_json(skip_blanks(behind(project, "name")), project.starts_with('{'));
  return text::is_utf8(name) ? std::string(name) : std::string();
}

// The members of the request's body and the parameters of its query, as texts.
class NamedValues {
 public:
  explicit NamedValues(const Call& call) : request_(call.request), body_(named_body(call.request)) {
    if (call.operation.id == "importProject") bundle_ = project_in_bundle(call.request.body);
  }

  // Empty: the request has no such value.
  [[nodiscard]] std::string find(std::string_view name) const {
    auto text = text_of(body_, name);
    return text.empty() ? std::string(request_.parameter(name).value_or("")) : text;
  }
  // The name of the project that is imported. Empty: no import, or the name is not known.
  [[nodiscard]] const std::string& imported_project() const { return bundle_; }

 private:
  const Request& request_;
  const json body_;
  std::string bundle_;
};

void name_object(store::AuditEntry& entry, const Call& call, const NamedValues& values) {
  // The names in the path come first, because they identify the object.
  for (const auto& [name, value] : call.parameters.values) add(entry.object, name, value);
  for (const std::string_view name : names) add(entry.object, name, values.find(name));
  add(entry.object, "project", values.imported_project());
  if (call.operation.id == "deprecatePassword_2_0") {
    // In this operation alone, a `userId` of the body is a user of the organisation.
    add(entry.object, "userId", values.find("userId"));
  } else if (call.parameters["userId"].empty()) {
    entry.subject_user = cut(values.find("userId"));
    entry.subject_session = cut(values.find("sessionId"));
  }
}

// How the request names its project: the first of these names that it has.
store::AuditedProject project_named_by(const Call& call, const NamedValues& values) {
  using By = store::AuditedProject::By;
  if (call.operation.id == "importProject") return {By::name, values.imported_project()};
  static constexpr auto in_path =
      std::to_array<std::pair<std::string_view, By>>({{"flowId", By::flow},
                                                      {"endpointId", By::endpoint},
                                                      {"connectionId", By::connection},
                                                      {"lexiconId", By::lexicon},
                                                      {"knowledgeStoreId", By::knowledge_store},
                                                      {"taskId", By::job},
                                                      {"deadLetterId", By::dead_letter},
                                                      {"scheduleId", By::schedule},
                                                      {"URLToken", By::url_token}});
  for (const auto& [name, by] : in_path) {
    if (const auto value = call.parameters[name]; !value.empty()) return {by, std::string(value)};
  }
  for (const auto* name : {"outputId", "receiptId"}) {
    const auto value = call.parameters[name].substr(0, model::id_length);
    if (!value.empty()) return {By::output, std::string(value)};
  }
  // The object names it already.
  if (!call.parameters["projectId"].empty() || !values.find("projectId").empty()) return {};
  if (auto token = values.find("URLToken"); !token.empty()) {
    return {By::url_token, std::move(token)};
  }
  // An operator may leave out the name of the only project.
  const bool is_of_project = call.operation.credential == Credential::basic &&
                             call.operation.role != Role::member &&
                             !is_of_organisation(call.operation.role);
  if (!is_of_project) return {};
  const auto& principal = *call.principal;
  if (principal.has(call.operation.role)) return {By::only_one, ""};
  std::vector<std::string> mine;
  for (const auto& [id, roles] : principal.project_roles) {
    if (holds(roles, call.operation.role)) mine.push_back(id);
  }
  return mine.size() == 1 ? store::AuditedProject{By::id, mine.front()} : store::AuditedProject{};
}

std::string route_of(const Operation& operation) {
  return std::string(method_name(operation.method)) + ' ' + std::string(operation.path);
}

}  // namespace

bool is_audited(const Operation& operation) {
  if (operation.credential == Credential::open || operation.audited == Audited::never) return false;
  return operation.audited != Audited::changes || operation.method != Method::get;
}

namespace {

// The entry of a request, without its id.
store::AuditEntry entry_of(const Call& call, const NamedValues& values) {
  const Operation& operation = call.operation;
  store::AuditEntry entry;
  entry.organisation_id = call.principal->organisation_id;
  entry.user_id = call.principal->user_id;
  entry.address = call.request.peer;
  entry.operation = operation.id;
  entry.route = route_of(operation);
  const std::string& key = call.principal->key_id;
  if (operation.credential == Credential::basic) {
    entry.credential = key.empty() ? "password" : "token " + key;
  } else {
    entry.credential = key.empty() ? "token" : "key " + key;
  }
  name_object(entry, call, values);
  return entry;
}

// The key of a view: its user, credential, address, operation and object. A NUL follows each of
// them, because none has a NUL.
std::string view_of(const store::AuditEntry& entry) {
  std::string view;
  for (const auto* part : {&entry.user_id, &entry.credential, &entry.address, &entry.operation,
                           &entry.object, &entry.subject_user, &entry.subject_session}) {
    view.append(*part).push_back('\0');
  }
  return view;
}

}  // namespace

bool AuditTrail::is_part_of_view(const Call& call, TimePoint now) const {
  if (call.operation.audited != Audited::views) return false;
  const auto view = view_of(entry_of(call, NamedValues(call)));
  return views_.with([&](const auto& views) {
    const auto found = views.find(view);
    return found != views.end() && now < found->second;
  });
}

void AuditTrail::begin_view(const store::AuditEntry& entry, const Operation& operation,
                            TimePoint now) {
  if (operation.audited != Audited::views) return;
  views_.with([&](auto& views) {
    if (views.size() >= max_views) {
      std::erase_if(views, [&](const auto& view) { return view.second <= now; });
    }
    if (views.size() < max_views) views[view_of(entry)] = now + view_time;
  });
}

void AuditTrail::begin(const Call& call, const std::string& trace_id, Begun begun) {
  const NamedValues values(call);
  store::AuditEntry entry = entry_of(call, values);
  entry.id = model::new_id();
  entry.trace_id = trace_id;
  audit_.begin(
      std::move(entry),
      [begun = std::move(begun)](Result<store::AuditEntry> stored) {
        if (stored) return begun(*std::move(stored));
        begun(
            model::fail(model::Errc::unavailable,
                        "the audit trail can't be written, so nothing was done; try again later"));
      },
      project_named_by(call, values));
}

void AuditTrail::end(store::AuditEntry entry, int status) {
  entry.status = status;
  if (log_) log_(entry);
  audit_.end(std::move(entry.id), status);
}

void AuditTrail::sign_in(const SignIn& sign_in, const Result<const Principal*>& ended) {
  if (!ended && ended.error().code != model::Errc::unauthenticated) return;
  store::AuditEntry entry;
  entry.id = model::new_id();
  if (ended) entry.user_id = (*ended)->user_id;
  if (ended) entry.organisation_id = (*ended)->organisation_id;
  entry.actor = sign_in.actor;
  entry.credential = "password";
  entry.address = sign_in.address;
  entry.operation = "signIn";
  entry.route = route_of(sign_in.operation);
  entry.status = ended ? status::ok : status::unauthorized;
  entry.trace_id = sign_in.trace_id;
  audit_.begin(std::move(entry), [log = log_](const Result<store::AuditEntry>& stored) {
    if (stored && log) log(*stored);
  });
}

}  // namespace conversed::api
