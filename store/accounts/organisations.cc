// The part of Accounts that keeps organisations and the e-mail domains that belong to them.
#include <algorithm>

#include "store/accounts/accounts.h"
#include "store/accounts/people.h"
#include "store/model/ids.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

Result<Organisation> insert_organisation(Writer& writer, const std::string& name,
                                         const Accounts::NewUser& admin,
                                         const std::optional<std::string>& hash) {
  Connection& connection = writer.connection();
  if (name.empty()) return fail(Errc::invalid_argument, "an organisation needs a name");
  if (connection.value<std::string>("SELECT id FROM organisations WHERE name = :n", name)) {
    return fail(Errc::conflict, "there is an organisation named " + name + " already");
  }
  Organisation organisation{.id = model::new_id(), .name = name};
  connection.run("INSERT INTO organisations (id, name) VALUES (:i, :n)", organisation.id, name);
  auto user = insert_user(connection,
                          {.organisation_id = organisation.id,
                           .email = admin.email,
                           .name = admin.name,
                           .roles = admin.roles,
                           .password_hash = hash},
                          writer.now());
  if (!user) return fail(user.error());
  return organisation;
}

// As it is stored: in lower case, each once.
Result<std::vector<std::string>> normal_domains(const std::vector<std::string>& domains) {
  std::vector<std::string> normal;
  for (const std::string& domain : domains) {
    if (domain.find('@') != std::string::npos || !is_email("a@" + domain)) {
      return fail(Errc::invalid_argument, "this is no e-mail domain: " + domain);
    }
    normal.push_back(fold_ascii(domain));
  }
  std::sort(normal.begin(), normal.end());
  normal.erase(std::unique(normal.begin(), normal.end()), normal.end());
  return normal;
}

Result<void> take_domain(Connection& connection, const std::string& organisation_id,
                         const std::string& domain) {
  const auto owner = connection.value<std::string>(
      "SELECT organisation_id FROM organisation_domains WHERE domain = :d", domain);
  if (owner)
    return fail(Errc::conflict, "the domain " + domain + " belongs to another organisation");
  connection.run("INSERT INTO organisation_domains (domain, organisation_id) VALUES (:d, :o)",
                 domain, organisation_id);
  return {};
}

// The addresses in the domains that users of other organisations have.
std::vector<std::string> find_strangers(Connection& connection, const std::string& organisation_id,
                                        const std::vector<std::string>& domains) {
  std::vector<std::string> strangers;
  connection.rows(
      [&](std::string email, const std::string& folded) {
        const auto domain = folded.substr(folded.rfind('@') + 1);
        if (std::ranges::binary_search(domains, domain)) strangers.push_back(std::move(email));
      },
      "SELECT email, email_folded FROM users WHERE organisation_id <> :o ORDER BY email_folded",
      organisation_id);
  return strangers;
}

}  // namespace

Result<Organisation> Accounts::create_first_organisation(const std::string& name,
                                                         const NewUser& admin) {
  auto hash = hash_if_set(admin.password);
  if (!hash) return fail(hash.error());
  return committer_.write_and_wait([&](Writer& writer) -> Result<Organisation> {
    if (writer.connection().value<std::string>("SELECT id FROM organisations LIMIT 1")) {
      return fail(Errc::conflict, "the installation has an organisation already");
    }
    auto made = insert_organisation(writer, name, admin, *hash);
    grow(writer);
    return made;
  });
}

Result<Organisation> Accounts::create_organisation(const std::string& name, const NewUser& admin) {
  auto hash = hash_if_set(admin.password);
  if (!hash) return fail(hash.error());
  return committer_.write_and_wait([&](Writer& writer) -> Result<Organisation> {
    auto made = insert_organisation(writer, name, admin, *hash);
    grow(writer);
    return made;
  });
}

Result<std::vector<Organisation>> Accounts::organisations() const {
  return read(database_, [](Connection& connection) -> Result<std::vector<Organisation>> {
    auto list = connection.all(row_of<&Organisation::id, &Organisation::name>,
                               "SELECT id, name FROM organisations ORDER BY name");
    connection.rows(
        [&](const std::string& organisation, std::string domain) {
          const auto owner =
              std::ranges::find_if(list, [&](const auto& each) { return each.id == organisation; });
          if (owner != list.end()) owner->domains.push_back(std::move(domain));
        },
        "SELECT organisation_id, domain FROM organisation_domains ORDER BY domain");
    return list;
  });
}

Result<DomainsSet> Accounts::set_domains(const std::string& organisation_id,
                                         const std::vector<std::string>& domains) {
  auto normal = normal_domains(domains);
  if (!normal) return fail(normal.error());
  return committer_.write_and_wait([&](Writer& writer) -> Result<DomainsSet> {
    Connection& connection = writer.connection();
    auto name = connection.value<std::string>("SELECT name FROM organisations WHERE id = :i",
                                              organisation_id);
    if (!name) return fail(Errc::not_found, "there is no such organisation");
    DomainsSet set{
        .organisation = {.id = organisation_id, .name = *std::move(name), .domains = *normal}};
    connection.run("DELETE FROM organisation_domains WHERE organisation_id = :o", organisation_id);
    for (const std::string& domain : *normal) {
      if (auto taken = take_domain(connection, organisation_id, domain); !taken) {
        return fail(taken.error());
      }
    }
    set.strangers = find_strangers(connection, organisation_id, *normal);
    return set;
  });
}

}  // namespace conversed::store
