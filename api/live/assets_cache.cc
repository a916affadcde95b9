#include "api/live/assets_cache.h"

#include <optional>

#include "flows/flow.h"
#include "flows/lexicon/lexicon.h"
#include "flows/turn/share.h"
#include "store/assets/assets.h"
#include "store/model/json.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;

constexpr std::size_t max_endpoints = 16'384;  // unknown URLTokens take a place, too
constexpr std::size_t max_flows = 4'096;
constexpr std::size_t max_projects = 4'096;
constexpr std::size_t max_lexicons = 1'024;

// Makes a missing row an error, so that callers never get null.
template <typename T>
Result<T> required(Result<std::optional<T>>&& read, const char* what) {
  if (!read) return model::fail(read.error());
  if (!*read) return model::fail(Errc::not_found, what);
  return **std::move(read);
}

template <typename T>
Shared<T> share(Result<T>&& value) {
  if (!value) return model::fail(value.error());
  return std::make_shared<const T>(*std::move(value));
}

Shared<CompiledFlow> compile_flow(model::FlowVersion&& version) {
  auto flow = flows::Flow::compile_text(version.definition);
  if (!flow) {
    return model::fail(Errc::internal, "Flow \"" + version.name + "\" (" + version.flow_id +
                                           ", version " + std::to_string(version.version) +
                                           ") can't be run: " + flows::to_string(flow.error()));
  }
  version.definition.clear();
  return std::make_shared<const CompiledFlow>(CompiledFlow{std::move(version), std::move(*flow)});
}

Shared<flows::lexicon::Lexicon> compile_lexicon(store::Lexicon&& stored) {
  std::vector<flows::lexicon::Entry> entries;
  entries.reserve(stored.entries.size());
  for (auto& entry : stored.entries) {
    auto data = model::parse_json(entry.data);
    if (!data) {
      return model::fail(Errc::internal, "the lexicon \"" + stored.name + "\" (" + stored.id +
                                             ") holds data that can't be read");
    }
    entries.push_back({.main_keyphrase = std::move(entry.main_keyphrase),
                       .keyphrases = std::move(entry.keyphrases),
                       .slots = std::move(entry.slots),
                       .data = *std::move(data)});
  }
  return std::make_shared<const flows::lexicon::Lexicon>(
      std::move(stored.id), std::move(stored.name), std::move(entries));
}

}  // namespace

AssetsCache::AssetsCache(store::Assets& store)
    : store_(store),
      by_token_(max_endpoints),
      by_id_(max_endpoints),
      newest_(max_flows),
      versions_(max_flows),
      projects_(max_projects),
      lexicons_(max_lexicons) {}

Shared<model::Endpoint> AssetsCache::endpoint_by_token(std::string_view url_token) {
  return by_token_.get(url_token, store_.generation(), [&] {
    return share(required(store_.endpoint_by_token(std::string(url_token)),
                          "there is no Endpoint with this URLToken"));
  });
}

Shared<model::Endpoint> AssetsCache::endpoint(std::string_view endpoint_id) {
  return by_id_.get(endpoint_id, store_.generation(), [&] {
    return share(required(store_.endpoint(std::string(endpoint_id)), "there is no such Endpoint"));
  });
}

Shared<CompiledFlow> AssetsCache::newest_flow(std::string_view flow_id) {
  return newest_.get(flow_id, store_.generation(), [&]() -> Shared<CompiledFlow> {
    const auto stored = required(store_.flow(std::string(flow_id), 0), "there is no such Flow");
    if (!stored) return model::fail(stored.error());
    // The cache may have the compiled version already: most imports change few Flows.
    return flow(flow_id, stored->version);
  });
}

Shared<CompiledFlow> AssetsCache::flow_for(const model::ProjectAssets& project,
                                           std::string_view flow_id,
                                           const model::SessionKey& session) {
  if (const auto version = flows::version_for(project, flow_id, session); version != 0) {
    auto ramped = flow(flow_id, version);
    // `project` may be older than the end of the ramp and the removal of its version.
    if (ramped || ramped.error().code != Errc::not_found) return ramped;
  }
  return newest_flow(flow_id);
}

Shared<CompiledFlow> AssetsCache::flow(std::string_view flow_id, std::int64_t version) {
  const std::string key = std::string(flow_id) + ' ' + std::to_string(version);
  if (auto known = versions_.known(key)) return known;
  // A version that is missing now may be there in the next generation.
  return versions_.get(key, store_.generation(), [&] {
    return required(store_.flow(std::string(flow_id), version),
                    "there is no such version of the Flow")
        .and_then(compile_flow);
  });
}

Shared<model::ProjectAssets> AssetsCache::project(std::string_view project_id) {
  return projects_.get(project_id, store_.generation(),
                       [&] { return share(store_.project_assets(std::string(project_id))); });
}

Shared<flows::lexicon::Lexicon> AssetsCache::lexicon(const std::string& project_id,
                                                     const std::string& name) {
  const std::string key = project_id + ' ' + name;
  constexpr const char* missing = "there is no such lexicon";
  const auto cached = lexicons_.get(key, store_.generation(), [&]() -> Shared<CompiledLexicon> {
    const auto version = required(store_.lexicon_version(project_id, name), missing);
    if (!version) return model::fail(version.error());
    // Most changes of assets, such as another project's import, leave the lexicon as it is.
    if (auto known = lexicons_.known(key);
        known && known->id == version->id && known->version == version->version) {
      return known;
    }
    auto lexicon = required(store_.lexicon(project_id, name), missing).and_then(compile_lexicon);
    if (!lexicon) return model::fail(lexicon.error());
    return std::make_shared<const CompiledLexicon>(
        CompiledLexicon{version->id, version->version, *std::move(lexicon)});
  });
  if (!cached) return model::fail(cached.error());
  return (*cached)->lexicon;
}

}  // namespace conversed::api
