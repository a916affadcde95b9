#include "config/warnings.h"

namespace conversed::config {

std::vector<std::string> warnings_of(const Settings& settings) {
  std::vector<std::string> warnings;
  const ContactCenterSettings& center = settings.contact_center;
  const bool takes_tokens =
      !center.jwks_file.empty() || !center.secret.empty() || !center.secret_file.empty();
  if (takes_tokens && center.issuer.empty() && center.audience.empty()) {
    warnings.emplace_back(
        "contact-center tokens are accepted with any iss and aud, also those that the platform "
        "signs "
        "for other services; set contact_center.issuer or contact_center.audience");
  }
  return warnings;
}

}  // namespace conversed::config
