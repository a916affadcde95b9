#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "store/model/result.h"

namespace conversed::daemon {

// The daemon's data folder, locked: one daemon, or one command that writes, at a time. The kernel
// gives the lock up when the process ends, however it ends. Movable; one thread.
class DataFolder {
 public:
  enum class Use : std::uint8_t { run, restore };

  // Makes the folder (mode 0700) if it is missing. `permission_denied` if the mode of one that is
  // there lets other users in. `conflict` if another process holds it, or,
  // unless that is what it is opened for, if a restore into it was not finished; `unavailable` if
  // it can't be made or opened.
  [[nodiscard]] static model::Result<DataFolder> open(const std::filesystem::path& path,
                                                      Use use = Use::run);

  DataFolder(DataFolder&& other) noexcept;
  DataFolder& operator=(DataFolder&&) = delete;
  ~DataFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // Writes `run/ports.json`, {"api":N,"admin":N}, in one step: a reader sees the old file or the
  // new one. Without a listener of the API, without its port.
  [[nodiscard]] model::Result<void> write_ports(std::optional<std::uint16_t> api,
                                                std::uint16_t admin) const;
  void remove_ports() const;

  // The run that was here last, as that one wrote it (store::ClusterMember::run); nothing if there
  // was none. Since the folder is locked, that one has ended.
  [[nodiscard]] std::string last_run() const;
  [[nodiscard]] model::Result<void> write_run(const std::string& run) const;

  // Between the two, durably, nobody but a restore takes the folder.
  [[nodiscard]] bool is_being_restored() const;
  [[nodiscard]] model::Result<void> begin_restore() const;
  [[nodiscard]] model::Result<void> end_restore() const;

 private:
  DataFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace conversed::daemon
