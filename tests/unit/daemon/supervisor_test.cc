#include "daemon/service/supervisor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "daemon/ops/logging.h"

namespace conversed::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Messages = std::vector<std::string>;

// The socket of a service manager. A message is there when the call that sent it returns.
class Manager {
 public:
  explicit Manager(const char* watchdog_us) {
    const std::string name = "@conversed-supervisor-test-" + std::to_string(::getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    if (watchdog_us != nullptr) ::setenv("WATCHDOG_USEC", watchdog_us, 1);
  }
  ~Manager() {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
    ::close(socket_);
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // The messages since the last call.
  Messages taken() {
    Messages messages;
    std::array<char, 4096> buffer{};
    for (;;) {
      const auto size = ::recv(socket_, buffer.data(), buffer.size(), 0);
      if (size < 0) return messages;
      messages.emplace_back(buffer.data(), static_cast<std::size_t>(size));
    }
  }

 private:
  int socket_ = -1;
};

const std::string idle_status =
    "STATUS=Ready. Events accepted: 0.0/s, Turns: 0.0/s, delivered: 0.0/s, in flight: 0";

// The test itself calls look(). No thread runs.
class SupervisorTest : public testing::Test {
 protected:
  void open(const char* watchdog_us = "20000000") {
    manager_.emplace(watchdog_us);
    supervisor_.emplace(heartbeats_, [this] { return progress_; });
    heartbeat_ = heartbeats_.add("worker 1");
    log::set_sink([](std::string_view) {});
  }
  void TearDown() override { log::set_sink({}); }

  Messages look_after(milliseconds passed) {
    now_ += passed;
    supervisor_->look(now_);
    return manager_->taken();
  }
  Messages make_ready() {
    progress_.consuming = true;
    supervisor_->consuming();
    return manager_->taken();
  }

  std::optional<Manager> manager_;
  model::Heartbeats heartbeats_;
  model::Heartbeat heartbeat_;
  Progress progress_;
  std::optional<Supervisor> supervisor_;
  Supervisor::Time now_ = std::chrono::steady_clock::now();
};

TEST_F(SupervisorTest, AStartThatMakesProgressAsksForMoreTimeAndIsNotReady) {
  open();
  EXPECT_EQ(look_after(milliseconds(0)),
            Messages({"WATCHDOG=1", "EXTEND_TIMEOUT_USEC=60000000",
                      "STATUS=Starting: the log is not consumed yet"}));
  heartbeat_.beat();
  EXPECT_EQ(look_after(seconds(5)), Messages({"WATCHDOG=1", "EXTEND_TIMEOUT_USEC=60000000"}));
}

TEST_F(SupervisorTest, AStartReportsItsStep) {
  open();
  progress_.waits_for = "the store is migrated";
  EXPECT_EQ(look_after(milliseconds(0)).back(), "STATUS=Starting: the store is migrated");
}

TEST_F(SupervisorTest, ReadyIsSaidOnce) {
  open();
  EXPECT_EQ(make_ready(), Messages({"READY=1\n" + idle_status}));
  EXPECT_EQ(make_ready(), Messages());
}

TEST_F(SupervisorTest, TheStatusHasTheRatesBetweenTwoLooks) {
  open();
  make_ready();
  look_after(seconds(10));
  heartbeat_.beat();
  progress_.appended = 1000;
  progress_.turns = 500;
  progress_.delivered = 5;
  progress_.in_flight = 7;
  EXPECT_EQ(look_after(seconds(5)),
            Messages({"WATCHDOG=1",
                      "STATUS=Ready. Events accepted: 200.0/s, Turns: 100.0/s, delivered: 1.0/s, "
                      "in flight: 7"}));
}

TEST_F(SupervisorTest, TheStatusTellsWhyItIsNotReady) {
  open();
  make_ready();
  progress_.store_healthy = false;
  EXPECT_NE(look_after(seconds(1)).back().find("Not ready: the store can't be written to"),
            std::string::npos);
  heartbeat_.beat();
  progress_.store_healthy = true;
  progress_.log_healthy = false;
  EXPECT_NE(look_after(seconds(1)).back().find("Not ready: the log can't be reached"),
            std::string::npos);
}

TEST_F(SupervisorTest, ALoopThatStandsStillForHalfOfTheTimeStarvesTheWatchdog) {
  open("20000000");
  make_ready();
  auto other = heartbeats_.add("worker 2");
  look_after(milliseconds(0));
  other.beat();
  EXPECT_EQ(look_after(seconds(9)).front(), "WATCHDOG=1");
  other.beat();
  EXPECT_EQ(look_after(seconds(1)), Messages({"STATUS=No progress: worker 1"}));
  other.beat();
  EXPECT_EQ(look_after(seconds(1)), Messages({"STATUS=No progress: worker 1"}));
  other.beat();
  heartbeat_.beat();
  EXPECT_EQ(look_after(seconds(1)).front(), "WATCHDOG=1");
}

TEST_F(SupervisorTest, WithoutAWatchdogNoKeepAliveIsSent) {
  open(nullptr);
  make_ready();
  EXPECT_EQ(look_after(seconds(5)), Messages());
  EXPECT_EQ(supervisor_->interval(), seconds(5));
}

TEST_F(SupervisorTest, LooksComeFourTimesInTheWatchdogsTime) {
  open("8000000");
  EXPECT_EQ(supervisor_->interval(), seconds(2));
}

TEST_F(SupervisorTest, AReloadIsSaidFromItsBeginToItsEnd) {
  open();
  make_ready();
  supervisor_->reloading();
  supervisor_->reloaded("Settings\nreloaded");
  const auto messages = manager_->taken();
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_TRUE(messages[0].starts_with("RELOADING=1\nMONOTONIC_USEC="));
  EXPECT_EQ(messages[1], "READY=1\nSTATUS=Settings reloaded");
}

TEST_F(SupervisorTest, AReloadBeforeReadyIsNotTakenForTheEndOfTheStart) {
  open();
  supervisor_->reloading();
  supervisor_->reloaded("Settings reloaded");
  EXPECT_EQ(manager_->taken(), Messages());
}

TEST_F(SupervisorTest, NothingIsSaidAfterStopping) {
  open();
  make_ready();
  supervisor_->stopping(seconds(20));
  EXPECT_EQ(manager_->taken(),
            Messages({"STOPPING=1\nSTATUS=Answering and committing accepted requests, then ending",
                      "EXTEND_TIMEOUT_USEC=30000000"}));
  supervisor_->reloading();
  supervisor_->stopping(seconds(20));
  EXPECT_EQ(look_after(seconds(5)), Messages());
}

}  // namespace
}  // namespace conversed::daemon
