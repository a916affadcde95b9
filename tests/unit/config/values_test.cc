#include "config/values.h"

#include <gtest/gtest.h>

namespace conversed::config {
namespace {

using namespace std::chrono_literals;

TEST(HostName, RefusesAMistypedAddress) {
  EXPECT_TRUE(is_host_name("localhost"));
  EXPECT_TRUE(is_host_name("crm.example.com"));
  EXPECT_TRUE(is_host_name("kafka_1"));
  for (const char* bad : {"", ".", "a..b", "-a", "a-", "a b", "10.0.0.256", "a/b", "a:1"}) {
    EXPECT_FALSE(is_host_name(bad)) << bad;
  }
  EXPECT_FALSE(is_host_name(std::string(64, 'a')));
}

TEST(Cidr, NeedsZeroesBeyondItsPrefix) {
  for (const char* good : {"10.0.0.0/8", "0.0.0.0/0", "192.168.1.7/32", "fd00::/8", "::1/128"}) {
    EXPECT_TRUE(is_cidr(good)) << good;
  }
  for (const char* bad : {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0", "10.0.0/8", "fd00::1/64",
                          "::/129", "/8", "10.0.0.0/", "10.0.0.0/08"}) {
    EXPECT_FALSE(is_cidr(bad)) << bad;
  }
  EXPECT_FALSE(is_ip_address(std::string_view("10.0.0.1\0x", 10)));
}

TEST(HostAndPort, TakesNamesAndBothKindsOfAddress) {
  for (const char* good : {"kafka:9092", "10.0.0.1:1", "[::1]:65535"}) {
    EXPECT_TRUE(is_host_and_port(good)) << good;
  }
  for (const char* bad :
       {"kafka", "kafka:", ":9092", "kafka:0", "kafka:65536", "::1:9092", "[]:1"}) {
    EXPECT_FALSE(is_host_and_port(bad)) << bad;
  }
}

TEST(List, IsSplitAtCommas) {
  EXPECT_EQ(split_list(""), std::vector<std::string>{});
  EXPECT_EQ(split_list("  "), std::vector<std::string>{});
  EXPECT_EQ(split_list("a, b,c "), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(split_list("a,,b,"), (std::vector<std::string>{"a", "", "b", ""}));
}

}  // namespace
}  // namespace conversed::config
