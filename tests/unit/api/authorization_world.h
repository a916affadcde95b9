// Users, objects and credentials for the authorization matrix, over a World.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/api/api_world.h"

struct sqlite3;

namespace conversed::api::test {

// One object of each kind that a path or a body can name. `ids` are by path parameter.
struct Objects {
  std::string label;         // "own", "sibling", "foreign", "missing"
  std::string organisation;  // empty: these objects are missing
  std::string project;
  std::string project_name;
  std::string email;  // of a user of the organisation
  std::map<std::string, std::string, std::less<>> ids{};

  [[nodiscard]] bool exist() const { return !organisation.empty(); }
};

// A user and the user's roles.
struct Actor {
  std::string email;
  std::string id{};
  std::string organisation{};
  std::set<Role> organisation_roles{};
  std::map<std::string, std::set<Role>> project_roles{};  // by project id
  std::string key{};
  std::string access_token{};
};

// The kinds of credentials.
enum class Means { key_header, key_query, contact_center, access_token, basic };
inline constexpr Means api_means[] = {Means::key_header, Means::key_query, Means::contact_center,
                                      Means::access_token};

struct Shown {
  HeaderList headers;
  HeaderList query;
};

// Acme's projects Shop ("own") and Side ("sibling") and Other's project Abroad ("foreign") have
// objects of all kinds. "missing" objects have no owner. For each role, one user holds it in Shop
// and another user holds it in the organisation.
class AuthorizationWorld {
 public:
  AuthorizationWorld();
  ~AuthorizationWorld();

  [[nodiscard]] const std::vector<Actor>& actors() const { return actors_; }
  [[nodiscard]] const Actor& actor(std::string_view email) const;
  [[nodiscard]] const Actor& everything() const { return actor("everything@acme.example"); }

  [[nodiscard]] std::vector<Objects> objects() const {
    return {own_, sibling_, foreign_, missing_};
  }
  // The objects of `own` with the actor's own account.
  [[nodiscard]] Objects account_of(const Actor& actor) const;
  // Creates the object again that a granted request would remove.
  void renew(const Operation& operation, Objects& objects);

  [[nodiscard]] Shown show(Means means, const Actor& actor);
  [[nodiscard]] std::string contact_center_token(const nlohmann::json& claims,
                                                 const std::string& secret = {}) const;
  [[nodiscard]] nlohmann::json claims_of(std::string_view subject) const;
  // Issues an access token. `lifetime` limits it.
  [[nodiscard]] store::IssuedTokens sign_in(
      const Actor& actor, std::chrono::milliseconds lifetime = std::chrono::hours(1000));
  [[nodiscard]] const std::string& client_of(const std::string& organisation) const;

  // Waits for the writes that earlier answers did not wait for, and stores what the next sign-ins
  // would store. After it, only granted requests change the fingerprint.
  void settle();
  // A text that differs after any change of the store or the log.
  [[nodiscard]] std::string fingerprint();

  World world;
  std::string acme;
  std::string other;
  std::string client_secret;  // of Acme's OAuth client

 private:
  void add_organisations();
  Objects import_objects(const std::string& label, const std::string& organisation,
                         const std::string& project, char endpoint, const std::string& email);
  void add_member(const Objects& objects, const std::string& email);
  std::string put_session(const Objects& objects);
  std::string put_dead_letter(const Objects& objects);
  std::string put_delivery(const Objects& objects);
  std::string put_paused(const Objects& objects);
  std::string put_schedule(const Objects& objects);
  std::string put_management_token(const Objects& objects);
  void add_held_version(const Objects& objects, char endpoint);
  void put_ramp(const Objects& objects, const Operation& operation);
  // Adds a user with roles in the organisation, or in the project of `in`.
  void add_actor(const std::string& organisation, const std::string& email,
                 const std::set<Role>& roles, const Objects* in = nullptr);
  void add_actors();
  void finish(Actor& actor);

  std::vector<Actor> actors_;
  Objects own_;
  Objects sibling_;
  Objects foreign_;
  Objects missing_;
  std::map<std::string, std::string> clients_;  // OAuth clients by organisation
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> reader_;
  int made_ = 0;
};

// Every role that can be given to a user.
[[nodiscard]] std::vector<Role> all_roles();
// False for roles of the organisation or the installation, which no project can give.
[[nodiscard]] bool is_project_role(Role role);

}  // namespace conversed::api::test
