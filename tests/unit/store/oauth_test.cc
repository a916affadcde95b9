#include "store/accounts/oauth.h"

#include <fstream>
#include <iterator>

#include "store/sql/sql.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using model::Errc;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr TokenLifetimes lifetimes{.access = hours(1), .refresh = hours(24)};

class OauthTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    auto& accounts = store_->accounts();
    organisation_ = accounts
                        .create_first_organisation("Acme", {.email = "ann@example.com",
                                                            .name = "Ann",
                                                            .roles = {"userAdmin"},
                                                            .password = "pass word of Ann"})
                        ->id;
    user_ = accounts.user_by_email(organisation_, "ann@example.com")->id;
    auto made = add_client();
    client_ = made.client.id;
    secret_ = made.secret;
  }

  Oauth& oauth() { return store_->oauth(); }
  NewOauthClient add_client(bool is_public = false) {
    return *oauth().create_client({.id = "",
                                   .organisation_id = organisation_,
                                   .name = "Shop",
                                   .is_public = is_public,
                                   .redirect_uris = {"https://shop.example/cb"},
                                   .password_grant = true});
  }
  NewOauthClient add_public_client() { return add_client(true); }
  SignIn password() {
    auto found = store_->accounts().authenticate("ann@example.com", "pass word of Ann");
    EXPECT_TRUE(found);
    return found ? found->sign_in : SignIn{};
  }
  IssuedTokens sign_in() { return *oauth().grant(client_, password(), lifetimes); }
  std::string new_code(std::optional<std::string> challenge = std::nullopt) {
    return *oauth().create_code({.client_id = client_,
                                 .sign_in = password(),
                                 .redirect_uri = "https://shop.example/cb",
                                 .redirect_uri_sent = true,
                                 .challenge = std::move(challenge)},
                                seconds(60));
  }
  CodeExchange exchange_of(const std::string& code) {
    return {.client_id = client_, .code = code, .redirect_uri = "https://shop.example/cb"};
  }
  bool works(const std::string& access) {
    return oauth().verify_access_token(access, clock_.now()).has_value();
  }

  std::string organisation_;
  std::string user_;
  std::string client_;
  std::string secret_;
};

TEST_F(OauthTest, ClientIsKnownByItsSecretAndAPublicOneByNone) {
  EXPECT_TRUE(oauth().authenticate_client(client_, secret_));
  EXPECT_EQ(oauth().authenticate_client(client_, "wrong").error().code, Errc::unauthenticated);
  EXPECT_EQ(oauth().authenticate_client(client_, std::nullopt).error().code, Errc::unauthenticated);
  EXPECT_EQ(oauth().authenticate_client("unknown", secret_).error().code, Errc::unauthenticated);
  const auto open = add_public_client();
  EXPECT_TRUE(open.secret.empty());
  EXPECT_TRUE(oauth().authenticate_client(open.client.id, std::nullopt));
  EXPECT_EQ(oauth().authenticate_client(open.client.id, "").error().code, Errc::unauthenticated);
}

TEST_F(OauthTest, NoCredentialIsStoredInClear) {
  const auto tokens = sign_in();
  const auto code = new_code();
  const auto secrets = {secret_, tokens.access, tokens.refresh, code};
  store_.reset();
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    std::ifstream stream(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    for (const auto& secret : secrets) {
      EXPECT_EQ(bytes.find(secret), std::string::npos) << file.path();
      EXPECT_EQ(bytes.find(secret.substr(4)), std::string::npos) << file.path();
    }
  }
}

TEST_F(OauthTest, AccessTokenActsAsItsUserUntilItExpires) {
  const auto tokens = sign_in();
  const auto found = oauth().verify_access_token(tokens.access, clock_.now());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->principal.user_id, user_);
  EXPECT_EQ(found->principal.organisation_roles, std::vector<std::string>{"userAdmin"});
  EXPECT_EQ(found->expires_at, clock_.now() + lifetimes.access);
  EXPECT_FALSE(works(tokens.refresh)) << "a refresh token is no access token";
  clock_.advance(lifetimes.access);
  EXPECT_FALSE(works(tokens.access));
}

TEST_F(OauthTest, RefreshTokenRotates) {
  const auto first = sign_in();
  const auto second = oauth().refresh(client_, first.refresh, lifetimes);
  ASSERT_TRUE(second);
  EXPECT_TRUE(works(second->access));
  EXPECT_TRUE(oauth().refresh(client_, second->refresh, lifetimes));
}

