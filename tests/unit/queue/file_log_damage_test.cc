// Damaged files: a clear refusal, or a tail that nobody was promised is cut; never a crash.
#include "tests/unit/queue/file_log_world.h"

namespace conversed::queue {
namespace {

// The bytes of a log that was closed.
std::map<std::string, std::string> bytes_of(FileLogWorld& world) {
  std::map<std::string, std::string> bytes;
  for (const auto& [name, content] : world.disk.files()) bytes[name] = *content;
  return bytes;
}

TEST(FileLogDamage, AChangedByteIsRefusedOrHarmless) {
  int refused = 0;
  int opened = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FileLogWorld world(seed);
    ASSERT_TRUE(world.open());
    for (int steps = 0; steps < 60; ++steps) world.step();
    world.log.reset();
    const auto whole = bytes_of(world);
    for (int flip = 0; flip < 30; ++flip) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", flip " + std::to_string(flip));
      world.disk.set_files(whole);
      auto damaged = whole.begin();
      std::advance(damaged, world.random() % whole.size());
      std::string& content = *world.disk.files().at(damaged->first);
      const auto used = content.find_last_not_of('\0') + 1;
      if (used == 0) continue;  // a spare file
      const auto at = world.random() % used;
      content[at] = static_cast<char>(content[at] ^ static_cast<char>(1U << world.random() % 8));
      const auto outcome = world.open();
      if (outcome) {
        ++opened;
        const auto before = world.finished;
        world.check(true);
        if (testing::Test::HasFatalFailure()) return;
        world.finished = before;
        world.log.reset();
      } else {
        ++refused;
        EXPECT_EQ(outcome.error().code, Errc::internal) << outcome.error().message;
        EXPECT_NE(outcome.error().message.find("log/0"), std::string::npos);
        EXPECT_NE(outcome.error().message.find("new-epoch"), std::string::npos);
      }
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(opened, 0);
}

TEST(FileLogDamage, ATailWithoutAnEndIsCutAndTheLogGoesOn) {
  FileLogWorld world(1);
  world.settings.segment_bytes = 65'536;
  ASSERT_TRUE(world.open());
  for (int steps = 0; steps < 10; ++steps) world.step();
  world.log.reset();
  std::string& content = *world.disk.files().begin()->second;
  const auto end = content.find_last_not_of('\0');
  content[end] = static_cast<char>(~content[end]);
  ASSERT_TRUE(world.open());
  for (int steps = 0; steps < 10; ++steps) world.step();
  ASSERT_TRUE(world.open());
}

TEST(FileLogDamage, AMissingSegmentIsRefused) {
  FileLogWorld world(2);
  ASSERT_TRUE(world.open());
  std::vector<std::future<Result<Appended>>> done;
  for (int n = 0; n < 200; ++n) {
    auto told = std::make_shared<std::promise<Result<Appended>>>();
    done.push_back(told->get_future());
    world.log->append({"k", std::to_string(n), "", "", std::string(1'000, 'x')},
                      [told](auto outcome) { told->set_value(std::move(outcome)); });
  }
  for (auto& each : done) ASSERT_TRUE(each.get());
  world.log.reset();
  auto files = world.disk.files();
  ASSERT_GT(files.size(), 3U);
  ASSERT_TRUE(world.disk.view()->remove(std::next(files.begin())->first));
  const auto opened = world.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::internal);
  EXPECT_NE(opened.error().message.find("missing"), std::string::npos) << opened.error().message;
}

}  // namespace
}  // namespace conversed::queue
