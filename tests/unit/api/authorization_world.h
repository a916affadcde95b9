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

// One of each kind of object that a path or a body can name. `ids` are by path parameter.
struct Objects {
  std::string label;         // "own", "sibling", "foreign", "missing"
  std::string organisation;  // empty: nobody has such objects
  std::string project;
  std::string project_name;
  std::string email;  // of a user of the organisation
  std::map<std::string, std::string, std::less<>> ids{};

  [[nodiscard]] bool exist() const { return !organisation.empty(); }
};

// A user, with what roles they were given.
struct Actor {
  std::string email;
  std::string id{};
  std::string organisation{};
  std::set<Role> organisation_roles{};
  std::map<std::string, std::set<Role>> project_roles{};  // by project id
  std::string key{};
  std::string access_token{};
};

// The ways to say who one is.
enum class Means { key_header, key_query, contact_center, access_token, basic };
inline constexpr Means api_means[] = {Means::key_header, Means::key_query, Means::contact_center,
                                      Means::access_token};

struct Shown {
  HeaderList headers;
  HeaderList query;
};

// Acme's projects Shop ("own") and Side ("sibling") and Other's Abroad ("foreign") have all kinds
// of objects; what is "missing" has no owner. Every role is held by a user in Shop and, by another
// one, in the organisation.
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
  // The same with what belongs to the actor in the place of what is in a project.
  [[nodiscard]] Objects account_of(const Actor& actor) const;
  // Makes anew what the operation, granted, would use up.
  void renew(const Operation& operation, Objects& objects);

  [[nodiscard]] Shown show(Means means, const Actor& actor);
  [[nodiscard]] std::string contact_center_token(const nlohmann::json& claims,
                                                 const std::string& secret = {}) const;
  [[nodiscard]] nlohmann::json claims_of(std::string_view subject) const;
  // Makes an access token; one that ends after `lifetime`.
  [[nodiscard]] store::IssuedTokens sign_in(
      const Actor& actor, std::chrono::milliseconds lifetime = std::chrono::hours(1000));
  [[nodiscard]] const std::string& client_of(const std::string& organisation) const;

  // Differs after any change of store or log.
  [[nodiscard]] std::string fingerprint();
  // The same, once the writes of the requests so far are done.
  [[nodiscard]] std::string settled_fingerprint();

  World world;
  std::string acme;
  std::string other;
  std::string client_secret;  // of Acme's OAuth client

 private:
  void add_organisations();
  Objects import_objects(const std::string& label, const std::string& organisation,
                         const std::string& project, char endpoint, const std::string& email);
  void add_member(const Objects& objects, const std::string& email);
  void put_session(const Objects& objects);
  std::string put_dead_letter(const Objects& objects);
  std::string put_schedule(const Objects& objects);
  // With roles in the organisation, or in the project of `in`.
  void add_actor(const std::string& organisation, const std::string& email,
                 const std::set<Role>& roles, const Objects* in = nullptr);
  void add_actors();
  void note_sign_ins();
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

// Every role that a user can be given.
[[nodiscard]] std::vector<Role> all_roles();
// Roles of the organisation or the installation can't be given in a project.
[[nodiscard]] bool is_project_role(Role role);

}  // namespace conversed::api::test
