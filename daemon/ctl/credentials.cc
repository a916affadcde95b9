#include "daemon/ctl/credentials.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace conversed::ctl {
namespace {

using model::Errc;
using model::fail;
using model::Result;
using nlohmann::json;

// Empty if there is no home folder.
std::filesystem::path credentials_file() {
  const auto variable = [](const char* name) -> std::filesystem::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  auto folder = variable("XDG_CONFIG_HOME");
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") / ".config";
  return folder.empty() ? folder : folder / "conversectl" / "credentials";
}

Result<void> check_private(const std::filesystem::path& path, const struct stat& found) {
  if (found.st_uid == ::geteuid() && (found.st_mode & 077U) == 0) return {};
  return fail(Errc::permission_denied,
              path.string() +
                  ": other users can read it: revoke its tokens by `conversectl tokens "
                  "revoke`, remove it, and sign in again by `conversectl login`");
}

model::Error damaged() {
  return {Errc::invalid_argument, credentials_file().string() +
                                      ": is damaged: remove it and sign in again by `conversectl "
                                      "login`"};
}

// Nothing if the file does not exist.
Result<json> read_logins() {
  const auto path = credentials_file();
  if (path.empty()) return json();
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) return json();
  if (file < 0) return fail(Errc::unavailable, path.string() + ": " + std::strerror(errno));
  struct stat found {};
  struct stat folder {};
  const bool is_known =
      ::fstat(file, &found) == 0 && ::stat(path.parent_path().c_str(), &folder) == 0;
  std::string text;
  std::array<char, 4096> part;
  while (const auto size = ::read(file, part.data(), part.size())) {
    if (size < 0) break;
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  ::close(file);
  if (!is_known) return fail(Errc::unavailable, path.string() + ": can't be read");
  if (auto good = check_private(path, found); !good) return fail(good.error());
  if (auto good = check_private(path.parent_path(), folder); !good) return fail(good.error());
  auto logins = json::parse(text, nullptr, false);
  if (logins.is_object()) return logins;
  return fail(damaged());
}

Result<void> write_file(const std::filesystem::path& path, const std::string& text) {
  const auto failed = [&](const std::filesystem::path& what) {
    return fail(Errc::unavailable, what.string() + ": " + std::strerror(errno));
  };
  const auto folder = path.parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder.parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return failed(folder);
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0) return failed(folder);
  if (auto good = check_private(folder, found); !good) return good;
  const auto next = folder / ("credentials." + std::to_string(::getpid()));
  const int file = ::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return failed(next);
  const bool is_whole =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool is_synced = is_whole && ::fsync(file) == 0;
  ::close(file);
  if (is_synced && ::rename(next.c_str(), path.c_str()) == 0) return {};
  auto failure = failed(path);
  ::unlink(next.c_str());
  return failure;
}

}  // namespace

Result<std::optional<Login>> stored_login(const std::string& url) {
  auto logins = read_logins();
  if (!logins) return fail(logins.error());
  const auto all = logins->find("logins");
  if (!logins->is_object() || all == logins->end()) return std::nullopt;
  if (!all->is_object()) return fail(damaged());
  if (!all->contains(url)) return std::nullopt;
  try {
    const json& login = all->at(url);
    return Login{login.at("email"), login.at("token"), login.at("_id"), login.at("expiresAt")};
  } catch (const json::exception&) {
    return fail(damaged());
  }
}

Result<std::string> url_of_login() {
  const auto logins = read_logins();
  if (!logins) return fail(logins.error());
  if (!logins->is_object()) return {};
  const json newest = logins->value("newest", json());
  return newest.is_string() ? newest.get<std::string>() : std::string();
}

Result<void> store_login(const std::string& url, const std::optional<Login>& login) {
  const auto path = credentials_file();
  if (path.empty()) {
    return fail(Errc::unavailable, "there is no folder for the login: set HOME or XDG_CONFIG_HOME");
  }
  auto logins = read_logins();
  if (!logins) return fail(logins.error());
  if (login) {
    (*logins)["newest"] = url;
    (*logins)["logins"][url] = {{"email", login->email},
                                {"token", login->token},
                                {"_id", login->id},
                                {"expiresAt", login->expires_at}};
  } else if (logins->is_object()) {
    (*logins)["logins"].erase(url);
    if (logins->value("newest", json()) == url) logins->erase("newest");
  }
  return write_file(path, logins->dump(2) + "\n");
}

}  // namespace conversed::ctl
