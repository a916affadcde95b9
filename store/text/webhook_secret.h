#pragma once

#include <string>
#include <string_view>

#include "store/model/result.h"

// The secrets that sign webhooks, as Standard Webhooks has them (https://www.standardwebhooks.com).
namespace conversed::text {

// The HMAC key of a secret: `whsec_` and the base64 (RFC 4648 section 4, padded) of 24 to 64 bytes.
// `invalid_argument` names the problem of another text, without quoting it: receivers' libraries
// would derive another key from it.
[[nodiscard]] model::Result<std::string> webhook_key(std::string_view secret);

}  // namespace conversed::text
