#include "store/model/url.h"

#include <gtest/gtest.h>

namespace conversed::model {
namespace {

TEST(Url, DotSegmentIsFoundHoweverItIsSpelled) {
  for (const std::string segment :
       {".", "..", "%2e", "%2E%2e", ".%2e", "%2e.", "%252e%252E", "%25252e.", "..;", "..;a=b",
        "%2e%2e%3Bx", "a%2f..", "..%2Fadmin", "..\\admin", "..%5cadmin", "%2e%2e%255Cadmin"}) {
    EXPECT_TRUE(has_dot_segment("https://crm.example.com/orders/" + segment)) << segment;
    EXPECT_TRUE(has_dot_segment("https://crm.example.com/orders/" + segment + "/users")) << segment;
    EXPECT_TRUE(has_dot_segment("https://crm.example.com/" + segment + "?a=b")) << segment;
  }
}

TEST(Url, DotsElsewhereAreNoSegment) {
  for (const std::string url :
       {"https://crm.example.com", "https://crm.example.com/", "https://crm.example.com/v1.0/a..b",
        "https://crm.example.com/...", "https://crm.example.com/.well-known/x",
        "https://crm.example.com/a?file=../b", "https://crm.example.com/a#../b",
        "https://crm.example.com/100%/%zz", "https://crm.example.com/%2e%2ex"}) {
    EXPECT_FALSE(has_dot_segment(url)) << url;
    EXPECT_EQ(url_problem(url), "") << url;
  }
}

TEST(Url, UserInformationIsRefused) {
  for (const std::string url :
       {"https://ann@x.example/", "https://ann:pw@x.example/", "//x.example", "file:///etc/passwd",
        "https://x.example\\@evil.example/"}) {
    EXPECT_NE(url_problem(url), "") << url;
  }
}

TEST(Url, GoesToTheHostsThatAreNamedAndToTheirPorts) {
  const std::vector<std::string> hosts{"crm.example.com", "crm.example.com:8443", "[::1]:9000"};
  for (const std::string url :
       {"https://CRM.example.com/a:b", "http://crm.example.com?x", "https://crm.example.com:443",
        "https://crm.example.com:8443/", "http://[::1]:9000/"}) {
    EXPECT_TRUE(goes_to(url, hosts)) << url;
  }
  for (const std::string url :
       {"https://crm.example.com:80/", "http://crm.example.com:9443/", "https://example.com/",
        "https://crm.example.com.evil.example/", "https://evil.example/crm.example.com",
        "https://evil.example#crm.example.com", "https://crm.example.com@evil.example/",
        "https://crm.example%2ecom/", "http://[::1]/"}) {
    EXPECT_FALSE(goes_to(url, hosts)) << url;
  }
  EXPECT_TRUE(goes_to("https://evil.example/", {})) << "a Connection without hosts";
}

TEST(Url, HostIsAHostAndMaybeItsPort) {
  for (const std::string host : {"crm.example.com", "crm:8443", "127.0.0.1", "[::1]:9000"}) {
    EXPECT_TRUE(is_host(host)) << host;
  }
  for (const std::string host : {"", "crm.example.com/", "https://crm.example.com", "*.example.com",
                                 "CRM", "a b", "a@b", "crm:0", "crm:99999"}) {
    EXPECT_FALSE(is_host(host)) << host;
  }
}

}  // namespace
}  // namespace conversed::model
