#pragma once

#include <string>
#include <string_view>

#include "flows/node_types.h"

namespace conversed::flows {

// The URL of a request, with values in it. A value can't climb in the path, end the path or the
// query, or add a parameter. Kept by: HttpRequestNode.NoValueClimbsOutOfItsPlaceInThePath,
// HttpRequestNode.NoValueAddsAParameterToTheQuery. Immutable.
class UrlTemplate {
 public:
  // Reads the field; required. Warns of values that stand in the URL unencoded.
  UrlTemplate(NodeConfig& config, std::string_view field);

  // Percent-encodes what a URL can't hold. `invalid_argument` says why the URL is refused.
  [[nodiscard]] Result<std::string> render(const expression::Scope& scope) const;

 private:
  expression::Template text_;
};

}  // namespace conversed::flows
