#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "store/model/assets.h"
#include "store/model/event.h"
#include "store/model/keyed_hash.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"

namespace conversed::flows {
class Flow;
}
namespace conversed::flows::lexicon {
class Lexicon;
}
namespace conversed::store {
class Assets;
}

namespace conversed::api {

// A cached value, shared with its users.
template <typename T>
using Shared = model::Result<std::shared_ptr<const T>>;

// One version of a Flow, ready to run.
struct CompiledFlow {
  model::FlowVersion version;  // without its definition
  std::shared_ptr<const flows::Flow> flow;
};

struct CompiledLexicon {
  std::string id;
  std::int64_t version = 0;
  std::shared_ptr<const flows::lexicon::Lexicon> lexicon;
};

// Values read from the store under one generation. Thread-safe, one lock for each shard. Bounded: a
// full shard drops its stale values, and if none is stale, all.
template <typename Value>
class GenerationCache {
 public:
  using Outcome = Shared<Value>;

  explicit GenerationCache(std::size_t max_entries)
      : max_in_shard_(std::max<std::size_t>(1, max_entries / shard_count)) {}

  // The cached outcome, or the outcome of `read`. `read` runs outside the lock, so two threads may
  // read the same value at once. A missing value is cached. A failure of the store is not.
  template <typename Read>
  Outcome get(std::string_view key, std::uint64_t generation, const Read& read) {
    auto& shard = shard_of(key);
    const Entry found = shard.with([&](const Map& entries) -> Entry {
      const auto place = entries.find(key);
      return place != entries.end() ? place->second : Entry{};
    });
    if (found.outcome && found.generation == generation) return *found.outcome;
    auto outcome = std::make_shared<const Outcome>(read());
    if (keeps(*outcome)) {
      shard.with([&](Map& entries) {
        make_room(entries, generation);
        entries.insert_or_assign(std::string(key), Entry{generation, outcome});
      });
    }
    return *outcome;
  }

  // The value read under any generation. Null if none was read, or it was missing.
  std::shared_ptr<const Value> known(std::string_view key) const {
    return shard_of(key).with([&](const Map& entries) -> std::shared_ptr<const Value> {
      const auto place = entries.find(key);
      return place != entries.end() ? place->second.outcome->value_or(nullptr) : nullptr;
    });
  }

 private:
  struct Entry {
    std::uint64_t generation = 0;
    std::shared_ptr<const Outcome> outcome;
  };
  using Map = std::unordered_map<std::string, Entry, model::KeyedHash, std::equal_to<>>;
  using Shard = model::Guarded<Map>;
  static constexpr std::size_t shard_count = 16;

  const Shard& shard_of(std::string_view key) const {
    return shards_[model::FastHash{}(key) % shard_count];
  }
  Shard& shard_of(std::string_view key) { return shards_[model::FastHash{}(key) % shard_count]; }

  static bool keeps(const Outcome& outcome) {
    return outcome || outcome.error().code == model::Errc::not_found ||
           outcome.error().code == model::Errc::internal;
  }
  void make_room(Map& entries, std::uint64_t generation) const {
    if (entries.size() < max_in_shard_) return;
    std::erase_if(entries, [&](const auto& item) { return item.second.generation != generation; });
    if (entries.size() >= max_in_shard_) entries.clear();
  }

  const std::size_t max_in_shard_;
  std::array<Shard, shard_count> shards_;
};

// The assets that every request and every Turn needs, read from the store once for each generation
// of the assets. A write of assets (an import, a deleted Connection) takes effect at the next
// look-up. Cached assets stay available while the store fails. Thread-safe. A miss costs a point
// select on the calling thread.
//
// Errors: `not_found`; `internal`, with the asset's name, for stored data that can't be used, such
// as a Flow that does not compile (cached until the next generation); `unavailable` from the store
// (not cached).
class AssetsCache {
 public:
  explicit AssetsCache(store::Assets& store);  // must outlive this

  [[nodiscard]] Shared<model::Endpoint> endpoint_by_token(std::string_view url_token);
  [[nodiscard]] Shared<model::Endpoint> endpoint(std::string_view endpoint_id);

  // The Endpoint if it was looked up before. It may be stale, but its organisation and project
  // never change. Does not read the store.
  [[nodiscard]] std::shared_ptr<const model::Endpoint> known_endpoint(
      std::string_view endpoint_id) const {
    return by_id_.known(endpoint_id);
  }

  // The version in effect.
  [[nodiscard]] Shared<CompiledFlow> newest_flow(std::string_view flow_id);
  // The version that a new execution of the session runs: the version in effect, or in the Flow's
  // ramp. `project`: the Flow's.
  [[nodiscard]] Shared<CompiledFlow> flow_for(const model::ProjectAssets& project,
                                              std::string_view flow_id,
                                              const model::SessionKey& session);
  // The version that a pinned execution continues with. It never changes and stays cached.
  [[nodiscard]] Shared<CompiledFlow> flow(std::string_view flow_id, std::int64_t version);

  [[nodiscard]] Shared<model::ProjectAssets> project(std::string_view project_id);
  // A lexicon of the project, ready for searches. Making a large one takes some tenths of a second,
  // once for each of its versions. Kept by: AssetsCache.ALexiconIsMadeOnceAVersion.
  [[nodiscard]] Shared<flows::lexicon::Lexicon> lexicon(const std::string& project_id,
                                                        const std::string& name);

 private:
  store::Assets& store_;
  GenerationCache<model::Endpoint> by_token_;
  GenerationCache<model::Endpoint> by_id_;
  GenerationCache<CompiledFlow> newest_;
  GenerationCache<CompiledFlow> versions_;
  GenerationCache<model::ProjectAssets> projects_;
  GenerationCache<CompiledLexicon> lexicons_;
};

}  // namespace conversed::api
