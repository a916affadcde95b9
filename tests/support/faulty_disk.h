#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "queue/file/disk.h"
#include "tests/support/lossy_file.h"

namespace conversed::tests {

// A disk in memory that fails on demand, and whose power can be lost: then its files lose what
// LossyFile says, and of the names that were changed since the folder's last sync a part is on the
// disk. Thread-safe.
class FaultyDisk {
 public:
  static constexpr std::size_t sector_bytes = LossyFile::sector_bytes;

  // The next opened log's view of the disk. One at a time.
  [[nodiscard]] std::unique_ptr<queue::Disk> view() { return std::make_unique<View>(*this); }

  // From the n-th change on (1 is the next one) the power is off: all changes fail.
  void cut_power_after(std::size_t changes) {
    with([&] { left_ = changes; });
  }
  // After a kill: the files have all writes. Unsynced ones are not on the disk yet.
  void switch_on() {
    with([&] { left_ = never; });
  }
  // Space for this many more bytes of files.
  void set_space(std::uint64_t bytes) {
    with([&] { space_ = bytes; });
  }
  void fail_writes(bool failing) {
    with([&] { failing_writes_ = failing; });
  }
  void fail_syncs(bool failing) {
    with([&] { failing_syncs_ = failing; });
  }
  void fail_reads(bool failing) {
    with([&] { failing_reads_ = failing; });
  }
  void fail_sizes(bool failing) {
    with([&] { failing_sizes_ = failing; });
  }
  [[nodiscard]] bool is_off() {
    const std::lock_guard lock(mutex_);
    return left_ == 0;
  }

  // Leaves the files as the disk has them after a loss of power.
  void lose_power(std::mt19937_64& random) {
    const std::lock_guard lock(mutex_);
    auto names = durable_names_;
    const std::size_t kept = renames_.empty() ? 0 : random() % (renames_.size() + 1);
    for (std::size_t at = 0; at < kept; ++at) renames_[at].apply(names);
    for (auto& [name, content] : names) content->lose_power(random);
    names_ = std::move(names);
    durable_names_ = names_;
    renames_.clear();
    left_ = never;
    failing_writes_ = failing_syncs_ = failing_reads_ = failing_sizes_ = false;
  }

  // The bytes of all files: as a reader sees them, and as a loss of power may leave them.
  [[nodiscard]] std::string contents() {
    const std::lock_guard lock(mutex_);
    std::string contents;
    for (const auto* names : {&names_, &durable_names_}) {
      for (const auto& [name, content] : *names) contents += content->bytes() + content->durable();
    }
    return contents;
  }
  // While no log is open: makes these the only files.
  void set_files(const std::map<std::string, std::string>& files) {
    names_.clear();
    for (const auto& [name, bytes] : files) {
      names_[name] = std::make_shared<LossyFile>(bytes);
    }
    durable_names_ = names_;
    renames_.clear();
  }
  // The bytes of all files, by name; may be changed while no log is open.
  [[nodiscard]] std::map<std::string, std::string*> files() {
    std::map<std::string, std::string*> files;
    for (const auto& [name, content] : names_) files[name] = &content->bytes();
    return files;
  }

 private:
  static constexpr std::size_t never = ~std::size_t{0};

  using Names = std::map<std::string, std::shared_ptr<LossyFile>>;
  struct Rename {
    std::string from;  // empty: created
    std::string to;    // empty: removed
    std::shared_ptr<LossyFile> content;
    void apply(Names& names) const {
      if (!from.empty()) names.erase(from);
      if (!to.empty()) names[to] = content;
    }
  };

  template <typename Work>
  void with(const Work& work) {
    const std::lock_guard lock(mutex_);
    work();
  }
  static tl::unexpected<model::Error> failed() {
    return model::fail(model::Errc::unavailable, "the disk was told to fail");
  }
  // Counts a change; false once the power is off.
  bool change() {
    if (left_ == 0) return false;
    if (left_ != never) --left_;
    return true;
  }

  class FaultyFile final : public queue::File {
   public:
    FaultyFile(FaultyDisk& disk, std::shared_ptr<LossyFile> content)
        : disk_(disk), content_(std::move(content)) {}

