#include "daemon/data/data_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "tests/support/temp_folder.h"

namespace conversed::daemon {
namespace {

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

TEST(DataFolder, IsRefusedIfOtherUsersMayEnter) {
  const tests::TempFolder place;
  const auto path = place / "data";
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  for (const mode_t mode : {0755U, 0750U, 0701U, 0720U, 0777U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto folder = DataFolder::open(path);
    ASSERT_FALSE(folder) << mode;
    EXPECT_EQ(folder.error().code, model::Errc::permission_denied);
    EXPECT_NE(folder.error().message.find("`chmod 700 " + path.string() + "`"), std::string::npos)
        << folder.error().message;
  }
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  EXPECT_TRUE(DataFolder::open(path));
}

TEST(DataFolder, FileThatCanNotBeWrittenTellsTheSystemsReason) {
  const tests::TempFolder place;
  const auto folder = DataFolder::open(place / "data");
  ASSERT_TRUE(folder) << folder.error().message;
  const auto in_its_way = place / "data" / "run" / "ports.json.new";
  std::filesystem::create_directories(in_its_way);
  const auto written = folder->write_ports(1, 2);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, in_its_way.string() + " can't be written: Is a directory");
}

TEST(DataFolder, NewOneIsPrivateWhateverTheUmask) {
  const tests::TempFolder place;
  const mode_t before = ::umask(0);
  const auto folder = DataFolder::open(place / "data");
  ::umask(before);
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_EQ(mode_of(place / "data"), 0700U);
  EXPECT_EQ(mode_of(place / "data" / "lock"), 0600U);
}

}  // namespace
}  // namespace conversed::daemon
