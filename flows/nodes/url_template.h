#pragma once

#include <string>
#include <string_view>

#include "flows/node_types.h"

namespace conversed::flows {

// The URL of a request, with values in it. The author decides which resource is asked for, the
// values only which of its kind: a value can't climb in the path, end the path or the query, or add
// a parameter. Immutable.
class UrlTemplate {
 public:
  // Reads the field; required. Warns of values that stand in the URL unencoded.
  UrlTemplate(NodeConfig& config, std::string_view field);

  // What a URL can't hold is percent-encoded. `invalid_argument` says why this is no URL to call.
  [[nodiscard]] Result<std::string> render(const expression::Scope& scope) const;

 private:
  expression::Template text_;
};

}  // namespace conversed::flows
