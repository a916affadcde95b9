#include "daemon/turns/flight_recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <set>
#include <string_view>
#include <system_error>

#include "store/model/keyed_hash.h"

namespace conversed::daemon {

using model::Errc;
using model::fail;
using model::Result;

namespace {

constexpr std::uint64_t magic = 0x3174686769'6c66ULL;  // "flight1"
constexpr std::size_t longest_id = 64;                 // of events: has_names
constexpr std::size_t longest_boot = 64;

template <typename Sized>
std::string_view bytes_of(const Sized& content) {
  return {reinterpret_cast<const char*>(&content), sizeof(content)};
}

}  // namespace

struct FlightRecorder::Header {
  struct Content {
    std::uint64_t magic = 0;
    std::int64_t run = 0;
    std::array<char, longest_boot> boot{};
  } content;
  std::uint64_t checksum = 0;
};

// Valid if the checksum fits its content, its place and the run. Else it is free.
struct FlightRecorder::Slot {
  struct Content {
    std::int64_t offset = 0;
    std::int32_t partition = 0;
    std::uint32_t length = 0;
    std::array<char, longest_id> id{};

    [[nodiscard]] std::uint64_t checksum(std::int64_t run, std::uint32_t number) const {
      const auto sum = model::sip_hash(bytes_of(*this), {static_cast<std::uint64_t>(run), number});
      return sum == 0 ? 1 : sum;
    }
  } content;
  std::uint64_t checksum = 0;
};

// The content of the mapping. The slots begin on a page of their own.
struct FlightRecorder::File {
  Header header;
  alignas(4'096) std::array<Slot, capacity> slots;
};

namespace {

Result<void> cannot(const std::filesystem::path& file, const char* done, int error) {
  return fail(Errc::unavailable, file.string() + " can't be " + done + ": " +
                                     std::error_code(error, std::system_category()).message());
}

// Gives the file its full size, with all blocks allocated.
Result<void> allocate(const std::filesystem::path& file, int descriptor, std::size_t size) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return cannot(file, "read", errno);
  if (static_cast<std::size_t>(status.st_size) != size && ::ftruncate(descriptor, 0) != 0) {
    return cannot(file, "written", errno);
  }
  const int failed = ::posix_fallocate(descriptor, 0, static_cast<off_t>(size));
  if (failed != 0) return cannot(file, "allocated", failed);
  return {};
}

// Random, so that no two runs have the same number, in any store.
std::int64_t new_run() {
  std::random_device random;
  const auto high = static_cast<std::uint64_t>(random() & 0x7fffffffU) << 32U;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(high | random()));
}

}  // namespace

Result<std::unique_ptr<FlightRecorder>> FlightRecorder::open(const std::filesystem::path& file,
                                                             std::string boot) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return fail(cannot(file, "opened", errno).error());
  auto allocated = allocate(file, descriptor, sizeof(File));
  void* const mapping =
      allocated ? ::mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
                : MAP_FAILED;
  const int error = errno;
  ::close(descriptor);
  if (!allocated) return fail(allocated.error());
  if (mapping == MAP_FAILED) return fail(cannot(file, "mapped", error).error());
  boot.resize(std::min(boot.size(), longest_boot));
  return std::unique_ptr<FlightRecorder>(
      new FlightRecorder(*static_cast<File*>(mapping), std::move(boot)));
}

FlightRecorder::~FlightRecorder() {
  ::munmap(&file_, sizeof(File));
}

FlightRecorder::Left FlightRecorder::left() const {
  const Header found = file_.header;
  const auto& boot = found.content.boot;
  const bool whole = found.content.magic == magic && found.content.run != 0 &&
                     found.checksum == model::sip_hash(bytes_of(found.content), {});
  const std::string_view its_boot(boot.data(), ::strnlen(boot.data(), boot.size()));
  if (!whole || boot_.empty() || its_boot != boot_) return {};
  Left left{.run = found.content.run, .events = {}};
  std::set<std::string> seen;  // an event is noted twice while its batch is built again
  for (std::uint32_t number = 0; number < capacity; ++number) {
    const Slot noted = file_.slots[number];
    if (noted.checksum == 0 || noted.content.length > longest_id ||
        noted.checksum != noted.content.checksum(left.run, number)) {
      continue;
    }
    std::string id(noted.content.id.data(), noted.content.length);
    if (!seen.insert(id).second) continue;
    left.events.push_back({std::move(id), noted.content.partition, noted.content.offset});
  }
  return left;
}

// A crash in here leaves a header with a wrong checksum, or slots of another run than the header's.
void FlightRecorder::begin() {
  run_ = new_run();
  Header fresh;
  fresh.content.magic = magic;
  fresh.content.run = run_;
  std::ranges::copy(boot_, fresh.content.boot.begin());
  fresh.checksum = model::sip_hash(bytes_of(fresh.content), {});
  file_.header = {};
  file_.slots.fill({});
  file_.header = fresh;
  free_.resize(capacity);
  std::iota(free_.rbegin(), free_.rend(), 0);  // the lowest is taken first
}

void FlightRecorder::Notes::note(const store::InHand& event) {
  if (recorder_ == nullptr || event.event_id.size() > longest_id) return;
  std::uint32_t number = 0;
  {
    const std::lock_guard lock(recorder_->mutex_);
    if (recorder_->free_.empty()) return;
    number = recorder_->free_.back();
    recorder_->free_.pop_back();
  }
  slots_.push_back(number);
  Slot& slot = recorder_->file_.slots[number];
  Slot::Content content;
  content.offset = event.offset;
  content.partition = event.partition;
  content.length = static_cast<std::uint32_t>(event.event_id.size());
  std::ranges::copy(event.event_id, content.id.begin());
  slot.content = content;
  // Written last: a half-written slot is invalid.
  std::atomic_ref(slot.checksum)
      .store(content.checksum(recorder_->run_, number), std::memory_order_release);
}

void FlightRecorder::Notes::clear() {
  if (slots_.empty()) return;
  for (const auto number : slots_) {
    std::atomic_ref(recorder_->file_.slots[number].checksum).store(0, std::memory_order_release);
  }
  const std::lock_guard lock(recorder_->mutex_);
  recorder_->free_.insert(recorder_->free_.end(), slots_.begin(), slots_.end());
  slots_.clear();
}

std::string boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string boot;
  if (std::getline(in, boot) && !boot.empty()) return boot;
  const char* given = std::getenv("CONVERSED_BOOT_ID");
  return given == nullptr ? "" : given;
}

std::filesystem::path flight_recorder_file(const std::filesystem::path& data_dir) {
  return data_dir / "flight_recorder";
}

}  // namespace conversed::daemon
