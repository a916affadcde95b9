// Power that goes at any write, and processes that are killed before it goes.
#include "tests/support/lossy_file.h"
#include "tests/unit/queue/file_log_world.h"

namespace conversed::queue {
namespace {

TEST(FileLogPower, NoAcknowledgedEventIsLostDoubledOrOutOfOrder) {
  constexpr std::size_t points_of_a_log = 20;
  std::uint64_t seed = tests::first_seed();
  for (std::size_t point = 0; point < tests::crash_points(1'000); ++seed) {
    SCOPED_TRACE("CONVERSED_TEST_SEED=" + std::to_string(seed));
    FileLogWorld world(seed);
    ASSERT_TRUE(world.open());
    for (std::size_t of_log = 0; of_log < points_of_a_log; ++of_log, ++point) {
      world.disk.cut_power_after(world.random() % 120);
      for (int steps = 0; steps < 40 && !world.disk.is_off(); ++steps) world.step();
      world.log.reset();
      // A kill leaves unsynced writes to the kernel; the power may go before they are synced.
      if (world.random() % 3 == 0) {
        world.disk.switch_on();
        ASSERT_TRUE(world.open());
        world.check();
        if (testing::Test::HasFatalFailure()) return;
        world.disk.cut_power_after(world.random() % 4);
        world.step();
        world.log.reset();
      }
      world.disk.lose_power(world.random);
      const auto opened = world.open();
      ASSERT_TRUE(opened) << opened.error().message;
      world.check();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// For one step, each part of the disk and the store may fail.
void let_parts_fail(FileLogWorld& world) {
  world.disk.fail_syncs(world.random() % 8 == 0);
  world.disk.fail_writes(world.random() % 16 == 0);
  world.disk.fail_reads(world.random() % 16 == 0);
  world.disk.set_space(world.random() % 8 == 0 ? world.random() % 8'192 : 1'000'000);
  world.kept.set_failing(world.random() % 16 == 0);
  world.kept.set_refusing(world.random() % 4 == 0);
}

void let_all_work(FileLogWorld& world) {
  world.disk.fail_syncs(false);
  world.disk.fail_writes(false);
  world.disk.fail_reads(false);
  world.disk.set_space(1'000'000);
  world.kept.set_failing(false);
  world.kept.set_refusing(false);
}

TEST(FileLogPower, WhateverFailsNothingAcknowledgedIsLost) {
  std::uint64_t seed = tests::first_seed();
  for (std::size_t step = 0; step < tests::crash_points(1'000); ++seed) {
    SCOPED_TRACE("CONVERSED_TEST_SEED=" + std::to_string(seed));
    FileLogWorld world(seed);
    world.settings.max_keys = 8;
    ASSERT_TRUE(world.open());
    for (const auto end = step + 200; step < end; ++step) {
      let_parts_fail(world);
      world.step();
      if (testing::Test::HasFatalFailure()) return;
      const auto next = world.random() % 16;
      if (next > 1) continue;
      // A kill, or a loss of power; then maybe a start that fails in the middle.
      world.log.reset();
      if (next == 1) world.disk.lose_power(world.random);
      static_cast<void>(world.open());
      world.log.reset();
      if (world.random() % 2 == 0) world.disk.lose_power(world.random);
      let_all_work(world);
      const auto opened = world.open();
      ASSERT_TRUE(opened) << opened.error().message;
      world.check();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace conversed::queue
