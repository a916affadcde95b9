#include "api/live/project_library.h"

#include "api/live/assets_cache.h"

namespace conversed::api {

using model::fail;
using model::Result;

Result<flows::Library::FoundFlow> ProjectLibrary::flow(const std::string& name,
                                                       std::int64_t version) const {
  const auto id = project_.flow_ids.find(name);
  if (id == project_.flow_ids.end()) return fail(model::Errc::not_found, "there is no such Flow");
  auto found = version == 0 ? cache_.flow_for(project_, id->second, session_)
                            : cache_.flow(id->second, version);
  if (!found) return fail(found.error());
  return FoundFlow{(*found)->flow, (*found)->version.version};
}

Result<std::shared_ptr<const flows::lexicon::Lexicon>> ProjectLibrary::find_lexicon(
    const std::string& name) const {
  return cache_.lexicon(project_.project_id, name);
}

}  // namespace conversed::api
