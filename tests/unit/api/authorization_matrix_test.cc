// Tests the authorization of every row of the operation table. It asks with each kind of credential
// in each state and with each role, about objects of the user's project, of another project, of
// another organisation, and about missing objects. The row's role and the rules of the API give the
// expected answer. A new row is tested without further code, or the test asks for its sample
// request.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/unit/api/authorization_samples.h"
#include "tests/unit/api/authorization_world.h"
#include "tests/unit/api/hmac_token.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::Actor;
using test::AuthorizationWorld;
using test::header;
using test::Means;
using test::Objects;
using test::SampleRequest;
using test::Scope;
using test::Sent;
using test::Shown;

enum class Verdict { granted, denied, hidden };

// --- The rules ----------------------------------------------------------------------------------

bool has_in_project(const Actor& actor, const std::string& project, Role role) {
  std::set<Role> held;
  for (const Role each : actor.organisation_roles) {
    if (test::is_project_role(each)) held.insert(each);
  }
  const auto there = actor.project_roles.find(project);
  if (there != actor.project_roles.end()) held.insert(there->second.begin(), there->second.end());
  return held.contains(role) || held.contains(Role::project_admin);
}

bool has_any_project_role(const Actor& actor) {
  return std::any_of(actor.organisation_roles.begin(), actor.organisation_roles.end(),
                     test::is_project_role);
}

Verdict in_project(const Operation& operation, const Actor& actor, const Objects& objects) {
  const bool is_member =
      has_any_project_role(actor) || actor.project_roles.contains(objects.project);
  if (!objects.exist() || actor.organisation != objects.organisation || !is_member) {
    return Verdict::hidden;
  }
  const bool suffices =
      operation.role == Role::member || has_in_project(actor, objects.project, operation.role);
  return suffices ? Verdict::granted : Verdict::denied;
}

Verdict expected(const Operation& operation, const SampleRequest& sample, const Actor& actor,
                 const Objects& objects) {
  const auto has = [&](Role role) { return actor.organisation_roles.contains(role); };
  const bool visible = objects.exist() && objects.organisation == actor.organisation;
  switch (sample.scope) {
    case Scope::open:
      return Verdict::granted;
    case Scope::project:
      return in_project(operation, actor, objects);
    case Scope::named:
      // A new project needs the role in the organisation. A name without a visible project does,
      // too.
      return has_in_project(actor, visible ? objects.project : "", operation.role)
                 ? Verdict::granted
                 : Verdict::denied;
    case Scope::membership:
      return has_any_project_role(actor) || !actor.project_roles.empty() ? Verdict::granted
                                                                         : Verdict::denied;
    case Scope::account:
      if (objects.email == actor.email) return Verdict::granted;
      if (has(Role::user_admin)) return visible ? Verdict::granted : Verdict::hidden;
      return sample.refused_unseen ? Verdict::denied : Verdict::hidden;
    case Scope::organisation:
      if (!has(operation.role) && sample.refused_unseen) return Verdict::denied;
      if (!visible) return Verdict::hidden;
      return has(operation.role) ? Verdict::granted : Verdict::denied;
    case Scope::installation:
      if (!has(operation.role)) return Verdict::denied;
      return objects.exist() ? Verdict::granted : Verdict::hidden;
  }
  return Verdict::hidden;
}

// --- Requests -----------------------------------------------------------------------------------

Sent with(Sent sent, const Shown& shown) {
  sent.headers.insert(sent.headers.end(), shown.headers.begin(), shown.headers.end());
  sent.query.insert(sent.query.end(), shown.query.begin(), shown.query.end());
  return sent;
}

// The whole answer without the ids of the objects in the request.
std::string masked(const Response& response, const Objects& objects) {
  std::string text = std::to_string(response.status) + "\n" + response.content_type + "\n";
  for (const auto& [name, value] : response.headers) text.append(name + ": " + value + "\n");
  text += response.body;
  for (const auto& [name, id] : objects.ids) {
    for (auto at = text.find(id); at != std::string::npos; at = text.find(id)) {
      text.replace(at, id.size(), "ID");
    }
  }
  return text;
}

