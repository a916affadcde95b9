#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "flows/turn/turn.h"

namespace conversed::api {

class AssetsCache;

// A project's Flows and lexicons from the cache of assets, so that a look seldom reads the store.
// The session decides about versions in ramps. Thread-safe.
class ProjectLibrary final : public flows::Library {
 public:
  // All must outlive it.
  ProjectLibrary(AssetsCache& cache, const model::ProjectAssets& project,
                 const model::SessionKey& session)
      : cache_(cache), project_(project), session_(session) {}

  [[nodiscard]] model::Result<FoundFlow> flow(const std::string& name,
                                              std::int64_t version) const override;
  [[nodiscard]] model::Result<std::shared_ptr<const flows::lexicon::Lexicon>> find_lexicon(
      const std::string& name) const override;

 private:
  AssetsCache& cache_;
  const model::ProjectAssets& project_;
  const model::SessionKey& session_;
};

}  // namespace conversed::api
