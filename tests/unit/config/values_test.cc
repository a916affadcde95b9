#include "config/values.h"

#include <gtest/gtest.h>

namespace conversed::config {
namespace {

using namespace std::chrono_literals;

TEST(Whole, TakesDigitsOnly) {
  EXPECT_EQ(parse_whole("0"), 0U);
  EXPECT_EQ(parse_whole("8080"), 8080U);
  EXPECT_EQ(parse_whole("18446744073709551615"), 18446744073709551615U);
  for (const char* bad : {"", " 1", "1 ", "+1", "-1", "010", "0x10", "1e3", "1_000", "1.0",
                          "eighty", "18446744073709551616"}) {
    EXPECT_EQ(parse_whole(bad), std::nullopt) << bad;
  }
}

TEST(DurationText, ReadsEachUnit) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration("5m"), 5min);
  EXPECT_EQ(parse_duration("2h"), 2h);
  EXPECT_EQ(parse_duration("3d"), 72h);
  EXPECT_EQ(parse_duration("0s"), 0ms);
}

TEST(DurationText, RefusesWhatIsNotOneNumberAndOneUnit) {
  for (const char* bad : {"", "10", "s", "10 s", "1.5h", "-1s", "1h30m", "10S", "10sec", "01s"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
  }
}

TEST(DurationText, OverflowIsRefusedNotWrapped) {
  EXPECT_NE(parse_duration("9223372036854775807ms"), std::nullopt);
  EXPECT_EQ(parse_duration("9223372036854775808ms"), std::nullopt);
  EXPECT_NE(parse_duration("106751991167d"), std::nullopt);
  EXPECT_EQ(parse_duration("106751991168d"), std::nullopt);
}

TEST(DurationText, IsWrittenInTheLargestUnitThatDividesIt) {
  EXPECT_EQ(duration_text(0ms), "0s");
  EXPECT_EQ(duration_text(1500ms), "1500ms");
  EXPECT_EQ(duration_text(90s), "90s");
  EXPECT_EQ(duration_text(120s), "2m");
  EXPECT_EQ(duration_text(720h), "30d");
}

TEST(SizeText, ReadsBytesAndBinaryUnits) {
  EXPECT_EQ(parse_size("65536"), 65536U);
  EXPECT_EQ(parse_size("64KiB"), 65536U);
  EXPECT_EQ(parse_size("1MiB"), 1048576U);
  EXPECT_EQ(parse_size("2GiB"), 2147483648U);
  for (const char* bad : {"64KB", "64k", "64 KiB", "-1", "1.5MiB", "KiB", "17179869184GiB"}) {
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_size("17179869183GiB"), 17179869183ULL << 30U);
}

TEST(SizeText, IsWrittenInTheLargestUnitThatDividesIt) {
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(1000), "1000");
  EXPECT_EQ(size_text(64 * 1024), "64KiB");
  EXPECT_EQ(size_text(1024 * 1024), "1MiB");
}

TEST(HostName, IsToldFromASlipInAnAddress) {
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

TEST(Quoted, CantDisturbATerminalOrALogLine) {
  EXPECT_EQ(in_quotes("a\nb\x1B\"\\"), R"("a\x0ab\x1b\"\\")");
  EXPECT_EQ(in_quotes(std::string(61, 'x')), "\"" + std::string(60, 'x') + "...\"");
  // Never cut within a character.
  EXPECT_EQ(in_quotes(std::string(59, 'x') + "\u00e9"), "\"" + std::string(59, 'x') + "...\"");
}

TEST(EditDistance, CountsASwapAsOne) {
  EXPECT_EQ(edit_distance("port", "port"), 0U);
  EXPECT_EQ(edit_distance("port", "prot"), 1U);
  EXPECT_EQ(edit_distance("port", "ports"), 1U);
  EXPECT_EQ(edit_distance("", "port"), 4U);
  EXPECT_EQ(edit_distance("workers", "roles"), 4U);
}

}  // namespace
}  // namespace conversed::config
