#include "queue/file/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace conversed::queue {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> failed(const fs::path& path, const std::string& doing, int code) {
  return model::fail(Errc::unavailable,
                     path.parent_path().filename().string() + "/" + path.filename().string() +
                         " can't be " + doing + ": " +
                         std::error_code(code, std::system_category()).message());
}

// Calls `work` until no signal interrupts it.
template <typename Work>
auto uninterrupted(const Work& work) {
  auto done = work();
  while (done < 0 && errno == EINTR) done = work();
  return done;
}

class RealFile final : public File {
 public:
  RealFile(fs::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~RealFile() override { ::close(descriptor_); }
  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;

  Result<void> write(std::uint64_t at, std::string_view bytes) override {
    while (!bytes.empty()) {
      const auto written = uninterrupted([&] {
        return ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
      });
      if (written < 0) return failed(path_, "written", errno);
      if (written == 0) return failed(path_, "written", EIO);
      at += static_cast<std::uint64_t>(written);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  }

  Result<std::string> read(std::uint64_t at, std::size_t most) const override {
    const auto there = size();
    if (!there) return model::fail(there.error());
    std::string bytes(std::min<std::uint64_t>(most, *there - std::min(at, *there)), '\0');
    const auto done = read_into(at, bytes);
    if (!done) return model::fail(done.error());
    bytes.resize(*done);
    return bytes;
  }

  Result<std::size_t> read_into(std::uint64_t at, std::span<char> buffer) const override {
    std::size_t done = 0;
    while (done < buffer.size()) {
      const auto got = uninterrupted([&] {
        return ::pread(descriptor_, buffer.data() + done, buffer.size() - done,
                       static_cast<off_t>(at + done));
      });
      if (got < 0) return failed(path_, "read", errno);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  Result<void> sync() override {
    if (uninterrupted([&] { return ::fdatasync(descriptor_); }) == 0) return {};
    return failed(path_, "made durable", errno);
  }

  Result<void> reserve(std::uint64_t bytes) override {
    int code = EINTR;
    while (code == EINTR) code = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes));
    if (code == 0) return {};
    return failed(path_, "extended", code);
  }

  Result<std::uint64_t> size() const override {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) return failed(path_, "examined", errno);
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  const fs::path path_;
  const int descriptor_;
};

class RealDisk final : public Disk {
 public:
  explicit RealDisk(fs::path folder) : folder_(std::move(folder)) {}

  Result<std::vector<std::string>> names() override {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
      names.push_back(at->path().filename().string());
    }
    if (error) return failed(folder_, "listed", error.value());
    return names;
  }

  Result<std::unique_ptr<File>> open(const std::string& name) override { return open(name, 0); }
  Result<std::unique_ptr<File>> create(const std::string& name) override {
    return open(name, O_CREAT | O_EXCL);
  }

  Result<void> rename(const std::string& from, const std::string& to) override {
    std::error_code error;
    fs::rename(folder_ / from, folder_ / to, error);
    if (error) return failed(folder_ / from, "renamed", error.value());
    return {};
  }

  Result<void> remove(const std::string& name) override {
    std::error_code error;
    fs::remove(folder_ / name, error);
    if (error) return failed(folder_ / name, "removed", error.value());
    return {};
  }

  Result<void> sync() override {
    const int opened = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool durable = opened >= 0 && uninterrupted([&] { return ::fsync(opened); }) == 0;
    const int code = errno;
    if (opened >= 0) ::close(opened);
    if (durable) return {};
    return failed(folder_, "made durable", code);
  }

 private:
  Result<std::unique_ptr<File>> open(const std::string& name, int flags) {
    const fs::path path = folder_ / name;
    const int opened =
        uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0600); });
    if (opened < 0) return failed(path, "opened", errno);
    return std::make_unique<RealFile>(path, opened);
  }

  const fs::path folder_;
};

}  // namespace

Result<std::unique_ptr<Disk>> open_disk(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return failed(folder, "made", errno);
  // Syncs the parent each time: a killed process may have made the folder.
  if (auto synced = RealDisk(folder.parent_path()).sync(); !synced) {
    return model::fail(synced.error());
  }
  auto disk = std::make_unique<RealDisk>(folder);
  if (auto there = disk->names(); !there) return model::fail(there.error());
  return disk;
}

}  // namespace conversed::queue
