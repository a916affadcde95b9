#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/model/result.h"

// The file of `conversectl login`: $XDG_CONFIG_HOME/conversectl/credentials, or below ~/.config.
// Only its owner may read it (mode 0600, in a folder of mode 0700). It is replaced as a whole.
namespace conversed::ctl {

struct Login {
  std::string email;
  std::string token;
  std::string id;  // of the token
  std::int64_t expires_at = 0;
};

// The login at the daemon of this URL. Nothing without one. `permission_denied` if other users can
// read the file, `invalid_argument` if it has another form.
[[nodiscard]] model::Result<std::optional<Login>> stored_login(const std::string& url);

// The URL of the newest login. Empty without one. Errors: those of the file, as above.
[[nodiscard]] model::Result<std::string> url_of_login();

// Stores the login, or removes it. `unavailable` if the file can't be written.
[[nodiscard]] model::Result<void> store_login(const std::string& url,
                                              const std::optional<Login>& login);

}  // namespace conversed::ctl
