#include <algorithm>
#include <functional>
#include <utility>

#include "flows/bundle/bundle_keys.h"
#include "flows/bundle/loader.h"
#include "flows/fields.h"
#include "flows/flow_compiler.h"
#include "flows/journey.h"
#include "flows/time/time_zone.h"
#include "store/model/ids.h"
#include "store/model/url.h"
#include "store/text/ascii.h"
#include "store/text/utf8.h"
#include "store/text/webhook_secret.h"

namespace conversed::flows {
namespace {

// The required fields of a Connection. It may have others.
std::vector<std::string> required_fields(std::string_view type) {
  if (type == "httpBasic") return {"username", "password"};
  if (type == "httpBearer") return {"token"};
  if (type == "httpHeader") return {"name", "value"};
  if (type == "llm") return {"baseUrl"};
  return {};
}

// Whether request paths can be appended to the URL.
bool is_base_url(std::string_view url) {
  return model::url_problem(url).empty() && url.find_first_of("?#") == std::string_view::npos;
}

std::string_view text_in(const Located& item, std::string_view field) {
  const Located* found = item.find(field);
  return found != nullptr && found->is_text() ? std::string_view(found->text()) : "";
}

bool is_variable_name(std::string_view name) {
  return is_word(name, "_") && (name.front() < '0' || name.front() > '9');
}

constexpr std::size_t max_text_characters = 4000;

void read_quiet_hours(const View& view) {
  const Fields fields(view, quiet_hours_keys);
  for (const std::string_view field : {"from", "to"}) {
    const auto at = fields.find(field);
    const auto time = at ? at->text() : std::nullopt;
    if (time && !minute_of_day(*time)) at->problem("expected a time of day such as \"22:00\"");
  }
  if (const auto at = fields.find("timezone")) {
    const auto zone = at->text();
    if (zone && !TimeZone::find(*zone))
      at->problem("unknown time zone; expected one such as UTC or Europe/Berlin");
  }
  const auto from = fields.find("from");
  const auto to = fields.find("to");
  if (from && to && from->value().is_text() && to->value().is_text() &&
      from->value().text() == to->value().text()) {
    to->problem("is the same as `from`; choose another hour, or leave `quietHours` out");
  }
}

// Checks the length of a text that users read.
void expect_short(const View& at) {
  if (!at.value().is_text()) return;
  if (text::count_characters(at.value().text()) > max_text_characters) {
    at.problem("the text has more than " + std::to_string(max_text_characters) +
               " characters; shorten it");
  }
}

// A text that is neither empty nor too long.
void expect_said(const View& at) {
  const auto text = at.text();
  if (text && text->empty()) at.problem("the text is empty; write one");
  expect_short(at);
}

// Reads the parts of a bundle. It collects all names first, so that each reference can be checked
// at its place. One use, one thread.
class BundleReader {
 public:
  BundleReader(const View& root, const Environment& environment, Variables variables)
      : root_(root), environment_(environment), variables_(variables) {}

  model::Bundle read() {
    const Fields top(root_, bundle_keys);
    if (!root_.value().is_object()) return {};
    if (const auto format = top.find("conversed")) {
      if (format->value().scalar() != 1) {
        format->problem("write 1: this version reads no other format");
      }
    }
    collect_names();
    read_project(top);
    read_list(top, "members", "email", &model::BundleMember::email, bundle_.members,
              &BundleReader::read_member);
    read_list(top, "tokens", "label", &model::BundleToken::label, bundle_.tokens,
              &BundleReader::read_token);
    read_list(top, "connections", "name", &model::BundleConnection::name, bundle_.connections,
              &BundleReader::read_connection);
    read_list(top, "lexicons", "name", &model::BundleLexicon::name, bundle_.lexicons,
              &BundleReader::read_lexicon);
    read_list(top, "knowledgeStores", "name", &model::BundleKnowledgeStore::name,
              bundle_.knowledge_stores, &BundleReader::read_knowledge_store);
    read_list(top, "flows", "name", &model::BundleFlow::name, bundle_.flows,
              &BundleReader::read_flow);
    read_list(top, "endpoints", "name", &model::BundleEndpoint::name, bundle_.endpoints,
              &BundleReader::read_endpoint);
    read_proactive(top);
    return std::move(bundle_);
  }