    model::Result<void> write(std::uint64_t at, std::string_view bytes) override {
      const std::lock_guard lock(disk_.mutex_);
      // The power goes while the bytes are on their way: all of them may have gone.
      const bool on = disk_.change() && !disk_.failing_writes_;
      if (disk_.failing_writes_) {
        const auto sectors = (at + bytes.size() / 2) / sector_bytes * sector_bytes;
        bytes = bytes.substr(0, sectors - std::min(sectors, at));
      }
      content_->write(at, bytes);
      return on ? model::Result<void>() : failed();
    }
    model::Result<std::string> read(std::uint64_t at, std::size_t most) const override {
      const std::lock_guard lock(disk_.mutex_);
      if (disk_.failing_reads_) return failed();
      if (at >= content_->bytes().size()) return std::string();
      return content_->bytes().substr(at, most);
    }
    model::Result<std::size_t> read_into(std::uint64_t at, std::span<char> buffer) const override {
      const auto bytes = read(at, buffer.size());
      if (!bytes) return model::fail(bytes.error());
      std::copy(bytes->begin(), bytes->end(), buffer.begin());
      return bytes->size();
    }
    model::Result<void> sync() override {
      const std::lock_guard lock(disk_.mutex_);
      if (!disk_.change()) return failed();
      if (disk_.failing_syncs_) {
        content_->forget_unsynced();
        return failed();
      }
      content_->sync();
      return {};
    }
    model::Result<void> reserve(std::uint64_t bytes) override {
      const std::lock_guard lock(disk_.mutex_);
      if (!disk_.change()) return failed();
      const auto size = content_->bytes().size();
      if (bytes <= size) return {};
      if (bytes - size > disk_.space_) return failed();
      disk_.space_ -= bytes - size;
      content_->resize(bytes);
      return {};
    }
    model::Result<std::uint64_t> size() const override {
      const std::lock_guard lock(disk_.mutex_);
      if (disk_.failing_sizes_) return failed();
      return content_->bytes().size();
    }

   private:
    FaultyDisk& disk_;
    const std::shared_ptr<LossyFile> content_;
  };

  class View final : public queue::Disk {
   public:
    explicit View(FaultyDisk& disk) : disk_(disk) {}

    model::Result<std::vector<std::string>> names() override {
      const std::lock_guard lock(disk_.mutex_);
      std::vector<std::string> names;
      for (const auto& [name, content] : disk_.names_) names.push_back(name);
      return names;
    }
    model::Result<std::unique_ptr<queue::File>> open(const std::string& name) override {
      const std::lock_guard lock(disk_.mutex_);
      const auto found = disk_.names_.find(name);
      if (found == disk_.names_.end()) return failed();
      return std::make_unique<FaultyFile>(disk_, found->second);
    }
    model::Result<std::unique_ptr<queue::File>> create(const std::string& name) override {
      const std::lock_guard lock(disk_.mutex_);
      if (!disk_.change() || disk_.names_.contains(name)) return failed();
      auto content = std::make_shared<LossyFile>();
      disk_.rename({"", name, content});
      return std::make_unique<FaultyFile>(disk_, std::move(content));
    }
    model::Result<void> rename(const std::string& from, const std::string& to) override {
      const std::lock_guard lock(disk_.mutex_);
      const auto found = disk_.names_.find(from);
      if (!disk_.change() || found == disk_.names_.end()) return failed();
      disk_.rename({from, to, found->second});
      return {};
    }
    model::Result<void> remove(const std::string& name) override {
      const std::lock_guard lock(disk_.mutex_);
      const auto found = disk_.names_.find(name);
      if (!disk_.change() || found == disk_.names_.end()) return failed();
      disk_.space_ += found->second->bytes().size();
      disk_.rename({name, "", nullptr});
      return {};
    }
    model::Result<void> sync() override {
      const std::lock_guard lock(disk_.mutex_);
      if (!disk_.change() || disk_.failing_syncs_) return failed();
      disk_.durable_names_ = disk_.names_;
      disk_.renames_.clear();
      return {};
    }

   private:
    FaultyDisk& disk_;
  };

  void rename(Rename change) {
    change.apply(names_);
    renames_.push_back(std::move(change));
  }

  std::mutex mutex_;
  Names names_;
  Names durable_names_;
  std::vector<Rename> renames_;  // since the folder's last sync
  std::size_t left_ = never;
  std::uint64_t space_ = std::uint64_t{1} << 30;
  bool failing_writes_ = false;
  bool failing_syncs_ = false;
  bool failing_reads_ = false;
  bool failing_sizes_ = false;
};

}  // namespace conversed::tests
