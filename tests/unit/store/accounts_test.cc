#include "store/accounts/accounts.h"

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
                 .password = "pass word of Ann"});
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
  EXPECT_EQ(accounts().organisations()->size(), 1U) << "the organisation is undone with its user";
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
  const auto found = accounts().authenticate("ann@example.com", "pass word of Ann");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sign_in.user_id, user_);
  EXPECT_EQ(found->principal.user_id, user_);
  EXPECT_EQ(found->principal.organisation_roles,
            (std::vector<std::string>{"projectAdmin", "userAdmin"}));
  EXPECT_EQ(accounts().authenticate("ann@example.com", "password").error().code,
            Errc::unauthenticated);
  EXPECT_EQ(accounts().authenticate("eve@example.com", "pass word of Ann").error().code,
            Errc::unauthenticated);
  EXPECT_EQ(accounts().set_password("foreign", user_, std::nullopt).error().code, Errc::not_found);
  ASSERT_TRUE(accounts().set_password(organisation_, user_, std::nullopt));
  EXPECT_EQ(accounts().authenticate("ann@example.com", "pass word of Ann").error().code,
            Errc::unauthenticated);
  ASSERT_TRUE(accounts().set_password(organisation_, user_, "a new password"));
  EXPECT_TRUE(accounts().authenticate("ann@example.com", "a new password"));
}

TEST_F(AccountsTest, ManagementTokenActsAsItsUserUntilItExpiresOrIsRevoked) {
  const auto now = store_->timer_now();
  const auto made = accounts().create_management_token(organisation_,
                                                       {.id = "",
                                                        .name = "script",
                                                        .user_id = user_,
                                                        .scopes = {"read", "userAdmin"},
                                                        .expires_at = now + std::chrono::hours(1)});
  ASSERT_TRUE(made) << made.error().message;
  const auto verify = [&](std::string_view email, std::string_view secret, model::Timestamp at) {
    return accounts().verify_management_token(email, secret, at);
  };
  const auto verified = verify("ANN@example.com", made->secret, now);
  ASSERT_TRUE(verified) << verified.error().message;
  EXPECT_EQ(verified->principal.user_id, user_);
  EXPECT_EQ(verified->principal.key_id, made->token.id);
  EXPECT_EQ(verified->principal.scopes, (std::vector<std::string>{"read", "userAdmin"}));
  EXPECT_EQ(verify("eve@example.com", made->secret, now).error().code, Errc::unauthenticated);
  EXPECT_EQ(verify("ann@example.com", made->secret, made->token.expires_at).error().code,
            Errc::unauthenticated);
  EXPECT_EQ(accounts().management_tokens(organisation_)->size(), 1U);
  EXPECT_EQ(accounts().revoke_management_token("foreign", made->token.id).error().code,
            Errc::not_found);
  ASSERT_TRUE(accounts().revoke_management_token(organisation_, made->token.id));
  EXPECT_EQ(verify("ann@example.com", made->secret, now).error().code, Errc::unauthenticated);
}