 private:
  static Names names_in(const Located& from, std::string_view list, std::string_view field) {
    Names names;
    const Located* found = from.find(list);
    if (found == nullptr) return names;
    for (const auto& item : found->items()) {
      if (const auto name = text_in(item, field); !name.empty()) names.emplace(name);
    }
    return names;
  }

  // Collects the names that Flows may refer to. Reading the elements reports the problems.
  void collect_names() {
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

  // Reads the parts of a list. Each part must have a different value of `key`.
  template <typename Part, typename Read>
  void read_list(const Fields& fields, std::string_view list, std::string_view key,
                 std::string Part::*key_of, std::vector<Part>& into, Read read_part) {
    Names seen;
    fields.each(list, [&](const View& view) {
      into.push_back(std::invoke(read_part, *this, view));
      expect_unique(view, key, into.back().*key_of, seen);
    });
  }

  // Adds `value` to `seen`. Reports a problem if it is there already.
  static void expect_unique(const View& part, std::string_view key, const std::string& value,
                            Names& seen) {
    if (value.empty() || seen.insert(value).second) return;
    if (const auto at = part.find(key)) at->problem("'" + value + "' is used twice; rename one");
  }

  void read_project(const Fields& top) {
    const auto view = top.find("project");
    if (!view) return;
    const Fields fields(*view, project_keys);
    bundle_.project_name = fields.name("name");
    bundle_.locales = fields.names("locales");
    const auto locales = fields.find("locales");
    if (!locales) bundle_.locales = {"en"};
    if (locales && locales->value().is_array() && locales->value().items().empty()) {
      locales->problem("a project has at least one locale; write one, or leave `locales` out");
    }
    locales_ = Names(bundle_.locales.begin(), bundle_.locales.end());
    known_.locales = bundle_.locales;
  }

  model::BundleMember read_member(const View& view) {
    const Fields fields(view, member_keys);
    model::BundleMember member;
    member.email = fields.text("email");
    if (!member.email.empty() && !text::is_email(member.email)) {
      if (const auto at = fields.find("email"))
        at->problem("expected an e-mail address such as ann@example.com");
    }
    member.name = fields.find("name") ? fields.name("name") : member.email;
    if (const auto roles = fields.find("roles")) {
      member.roles = roles->unique([](const View& item) { return item.one_of(project_roles); });
    }
    member.allowed_locales = fields.names("allowedLocales");
    fields.each("allowedLocales", [&](const View& item) {
      expect_known(item, "the project has no locale", locales_);
    });
    return member;
  }

  model::BundleToken read_token(const View& view) {
    const Fields fields(view, token_keys);
    model::BundleToken token;
    token.label = fields.name("label");
    token.type = fields.one_of("type");
    token.script = fields.optional_text("script");
    return token;
  }

  model::BundleConnection read_connection(const View& view) {
    const Fields fields(view, connection_keys);
    model::BundleConnection connection;
    connection.name = fields.name("name");
    connection.type = fields.one_of("type");
    connection.fields = nlohmann::json::object();
    connection.source = nlohmann::json::object();
    if (const auto values = fields.find("fields")) {
      (void)values->expect_mapping();
      for (const auto& member : values->value().members()) {
        const View at = values->member(member);
        // Calls send only texts, and exports would write a secret of another type in clear.
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
    // A secret that stands in clear in the file has no source.
    for (auto& [name, value] : connection.source.items()) {
      if (model::is_secret_field(connection.type, name) &&
          !has_variable(value.get_ref<const std::string&>())) {
        value = nullptr;
      }
    }
    return connection;
  }

  static std::vector<std::string> read_hosts(const Fields& fields, std::string_view type) {
    const auto at = fields.find("hosts");
    if (!at) return {};
    if (type == "llm")
      at->problem("a Connection of type llm goes to its baseUrl only; remove `hosts`");
    if (at->value().is_array() && at->value().items().empty()) {
      at->problem("the list is empty; leave `hosts` out if the Connection is for any host");
    }
    return at->unique([](const View& item) -> std::optional<std::string> {
      const auto text = item.text();
      if (!text) return std::nullopt;
      auto host = model::authority_of(*text);
      if (model::is_host(host) && host.size() == text->size()) return host;
      item.problem("expected a host, and maybe its port, such as crm.example.com:8443");
      return std::nullopt;
    });
  }

  void check_connection(const Fields& fields, const model::BundleConnection& connection) {
    const auto at = fields.find("fields");
    const View& place = at ? *at : fields.view();
    if (at && !at->value().is_object()) return;
    for (const auto& name : required_fields(connection.type)) {
      if (!at || at->value().find(name) == nullptr) {
        place.problem("a Connection of type " + connection.type + " needs the field '" + name +
                      "'");
      } else if (!connection.source.contains(name)) {
        continue;  // not a text; reported already
      } else if (connection.source[name].get_ref<const std::string&>().empty()) {
        place.problem("the field '" + name + "' is empty; write a text");
      } else if (const auto& url = connection.fields[name].get_ref<const std::string&>();
                 name == "baseUrl" && !url.empty() &&
                 is_known(connection.source[name].get_ref<const std::string&>()) &&
                 !is_base_url(url)) {
        place.problem(
            "the field 'baseUrl' must be an absolute http or https URL without query and '..', "
            "such "
            "as https://llm.example.com/v1");
      }
    }
  }

  // Whether the text has a `${NAME}`. `$${` is none.
  static bool has_variable(std::string_view text) {
    for (auto at = text.find("${"); at != std::string_view::npos; at = text.find("${", at + 2)) {
      if (at == 0 || text[at - 1] != '$') return true;
    }
    return false;
  }

  // Whether all variables of the text have values, so that the text can be checked.
  [[nodiscard]] bool is_known(std::string_view text) const {
    return variables_ == Variables::needed || !has_variable(text);
  }

  // The text with each `${NAME}` replaced. `$${` becomes `${`.
  std::string expand(const View& view, const std::string& text) {
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
        view.problem("the environment variable " + name +
                     " is not set; set it for the import, or by `environment` of a test file");
      }
      at = end + 1;
    }
  }

  model::BundleLexicon read_lexicon(const View& view) {
    const Fields fields(view, lexicon_keys);
    model::BundleLexicon lexicon;
    lexicon.name = fields.name("name");
    lexicon.slots = fields.names("slots");
    const Names slots(lexicon.slots.begin(), lexicon.slots.end());
    read_list(fields, "entries", "mainKeyphrase", &model::BundleLexiconEntry::main_keyphrase,
              lexicon.entries,
              [&slots](BundleReader&, const View& item) { return read_entry(item, slots); });
    return lexicon;
  }

  static model::BundleLexiconEntry read_entry(const View& view, const Names& slots) {
    const Fields fields(view, entry_keys);
    model::BundleLexiconEntry entry;
    entry.main_keyphrase = fields.name("mainKeyphrase");
    entry.keyphrases = fields.names("keyphrases");
    entry.slots = fields.names("slots");
    fields.each("slots",
                [&](const View& item) { expect_known(item, "the lexicon has no slot", slots); });
    if (const auto data = fields.find("data")) entry.data = data->value().to_json();
    return entry;
  }

  model::BundleKnowledgeStore read_knowledge_store(const View& view) {
    const Fields fields(view, knowledge_store_keys);
    model::BundleKnowledgeStore store;
    store.name = fields.name("name");
    read_list(fields, "sources", "name", &model::BundleSource::name, store.sources,
              &BundleReader::read_source);
    return store;
  }

  model::BundleSource read_source(const View& view) {
    const Fields fields(view, source_keys);
    model::BundleSource source;
    source.name = fields.name("name");
    fields.each("chunks", [&](const View& item) {
      const Fields chunk_fields(item, chunk_keys);
      model::BundleChunk chunk;
      chunk.text = chunk_fields.text("text");
      if (const auto data = chunk_fields.find("data")) chunk.data = data->value().to_json();
      source.chunks.push_back(std::move(chunk));
    });
    return source;
  }

  model::BundleFlow read_flow(const View& view) {
    model::BundleFlow flow;
    if (Flow::compile(view, &known_) != nullptr) flow.definition = view.value().to_json();
    flow.name = text_in(view.value(), "name");
    return flow;
  }

  model::BundleEndpoint read_endpoint(const View& view) {
    const Fields fields(view, endpoint_keys);
    model::BundleEndpoint endpoint;
    endpoint.name = fields.name("name");
    endpoint.flow = fields.name("flow");
    if (const auto at = fields.find("flow"); at && !endpoint.flow.empty()) {
      expect_known(*at, "there is no Flow", known_.flows);
    }
    endpoint.session_expiry = fields.duration("sessionExpiry").value_or(endpoint.session_expiry);
    endpoint.active_only = fields.flag("activeOnly");
    endpoint.error_text = fields.optional_text("errorText");
    if (const auto at = fields.find("errorText")) expect_short(*at);
    endpoint.error_flow = fields.name("onError");
    if (const auto at = fields.find("onError"); at && !endpoint.error_flow.empty()) {
      expect_known(*at, "there is no Flow", known_.flows);
      if (endpoint.error_flow == endpoint.flow) {
        at->problem("the Flow can't handle its own errors; name another one");
      }
    }
    if (const auto at = fields.find("urlToken")) {
      endpoint.url_token = at->text().value_or("");
      if (at->value().is_text() && !model::is_url_token(endpoint.url_token)) {
        at->problem("a URL token is 64 characters of 0-9 and a-f");
      }
      expect_unique(view, "urlToken", endpoint.url_token, url_tokens_);
    }
    if (const auto at = fields.find("output")) read_output(*at, endpoint);
    return endpoint;
  }

  void read_output(const View& view, model::BundleEndpoint& endpoint) {
    const Fields fields(view, output_keys);
    const auto at = fields.find("webhook");
    if (!at) return;
    const Fields webhook_fields(*at, webhook_keys);
    model::BundleWebhook webhook;
    if (const auto url = webhook_fields.find("url")) {
      const auto text = url->text();
      if (text) webhook.url = expand(*url, *text);
      if (text && has_variable(*text)) webhook.url_source = *text;
      if (const auto problem = model::url_problem(webhook.url);
          text && is_known(*text) && !problem.empty()) {
        url->problem(std::string(problem));
      }
    }
    if (const auto secret = webhook_fields.find("secret")) {
      webhook.secret_source = secret->text().value_or("");
      webhook.secret = expand(*secret, webhook.secret_source);
      if (secret->value().is_text() && webhook.secret_source.empty()) {
        secret->problem("the text is empty; write one, or leave `secret` out");
      }
      if (!webhook.secret.empty() && is_known(webhook.secret_source)) {
        const auto key = text::webhook_key(webhook.secret);
        if (!key) secret->problem(key.error().message);
      }
      if (!has_variable(webhook.secret_source)) webhook.secret_source.clear();
      webhook.has_secret = !webhook.secret.empty();
    }
    endpoint.webhook.push_back(std::move(webhook));
  }

  void read_proactive(const Fields& top) {
    const auto view = top.find("proactive");
    if (!view) return;
    const Fields fields(*view, proactive_keys);
    if (const auto journey = fields.find("journey")) read_journey(*journey);
    bundle_.proactive = view->value().to_json();
  }

  void read_journey(const View& view) {
    const Fields fields(view, journey_keys);
    const auto after = fields.duration("after");
    if (const auto flow = fields.find("flow")) {
      if (const auto at = fields.find("text"))
        at->problem("a journey has `text` or `flow`; remove one");
      if (flow->name()) expect_known(*flow, "there is no Flow", known_.flows);
    } else {
      if (!fields.find("text") && view.value().is_object()) view.problem("'text' is missing");
      read_journey_text(fields);
    }
    if (const auto at = fields.find("endpoint"); at && at->name()) {
      expect_known(*at, "there is no Endpoint", names_in(root_.value(), "endpoints", "name"));
    }
    const auto expires = fields.duration("expiresAfter");
    if (after && expires && *expires < *after) {
      fields.find("expiresAfter")
          ->problem(
              "is shorter than `after`: the follow-up would expire before it is due; make it "
              "longer");
    }
    for (const std::string_view most : {"maxPerSession", "maxPerDay"}) (void)fields.integer(most);
    if (const auto quiet = fields.find("quietHours")) read_quiet_hours(*quiet);
  }

  void read_journey_text(const Fields& fields) {
    const auto at = fields.find("text");
    if (!at) return;
    if (!at->value().is_object()) return expect_said(*at);
    expect_locales(*at, bundle_.locales);
    for (const auto& member : at->value().members()) expect_said(at->member(member));
  }

  const View root_;
  const Environment& environment_;
  const Variables variables_;
  model::Bundle bundle_;
  KnownNames known_;
  Names locales_;
  Names url_tokens_;
};

}  // namespace

model::Bundle read_bundle(const View& root, const Environment& environment, Variables variables) {
  return BundleReader(root, environment, variables).read();
}

}  // namespace conversed::flows
