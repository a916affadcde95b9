#pragma once

#include <memory>
#include <string>

#include "api/live/assets_cache.h"
#include "flows/turn/library.h"
#include "store/model/assets.h"

namespace conversed::daemon {

// A project's Flows and lexicons as its Turns find them: from the cache of assets, so a look seldom
// reads the store. What it refers to must outlive it. Thread-safe.
class ProjectLibrary final : public flows::Library {
 public:
  ProjectLibrary(api::AssetsCache& cache, const model::ProjectAssets& project)
      : cache_(cache), project_(project) {}

  [[nodiscard]] model::Result<FoundFlow> flow(const std::string& name,
                                              std::int64_t version) const override;
  [[nodiscard]] model::Result<std::shared_ptr<const flows::lexicon::Lexicon>> find_lexicon(
      const std::string& name) const override;

 private:
  api::AssetsCache& cache_;
  const model::ProjectAssets& project_;
};

}  // namespace conversed::daemon
