#include "config/load.h"

#include <gtest/gtest.h>

namespace conversed::config {
namespace {

TEST(Warnings, TellOfContactCenterTokensWhoseIssuerAndAudienceAreNotChecked) {
  Settings settings;
  EXPECT_TRUE(warnings_of(settings).empty()) << "the settings accept no tokens";
  settings.contact_center.jwks_file = "/etc/conversed/jwks.json";
  ASSERT_EQ(warnings_of(settings).size(), 1U);
  EXPECT_NE(warnings_of(settings)[0].find("contact_center.issuer"), std::string::npos);

  auto with_issuer = settings;
  with_issuer.contact_center.issuer = "https://center.example";
  EXPECT_TRUE(warnings_of(with_issuer).empty());
  settings.contact_center.audience = "conversed";
  EXPECT_TRUE(warnings_of(settings).empty());

  Settings with_secret;
  with_secret.contact_center.secret_file = "/etc/conversed/secret";
  EXPECT_EQ(warnings_of(with_secret).size(), 1U);
}

}  // namespace
}  // namespace conversed::config
