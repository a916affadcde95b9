#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

// A project as its author writes it: one checked bundle, with names instead of ids. The loader in
// flows/ makes it from a file. The store imports it whole or not at all and gives ids to new
// assets.
namespace conversed::model {

struct BundleMember {
  std::string email;
  std::string name;
  std::vector<std::string> roles;
  std::vector<std::string> allowed_locales;  // names of the project's locales
};

struct BundleToken {
  std::string label;
  std::string type;  // profile, input, context, custom, answer, flow-output or flow-input
  std::string script;
};

// The fields are texts with each `${NAME}` replaced; the store seals them. `source` has them as
// written, for an export, and null for a secret without a `${NAME}`: its source is the secret.
struct BundleConnection {
  std::string name;
  std::string type;  // httpBasic, httpBearer, httpHeader or llm
  nlohmann::json fields{};
  nlohmann::json source;
  std::vector<std::string>
      hosts{};  // "host" or "host:port" requests may go only there; empty: anywhere
};

// Whether a field of a Connection of that type is a secret. Unknown fields are.
[[nodiscard]] constexpr bool is_secret_field(std::string_view type, std::string_view field) {
  if (type == "httpBasic") return field != "username";
  if (type == "httpHeader") return field != "name";
  if (type == "llm") return field != "baseUrl" && field != "model";
  return true;
}

struct BundleLexiconEntry {
  std::string main_keyphrase;
  std::vector<std::string> keyphrases;
  std::vector<std::string> slots;  // names, each among the lexicon's
  nlohmann::json data;
};

struct BundleLexicon {
  std::string name;
  std::vector<std::string> slots;
  std::vector<BundleLexiconEntry> entries;
};

struct BundleChunk {
  std::string text;
  nlohmann::json data;
};

struct BundleSource {
  std::string name;
  std::vector<BundleChunk> chunks;
};

struct BundleKnowledgeStore {
  std::string name;
  std::vector<BundleSource> sources;
};

struct BundleFlow {
  std::string name;
  nlohmann::json definition;  // what Flow::compile takes: {"name","lexicons":[names],"nodes":[...]}
};

struct BundleWebhook {
  std::string url;
  std::string secret{};       // sealed by the store; an export has none
  std::string secret_source;  // as written, if a `${NAME}` is in it; else empty
  std::string url_source{};   // likewise
  bool has_secret = false;    // set by an export, which does not open it
};

struct BundleEndpoint {
  std::string name;
  std::string flow;  // a name among the bundle's Flows
  std::chrono::milliseconds session_expiry{30 * 60 * 1000};
  bool active_only = false;
  std::string error_text;    // sent when a Turn fails; empty: nothing
  std::string error_flow{};  // runs instead; a name among the bundle's Flows; empty: none
  std::string url_token;     // 64 hex characters, or empty: made at the first import
  std::vector<BundleWebhook> webhook{};  // none or one
};

struct Bundle {
  std::string project_name;
  std::vector<std::string> locales;  // at least one; the first is the primary one
  std::vector<BundleMember> members;
  std::vector<BundleToken> tokens;
  std::vector<BundleConnection> connections;
  std::vector<BundleLexicon> lexicons;
  std::vector<BundleKnowledgeStore> knowledge_stores;
  std::vector<BundleFlow> flows;
  std::vector<BundleEndpoint> endpoints;
  nlohmann::json proactive;  // null, or the checked `proactive` part
};

}  // namespace conversed::model
