#include "api/http/client_address.h"

#include <gtest/gtest.h>

#include <vector>

namespace conversed::api {
namespace {

const std::vector<config::AddressRange> trusted{*config::AddressRange::parse("10.0.0.0/8"),
                                                *config::AddressRange::parse("2001:db8::1")};

std::string client(const HeaderList& headers) {
  return forwarded_client("10.1.1.1", headers, trusted);
}

TEST(ClientAddress, OnlyTheNamedProxiesAreTrusted) {
  EXPECT_TRUE(is_trusted("10.200.0.3", trusted));
  EXPECT_TRUE(is_trusted("::ffff:10.200.0.3", trusted)) << "the same address";
  EXPECT_TRUE(is_trusted("2001:db8:0::1", trusted));
  EXPECT_FALSE(is_trusted("11.0.0.1", trusted));
  EXPECT_FALSE(is_trusted("2001:db8::2", trusted));
  EXPECT_FALSE(is_trusted("localhost", trusted));
  EXPECT_FALSE(is_trusted("10.0.0.1", {}));
}

TEST(ClientAddress, TheLastAddressThatIsNoProxyCounts) {
  EXPECT_EQ(client({{"x-forwarded-for", "192.0.2.7"}}), "192.0.2.7");
  EXPECT_EQ(client({{"x-forwarded-for", "203.0.113.9, 192.0.2.7, 10.3.3.3"}}), "192.0.2.7");
  EXPECT_EQ(client({{"x-forwarded-for", "10.9.9.9 ,\t10.3.3.3"}}), "10.9.9.9")
      << "the client is in the inner network";
  EXPECT_EQ(client({}), "10.1.1.1");
}

TEST(ClientAddress, SeveralHeadersAreOneList) {
  EXPECT_EQ(client({{"x-forwarded-for", "203.0.113.9"},
                    {"accept", "192.0.2.1"},
                    {"x-forwarded-for", "192.0.2.7, 10.3.3.3"}}),
            "192.0.2.7");
  EXPECT_EQ(client({{"x-forwarded-for", "203.0.113.9"}, {"x-forwarded-for", "10.3.3.3"}}),
            "203.0.113.9");
}

TEST(ClientAddress, OneAddressHasOneText) {
  EXPECT_EQ(client({{"x-forwarded-for", "::ffff:192.0.2.7"}}), "192.0.2.7");
  EXPECT_EQ(client({{"x-forwarded-for", "2001:DB8:0:0::7"}}), "2001:db8::7");
  EXPECT_EQ(client({{"x-forwarded-for", "192.0.2.7:4711"}}), "192.0.2.7");
  EXPECT_EQ(client({{"x-forwarded-for", "[2001:db8::7]:4711"}}), "2001:db8::7");
  EXPECT_EQ(client({{"x-forwarded-for", "[2001:db8::7]"}}), "2001:db8::7");
}

TEST(ClientAddress, AnInvalidAddressEndsTheSearch) {
  for (const char* hop :
       {"unknown", "", " ", "_hidden", "1.2.3", "1.2.3.4.5", "[::1", "192.0.2.7,"}) {
    EXPECT_EQ(client({{"x-forwarded-for", hop}}), "10.1.1.1") << hop;
  }
  EXPECT_EQ(client({{"x-forwarded-for", "192.0.2.7, unknown, 10.3.3.3"}}), "10.3.3.3");
}

TEST(ClientAddress, RangesAreReadStrictly) {
  using config::AddressRange;
  for (const char* text : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x",
                           "::/129", "10.0.0/8", "a/8"}) {
    EXPECT_FALSE(AddressRange::parse(text)) << text;
  }
  EXPECT_TRUE(AddressRange::parse("0.0.0.0/0")->contains(*config::parse_address("203.0.113.9")));
  EXPECT_FALSE(AddressRange::parse("0.0.0.0/0")->contains(*config::parse_address("2001:db8::1")));
  EXPECT_TRUE(
      AddressRange::parse("192.0.2.128/25")->contains(*config::parse_address("192.0.2.200")));
  EXPECT_FALSE(
      AddressRange::parse("192.0.2.128/25")->contains(*config::parse_address("192.0.2.127")));
}

TEST(CountedAddress, IsAnAddressOfVersion4OrANetworkOfVersion6) {
  EXPECT_EQ(counted_address("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(counted_address("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(counted_address("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(counted_address("2001:db8:1:2::"), "2001:db8:1:2::/64");
  EXPECT_EQ(counted_address(counted_address("2001:db8::1")), "2001:db8::/64");
}

}  // namespace
}  // namespace conversed::api
