#include "daemon/outbound/egress.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace conversed::daemon {
namespace {

config::Address at(const char* text) {
  return *config::parse_address(text);
}

struct Row {
  const char* address;
  bool open;
};

TEST(Egress, OnlyPublicUnicastIsOpenByDefault) {
  const auto egress = *Egress::create({});
  for (const Row row : {
           Row{"93.184.216.34", true},
           Row{"8.8.8.8", true},
           Row{"1.1.1.1", true},
           Row{"172.15.255.255", true},
           Row{"172.32.0.0", true},
           Row{"100.63.255.255", true},
           Row{"100.128.0.0", true},
           Row{"169.253.255.255", true},
           Row{"223.255.255.255", true},
           Row{"0.0.0.0", false},
           Row{"0.1.2.3", false},
           Row{"10.0.0.1", false},
           Row{"10.255.255.255", false},
           Row{"100.64.0.1", false},
           Row{"127.0.0.1", false},
           Row{"127.255.255.254", false},
           Row{"169.254.169.254", false},
           Row{"172.16.0.1", false},
           Row{"172.31.255.255", false},
           Row{"192.0.0.8", false},
           Row{"192.0.2.1", false},
           Row{"192.88.99.1", false},
           Row{"192.168.1.1", false},
           Row{"198.18.0.1", false},
           Row{"198.51.100.7", false},
           Row{"203.0.113.7", false},
           Row{"224.0.0.1", false},
           Row{"239.255.255.255", false},
           Row{"240.0.0.1", false},
           Row{"255.255.255.255", false},
           Row{"2606:4700:4700::1111", true},
           Row{"2a00:1450:4001::1", true},
           Row{"::", false},
           Row{"::1", false},
           Row{"fe80::1", false},
           Row{"fc00::1", false},
           Row{"fd12:3456::1", false},
           Row{"fec0::1", false},
           Row{"ff02::1", false},
           Row{"100::1", false},
           Row{"2001:db8::1", false},
           Row{"2001::1", false},
           Row{"3fff::1", false},
           Row{"4000::1", false},
           Row{"fd00:ec2::254", false},
       }) {
    EXPECT_EQ(egress.allows("host.example", at(row.address)), row.open) << row.address;
  }
}

TEST(Egress, EmbeddedIpv4AddressIsJudgedToo) {
  const auto egress = *Egress::create({});
  for (const Row row : {
           Row{"::ffff:127.0.0.1", false},
           Row{"::ffff:10.1.2.3", false},
           Row{"::ffff:169.254.169.254", false},
           Row{"::ffff:8.8.8.8", true},
           Row{"::127.0.0.1", false},
           Row{"::8.8.8.8", false},
           Row{"::ffff:0:127.0.0.1", false},
           Row{"64:ff9b::127.0.0.1", false},
           Row{"64:ff9b::192.168.0.1", false},
           Row{"64:ff9b::8.8.8.8", true},
           Row{"64:ff9b:1::10.0.0.1", false},
           Row{"2002:7f00:1::1", false},
           Row{"2002:a9fe:a9fe::1", false},
           Row{"2002:808:808::1", true},
       }) {
    EXPECT_EQ(egress.allows("host.example", at(row.address)), row.open) << row.address;
  }
}

TEST(Egress, RangeOpensItsAddressesOnly) {
  const auto egress = *Egress::create({"10.1.0.0/16", "127.0.0.1", "fd00:1::/32", "::1"});
  EXPECT_TRUE(egress.allows("x", at("10.1.255.1")));
  EXPECT_FALSE(egress.allows("x", at("10.2.0.1")));
  EXPECT_TRUE(egress.allows("x", at("127.0.0.1")));
  EXPECT_FALSE(egress.allows("x", at("127.0.0.2")));
  EXPECT_TRUE(egress.allows("x", at("fd00:1::7")));
  EXPECT_FALSE(egress.allows("x", at("fd00:2::7")));
  EXPECT_TRUE(egress.allows("x", at("::1")));
  EXPECT_FALSE(egress.allows("x", at("::2")));
  EXPECT_TRUE(egress.allows("x", at("::ffff:10.1.0.1"))) << "the same address, mapped to IPv6";
  EXPECT_TRUE(egress.allows("x", at("64:ff9b::10.1.0.1")));
  EXPECT_FALSE(egress.allows("x", at("64:ff9b::10.2.0.1")));
}

TEST(Egress, RangeIgnoresHostBits) {
  const auto egress = *Egress::create({"10.1.2.3/12", "0.0.0.0/0"});
  EXPECT_TRUE(egress.allows("x", at("10.15.0.1")));
  EXPECT_TRUE(egress.allows("x", at("127.0.0.1")));
  EXPECT_FALSE(egress.allows("x", at("::1"))) << "a range of IPv4 opens no address of IPv6";
}

TEST(Egress, HostNameOpensRequestsToThatNameOnly) {
  const auto egress = *Egress::create({"Hooks.Internal.example", "localhost."});
  EXPECT_TRUE(egress.allows("hooks.internal.example", at("10.0.0.7")));
  EXPECT_TRUE(egress.allows("HOOKS.internal.example.", at("10.0.0.7")));
  EXPECT_TRUE(egress.allows("localhost", at("127.0.0.1")));
  EXPECT_FALSE(egress.allows("other.internal.example", at("10.0.0.7")));
  EXPECT_FALSE(egress.allows("evil.hooks.internal.example", at("10.0.0.7")));
}

TEST(Egress, AddressesOfThisMachineAreClosedUnlessAllowed) {
  const auto own = [](const config::Address& address) {
    return address == *config::parse_address("8.8.4.4") ||
           address == *config::parse_address("2606:4700::7");
  };
  const auto closed = *Egress::create({}, own);
  EXPECT_FALSE(closed.allows("x", at("8.8.4.4")));
  EXPECT_FALSE(closed.allows("x", at("64:ff9b::8.8.4.4")));
  EXPECT_FALSE(closed.allows("x", at("2606:4700::7")));
  EXPECT_TRUE(closed.allows("x", at("8.8.4.5")));
  const auto opened = *Egress::create({"8.8.4.4", "own.example"}, own);
  EXPECT_TRUE(opened.allows("x", at("8.8.4.4")));
  EXPECT_FALSE(opened.allows("x", at("2606:4700::7")));
  EXPECT_TRUE(opened.allows("own.example", at("2606:4700::7")));
}

// Runs in its own network namespace, which one thread can have.
TEST(OwnAddresses, NewOnesOfAnInterfaceAreKnown) {
  bool may = true;
  std::jthread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      may = false;
      return;
    }
    OwnAddresses own(std::chrono::milliseconds(0));
    const auto address = *config::parse_address("8.8.4.4");
    EXPECT_FALSE(own.contains(address));
    ifreq wanted{};
    std::strcpy(wanted.ifr_name, "lo");
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(0x08080404);
    std::memcpy(&wanted.ifr_addr, &v4, sizeof(v4));
    const int any = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::ioctl(any, SIOCSIFADDR, &wanted), 0);
    ::close(any);
    EXPECT_TRUE(own.contains(address));
  }).join();
  if (!may) GTEST_SKIP() << "a network of its own takes root";
}

TEST(Egress, NonsenseInTheListIsNamed) {
  for (const char* entry : {"", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/-1", "::/129",
                            "host/8", "two words", "10.0.0", "300.1.1.1", "-x.example", "a..b"}) {
    const auto egress = Egress::create({entry});
    ASSERT_FALSE(egress) << entry;
    EXPECT_EQ(egress.error().code, model::Errc::invalid_argument);
    EXPECT_NE(egress.error().message.find(entry), std::string::npos);
  }
}

TEST(Egress, ForeignAddressFamilyIsClosed) {
  const auto egress = *Egress::create({"0.0.0.0/0", "::/0"});
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  EXPECT_FALSE(egress.allows("x", reinterpret_cast<const sockaddr*>(&local)));
  EXPECT_FALSE(egress.allows("x", static_cast<const sockaddr*>(nullptr)));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_TRUE(egress.allows("x", reinterpret_cast<const sockaddr*>(&v4)));
  EXPECT_FALSE(Egress::create({})->allows("x", reinterpret_cast<const sockaddr*>(&v4)));
}

}  // namespace
}  // namespace conversed::daemon
