#include "daemon/turns/flight_recorder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace conversed::daemon {
namespace {

class FlightRecorderTest : public testing::Test {
 protected:
  std::unique_ptr<FlightRecorder> open(const std::string& boot = "this boot") {
    auto opened = FlightRecorder::open(file_, boot);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }

  // The ids of the events that the last run had in hand, sorted.
  std::vector<std::string> left(const std::string& boot = "this boot") {
    std::vector<std::string> ids;
    for (const auto& event : open(boot)->left().events) ids.push_back(event.event_id);
    std::ranges::sort(ids);
    return ids;
  }

  // Runs `work` in a child process that ends by the signal.
  template <typename Work>
  void in_child(int signal, const Work& work) {
    const auto child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      work();
      raise(signal);
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), signal);
  }

  void leave(const std::vector<std::string>& ids) {
    in_child(SIGKILL, [&] {
      auto recorder = FlightRecorder::open(file_, "this boot").value();
      recorder->begin();
      FlightRecorder::Notes noted(recorder.get());
      for (const auto& id : ids) noted.note({id, 0, 1});
      raise(SIGKILL);
    });
  }

  void damage(std::size_t offset, char with) {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(with);
    ASSERT_TRUE(file.flush());
  }

  std::size_t find(const std::string& text) {
    std::ifstream in(file_, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    return bytes.find(text);
  }

  const tests::TempFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "flight_recorder";
};

TEST_F(FlightRecorderTest, NotesSurviveTheEndOfTheProcessByASignal) {
  for (const int signal : {SIGKILL, SIGABRT}) {
    in_child(signal, [&] {
      auto recorder = FlightRecorder::open(file_, "this boot").value();
      recorder->begin();
      FlightRecorder::Notes first(recorder.get());
      FlightRecorder::Notes second(recorder.get());
      FlightRecorder::Notes committed(recorder.get());
      first.note({"a", 3, 17});
      committed.note({"committed", 3, 18});
      second.note({std::string(64, 'b'), 0, -1});
      committed.clear();
      raise(signal);
    });
    auto events = open()->left().events;
    ASSERT_EQ(events.size(), 2U);
    std::ranges::sort(events, {}, &store::InHand::event_id);
    EXPECT_EQ(events[0].event_id, "a");
    EXPECT_EQ(events[0].partition, 3);
    EXPECT_EQ(events[0].offset, 17);
    EXPECT_EQ(events[1].event_id, std::string(64, 'b'));
    EXPECT_EQ(events[1].offset, -1);
  }
}

TEST_F(FlightRecorderTest, ACleanRunLeavesNothing) {
  auto recorder = open();
  EXPECT_EQ(recorder->left().run, 0);
  recorder->begin();
  FlightRecorder::Notes(recorder.get()).note({"a", 0, 1});
  EXPECT_TRUE(left().empty());
  EXPECT_NE(open()->left().run, 0);
}

TEST_F(FlightRecorderTest, ARunThatBeginsForgetsTheNotesOfTheLast) {
  leave({"a", "b"});
  const auto run = open()->left().run;
  EXPECT_EQ(left(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(open()->left().run, run) << "a read changes nothing";
  open()->begin();
  EXPECT_TRUE(left().empty());
  EXPECT_NE(open()->left().run, run);
}

TEST_F(FlightRecorderTest, NotesOfAnotherBootAreIgnored) {
  leave({"a"});
  EXPECT_TRUE(left("another boot").empty());
  EXPECT_EQ(open("another boot")->left().run, 0);
  EXPECT_TRUE(left("this").empty());
  EXPECT_TRUE(left("").empty());
}

TEST_F(FlightRecorderTest, WithoutABootIdNotesAreIgnored) {
  auto recorder = open("");
  recorder->begin();
  FlightRecorder::Notes noted(recorder.get());
  noted.note({"a", 0, 1});
  EXPECT_TRUE(left("").empty());
}

TEST_F(FlightRecorderTest, ATornSlotIsIgnoredAndOthersAreNot) {
  const std::string torn = "the torn one";
  leave({"a", torn, "b"});
  ASSERT_EQ(left().size(), 3U);
  damage(find(torn), 'T');
  EXPECT_EQ(left(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(FlightRecorderTest, ADamagedHeaderIsNoRun) {
  leave({"a"});
  damage(find("this boot") + 20, 'x');
  EXPECT_TRUE(left().empty());
  EXPECT_EQ(open()->left().run, 0);
  leave({"b"});
  EXPECT_EQ(left(), std::vector<std::string>{"b"});
}

TEST_F(FlightRecorderTest, AFileOfAnotherLengthIsMadeAnew) {
  leave({"a"});
  std::filesystem::resize_file(file_, 5'000);
  EXPECT_TRUE(left().empty());
  leave({"b"});
  EXPECT_EQ(left(), std::vector<std::string>{"b"});
}

TEST_F(FlightRecorderTest, ItsBlocksAreAllocatedBeforeItIsWritten) {
  std::ofstream(file_).close();
  const auto whole = [&] {
    (void)open();
    struct stat status {};
    EXPECT_EQ(::stat(file_.c_str(), &status), 0);
    return status.st_blocks * 512 >= status.st_size && status.st_size > 0;
  };
  EXPECT_TRUE(whole());
  const auto size = std::filesystem::file_size(file_);
  std::filesystem::resize_file(file_, 0);
  std::filesystem::resize_file(file_, size);  // a hole, as some copies leave
  EXPECT_TRUE(whole());
}

TEST_F(FlightRecorderTest, WithoutRoomItCanNotBeOpened) {
  in_child(SIGKILL, [&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit none{100'000, 100'000};
    if (setrlimit(RLIMIT_FSIZE, &none) != 0) _exit(2);
    const auto opened = FlightRecorder::open(file_, "this boot");
    if (opened || opened.error().code != model::Errc::unavailable) _exit(3);
  });
  EXPECT_EQ(FlightRecorder::open(folder_.path() / "missing" / "file", "this boot").error().code,
            model::Errc::unavailable);
}

TEST_F(FlightRecorderTest, EventsBeyondTheSlotsAreNotNoted) {
  auto recorder = open();
  recorder->begin();
  FlightRecorder::Notes noted(recorder.get());
  for (std::size_t n = 0; n < FlightRecorder::capacity; ++n) noted.note({std::to_string(n), 0, 1});
  FlightRecorder::Notes more(recorder.get());
  more.note({"more", 0, 1});
  more.note({std::string(65, 'l'), 0, 1});
  EXPECT_EQ(left().size(), FlightRecorder::capacity);
  noted.clear();
  more.note({"now", 0, 1});
  EXPECT_EQ(left(), std::vector<std::string>{"now"});
}

TEST_F(FlightRecorderTest, AnEventThatIsNotedTwiceIsInHandOnce) {
  auto recorder = open();
  recorder->begin();
  FlightRecorder::Notes noted(recorder.get());
  noted.note({"a", 0, 1});
  noted.note({"a", 0, 1});
  EXPECT_EQ(left().size(), 1U);
}

}  // namespace
}  // namespace conversed::daemon