class AuthorizationMatrix : public testing::Test {
 protected:
  // Fails the test if a row of the table has no sample.
  static SampleRequest sample(const Operation& operation, const Objects& objects) {
    auto sample = test::sample_request(operation, objects);
    EXPECT_TRUE(sample) << operation.id
                        << " has no sample request: add one to authorization_samples.cc, or what "
                           "its path names to AuthorizationWorld";
    return sample ? *std::move(sample) : SampleRequest{};
  }

  // True if the request names an object.
  bool is_about_objects(const Operation& operation) {
    const auto differs = [](const Sent& a, const Sent& b) {
      return a.path != b.path || a.query != b.query;
    };
    const auto of_own = sample(operation, objects_.front());
    const auto of_missing = sample(operation, objects_.back());
    if (differs(of_own.sent, of_missing.sent)) return true;
    // Bodies that create objects are unique each time. Bodies that name objects are not.
    return of_own.sent.body == sample(operation, objects_.front()).sent.body &&
           of_own.sent.body != of_missing.sent.body;
  }

  std::vector<Objects> objects_for(const Operation& operation, const Actor& actor) {
    const bool is_account = sample(operation, objects_.front()).scope == Scope::account;
    const auto own = is_account ? matrix_.account_of(actor) : objects_.front();
    if (!is_about_objects(operation)) {
      auto of_actor = own;
      of_actor.organisation = actor.organisation;
      return {of_actor};
    }
    return {own, objects_[1], objects_[2], objects_[3]};
  }

  // Asks about all objects by one row of the table, as one user, with one kind of credential.
  void ask_about_all_objects(const Operation& operation, const Actor& actor, Means means) {
    std::map<Verdict, std::string> refusals;
    for (Objects objects : objects_for(operation, actor)) {
      const auto verdict = expected(operation, sample(operation, objects), actor, objects);
      if (verdict == Verdict::granted) matrix_.renew(operation, objects);
      const auto request = sample(operation, objects);
      const auto shown = matrix_.show(means, actor);
      const auto before = matrix_.fingerprint();
      const auto answer = matrix_.world.call(with(request.sent, shown));
      const auto what = std::string(operation.id) + " of " + objects.label + " by " + actor.email;
      ++asked_;
      if (verdict == Verdict::granted) {
        EXPECT_TRUE(answer.status >= 200 && answer.status < 300)
            << what << ": " << answer.status << " " << answer.body;
        matrix_.settle();
        continue;
      }
      const int status = verdict == Verdict::denied ? 403 : request.hidden_status;
      EXPECT_EQ(answer.status, status) << what << ": " << answer.body;
      EXPECT_EQ(matrix_.fingerprint(), before) << what << " changed something";
      // The answer about a hidden object is the same as about a missing object.
      const bool unseen = verdict == Verdict::hidden || request.refused_unseen;
      if (!unseen) continue;
      const auto [first, is_first] = refusals.try_emplace(verdict, masked(answer, objects));
      if (is_first) continue;
      EXPECT_EQ(masked(answer, objects), first->second) << what;
    }
  }

  AuthorizationWorld matrix_;
  const std::vector<Objects> objects_ = matrix_.objects();
  int asked_ = 0;
};

TEST_F(AuthorizationMatrix, ByRoleAndOwnerOfEveryOperationForClients) {
  std::size_t turn = 0;
  for (const Operation* operation : all_operations()) {
    if (operation->credential != Credential::client) continue;
    for (const Actor& actor : matrix_.actors()) {
      if (actor.email.starts_with("retired")) continue;
      // The users take turns with the kinds of credentials.
      ask_about_all_objects(*operation, actor,
                            test::api_means[turn++ % std::size(test::api_means)]);
    }
  }
  RecordProperty("asked", asked_);
}

TEST_F(AuthorizationMatrix, ByRoleAndOwnerOfEveryOperationForOperators) {
  for (const Operation* operation : all_operations()) {
    if (operation->credential != Credential::basic) continue;
    for (const Actor& actor : matrix_.actors()) {
      if (actor.email.starts_with("retired")) continue;
      ask_about_all_objects(*operation, actor, Means::basic);
    }
  }
  RecordProperty("asked", asked_);
}

// --- States of credentials ----------------------------------------------------------------------

