// Writes a Bundle as the text of a file: the reverse of bundle_reader.cc.
#include "flows/bundle/loader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "flows/node_types.h"
#include "store/text/quantity.h"
#include "store/yaml/writer.h"

namespace conversed::flows {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json in_order(const json& value);

// The keys of `first` in their order, then the others by name.
ordered_json with_first(const json& object, const std::vector<std::string_view>& first) {
  // Appends, because a look-up by name compares all earlier members.
  ordered_json::object_t ordered;
  for (const auto name : first) {
    const auto found = object.find(std::string(name));
    if (found != object.end()) ordered.emplace_back(std::string(name), in_order(*found));
  }
  for (const auto& [name, member] : object.items()) {
    if (std::find(first.begin(), first.end(), name) != first.end()) continue;
    ordered.emplace_back(name, in_order(member));
  }
  return ordered;
}

const NodeType* type_of(const json& object) {
  for (const auto& [name, member] : object.items()) {
    if (const NodeType* type = find_node_type(name)) return type;
  }
  return nullptr;
}

// A Node with readable order: its id, its type, then fields beside the type. Fields have the order
// of the type's documentation.
ordered_json node_in_order(const json& node, const NodeType& type) {
  std::vector<std::string_view> beside{"id", type.name};
  std::vector<std::string_view> inside;
  for (const NodeField& field : type.fields) {
    inside.push_back(field.name);
    if (field.is_beside) beside.push_back(field.name);
  }
  auto ordered = with_first(node, beside);
  const auto& config = node[std::string(type.name)];
  if (config.is_object() && !type.is_free_form()) {
    ordered[std::string(type.name)] = with_first(config, inside);
  }
  return ordered;
}

ordered_json in_order(const json& value) {
  if (value.is_array()) {
    ordered_json list = ordered_json::array();
    for (const auto& item : value) list.push_back(in_order(item));
    return list;
  }
  if (!value.is_object()) return ordered_json(value);
  if (const NodeType* type = type_of(value)) return node_in_order(value, *type);
  return with_first(value, {});
}

// Escapes `${NAME}` in a text that must stay as it is.
std::string escaped(std::string text) {
  for (auto at = text.find("${"); at != std::string::npos; at = text.find("${", at + 3)) {
    text.insert(at, 1, '$');
  }
  return text;
}

// The names of variables: names in sources, and new names for secrets without a source.
class Variables {
 public:
  void add_source(const std::string& text) {
    for (auto at = text.find("${"); at != std::string::npos; at = text.find("${", at + 2)) {
      const auto end = text.find('}', at);
      if (end == std::string::npos || (at > 0 && text[at - 1] == '$')) continue;
      names_.insert(text.substr(at + 2, end - at - 2));
    }
  }

  // `${CRM_TOKEN}` for the parts `crm` and `token`. Numbered if the name is taken.
  std::string make(std::initializer_list<std::string_view> parts) {
    std::string name;
    for (const auto part : parts) {
      if (!name.empty()) name += '_';
      for (const char c : part) {
        const bool is_lower = c >= 'a' && c <= 'z';
        const bool stays = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (is_lower) name += static_cast<char>(c - 'a' + 'A');
        if (stays) name += c;
        if (!is_lower && !stays && !name.ends_with('_')) name += '_';
      }
    }
    if (name.empty() || (name.front() >= '0' && name.front() <= '9')) name.insert(0, 1, '_');
    std::string unique = name;
    for (int n = 2; !names_.insert(unique).second; ++n) unique = name + '_' + std::to_string(n);
    return "${" + unique + "}";
  }

  [[nodiscard]] std::vector<std::string> all() const { return {names_.begin(), names_.end()}; }

 private:
  std::set<std::string> names_;
};

class BundleWriter {
 public:
  explicit BundleWriter(const model::Bundle& bundle) : bundle_(bundle) {}

  WrittenBundle write() {
    collect_variables();
    ordered_json top{{"conversed", 1},
                     {"project", {{"name", bundle_.project_name}, {"locales", bundle_.locales}}}};
    add(top, "members", bundle_.members, &BundleWriter::member);
    add(top, "tokens", bundle_.tokens, &BundleWriter::token);
    add(top, "connections", bundle_.connections, &BundleWriter::connection);
    add(top, "lexicons", bundle_.lexicons, &BundleWriter::lexicon);
    add(top, "knowledgeStores", bundle_.knowledge_stores, &BundleWriter::knowledge_store);
    add(top, "flows", bundle_.flows, &BundleWriter::flow);
    add(top, "endpoints", bundle_.endpoints, &BundleWriter::endpoint);
    if (!bundle_.proactive.is_null()) top["proactive"] = in_order(bundle_.proactive);
    return {.text = yaml::write(top), .variables = variables_.all()};
  }