TEST_F(AccountsTest, ExpiredManagementTokensAreRemovedByTheNextOneAndTheirNumberIsBounded) {
  const auto create = [&](std::chrono::hours life) {
    return accounts().create_management_token(organisation_,
                                              {.id = "",
                                               .name = "script",
                                               .user_id = user_,
                                               .scopes = {"all"},
                                               .expires_at = store_->timer_now() + life});
  };
  ASSERT_TRUE(create(std::chrono::hours(-1)));
  for (std::int64_t n = 0; n < Accounts::max_tokens_of_user; ++n) {
    ASSERT_TRUE(create(std::chrono::hours(1)));
  }
  EXPECT_EQ(accounts().management_tokens(organisation_)->size(),
            static_cast<std::size_t>(Accounts::max_tokens_of_user));
  EXPECT_EQ(create(std::chrono::hours(1)).error().code, Errc::conflict);
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

TEST_F(AccountsTest, PasswordHasTwelveCharactersAndIsNoneOfTheMostCommon) {
  const auto set = [&](const std::string& password) {
    const auto done = accounts().set_password(organisation_, user_, password);
    return done ? std::string() : done.error().message;
  };
  for (const char* short_one : {"", "elevenchars", "ÄÖÜäöüÄÖÜäö"}) {
    EXPECT_NE(set(short_one).find("at least 12 characters"), std::string::npos) << short_one;
  }
  for (const char* common :
       {"123456789012", "password1234", "PASSWORDPASSWORD", "Password2024", "qwertyuiop123",
        "iloveyou12345", "p@ssw0rd1234", "1q2w3e4r5t6y", "letmeinletmein", "administrator"}) {
    EXPECT_NE(set(common).find("one of the most common"), std::string::npos) << common;
  }
  for (const char* good : {"twelve chars", "ÄÖÜäöüÄÖÜäöü", "two password1234"}) {
    EXPECT_EQ(set(good), "") << good;
  }
}

TEST_F(AccountsTest, EveryWayToSetAPasswordRefusesACommonOne) {
  const std::string common = "password1234";
  const Accounts::NewUser user{.email = "x@example.com", .name = "X", .password = common};
  EXPECT_EQ(accounts().create_user(organisation_, user).error().code, Errc::invalid_argument);
  EXPECT_EQ(accounts().create_organisation("Other", user).error().code, Errc::invalid_argument);
  EXPECT_EQ(accounts().create_first_organisation("First", user).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(accounts().set_password(organisation_, user_, common).error().code,
            Errc::invalid_argument);
}

TEST_F(AccountsTest, RemovedUserTakesKeysAndMembershipsAlong) {
  const auto bob = accounts().create_user(
      organisation_, {.email = "bob@example.com", .name = "Bob", .password = "pass word of Bob"});
  ASSERT_TRUE(bob);
  const auto key = accounts().create_api_key(organisation_, bob->id, "ci");
  ASSERT_TRUE(key);
  EXPECT_EQ(accounts().remove_user("foreign", bob->id).error().code, Errc::not_found);
  const auto generation = accounts().generation();
  ASSERT_TRUE(accounts().remove_user(organisation_, bob->id));
  EXPECT_GT(accounts().generation(), generation) << "caches have to notice";
  EXPECT_EQ(accounts().verify_api_key(key->secret).error().code, Errc::unauthenticated);
  EXPECT_EQ(accounts().authenticate("bob@example.com", "pass word of Bob").error().code,
            Errc::unauthenticated);
  EXPECT_EQ(accounts().remove_user(organisation_, bob->id).error().code, Errc::not_found);
  EXPECT_TRUE(accounts().create_user(organisation_, {.email = "bob@example.com", .name = "Bob"}))
      << "a removed user's address is free again";
}

TEST_F(AccountsTest, ChangedRolesHoldAtOnceAndInTheOwnOrganisationAlone) {
  const auto generation = accounts().generation();
  EXPECT_EQ(accounts().set_roles("foreign", user_, {}).error().code, Errc::not_found);
  ASSERT_TRUE(accounts().set_roles(organisation_, user_, {"tokenAdmin"}));
  EXPECT_GT(accounts().generation(), generation) << "caches have to notice";
  EXPECT_EQ(accounts().user(organisation_, user_)->roles, std::vector<std::string>{"tokenAdmin"});
}

TEST_F(AccountsTest, EarlierKeysDoNotBecomeThoseOfAPlatformAdmin) {
  const auto key = accounts().create_api_key(organisation_, user_, "made by a userAdmin");
  ASSERT_TRUE(key);
  ASSERT_TRUE(accounts().set_roles(organisation_, user_, {"userAdmin"}));
  EXPECT_TRUE(accounts().verify_api_key(key->secret)) << "other roles do not change keys";
  ASSERT_TRUE(accounts().set_roles(organisation_, user_, {"platformAdmin", "userAdmin"}));
  EXPECT_EQ(accounts().verify_api_key(key->secret).error().code, Errc::unauthenticated);
  const auto own = accounts().create_api_key(organisation_, user_, "own");
  ASSERT_TRUE(own);
  ASSERT_TRUE(accounts().set_roles(organisation_, user_, {"platformAdmin"}));
  EXPECT_TRUE(accounts().verify_api_key(own->secret));
}

TEST_F(AccountsTest, LastPlatformAdminWithAPasswordStays) {
  ASSERT_TRUE(accounts().set_roles(organisation_, user_, {"platformAdmin"}));
  // A platformAdmin of any organisation counts. Without a password a user can't sign in.
  const auto other = accounts().create_organisation(
      "Other", {.email = "o@other.example", .name = "O", .roles = {"platformAdmin"}});
  ASSERT_TRUE(other);
  const auto second = accounts().user_by_email(other->id, "o@other.example")->id;
  EXPECT_EQ(accounts().remove_user(organisation_, user_).error().code, Errc::conflict);
  EXPECT_EQ(accounts().set_roles(organisation_, user_, {"userAdmin"}).error().code, Errc::conflict);
  EXPECT_EQ(accounts().set_password(organisation_, user_, std::nullopt).error().code,
            Errc::conflict);
  EXPECT_TRUE(accounts().set_roles(organisation_, user_, {"platformAdmin", "userAdmin"}));
  EXPECT_TRUE(accounts().authenticate("ann@example.com", "pass word of Ann"));

  ASSERT_TRUE(accounts().set_password(other->id, second, "pass word of O"));
  EXPECT_TRUE(accounts().set_password(organisation_, user_, std::nullopt));
  EXPECT_TRUE(accounts().remove_user(organisation_, user_));
  EXPECT_EQ(accounts().remove_user(other->id, second).error().code, Errc::conflict);
}

TEST_F(AccountsTest, DomainOfAnOrganisationIsClosedToOthers) {
  const auto other = accounts().create_organisation("Other", {.email = "eve@acme.example"})->id;
  const auto set = accounts().set_domains(organisation_, {"ACME.example", "acme.example"});
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->organisation.domains, std::vector<std::string>{"acme.example"});
  EXPECT_EQ(set->strangers, std::vector<std::string>{"eve@acme.example"});
  EXPECT_EQ(accounts().create_user(other, {.email = "bob@Acme.Example"}).error().code,
            Errc::conflict);
  EXPECT_EQ(accounts().create_organisation("Third", {.email = "c@acme.example"}).error().code,
            Errc::conflict);
  model::Bundle bundle;
  bundle.project_name = "Shop";
  bundle.locales = {"en"};
  bundle.members = {{.email = "dan@acme.example", .name = "Dan", .roles = {}}};
  EXPECT_EQ(store_->assets().import_bundle(other, bundle).error().code, Errc::conflict);
  EXPECT_TRUE(accounts().create_user(other, {.email = "bob@sub.acme.example"}));
  EXPECT_TRUE(accounts().create_user(organisation_, {.email = "bob@acme.example"}));

  EXPECT_EQ(accounts().set_domains(other, {"acme.example"}).error().code, Errc::conflict);
  for (const char* none : {"", "a b", "x@acme.example"}) {
    EXPECT_EQ(accounts().set_domains(other, {none}).error().code, Errc::invalid_argument) << none;
  }
  EXPECT_EQ(accounts().set_domains("unknown", {}).error().code, Errc::not_found);
  ASSERT_TRUE(accounts().set_domains(organisation_, {}));
  EXPECT_TRUE(accounts().set_domains(other, {"acme.example"}));
  const auto organisations = accounts().organisations();
  for (const auto& each : *organisations) {
    EXPECT_EQ(each.domains.size(), each.id == other ? 1U : 0U);
  }
}

TEST_F(AccountsTest, PrincipalIsOfTheNamedOrganisation) {
  EXPECT_EQ(accounts().principal_in("", "ann@example.com")->user_id, user_);
  const auto other = accounts().create_organisation("Other", {.email = "eve@other.example"})->id;
  EXPECT_EQ(accounts().principal_in("", "ann@example.com").error().code, Errc::not_found)
      << "two organisations are possible";
  for (const std::string& acme : {std::string("Acme"), organisation_}) {
    EXPECT_EQ(accounts().principal_in(acme, user_)->user_id, user_);
    EXPECT_EQ(accounts().principal_in(acme, "ANN@example.com")->user_id, user_);
    EXPECT_EQ(accounts().principal_in(acme, "eve@other.example").error().code, Errc::not_found);
  }
  EXPECT_EQ(accounts().principal_in("Other", user_).error().code, Errc::not_found);
  EXPECT_EQ(accounts().principal_in("None", user_).error().code, Errc::not_found);
}

}  // namespace
}  // namespace conversed::store