enum class Outcome { good, refused, ambiguous };

struct Presented {
  std::string name;
  Shown shown;
  Outcome to_api = Outcome::refused;         // of operations for clients
  Outcome to_management = Outcome::refused;  // of operations for operators
};

class CredentialStates : public AuthorizationMatrix {
 protected:
  CredentialStates() {
    auto& accounts = matrix_.world.store->accounts();
    const auto& user = matrix_.everything();
    // Credentials in each state, of users who hold all roles.
    const auto revoked = accounts.create_api_key(matrix_.acme, user.id, "to be revoked");
    revoked_key_ = revoked->secret;
    EXPECT_TRUE(accounts.revoke_api_key(matrix_.acme, revoked->key.id));
    expired_token_ = matrix_.sign_in(user, std::chrono::seconds(1)).access;
    const auto tokens = matrix_.sign_in(user);
    revoked_token_ = tokens.access;
    refresh_token_ = matrix_.sign_in(user).refresh;
    EXPECT_TRUE(
        matrix_.world.store->oauth().revoke(matrix_.client_of(matrix_.acme), revoked_token_));
    matrix_.world.clock.advance(std::chrono::hours(1));
    EXPECT_TRUE(accounts.set_password(matrix_.acme, retired_.id, std::nullopt));
    matrix_.settle();
  }

  static Shown key(const std::string& value) { return {{{"x-api-key", value}}, {}}; }
  static Shown query(const std::string& value) { return {{}, {{"api_key", value}}}; }
  static Shown authorization(const std::string& value) { return {{{"authorization", value}}, {}}; }
  static Shown contact_center(const std::string& value) {
    return {{{"x-contactcenter-authorization", value}}, {}};
  }
  static Shown both(Shown a, const Shown& b) {
    a.headers.insert(a.headers.end(), b.headers.begin(), b.headers.end());
    a.query.insert(a.query.end(), b.query.begin(), b.query.end());
    return a;
  }
  // Another secret of the same length and alphabet, which belongs to no user.
  static std::string altered(std::string secret) {
    secret.back() = secret.back() == '0' ? '1' : '0';
    return secret;
  }
  std::string signed_with(const std::function<void(json&)>& change) {
    auto claims = matrix_.claims_of(user().id);
    change(claims);
    return "Bearer " + matrix_.contact_center_token(claims);
  }
  const Actor& user() { return matrix_.everything(); }

  void add_keys(std::vector<Presented>& all) {
    const std::string& good = user().key;
    for (const auto& [place, show] : {std::pair{"header", &key}, std::pair{"query", &query}}) {
      const auto named = [name = std::string(place)](const char* state) {
        return "a key in the " + name + ", " + state;
      };
      all.push_back({named("valid"), show(good), Outcome::good});
      all.push_back({named("of a user without a password"), show(retired_.key), Outcome::good});
      all.push_back({named("empty"), show("")});
      all.push_back({named("garbled"), show("no key at all")});
      all.push_back({named("cut short"), show(good.substr(0, good.size() / 2))});
      all.push_back({named("unknown"), show(altered(good))});
      all.push_back({named("revoked"), show(revoked_key_)});
      all.push_back({named("with a scheme"), show("Bearer " + good)});
      all.push_back({named("an access token in its place"), show(user().access_token)});
    }
  }

