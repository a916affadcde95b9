// The versions that sessions run while their Flow is in a ramp.
#include "flows/turn/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace conversed::flows {
namespace {

constexpr int sessions = 2'000;

model::SessionKey session(int n) {
  return {"project", "endpoint", "user", "s" + std::to_string(n)};
}

// The sessions that run the version in the ramp.
std::set<int> ramped(std::int64_t share, std::int64_t version = 7, const std::string& flow = "f") {
  model::ProjectAssets assets;
  assets.ramps[flow] = {.id = "r", .version = version, .stable_version = 6, .share = share};
  std::set<int> found;
  for (int n = 0; n < sessions; ++n) {
    const auto runs = version_for(assets, flow, session(n));
    EXPECT_TRUE(runs == 0 || runs == version);
    if (runs == version) found.insert(n);
  }
  return found;
}

TEST(FlowShares, ALargerShareOnlyAddsSessions) {
  std::set<int> before;
  for (const std::int64_t share : {1, 10, 11, 50, 99, 100}) {
    const auto now = ramped(share);
    EXPECT_TRUE(std::includes(now.begin(), now.end(), before.begin(), before.end())) << share;
    // The draws are fixed, so this can't fail by chance.
    EXPECT_NEAR(static_cast<double>(now.size()), sessions * static_cast<double>(share) / 100,
                sessions * 0.03);
    before = now;
  }
  EXPECT_EQ(before.size(), static_cast<std::size_t>(sessions));
}

TEST(FlowShares, DependOnTheFlowAndNotOnItsVersion) {
  EXPECT_EQ(ramped(10, 7), ramped(10, 8));
  EXPECT_NE(ramped(10, 7, "f"), ramped(10, 7, "g"));
}

TEST(FlowShares, WithoutARampAllSessionsRunTheFlowsOwnVersion) {
  model::ProjectAssets assets;
  assets.ramps["another"] = {.id = "r", .version = 7, .stable_version = 6, .share = 100};
  EXPECT_EQ(version_for(assets, "f", session(1)), 0);
}

}  // namespace
}  // namespace conversed::flows