TEST_F(OauthTest, ReusedRefreshTokenEndsItsFamilyAndNoOther) {
  const auto other = sign_in();
  const auto first = sign_in();
  const auto second = *oauth().refresh(client_, first.refresh, lifetimes);
  const auto generation = oauth().generation();
  EXPECT_EQ(oauth().refresh(client_, first.refresh, lifetimes).error().code,
            Errc::invalid_argument);
  EXPECT_GT(oauth().generation(), generation) << "caches have to notice";
  EXPECT_FALSE(works(first.access));
  EXPECT_FALSE(works(second.access));
  EXPECT_FALSE(oauth().refresh(client_, second.refresh, lifetimes));
  EXPECT_TRUE(works(other.access));
}

TEST_F(OauthTest, RefreshTokenWorksForItsClientOnly) {
  const auto tokens = sign_in();
  const auto other = add_public_client().client.id;
  EXPECT_EQ(oauth().refresh(other, tokens.refresh, lifetimes).error().code, Errc::invalid_argument);
  ASSERT_TRUE(oauth().revoke(other, tokens.refresh));
  ASSERT_TRUE(oauth().revoke(other, tokens.access));
  EXPECT_TRUE(works(tokens.access));
  EXPECT_TRUE(oauth().refresh(client_, tokens.refresh, lifetimes));
}

TEST_F(OauthTest, RefreshTokenExpires) {
  const auto tokens = sign_in();
  clock_.advance(lifetimes.refresh);
  EXPECT_EQ(oauth().refresh(client_, tokens.refresh, lifetimes).error().code,
            Errc::invalid_argument);
}

TEST_F(OauthTest, CodeIsExchangedOnceAndASecondUseRevokesItsTokens) {
  const auto code = new_code();
  const auto tokens = oauth().exchange_code(exchange_of(code), lifetimes);
  ASSERT_TRUE(tokens);
  const auto refreshed = *oauth().refresh(client_, tokens->refresh, lifetimes);
  EXPECT_EQ(oauth().exchange_code(exchange_of(code), lifetimes).error().code,
            Errc::invalid_argument);
  EXPECT_FALSE(works(tokens->access));
  EXPECT_FALSE(works(refreshed.access));
  EXPECT_FALSE(oauth().refresh(client_, refreshed.refresh, lifetimes));
}

TEST_F(OauthTest, SecondUseIsNoticedLongAfterTheCodeHasExpired) {
  const auto code = new_code();
  const auto tokens = *oauth().exchange_code(exchange_of(code), lifetimes);
  clock_.advance(minutes(30));
  (void)sign_in();  // removes expired rows
  EXPECT_FALSE(oauth().exchange_code(exchange_of(code), lifetimes));
  EXPECT_FALSE(works(tokens.access));
}

TEST_F(OauthTest, CodeExpiresAfterItsMinute) {
  const auto code = new_code();
  clock_.advance(seconds(60));
  EXPECT_EQ(oauth().exchange_code(exchange_of(code), lifetimes).error().code,
            Errc::invalid_argument);
}

TEST_F(OauthTest, CodeNeedsItsClientItsAddressAndItsVerifier) {
  const auto code = new_code("challenge");
  auto good = exchange_of(code);
  good.challenge = "challenge";
  auto wrong = good;
  wrong.client_id = add_client().client.id;
  EXPECT_FALSE(oauth().exchange_code(wrong, lifetimes));
  wrong = good;
  wrong.redirect_uri = "https://shop.example/other";
  EXPECT_FALSE(oauth().exchange_code(wrong, lifetimes));
  wrong.redirect_uri = "";
  EXPECT_FALSE(oauth().exchange_code(wrong, lifetimes));
  wrong = good;
  wrong.challenge = "other";
  EXPECT_FALSE(oauth().exchange_code(wrong, lifetimes));
  wrong.challenge = std::nullopt;
  EXPECT_FALSE(oauth().exchange_code(wrong, lifetimes));
  EXPECT_TRUE(oauth().exchange_code(good, lifetimes))
      << "a failed exchange does not use the code up";
}

TEST_F(OauthTest, VerifierOfACodeWithoutChallengeIsRefused) {
  auto exchange = exchange_of(new_code());
  exchange.challenge = "challenge";
  EXPECT_FALSE(oauth().exchange_code(exchange, lifetimes));
}

TEST_F(OauthTest, RevokingARefreshTokenEndsItsFamily) {
  const auto tokens = sign_in();
  ASSERT_TRUE(oauth().revoke(client_, tokens.refresh));
  EXPECT_FALSE(works(tokens.access));
  EXPECT_FALSE(oauth().refresh(client_, tokens.refresh, lifetimes));
  EXPECT_TRUE(oauth().revoke(client_, tokens.refresh)) << "a repeated revocation is no error";
  EXPECT_TRUE(oauth().revoke(client_, "unknown"));
}

