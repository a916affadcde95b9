#include "flows/bundle/loader.h"

#include <utility>

#include "flows/bundle/bundle_reader.h"
#include "flows/bundle/source.h"

namespace conversed::flows {

Checked<model::Bundle> load_bundle(std::string_view text, std::string_view file_name,
                                   const Environment& environment, const LoadLimits& limits) {
  auto located = read_source(text, file_name, limits);
  if (!located) return tl::unexpected<Problems>(std::move(located.error()));
  Report report{std::string(file_name), limits.max_problems};
  BundleReader reader(View(*located, report), environment, limits.variables);
  model::Bundle bundle = reader.read();
  if (report.size() > 0) return tl::unexpected<Problems>(report.take());
  return bundle;
}

}  // namespace conversed::flows
