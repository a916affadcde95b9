#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "store/model/result.h"

namespace conversed::daemon {

// The daemon's data folder, locked for one daemon or one writing command at a time. The kernel
// frees the lock when the process ends. Movable; one thread.
class DataFolder {
 public:
  enum class Use : std::uint8_t { run, restore };

  // Makes the folder (mode 0700) if it is missing. `permission_denied` if its mode lets other users
  // in; `conflict` if another process has it open, or if a restore into it was not finished (except
  // for `Use::restore`); `unavailable` if it can't be made or opened.
  [[nodiscard]] static model::Result<DataFolder> open(const std::filesystem::path& path,
                                                      Use use = Use::run);

  DataFolder(DataFolder&& other) noexcept;
  DataFolder& operator=(DataFolder&&) = delete;
  ~DataFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // Writes `run/ports.json`, {"api":N,"admin":N}, atomically. `api` is left out without a listener
  // of the API.
  [[nodiscard]] model::Result<void> write_ports(std::optional<std::uint16_t> api,
                                                std::uint16_t admin) const;
  void remove_ports() const;

  // The last run in this folder (store::ClusterMember::run); empty if there was none. That run has
  // ended, since this process has the folder's lock.
  [[nodiscard]] std::string last_run() const;
  [[nodiscard]] model::Result<void> write_run(const std::string& run) const;

  // Between `begin_restore` and `end_restore` only a restore can open the folder, also after a
  // crash.
  [[nodiscard]] bool is_being_restored() const;
  [[nodiscard]] model::Result<void> begin_restore() const;
  [[nodiscard]] model::Result<void> end_restore() const;

 private:
  DataFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace conversed::daemon
