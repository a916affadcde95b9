// Password guesses, and the users that they lock out: by Basic, by the password grant and on the
// page.
#include "tests/unit/api/oauth_fixture.h"

namespace conversed::api::test {
namespace {

using SignInTest = OauthTest;

TEST_F(SignInTest, GuessesOfStrangersLockStrangersOutForBasicAndOauthAlike) {
  for (int i = 0; i < 10; ++i) {
    address_ = "198.51.100." + std::to_string(i);
    EXPECT_EQ(sign_in("guess").status, 400);
  }
  address_ = "198.51.100.99";
  const auto locked = sign_in();
  EXPECT_EQ(locked.status, 429) << locked.body;
  EXPECT_FALSE(header(locked, "Retry-After").empty());
  EXPECT_EQ(world_.manage(Method::get, "/management/apikeys", nullptr, {}, ann).status, 429);
  const auto page = send_form(hidden(show_page(asked(public_))));
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.body.find("Too many"), std::string::npos);
  EXPECT_EQ(sign_in("secret secret", "admin@acme.example").status, 200);
  world_.steady += std::chrono::hours(1);
  EXPECT_EQ(sign_in().status, 200);
}

TEST_F(SignInTest, GuessesOfOthersDoNotLockAKnownAddressOut) {
  ASSERT_EQ(sign_in().status, 200);
  const std::string here = address_;
  for (int i = 0; i < 12; ++i) {
    address_ = "198.51.100." + std::to_string(i);
    (void)sign_in("guess");
  }
  EXPECT_EQ(sign_in().status, 429) << "this address is unknown";
  address_ = here;
  EXPECT_EQ(sign_in().status, 200);
  EXPECT_EQ(send_form(hidden(show_page(asked(public_)))).status, 303);
  EXPECT_EQ(world_.manage(Method::get, "/management/apikeys", nullptr, {}, ann).status, 200);
  // Failures from the known address count, too.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sign_in("guess").status, 400);
  EXPECT_EQ(sign_in().status, 429);
}

TEST_F(SignInTest, UnknownAccountsAreLockedOutLikeKnownOnes) {
  for (int i = 0; i < 10; ++i) (void)sign_in("guess", "nobody@acme.example");
  EXPECT_EQ(sign_in("guess", "nobody@acme.example").status, 429);
}

}  // namespace
}  // namespace conversed::api::test