TEST_F(OauthTest, RevokingAnAccessTokenLeavesTheRefreshToken) {
  const auto tokens = sign_in();
  ASSERT_TRUE(oauth().revoke(client_, tokens.access));
  EXPECT_FALSE(works(tokens.access));
  EXPECT_TRUE(oauth().refresh(client_, tokens.refresh, lifetimes));
}

TEST_F(OauthTest, DeprecatedOrNewPasswordEndsTheUsersTokensAndCodes) {
  for (const bool deprecate : {true, false}) {
    ASSERT_TRUE(store_->accounts().set_password(organisation_, user_, "pass word of Ann"));
    const auto tokens = sign_in();
    const auto code = new_code();
    const auto password = deprecate ? std::nullopt : std::optional<std::string>("another password");
    ASSERT_TRUE(store_->accounts().set_password(organisation_, user_, password));
    EXPECT_FALSE(works(tokens.access));
    EXPECT_FALSE(oauth().refresh(client_, tokens.refresh, lifetimes));
    EXPECT_FALSE(oauth().exchange_code(exchange_of(code), lifetimes));
  }
}

TEST_F(OauthTest, SignInThatAChangeOfThePasswordOvertookIsGrantedNothing) {
  const auto grants_nothing = [&](const SignIn& checked) {
    EXPECT_EQ(oauth().grant(client_, checked, lifetimes).error().code, Errc::unauthenticated);
    EXPECT_EQ(oauth()
                  .create_code({.client_id = client_, .sign_in = checked, .redirect_uri = ""},
                               seconds(60))
                  .error()
                  .code,
              Errc::unauthenticated);
  };
  const auto checked = password();
  // Setting the same password again counts as a change, because it is meant to end old sign-ins.
  ASSERT_TRUE(store_->accounts().set_password(organisation_, user_, "pass word of Ann"));
  grants_nothing(checked);
  EXPECT_TRUE(oauth().grant(client_, password(), lifetimes));
  const auto newer = password();
  ASSERT_TRUE(store_->accounts().set_password(organisation_, user_, std::nullopt));
  grants_nothing(newer);
}

TEST_F(OauthTest, RemovedClientTakesItsTokensWithIt) {
  const auto tokens = sign_in();
  (void)new_code();
  EXPECT_EQ(oauth().remove_client("foreign", client_).error().code, Errc::not_found);
  EXPECT_TRUE(works(tokens.access));
  ASSERT_TRUE(oauth().remove_client(organisation_, client_));
  EXPECT_FALSE(works(tokens.access));
  EXPECT_EQ(oauth().client(client_).error().code, Errc::not_found);
  EXPECT_TRUE(oauth().clients(organisation_)->empty());
}

TEST_F(OauthTest, ExpiredRowsAreRemovedByLaterSignIns) {
  for (int i = 0; i < 20; ++i) {
    (void)sign_in();
    (void)new_code();
  }
  clock_.advance(lifetimes.refresh + seconds(1));
  for (int i = 0; i < 10; ++i) (void)sign_in();
  std::int64_t rows = 0;
  ASSERT_TRUE(store_->committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
    auto& connection = writer.connection();
    rows = *connection.value<std::int64_t>("SELECT COUNT(*) FROM oauth_tokens") +
           *connection.value<std::int64_t>("SELECT COUNT(*) FROM oauth_grants") +
           *connection.value<std::int64_t>("SELECT COUNT(*) FROM oauth_codes");
    return {};
  }));
  EXPECT_EQ(rows, 10 * 3) << "two tokens and a grant of each living sign-in";
}

TEST_F(OauthTest, SealedTextOpensUnchangedOnly) {
  const auto sealed = oauth().seal("text");
  EXPECT_EQ(*oauth().open_sealed(sealed), "text");
  EXPECT_EQ(sealed.find("text"), std::string::npos);
  auto changed = sealed;
  changed[changed.size() - 8] = changed[changed.size() - 8] == 'A' ? 'B' : 'A';
  EXPECT_EQ(oauth().open_sealed(changed).error().code, Errc::invalid_argument);
  EXPECT_EQ(oauth().open_sealed("").error().code, Errc::invalid_argument);
}

TEST_F(OauthTest, RemovedUsersTokensAndCodesEnd) {
  const auto admin = store_->accounts().create_user(organisation_, {.email = "admin@example.com"});
  ASSERT_TRUE(admin);
  const auto tokens = sign_in();
  const auto code = new_code();
  ASSERT_TRUE(store_->accounts().remove_user(organisation_, user_));
  EXPECT_FALSE(works(tokens.access));
  EXPECT_EQ(oauth().refresh(client_, tokens.refresh, lifetimes).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(oauth().exchange_code(exchange_of(code), lifetimes).error().code,
            Errc::invalid_argument);
}

}  // namespace
}  // namespace conversed::store
