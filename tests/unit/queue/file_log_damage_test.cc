// Damaged files: a clear refusal, or batches at the end are cut; never a crash.
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

// Appends one record as a batch of its own.
Result<Appended> append(FileLogWorld& world, const std::string& id) {
  std::promise<Result<Appended>> done;
  world.log->append({"k", id, "", "", "v"}, [&](auto told) { done.set_value(std::move(told)); });
  return done.get_future().get();
}

// The places of the batches: each begins with a state.
std::vector<std::size_t> batches_in(std::string_view file) {
  std::vector<std::size_t> batches;
  for (std::size_t at = 0; const auto frame = frame_in(file.substr(at));) {
    if (frame->kind == FrameKind::state) batches.push_back(at);
    at += frame_bytes(frame->payload.size());
  }
  return batches;
}

// A known limit: no later batch is left that names the end of the lost ones.
TEST(FileLogDamage, BatchesThatAreGoneUpToTheEndLookLikeBatchesThatWereNeverDurable) {
  FileLogWorld world(1);
  world.settings.segment_bytes = 65'536;
  ASSERT_TRUE(world.open());
  for (int n = 0; n < 6; ++n) ASSERT_TRUE(append(world, std::to_string(n)));
  world.log.reset();
  const auto whole = bytes_of(world);
  const auto batches = batches_in(whole.begin()->second);
  ASSERT_EQ(batches.size(), 7U);  // the first one began the log
  const auto unfinished = [&] { return lag_of(world.log->ranges().value()); };
  for (std::size_t kept = 1; kept < batches.size(); ++kept) {
    world.disk.set_files(whole);
    std::string& content = *world.disk.files().begin()->second;
    content.replace(batches[kept], content.size() - batches[kept], content.size() - batches[kept],
                    '\0');
    ASSERT_TRUE(world.open());
    EXPECT_EQ(unfinished(), static_cast<std::int64_t>(kept) - 1);
    world.log.reset();
    if (kept + 1 == batches.size()) continue;
    // With a later batch the log is refused.
    world.disk.set_files(whole);
    std::string& holed = *world.disk.files().begin()->second;
    holed.replace(batches[kept], batches[kept + 1] - batches[kept],
                  batches[kept + 1] - batches[kept], '\0');
    EXPECT_EQ(world.open().error().code, Errc::internal);
  }
}

// A state's last bytes are zeros while partitions are empty, as are the bytes behind the content.
TEST(FileLogDamage, ABatchBeforeAStateAloneIsMissed) {
  FileLogWorld world(1);
  world.settings.segment_bytes = 65'536;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(append(world, "0"));
  ASSERT_TRUE(append(world, "1"));
  world.finish_some();
  ASSERT_FALSE(world.finished.empty());
  world.log.reset();
  std::string& content = *world.disk.files().begin()->second;
  const auto batches = batches_in(content);
  ASSERT_EQ(batches.size(), 4U);  // the first one began the log
  std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(batches[2]), batches[3] - batches[2],
              '\0');
  const auto opened = world.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::internal);
}

// Without its last batch the log may not count erased records as unfinished.
TEST(FileLogDamage, ErasedRecordsStayFinishedWithoutTheLastBatch) {
  FileLogWorld world(1);
  world.settings.segment_bytes = 65'536;
  ASSERT_TRUE(world.open());
  while (world.finished.empty()) world.step();
  const auto committed = [&] {
    std::vector<std::int64_t> offsets;
    const auto ranges = world.log->ranges().value();
    for (const auto& range : ranges) offsets.push_back(range.committed);
    return offsets;
  };
  const auto before = committed();
  ASSERT_TRUE(world.log->purge());
  world.log.reset();
  std::string& content = *world.disk.files().begin()->second;
  const auto end = content.find_last_not_of('\0');
  content[end] = static_cast<char>(~content[end]);
  ASSERT_TRUE(world.open());
  EXPECT_EQ(committed(), before);
  world.check();
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
