#include "daemon/service/owner.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

namespace conversed::daemon {

using model::Errc;
using model::fail;

model::Result<void> become_owner(const std::filesystem::path& data_dir) {
  struct stat folder {};
  if (::geteuid() != 0 || ::stat(data_dir.c_str(), &folder) != 0 || folder.st_uid == 0) return {};

  // An owner without a name in the user database has only the folder's group.
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> names{};
  (void)::getpwuid_r(folder.st_uid, &entry, names.data(), names.size(), &found);
  const gid_t group = found != nullptr ? found->pw_gid : folder.st_gid;
  const int groups =
      found != nullptr ? ::initgroups(found->pw_name, group) : ::setgroups(1, &group);
  if (groups != 0 || ::setgid(group) != 0 || ::setuid(folder.st_uid) != 0) {
    return fail(Errc::permission_denied,
                "can't become the owner of data_dir " + data_dir.string() + " (user " +
                    std::to_string(folder.st_uid) +
                    "): " + std::error_code(errno, std::system_category()).message() +
                    "; run it as that user, as with `runuser -u USER -- conversed ...`");
  }
  return {};
}

model::Result<void> give_to_owner(const std::filesystem::path& data_dir,
                                  const std::vector<std::string>& names) {
  struct stat folder {};
  if (::geteuid() != 0 || ::stat(data_dir.c_str(), &folder) != 0 || folder.st_uid == 0) return {};
  for (const auto& name : names) {
    // Never follows a link: another user could have made it in this folder.
    if (::lchown((data_dir / name).c_str(), folder.st_uid, folder.st_gid) == 0 || errno == ENOENT) {
      continue;
    }
    return fail(Errc::permission_denied,
                (data_dir / name).string() + " can't be given to the owner of its folder: " +
                    std::error_code(errno, std::system_category()).message());
  }
  return {};
}

}  // namespace conversed::daemon
