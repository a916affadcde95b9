#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "store/conversation/attempts.h"
#include "store/model/result.h"

namespace conversed::daemon {

// Notes the events in hand in a small memory-mapped file. The next start reads them after any end
// of this process, since the kernel keeps the pages of the mapping. A note costs no system call.
// The file is allocated before it is mapped, so a full disk can't interrupt a write. Notes of
// another boot are ignored: the machine went down, and no event has caused that.
//
// A slot is held from before the event's Turn until its effects are out after the commit. A batch
// that waits for the store gives its slots back, and so does a stop that abandons it. Without the
// file (a full disk) the daemon runs, but attributes no crash.
// Kept by: FlightRecorderTest.NotesOfAnotherBootAreIgnored,
// FlightRecorderTest.ATornSlotIsIgnoredAndOthersAreNot,
// FlightRecorderTest.WithoutRoomItCanNotBeOpened.
//
// `left` and `begin` are for one thread, in this order; notes are thread-safe from then on.
class FlightRecorder {
 public:
  // The notes of one batch. Each event has a slot of the file until `clear`. `note` does nothing
  // without a recorder, or if all slots are taken. One thread at a time. The recorder must outlive
  // it.
  class Notes {
   public:
    Notes() = default;
    explicit Notes(FlightRecorder* recorder) : recorder_(recorder) {}
    Notes(const Notes&) = delete;
    Notes& operator=(const Notes&) = delete;
    ~Notes() { clear(); }

    void note(const store::InHand& event);
    void clear();

   private:
    FlightRecorder* recorder_ = nullptr;
    std::vector<std::uint32_t> slots_;
  };

  // Opens the file, or makes it. `boot`: see `boot_id`. Errors: `unavailable`, the file can't be
  // written or allocated.
  [[nodiscard]] static model::Result<std::unique_ptr<FlightRecorder>> open(
      const std::filesystem::path& file, std::string boot);
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;
  ~FlightRecorder();

  // The events that the last run had in hand when it ended.
  struct Left {
    std::int64_t run = 0;  // 0: there are no notes
    std::vector<store::InHand> events;
  };
  [[nodiscard]] Left left() const;

  // Begins a run and deletes the notes of the last one.
  void begin();

  static constexpr std::size_t capacity = 8'192;  // events at once

 private:
  struct Header;
  struct Slot;
  struct File;
  FlightRecorder(File& mapped, std::string boot) : file_(mapped), boot_(std::move(boot)) {}

  File& file_;
  const std::string boot_;
  std::int64_t run_ = 0;
  std::mutex mutex_;  // guards `free_`
  std::vector<std::uint32_t> free_;
};

// Names the current boot of the machine, by the kernel's boot_id or, where the service manager
// hides that file, by the variable CONVERSED_BOOT_ID. Empty: unknown, and all notes are ignored.
[[nodiscard]] std::string boot_id();

// The file's place in the data folder.
[[nodiscard]] std::filesystem::path flight_recorder_file(const std::filesystem::path& data_dir);

}  // namespace conversed::daemon
