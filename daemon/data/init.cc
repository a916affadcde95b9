#include "daemon/data/init.h"

#include <utility>

#include "daemon/data/data_folder.h"
#include "daemon/data/storage.h"
#include "store/accounts/passwords.h"

namespace conversed::daemon {

using model::fail;

model::Result<std::string> init(const config::Settings& settings,
                                const FirstOrganisation& organisation, const model::Clock& clock) {
  // Before any file is made.
  if (auto good = store::check_new_password(organisation.admin_password); !good) {
    return fail(good.error());
  }
  auto folder = DataFolder::open(settings.data_dir);
  if (!folder) return fail(folder.error());

  auto store = open_store(settings, clock, store::PostgresSettings::Place::none);
  if (!store) return fail(store.error());
  (*store)->committer().start();
  auto made = (*store)->accounts().create_first_organisation(
      organisation.name, {.email = organisation.admin_email,
                          .name = organisation.admin_email,
                          .roles = {"projectAdmin", "userAdmin", "platformAdmin"},
                          .password = organisation.admin_password});
  (*store)->committer().stop();
  if (!made) return fail(made.error());
  return made->id;
}

}  // namespace conversed::daemon