 private:
  template <typename Part>
  void add(ordered_json& top, const char* name, const std::vector<Part>& parts,
           ordered_json (BundleWriter::*write_part)(const Part&)) {
    if (parts.empty()) return;
    auto& list = top[name] = ordered_json::array();
    for (const Part& part : parts) list.push_back((this->*write_part)(part));
  }

  // Collects the authors' names first, so that no new name equals one of them.
  void collect_variables() {
    for (const auto& connection : bundle_.connections) {
      for (const auto& value : connection.source) {
        if (value.is_string()) variables_.add_source(value.get_ref<const std::string&>());
      }
    }
    for (const auto& endpoint : bundle_.endpoints) {
      for (const auto& webhook : endpoint.webhook) {
        variables_.add_source(webhook.url_source);
        variables_.add_source(webhook.secret_source);
      }
    }
  }

  ordered_json member(const model::BundleMember& member) {
    ordered_json out{{"email", member.email}, {"name", member.name}};
    if (!member.roles.empty()) out["roles"] = member.roles;
    if (!member.allowed_locales.empty()) out["allowedLocales"] = member.allowed_locales;
    return out;
  }

  ordered_json token(const model::BundleToken& token) {
    return {{"label", token.label}, {"type", token.type}, {"script", token.script}};
  }

  ordered_json connection(const model::BundleConnection& connection) {
    ordered_json out{{"name", connection.name}, {"type", connection.type}};
    if (!connection.hosts.empty()) out["hosts"] = connection.hosts;
    auto& fields = out["fields"] = ordered_json::object();
    for (const auto& [name, source] : connection.source.items()) {
      fields[name] = source.is_null() ? ordered_json(variables_.make({connection.name, name}))
                                      : ordered_json(source);
    }
    return out;
  }

  ordered_json lexicon(const model::BundleLexicon& lexicon) {
    ordered_json out{{"name", lexicon.name}};
    if (!lexicon.slots.empty()) out["slots"] = lexicon.slots;
    auto& entries = out["entries"] = ordered_json::array();
    for (const auto& entry : lexicon.entries) {
      ordered_json one{{"mainKeyphrase", entry.main_keyphrase}};
      if (!entry.keyphrases.empty()) one["keyphrases"] = entry.keyphrases;
      if (!entry.slots.empty()) one["slots"] = entry.slots;
      if (!entry.data.is_null()) one["data"] = in_order(entry.data);
      entries.push_back(std::move(one));
    }
    return out;
  }

  ordered_json knowledge_store(const model::BundleKnowledgeStore& store) {
    ordered_json out{{"name", store.name}};
    auto& sources = out["sources"] = ordered_json::array();
    for (const auto& source : store.sources) {
      ordered_json chunks = ordered_json::array();
      for (const auto& chunk : source.chunks) {
        ordered_json one{{"text", chunk.text}};
        if (!chunk.data.is_null()) one["data"] = in_order(chunk.data);
        chunks.push_back(std::move(one));
      }
      sources.push_back({{"name", source.name}, {"chunks", std::move(chunks)}});
    }
    return out;
  }

  ordered_json flow(const model::BundleFlow& flow) {
    return with_first(flow.definition, {"name", "lexicons", "nodes"});
  }

  ordered_json endpoint(const model::BundleEndpoint& endpoint) {
    ordered_json out{{"name", endpoint.name},
                     {"flow", endpoint.flow},
                     {"sessionExpiry", text::duration_text(endpoint.session_expiry)}};
    if (endpoint.active_only) out["activeOnly"] = true;
    if (!endpoint.error_text.empty()) out["errorText"] = endpoint.error_text;
    if (!endpoint.error_flow.empty()) out["onError"] = endpoint.error_flow;
    if (!endpoint.url_token.empty()) out["urlToken"] = endpoint.url_token;
    for (const auto& webhook : endpoint.webhook) {
      auto& to = out["output"]["webhook"];
      to["url"] = webhook.url_source.empty() ? escaped(webhook.url) : webhook.url_source;
      if (!webhook.secret_source.empty()) {
        to["secret"] = webhook.secret_source;
      } else if (webhook.has_secret) {
        to["secret"] = variables_.make({endpoint.name, "webhook", "secret"});
      }
    }
    return out;
  }

  const model::Bundle& bundle_;
  Variables variables_;
};

}  // namespace

WrittenBundle write_bundle(const model::Bundle& bundle) {
  return BundleWriter(bundle).write();
}

}  // namespace conversed::flows