  void add_contact_center_tokens(std::vector<Presented>& all) {
    const std::int64_t now = model::to_unix_ms(matrix_.world.clock.now()) / 1000;
    const auto add = [&](const char* state, const std::string& value,
                         Outcome outcome = Outcome::refused) {
      all.push_back(
          {std::string("a contact-center token, ") + state, contact_center(value), outcome});
    };
    const auto nothing = [](json&) {};
    add("valid", signed_with(nothing), Outcome::good);
    add("by e-mail address", signed_with([&](json& c) { c["sub"] = user().email; }), Outcome::good);
    add("of a user without a password", signed_with([&](json& c) { c["sub"] = retired_.id; }),
        Outcome::good);
    add("by the name of the organisation", signed_with([](json& c) { c["organisation"] = "Acme"; }),
        Outcome::good);
    add("of another organisation",
        signed_with([&](json& c) { c["organisation"] = matrix_.other; }));
    add("of no organisation", signed_with([](json& c) { c.erase("organisation"); }));
    add("of an empty organisation", signed_with([](json& c) { c["organisation"] = ""; }));
    add("expired", signed_with([&](json& c) { c["exp"] = now - 3600; }));
    add("not valid yet", signed_with([&](json& c) { c["nbf"] = now + 3600; }));
    add("of nobody", signed_with([](json& c) { c["sub"] = "nobody@acme.example"; }));
    add("of another center", "Bearer " + matrix_.contact_center_token(matrix_.claims_of(user().id),
                                                                      std::string(40, 'x')));
    add("unsigned",
        "Bearer " + test::unsigned_part({{"alg", "none"}}, matrix_.claims_of(user().id)) + ".");
    add("garbled", "Bearer a.b.c");
    add("without the word Bearer", signed_with(nothing).substr(7));
    add("an API key in its place", "Bearer " + user().key);
  }

  void add_access_tokens(std::vector<Presented>& all) {
    const auto add = [&](const char* state, const std::string& value,
                         Outcome outcome = Outcome::refused) {
      all.push_back({std::string("an access token, ") + state, authorization(value), outcome});
    };
    add("valid", "Bearer " + user().access_token, Outcome::good);
    add("valid, its scheme in lower case", "bearer  " + user().access_token, Outcome::good);
    add("empty", "Bearer");
    add("garbled", "Bearer no.token");
    add("unknown", "Bearer " + altered(user().access_token));
    add("expired", "Bearer " + expired_token_);
    add("revoked", "Bearer " + revoked_token_);
    add("of a user whose password was deprecated", "Bearer " + retired_.access_token);
    add("a refresh token in its place", "Bearer " + refresh_token_);
    add("an API key in its place", "Bearer " + user().key);
    add("with another scheme", "Token " + user().access_token);
    add("without a scheme", user().access_token);
  }

  void add_passwords(std::vector<Presented>& all) {
    const auto add = [&](const char* state, const std::string& value,
                         Outcome outcome = Outcome::refused) {
      all.push_back(
          {std::string("Basic, ") + state, authorization(value), Outcome::refused, outcome});
    };
    add("valid", matrix_.world.sign_in(user().email), Outcome::good);
    add("wrong", test::basic(user().email, "wrong"));
    add("of nobody", test::basic("nobody@acme.example", "secret secret"));
    add("deprecated", test::basic(retired_.email, "secret secret"));
    add("an API key for the password", test::basic(user().email, user().key));
    add("garbled", "Basic %%%");
    add("without a colon", "Basic bm9jb2xvbg==");
    add("empty", "Basic");
  }

  void add_several(std::vector<Presented>& all) {
    const auto good_key = key(user().key);
    const auto good_token = authorization("Bearer " + user().access_token);
    const auto good_basic = authorization(matrix_.world.sign_in(user().email));
    const auto add = [&](const char* name, const Shown& shown, Outcome to_api,
                         Outcome to_management = Outcome::refused) {
      all.push_back({name, shown, to_api, to_management});
    };
    add("the same key twice", both(good_key, query(user().key)), Outcome::good);
    add("two keys that differ", both(good_key, query(retired_.key)), Outcome::ambiguous);
    add("two keys in headers", both(good_key, key(retired_.key)), Outcome::ambiguous);
    add("a key and an access token", both(good_key, good_token), Outcome::ambiguous);
    add("a wrong key and an access token", both(key("wrong"), good_token), Outcome::ambiguous);
    add("a key and a contact-center token",
        both(good_key, contact_center(signed_with([](json&) {}))), Outcome::ambiguous);
    add("a key and Basic", both(good_key, good_basic), Outcome::good, Outcome::good);
    add("a wrong key and Basic", both(key("wrong"), good_basic), Outcome::refused, Outcome::good);
    add("a key and a wrong password",
        both(good_key, authorization(test::basic(user().email, "wrong"))), Outcome::good);
  }

  std::vector<Presented> all_states() {
    std::vector<Presented> all{{"nothing", {}}};
    add_keys(all);
    add_contact_center_tokens(all);
    add_access_tokens(all);
    add_passwords(all);
    add_several(all);
    return all;
  }

