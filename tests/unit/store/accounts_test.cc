#include "store/accounts.h"

#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using model::Errc;

class AccountsTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    auto made = store_->accounts().create_first_organisation(
        "Acme", {.email = "Ann@example.com",
                 .name = "Ann",
                 .roles = {"projectAdmin", "userAdmin"},
                 .password = "pass word"});
    ASSERT_TRUE(made) << made.error().message;
    organisation_ = made->id;
    user_ = store_->accounts().user_by_email(organisation_, "ann@EXAMPLE.com")->id;
  }
  Accounts& accounts() { return store_->accounts(); }

  std::string organisation_;
  std::string user_;
};

TEST_F(AccountsTest, SecondInitIsRefusedAndChangesNothing) {
  const auto again =
      accounts().create_first_organisation("Other", {.email = "x@example.com", .name = "X"});
  EXPECT_EQ(again.error().code, Errc::conflict);
  EXPECT_EQ(accounts().organisations()->size(), 1U);
  EXPECT_EQ(accounts().users(organisation_)->size(), 1U);
}

TEST_F(AccountsTest, AddressIsUniqueWithoutRegardToCase) {
  const auto again = accounts().create_user(organisation_, {.email = "ANN@example.com"});
  EXPECT_EQ(again.error().code, Errc::conflict);
  EXPECT_EQ(accounts().create_user(organisation_, {.email = "nobody"}).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(accounts().create_organisation("B", {.email = "ann@Example.com"}).error().code,
            Errc::conflict);
  EXPECT_EQ(accounts().organisations()->size(), 1U) << "the organisation was undone with its user";
}

TEST_F(AccountsTest, AddressHasOneAtAndNoBlanks) {
  for (const char* text :
       {"", "ann", "@example.com", "ann@", "ann b@example.com", "ann@exam ple.com",
        "ann\t@example.com", "ann@example.com\n", "ann\x7F@example.com"}) {
    const auto made = accounts().create_user(organisation_, {.email = text, .name = "Ann"});
    ASSERT_FALSE(made) << text;
    EXPECT_EQ(made.error().code, model::Errc::invalid_argument) << text;
  }
}

TEST_F(AccountsTest, PasswordOpensUntilItIsDeprecated) {
  const auto found = accounts().authenticate("ann@example.com", "pass word");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sign_in.user_id, user_);
  EXPECT_EQ(found->principal.user_id, user_);
  EXPECT_EQ(found->principal.organisation_roles,
            (std::vector<std::string>{"projectAdmin", "userAdmin"}));
  EXPECT_EQ(accounts().authenticate("ann@example.com", "password").error().code,
            Errc::unauthenticated);
  EXPECT_EQ(accounts().authenticate("eve@example.com", "pass word").error().code,
            Errc::unauthenticated);
  EXPECT_EQ(accounts().deprecate_password("foreign", user_).error().code, Errc::not_found);
  ASSERT_TRUE(accounts().deprecate_password(organisation_, user_));
  EXPECT_EQ(accounts().authenticate("ann@example.com", "pass word").error().code,
            Errc::unauthenticated);
  ASSERT_TRUE(accounts().set_password(organisation_, user_, "new one"));
  EXPECT_TRUE(accounts().authenticate("ann@example.com", "new one"));
}

TEST_F(AccountsTest, ApiKeyActsAsItsUserUntilRevoked) {
  const auto made = accounts().create_api_key(organisation_, user_, "ci");
  ASSERT_TRUE(made);
  const auto principal = accounts().verify_api_key(made->secret);
  ASSERT_TRUE(principal);
  EXPECT_EQ(principal->user_id, user_);
  EXPECT_EQ(principal->organisation_id, organisation_);
  EXPECT_EQ(principal->key_id, made->key.id);

  auto wrong = made->secret;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  EXPECT_EQ(accounts().verify_api_key(wrong).error().code, Errc::unauthenticated);
  EXPECT_EQ(accounts().verify_api_key("").error().code, Errc::unauthenticated);
  EXPECT_EQ(accounts().revoke_api_key("foreign", made->key.id).error().code, Errc::not_found);

  const auto generation = accounts().generation();
  ASSERT_TRUE(accounts().revoke_api_key(organisation_, made->key.id));
  EXPECT_GT(accounts().generation(), generation);
  EXPECT_EQ(accounts().verify_api_key(made->secret).error().code, Errc::unauthenticated);
  EXPECT_EQ(accounts().create_api_key("foreign", user_, "x").error().code, Errc::not_found);
}

}  // namespace
}  // namespace conversed::store
