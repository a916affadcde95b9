#include "daemon/data/data_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "daemon/data/backup.h"

namespace conversed::daemon {

namespace fs = std::filesystem;
using model::Errc;
using model::fail;
using model::Result;

namespace {

// This file exists while a restore runs. After a crash it marks an unfinished restore.
fs::path restore_mark(const fs::path& folder) {
  return folder / "restoring";
}

}  // namespace

Result<DataFolder> DataFolder::open(const fs::path& path, Use use) {
  std::error_code error;
  const bool made = fs::create_directories(path, error);
  if (error) {
    return fail(Errc::unavailable,
                "data_dir " + path.string() + " can't be made: " + error.message());
  }
  if (made) fs::permissions(path, fs::perms::owner_all, error);
  if (const auto modes = fs::status(path, error).permissions();
      !error && (modes & (fs::perms::group_all | fs::perms::others_all)) != fs::perms::none) {
    return fail(Errc::permission_denied, "data_dir " + path.string() +
                                             " is open to other users of this machine; run `chmod "
                                             "700 " +
                                             path.string() + "`");
  }
  const fs::path file = path / "lock";
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) {
    return fail(Errc::unavailable, file.string() + " can't be opened: " +
                                       std::error_code(errno, std::system_category()).message());
  }
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock);
    return fail(Errc::conflict,
                path.string() + " is in use by another conversed; stop that process first");
  }
  DataFolder folder(path, lock);
  if (use == Use::run && folder.is_being_restored()) {
    return fail(Errc::conflict, "a restore into " + path.string() +
                                    " was not finished; run `conversectl restore` again");
  }
  return folder;
}

bool DataFolder::is_being_restored() const {
  std::error_code ignored;
  return fs::exists(restore_mark(path_), ignored);
}

Result<void> DataFolder::begin_restore() const {
  std::ofstream out(restore_mark(path_), std::ios::trunc);
  if (!out.flush())
    return fail(Errc::unavailable, path_.string() + " can't be written to; is the disk full?");
  out.close();
  return make_durable(path_);
}

Result<void> DataFolder::end_restore() const {
  std::error_code error;
  fs::remove(restore_mark(path_), error);
  if (error) {
    return fail(Errc::unavailable,
                restore_mark(path_).string() + " can't be removed: " + error.message());
  }
  return make_durable(path_);
}

DataFolder::DataFolder(DataFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

DataFolder::~DataFolder() {
  if (lock_ >= 0) ::close(lock_);
}

namespace {

// Replaces the file in one step: a reader sees the old file or the new one.
Result<void> write_file(const fs::path& file, const std::string& text) {
  std::error_code error;
  const auto not_written = [&](const fs::path& path) {
    return fail(Errc::unavailable, path.string() + " can't be written: " + error.message());
  };
  fs::create_directories(file.parent_path(), error);
  if (error) return not_written(file);
  const fs::path fresh = file.string() + ".new";
  {
    errno = 0;
    std::ofstream out(fresh, std::ios::trunc);
    out << text;
    if (!out.flush()) {
      error = std::error_code(errno == 0 ? EIO : errno, std::generic_category());
      return not_written(fresh);
    }
  }
  fs::rename(fresh, file, error);
  if (error) return not_written(file);
  return {};
}

}  // namespace

Result<void> DataFolder::write_ports(std::optional<std::uint16_t> api, std::uint16_t admin) const {
  const auto api_port = api ? "\"api\":" + std::to_string(*api) + "," : std::string();
  return write_file(path_ / "run" / "ports.json",
                    "{" + api_port + "\"admin\":" + std::to_string(admin) + "}\n");
}

std::string DataFolder::last_run() const {
  std::ifstream in(path_ / "run" / "member");
  std::string run;
  std::getline(in, run);
  return run;
}

Result<void> DataFolder::write_run(const std::string& run) const {
  return write_file(path_ / "run" / "member", run + "\n");
}

void DataFolder::remove_ports() const {
  std::error_code ignored;
  fs::remove(path_ / "run" / "ports.json", ignored);
}

}  // namespace conversed::daemon