  void expect_refused(const Operation& operation, const Presented& presented, Outcome outcome,
                      const Response& answer) {
    const auto what = std::string(operation.id) + " with " + presented.name;
    EXPECT_EQ(answer.status, outcome == Outcome::ambiguous ? 400 : 401)
        << what << ": " << answer.body;
    const auto challenge = header(answer, "WWW-Authenticate");
    if (outcome == Outcome::ambiguous) {
      EXPECT_EQ(challenge, "") << what;
      return;
    }
    const bool is_management = operation.credential == Credential::basic;
    EXPECT_TRUE(challenge.starts_with(is_management ? "Basic " : "Bearer "))
        << what << ": " << challenge;
    const auto body = json::parse(answer.body);
    for (const auto& [place, list] : {std::pair{"header", presented.shown.headers},
                                      std::pair{"query", presented.shown.query}}) {
      for (const auto& [name, value] : list) {
        if (value.size() < 9) continue;  // skips words of the protocol, such as "Bearer"
        EXPECT_EQ(answer.body.find(value), std::string::npos) << what << ": the " << place;
      }
    }
    EXPECT_EQ(body.value("code", 0), 401) << what;
  }

  void present_all_to(const Operation& operation) {
    const auto objects = objects_for(operation, user());
    for (const Presented& presented : all_states()) {
      const auto what = std::string(operation.id) + " with " + presented.name;
      const auto outcome =
          operation.credential == Credential::basic ? presented.to_management : presented.to_api;
      Objects own = objects.front();
      if (outcome == Outcome::good) matrix_.renew(operation, own);
      const auto before = matrix_.fingerprint();
      const auto answer = matrix_.world.call(with(sample(operation, own).sent, presented.shown));
      if (outcome == Outcome::good) {
        EXPECT_TRUE(answer.status >= 200 && answer.status < 300) << what << ": " << answer.body;
        matrix_.settle();
        continue;
      }
      expect_refused(operation, presented, outcome, answer);
      EXPECT_EQ(matrix_.fingerprint(), before) << what;
      // The answer to an unknown user does not tell which objects exist.
      const auto of_missing =
          matrix_.world.call(with(sample(operation, objects_.back()).sent, presented.shown));
      EXPECT_EQ(masked(answer, own), masked(of_missing, objects_.back())) << what;
    }
    // Moves past the lock-out that the wrong passwords cause.
    matrix_.world.steady += std::chrono::hours(1);
  }

  const Actor retired_ = matrix_.actor("retired@acme.example");
  std::string revoked_key_;
  std::string expired_token_;
  std::string revoked_token_;
  std::string refresh_token_;
};

TEST_F(CredentialStates, OfEveryOperationForClients) {
  for (const Operation* operation : all_operations()) {
    if (operation->credential == Credential::client) present_all_to(*operation);
  }
}

TEST_F(CredentialStates, OfEveryOperationForOperators) {
  for (const Operation* operation : all_operations()) {
    if (operation->credential == Credential::basic) present_all_to(*operation);
  }
}

TEST_F(CredentialStates, DoNotMatterToOpenOperations) {
  for (const Operation* operation : all_operations()) {
    if (operation->credential != Credential::open) continue;
    auto request = sample(*operation, objects_.front()).sent;
    const bool of_clients =
        operation->path == "/auth/oauth2/token" || operation->path == "/auth/oauth2/revoke";
    if (of_clients) request.body += "&client_secret=" + matrix_.client_secret;
    const auto without = matrix_.world.call(request);
    EXPECT_TRUE(without.status != 401 && without.status != 403)
        << operation->id << ": " << without.body;
    for (const Presented& presented : all_states()) {
      const bool has_authorization =
          std::any_of(presented.shown.headers.begin(), presented.shown.headers.end(),
                      [](const auto& each) { return each.first == "authorization"; });
      // There the header authenticates the OAuth client (RFC 6749 section 2.3.1).
      if (of_clients && has_authorization) continue;
      const auto with_it = matrix_.world.call(with(request, presented.shown));
      EXPECT_EQ(with_it.status, without.status) << operation->id << " with " << presented.name;
    }
  }
}

}  // namespace
}  // namespace conversed::api
