#include "flows/bundle/bundle_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "flows/flow_compiler.h"
#include "store/model/url.h"

namespace conversed::flows {
namespace {

constexpr std::array<std::string_view, 10> parts{
    "conversed", "project",         "members", "tokens",    "connections",
    "lexicons",  "knowledgeStores", "flows",   "endpoints", "proactive"};

// Roles within a project. A project's file must not grant those of the organisation or
// installation.
constexpr std::array<std::string_view, 6> project_roles{"connectionAdmin", "conversationAdmin",
                                                        "memberManager",   "proactiveAdmin",
                                                        "projectAdmin",    "tokenAdmin"};

constexpr std::array<std::string_view, 7> token_types{
    "answer", "context", "custom", "flow-input", "flow-output", "input", "profile"};

constexpr std::array<std::string_view, 4> connection_types{"httpBasic", "httpBearer", "httpHeader",
                                                           "llm"};

// The required fields of a Connection; it may have others.
std::span<const std::string_view> required_fields(std::string_view type) {
  static constexpr std::array<std::string_view, 2> basic{"username", "password"};
  static constexpr std::array<std::string_view, 1> bearer{"token"};
  static constexpr std::array<std::string_view, 2> header{"name", "value"};
  static constexpr std::array<std::string_view, 1> llm{"baseUrl"};
  if (type == "httpBasic") return basic;
  if (type == "httpBearer") return bearer;
  if (type == "httpHeader") return header;
  if (type == "llm") return llm;
  return {};
}

// The path of each request is appended to it.
bool is_base_url(std::string_view url) {
  return model::url_problem(url).empty() && url.find_first_of("?#") == std::string_view::npos;
}

// The text in the field; empty if there is none.
std::string_view text_in(const Located& item, std::string_view field) {
  const Located* found = item.find(field);
  return found != nullptr && found->is_text() ? std::string_view(found->text()) : "";
}

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

model::Bundle BundleReader::read() {
  const Fields top(root_, parts);
  if (!root_.value().is_object()) return {};
  if (const auto format = top.require("conversed")) {
    if (format->value().scalar() != 1) {
      format->problem("write 1: this version reads no other format");
    }
  }
  collect_names();
  read_project(top);
  top.each("members", [this](const View& view) { read_member(view); });
  top.each("tokens", [this](const View& view) { read_token(view); });
  top.each("connections", [this](const View& view) { read_connection(view); });
  top.each("lexicons", [this](const View& view) { read_lexicon(view); });
  top.each("knowledgeStores", [this](const View& view) { read_knowledge_store(view); });
  top.each("flows", [this](const View& view) { read_flow(view); });
  top.each("endpoints", [this](const View& view) { read_endpoint(view); });
  read_proactive(top);
  return std::move(bundle_);
}

BundleReader::Names BundleReader::names_in(const Located& from, std::string_view list,
                                           std::string_view field) {
  Names names;
  const Located* found = from.find(list);
  if (found == nullptr) return names;
  for (const auto& item : found->items()) {
    if (const auto name = text_in(item, field); !name.empty()) names.emplace(name);
  }
  return names;
}

void BundleReader::collect_names() {
  const Located& top = root_.value();
  known_.connections = names_in(top, "connections", "name");
  known_.lexicons = names_in(top, "lexicons", "name");
  known_.tokens = names_in(top, "tokens", "label");
  known_.flows = names_in(top, "flows", "name");
  if (const Located* list = top.find("connections")) {
    for (const auto& item : list->items()) {
      if (text_in(item, "type") == "llm") known_.models.emplace(text_in(item, "name"));
    }
  }
  if (const Located* list = top.find("knowledgeStores")) {
    for (const auto& item : list->items()) {
      const auto name = text_in(item, "name");
      if (!name.empty()) known_.knowledge[std::string(name)] = names_in(item, "sources", "name");
    }
  }
}

void BundleReader::expect_unique(const Fields& fields, std::string_view field,
                                 const std::string& name, Names& seen) {
  if (name.empty() || seen.insert(name).second) return;
  if (const auto at = fields.find(field)) at->problem("'" + name + "' is used twice; rename one");
}

void BundleReader::read_project(const Fields& top) {
  const auto view = top.require("project");
  if (!view) return;
  const Fields fields(*view, {"name", "locales"});
  bundle_.project_name = fields.name("name");
  bundle_.locales = fields.names("locales");
  const auto locales = fields.find("locales");
  if (!locales) bundle_.locales = {"en"};
  if (locales && locales->value().is_array() && locales->value().items().empty()) {
    locales->problem("a project has at least one locale; write one, or leave `locales` out");
  }
  locales_ = Names(bundle_.locales.begin(), bundle_.locales.end());
}

void BundleReader::read_member(const View& view) {
  const Fields fields(view, {"email", "name", "roles", "allowedLocales"});
  model::BundleMember member;
  member.email = fields.text("email");
  if (!member.email.empty() && !is_email(member.email)) {
    if (const auto at = fields.find("email"))
      at->problem("expected an e-mail address such as ann@example.com");
  }
  expect_unique(fields, "email", member.email, seen_members_);
  member.name = fields.find("name") ? fields.name("name") : member.email;
  fields.each("roles", [&](const View& item) {
    auto role = item.one_of(project_roles);
    if (!role) return;
    if (std::find(member.roles.begin(), member.roles.end(), *role) != member.roles.end()) {
      return item.problem("'" + *role + "' is in the list twice; remove one");
    }
    member.roles.push_back(std::move(*role));
  });
  member.allowed_locales = fields.names("allowedLocales");
  fields.each("allowedLocales",
              [&](const View& item) { expect_known(item, "the project has no locale", locales_); });
  bundle_.members.push_back(std::move(member));
}

void BundleReader::read_token(const View& view) {
  const Fields fields(view, {"label", "type", "script"});
  model::BundleToken token;
  token.label = fields.name("label");
  expect_unique(fields, "label", token.label, seen_tokens_);
  token.type = fields.find("type") ? fields.one_of("type", token_types) : "custom";
  token.script = fields.optional_text("script");
  bundle_.tokens.push_back(std::move(token));
}

void BundleReader::read_connection(const View& view) {
  const Fields fields(view, {"name", "type", "hosts", "fields"});
  model::BundleConnection connection;
  connection.name = fields.name("name");
  expect_unique(fields, "name", connection.name, seen_connections_);
  connection.type = fields.one_of("type", connection_types);
  connection.fields = nlohmann::json::object();
  connection.source = nlohmann::json::object();
  if (const auto values = fields.find("fields")) {
    (void)values->expect_mapping();
    for (const auto& member : values->value().members()) {
      const View at = values->member(member);
      // Only texts are sent. A secret of another type would be written into exports.
      if (!member.value.is_text()) {
        at.problem("expected a text, not " + std::string(member.value.kind_name()) +
                   "; write a number in quotes");
        continue;
      }
      connection.source[member.name] = member.value.text();
      connection.fields[member.name] = expand(at, member.value.text());
    }
  }
  connection.hosts = read_hosts(fields, connection.type);
  check_connection(fields, connection);
  // A secret that the file holds in clear has no source.
  for (auto& [name, value] : connection.source.items()) {
    if (model::is_secret_field(connection.type, name) &&
        !has_variable(value.get_ref<const std::string&>())) {
      value = nullptr;
    }
  }
  bundle_.connections.push_back(std::move(connection));
}

std::vector<std::string> BundleReader::read_hosts(const Fields& fields, std::string_view type) {
  std::vector<std::string> hosts;
  const auto at = fields.find("hosts");
  if (!at) return hosts;
  if (type == "llm")
    at->problem("a Connection of type llm goes to its baseUrl only; remove `hosts`");
  if (at->value().is_array() && at->value().items().empty()) {
    at->problem("the list is empty; leave `hosts` out if the Connection is for any host");
  }
  fields.each("hosts", [&](const View& item) {
    const auto text = item.text();
    if (!text) return;
    auto host = model::authority_of(*text);
    if (!model::is_host(host) || host.size() != text->size()) {
      return item.problem("expected a host, and maybe its port, such as crm.example.com:8443");
    }
    if (std::find(hosts.begin(), hosts.end(), host) != hosts.end()) {
      return item.problem("'" + host + "' is in the list twice; remove one");
    }
    hosts.push_back(std::move(host));
  });
  return hosts;
}

void BundleReader::check_connection(const Fields& fields,
                                    const model::BundleConnection& connection) {
  const auto at = fields.find("fields");
  const View& place = at ? *at : fields.view();
  if (at && !at->value().is_object()) return;
  for (const auto required : required_fields(connection.type)) {
    const std::string name(required);
    if (!at || at->value().find(required) == nullptr) {
      place.problem("a Connection of type " + connection.type + " needs the field '" + name + "'");
    } else if (!connection.source.contains(name)) {
      continue;  // it is no text, which is reported already
    } else if (connection.source[name].get_ref<const std::string&>().empty()) {
      place.problem("the field '" + name + "' is empty; write a text");
    } else if (const auto& url = connection.fields[name].get_ref<const std::string&>();
               name == "baseUrl" && !url.empty() &&
               is_known(connection.source[name].get_ref<const std::string&>()) &&
               !is_base_url(url)) {
      place.problem(
          "the field 'baseUrl' must be an absolute http or https URL without query and '..', such "
          "as https://llm.example.com/v1");
    }
  }
}

bool BundleReader::has_variable(std::string_view text) {
  for (auto at = text.find("${"); at != std::string_view::npos; at = text.find("${", at + 2)) {
    if (at == 0 || text[at - 1] != '$') return true;
  }
  return false;
}

std::string BundleReader::expand(const View& view, const std::string& text) {
  std::string expanded;
  std::size_t at = 0;
  while (true) {
    const auto dollar = text.find("${", at);
    if (dollar == std::string::npos) return expanded.append(text, at, std::string::npos);
    if (dollar > at && text[dollar - 1] == '$') {  // `$${` stands for a plain `${`
      expanded.append(text, at, dollar - 1 - at).append("${");
      at = dollar + 2;
      continue;
    }
    expanded.append(text, at, dollar - at);
    const auto end = text.find('}', dollar);
    const std::string name =
        end == std::string::npos ? "" : text.substr(dollar + 2, end - dollar - 2);
    if (!is_variable_name(name)) {
      view.problem("write a variable's name and `}` after `${`, or `$${` for a plain `${`");
      return expanded;
    }
    if (auto value = environment_ ? environment_(name) : std::nullopt) {
      expanded += *value;
    } else if (variables_ == Variables::may_be_missing) {
      expanded += name;
    } else {
      view.problem("the environment variable " + name + " is not set; set it for the import");
    }
    at = end + 1;
  }
}

}  // namespace conversed::flows
