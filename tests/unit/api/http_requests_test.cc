// RFC 9112 as a table of raw requests and their answers. Every row goes over a socket as it stands.
// Valid rows also go split in two at every byte.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/api/test_server.h"

namespace conversed::api::test {
namespace {

using namespace std::string_literals;  // some rows hold NULs

struct Row {
  std::string name;
  std::string bytes;
  std::vector<std::string> bodies;  // of the answers with 200, in order
  int refused = 0;    // the status of a last answer that closes the connection; 0 if none
  bool ends = false;  // the connection closes without a refusal
};

const std::string host = "Host: x\r\n";
const std::string end = "\r\n";

std::string get(const std::string& target, const std::string& fields = host) {
  return "GET " + target + " HTTP/1.1\r\n" + fields + end;
}

std::string post(const std::string& fields, const std::string& body) {
  return "POST /p HTTP/1.1\r\n" + host + fields + end + body;
}

std::string chunked(const std::string& chunks) {
  return post("Transfer-Encoding: chunked\r\n", chunks);
}

std::vector<Row> valid_lines() {
  return {
      {"a plain request", get("/a"), {"GET /a|"}},
      {"the root", get("/"), {"GET /|"}},
      {"an empty line before it", "\r\n" + get("/a"), {"GET /a|"}},
      {"several empty lines before it", "\r\n\r\n\r\n" + get("/a"), {"GET /a|"}},
      {"an empty line between two", get("/a") + "\r\n" + get("/b"), {"GET /a|", "GET /b|"}},
      {"absolute form", get("http://x/a?b=c"), {"GET /a?b=c|"}},
      {"absolute form of https, in capitals", get("HTTPS://x:8080/a"), {"GET /a|"}},
      {"absolute form without a path", get("http://x"), {"GET /|"}},
      {"absolute form with a query alone", get("http://x?a=b"), {"GET /?a=b|"}},
      {"TRACE", "TRACE /a HTTP/1.1\r\n" + host + end, {"TRACE /a|"}},
      {"asterisk form", "OPTIONS * HTTP/1.1\r\n" + host + end, {"OPTIONS *|"}},
      {"a percent-encoded path", get("/a%20b"), {"GET /a b|"}},
      {"percent-encoded UTF-8", get("/%C3%A9"), {"GET /\xC3\xA9|"}},
      {"lower-case escapes", get("/%c3%a9"), {"GET /\xC3\xA9|"}},
      {"an empty query", get("/a?"), {"GET /a|"}},
      {"a query of two", get("/a?b=c&d=e"), {"GET /a?b=c&d=e|"}},
      {"a plus in a query", get("/a?b=c+d"), {"GET /a?b=c d|"}},
      {"a plus in a path", get("/a+b"), {"GET /a+b|"}},
      {"a question mark in a query", get("/a?b=c?d"), {"GET /a?b=c?d|"}},
      {"a query without a value", get("/a?b"), {"GET /a?b=|"}},
      {"PUT", "PUT /a HTTP/1.1\r\n" + host + end, {"PUT /a|"}},
      {"PATCH", "PATCH /a HTTP/1.1\r\n" + host + end, {"PATCH /a|"}},
      {"DELETE", "DELETE /a HTTP/1.1\r\n" + host + end, {"DELETE /a|"}},
      {"OPTIONS", "OPTIONS /a HTTP/1.1\r\n" + host + end, {"OPTIONS /a|"}},
      {"a later minor version", "GET /a HTTP/1.9\r\n" + host + end, {"GET /a|"}},
      {"no space after a colon", get("/a", "Host:x\r\n"), {"GET /a|"}},
      {"spaces and tabs around a value", get("/a", "Host: \t x \t\r\n"), {"GET /a|"}},
      {"an empty Host", get("/a", "Host:\r\n"), {"GET /a|"}},
      {"a Host with a port", get("/a", "Host: x:80\r\n"), {"GET /a|"}},
      {"a Host of IPv6", get("/a", "Host: [::1]:80\r\n"), {"GET /a|"}},
      {"a field name in capitals", get("/a", "HOST: x\r\n"), {"GET /a|"}},
      {"an empty field", get("/a", host + "X-Empty:\r\n"), {"GET /a|"}},
      {"obs-text in a value", get("/a", host + "X: \xE9\r\n"), {"GET /a|"}},
      {"every token character in a name", get("/a", host + "!#$%&'*+-.^_`|~: y\r\n"), {"GET /a|"}},
      {"a field twice", get("/a", host + "X: 1\r\nX: 2\r\n"), {"GET /a|"}},
      {"Host last", get("/a", "X: 1\r\n" + host), {"GET /a|"}},
      {"an upgrade that is not taken",
       get("/a", host + "Connection: Upgrade\r\nUpgrade: h2c\r\n"),
       {"GET /a|"}},
  };
}

std::vector<Row> valid_bodies() {
  return {
      {"a body", post("Content-Length: 3\r\n", "abc"), {"POST /p|abc"}},
      {"an empty body", post("Content-Length: 0\r\n", ""), {"POST /p|"}},
      {"no body at all", post("", ""), {"POST /p|"}},
      {"a length with leading zeros", post("Content-Length: 003\r\n", "abc"), {"POST /p|abc"}},
      {"a body that looks like a request",
       post("Content-Length: 18\r\n", "GET / HTTP/1.1\r\n\r\n") + get("/b"),
       {"POST /p|GET / HTTP/1.1\r\n\r\n", "GET /b|"}},
      {"a body of NULs", post("Content-Length: 2\r\n", "\0\0"s), {"POST /p|\0\0"s}},
      {"a body of GET",
       "GET /a HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\nhi",
       {"GET /a|hi"}},
      {"one chunk", chunked("3\r\nabc\r\n0\r\n\r\n"), {"POST /p|abc"}},
      {"two chunks", chunked("1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"), {"POST /p|abc"}},
      {"no chunk but the last", chunked("0\r\n\r\n"), {"POST /p|"}},
      {"a chunk size in capitals", chunked("A\r\n0123456789\r\n0\r\n\r\n"), {"POST /p|0123456789"}},
      {"a chunk size with zeros", chunked("0003\r\nabc\r\n000\r\n\r\n"), {"POST /p|abc"}},
      {"a chunk extension", chunked("3;a=b\r\nabc\r\n0\r\n\r\n"), {"POST /p|abc"}},
      {"a quoted chunk extension", chunked("3;a=\"b c\"\r\nabc\r\n0;z\r\n\r\n"), {"POST /p|abc"}},
      {"spaces before a chunk extension", chunked("3 \t;a\r\nabc\r\n0\r\n\r\n"), {"POST /p|abc"}},
      {"a line break in a chunk", chunked("4\r\na\r\nb\r\n0\r\n\r\n"), {"POST /p|a\r\nb"}},
      {"a trailer", chunked("1\r\na\r\n0\r\nX: y\r\n\r\n"), {"POST /p|a"}},
      {"two trailers",
       chunked("1\r\na\r\n0\r\nX: y\r\nZ:\r\n\r\n") + get("/b"),
       {"POST /p|a", "GET /b|"}},
      {"a trailer that names a length",
       chunked("1\r\na\r\n0\r\nContent-Length: 9\r\n\r\n") + get("/b"),
       {"POST /p|a", "GET /b|"}},
      {"chunked in capitals",
       post("Transfer-Encoding: CHUNKED\r\n", "1\r\na\r\n0\r\n\r\n"),
       {"POST /p|a"}},
      {"chunked beside empty elements",
       post("Transfer-Encoding: , chunked ,\r\n", "1\r\na\r\n0\r\n\r\n"),
       {"POST /p|a"}},
      {"two of a pipeline", get("/a") + get("/b"), {"GET /a|", "GET /b|"}},
      {"a pipeline of all kinds",
       get("/a") + chunked("1\r\na\r\n0\r\n\r\n") + post("Content-Length: 1\r\n", "b") + get("/c"),
       {"GET /a|", "POST /p|a", "POST /p|b", "GET /c|"}},
      {"Expect without a body", get("/a", host + "Expect: 100-continue\r\n"), {"GET /a|"}},
  };
}

std::vector<Row> valid_ends() {
  const std::string old = "GET /a HTTP/1.0\r\n";
  return {
      {"close", get("/a", host + "Connection: close\r\n"), {"GET /a|"}, 0, true},
      {"Close in capitals", get("/a", host + "CONNECTION: CLOSE\r\n"), {"GET /a|"}, 0, true},
      {"close among others", get("/a", host + "Connection: x, close\r\n"), {"GET /a|"}, 0, true},
      {"close beside keep-alive",
       get("/a", host + "Connection: keep-alive, close\r\n"),
       {"GET /a|"},
       0,
       true},
      {"what follows close is not read",
       get("/a", host + "Connection: close\r\n") + get("/b"),
       {"GET /a|"},
       0,
       true},
      {"HTTP/1.0 ends", old + end, {"GET /a|"}, 0, true},
      {"HTTP/1.0 with a Host", old + host + end, {"GET /a|"}, 0, true},
      {"HTTP/1.0 that keeps alive", old + "Connection: keep-alive\r\n\r\n", {"GET /a|"}},
      {"HTTP/1.0 ignores Expect",
       "POST /p HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
       {"POST /p|a"},
       0,
       true},
      {"HTTP/1.0 with a body",
       "POST /p HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
       {"POST /p|abc"},
       0,
       true},
  };
}

std::vector<Row> refused_lines() {
  return {
      {"a bare LF", "GET /a HTTP/1.1\nHost: x\n\n", {}, 400},
      {"a bare LF after a field", "GET /a HTTP/1.1\r\nHost: x\n\r\n", {}, 400},
      {"a bare CR in a field", get("/a", host + "X: a\rb\r\n"), {}, 400},
      {"too many empty lines", "\r\n\r\n\r\n\r\n\r\n\r\n" + get("/a"), {}, 400},
      {"no version", "GET /a\r\n" + host + end, {}, 400},
      {"no target", "GET HTTP/1.1\r\n" + host + end, {}, 400},
      {"two spaces after the method", "GET  /a HTTP/1.1\r\n" + host + end, {}, 400},
      {"a space in the target", "GET /a b HTTP/1.1\r\n" + host + end, {}, 400},
      {"a space before the method", " GET /a HTTP/1.1\r\n" + host + end, {}, 400},
      {"a space after the version", "GET /a HTTP/1.1 \r\n" + host + end, {}, 400},
      {"a tab between the parts", "GET\t/a\tHTTP/1.1\r\n" + host + end, {}, 400},
      {"a version in lower case", "GET /a http/1.1\r\n" + host + end, {}, 400},
      {"a version without a minor", "GET /a HTTP/1\r\n" + host + end, {}, 400},
      {"a version of two digits", "GET /a HTTP/1.10\r\n" + host + end, {}, 400},
      {"HTTP/2.0", "GET /a HTTP/2.0\r\n" + host + end, {}, 505},
      {"HTTP/0.9 with a version", "GET /a HTTP/0.9\r\n" + host + end, {}, 505},
      {"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {}, 505},
      {"a method that is no token", "G(T /a HTTP/1.1\r\n" + host + end, {}, 400},
      {"an unknown method", "BREW /a HTTP/1.1\r\n" + host + end, {}, 501},
      {"a method in lower case", "get /a HTTP/1.1\r\n" + host + end, {}, 501},
      {"CONNECT", "CONNECT x:443 HTTP/1.1\r\n" + host + end, {}, 400},
      {"an asterisk for GET", get("*"), {}, 400},
      {"a target that is no path", get("a"), {}, 400},
      {"a fragment", get("/a#b"), {}, 400},
      {"a NUL in the target", get("/a\0b"s), {}, 400},
      {"a raw byte beyond ASCII in the target", get("/\xC3\xA9"), {}, 400},
      {"a broken escape in the path", get("/a%2"), {}, 400},
      {"an escape that is not hexadecimal", get("/a%zz"), {}, 400},
      {"an escaped NUL", get("/a%00"), {}, 400},
      {"an escape that is not UTF-8", get("/%FF"), {}, 400},
      {"a broken escape in the query", get("/a?b=%"), {}, 400},
      {"absolute form without a host", get("http:///a"), {}, 400},
      {"absolute form with user information", get("http://u@x/a"), {}, 400},
      {"the hello of TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03\r\n\r\n"s, {}, 400},
  };
}

std::vector<Row> refused_fields() {
  return {
      {"no Host", get("/a", ""), {}, 400},
      {"two Hosts", get("/a", host + host), {}, 400},
      {"two Hosts that differ", get("/a", host + "Host: y\r\n"), {}, 400},
      {"a Host with a space", get("/a", "Host: x y\r\n"), {}, 400},
      {"a Host with a path", get("/a", "Host: x/y\r\n"), {}, 400},
      {"a Host of two", get("/a", "Host: x, y\r\n"), {}, 400},
      {"a Host with user information", get("/a", "Host: u@x\r\n"), {}, 400},
      {"a space before a colon", get("/a", "Host : x\r\n"), {}, 400},
      {"a tab before a colon", get("/a", host + "X\t: y\r\n"), {}, 400},
      {"an empty name", get("/a", host + ": y\r\n"), {}, 400},
      {"a name that is no token", get("/a", host + "X(Y): z\r\n"), {}, 400},
      {"a line without a colon", get("/a", host + "X\r\n"), {}, 400},
      {"a folded field", get("/a", host + "X: a\r\n b\r\n"), {}, 400},
      {"a first line that is folded", get("/a", " " + host), {}, 400},
      {"a NUL in a value", get("/a", host + "X: a\0b\r\n"s), {}, 400},
      {"a control character in a value", get("/a", host + "X: a\x01\r\n"), {}, 400},
      {"DEL in a value", get("/a", host + "X: a\x7F\r\n"), {}, 400},
      {"another expectation", get("/a", host + "Expect: 200-ok\r\n"), {}, 417},
      {"too many fields",
       get(
           "/a", host +
                     [] {
                       std::string fields;
                       for (int i = 0; i < 120; ++i) fields += "X: y\r\n";
                       return fields;
                     }()),
       {},
       431},
      {"fields that are too large",
       get("/a", host + "X: " + std::string(20'000, 'x') + end),
       {},
       431},
      {"a request line that is too long", get("/" + std::string(20'000, 'x')), {}, 414},
      {"a good one and then a bad one", get("/a") + "X\r\n\r\n", {"GET /a|"}, 400},
  };
}

std::vector<Row> refused_bodies() {
  return {
      {"a negative length", post("Content-Length: -1\r\n", ""), {}, 400},
      {"a length with a plus", post("Content-Length: +1\r\n", "a"), {}, 400},
      {"a length in hexadecimal", post("Content-Length: 0x1\r\n", "a"), {}, 400},
      {"an empty length", post("Content-Length:\r\n", ""), {}, 400},
      {"a length with a space", post("Content-Length: 1 1\r\n", "a"), {}, 400},
      {"a length of a list", post("Content-Length: 1, 1\r\n", "a"), {}, 400},
      {"two lengths", post("Content-Length: 1\r\nContent-Length: 1\r\n", "a"), {}, 400},
      {"two lengths that differ",
       post("Content-Length: 1\r\nContent-Length: 2\r\n", "ab"),
       {},
       400},
      {"a length beyond the limit", post("Content-Length: 70000\r\n", ""), {}, 413},
      {"a length past 64 bits", post("Content-Length: 99999999999999999999999\r\n", ""), {}, 413},
      {"a length and chunks",
       post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
       {},
       400},
      {"chunks and a length",
       post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
       {},
       400},
      {"chunked twice", post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), {}, 400},
      {"chunked that is not last", post("Transfer-Encoding: chunked, gzip\r\n", ""), {}, 400},
      {"gzip", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), {}, 501},
      {"identity", post("Transfer-Encoding: identity\r\n", ""), {}, 501},
      {"xchunked", post("Transfer-Encoding: xchunked\r\n", ""), {}, 501},
      {"an empty transfer coding", post("Transfer-Encoding:\r\n", ""), {}, 400},
      {"chunks of HTTP/1.0",
       "POST /p HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       {},
       400},
      {"a chunk size that is no number", chunked("x\r\n"), {}, 400},
      {"an empty chunk size", chunked("\r\nabc"), {}, 400},
      {"a negative chunk size", chunked("-1\r\n"), {}, 400},
      {"a chunk size with 0x", chunked("0x1\r\na\r\n"), {}, 400},
      {"a space before a chunk size", chunked(" 1\r\na\r\n"), {}, 400},
      {"a space after a chunk size", chunked("1 \r\na\r\n"), {}, 400},
      {"a bare LF after a chunk size", chunked("1\na\r\n"), {}, 400},
      {"a bare CR after a chunk size", chunked("1\ra\r\n"), {}, 400},
      {"a chunk longer than its size", chunked("1\r\nab\r\n"), {}, 400},
      {"a chunk that ends in LF", chunked("1\r\na\n0\r\n\r\n"), {}, 400},
      {"a chunk beyond the limit", chunked("FFFFFF\r\n"), {}, 413},
      {"a chunk size past 64 bits", chunked("10000000000000001\r\na"), {}, 413},
      {"a NUL in a chunk extension", chunked("1;\0\r\na\r\n"s), {}, 400},
      {"a trailer without a colon", chunked("0\r\nX\r\n\r\n"), {}, 400},
      {"a trailer with a space before its colon", chunked("0\r\nX : y\r\n\r\n"), {}, 400},
      {"a folded trailer", chunked("0\r\nX: y\r\n z\r\n\r\n"), {}, 400},
      {"a trailer that ends in LF", chunked("0\r\nX: y\n\r\n"), {}, 400},
      {"trailers that are too large",
       chunked("0\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"),
       {},
       431},
  };
}

std::vector<Row> joined(std::initializer_list<std::vector<Row>> parts) {
  std::vector<Row> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<Row> valid_rows() {
  return joined({valid_lines(), valid_bodies(), valid_ends()});
}

std::vector<Row> refused_rows() {
  return joined({refused_lines(), refused_fields(), refused_bodies()});
}

// The answers to a row, as one text for comparison.
std::string seen(RawClient& client, const Row& row) {
  std::string text;
  for (std::size_t i = 0; i < row.bodies.size(); ++i) {
    const auto answer = client.read_answer();
    if (!answer) return text + "(end)";
    if (answer->status == 100) {
      --i;
      continue;
    }
    text += std::to_string(answer->status) + " " + answer->body + "\n";
  }
  if (row.refused != 0) {
    const auto answer = client.read_answer();
    text += answer ? std::to_string(answer->status) + "\n" : "(none)\n";
  }
  if (row.refused != 0 || row.ends) return text + (client.read_end() ? "end" : "more");
  return text + (client.readable() ? "more" : "open");
}

std::string wanted(const Row& row) {
  std::string text;
  for (const auto& body : row.bodies) text += "200 " + body + "\n";
  if (row.refused != 0) text += std::to_string(row.refused) + "\n";
  return text + (row.refused != 0 || row.ends ? "end" : "open");
}

class HttpRequests : public testing::Test {
 protected:
  TestServer server_;
};

TEST_F(HttpRequests, AreAnsweredOnceEachInOrder) {
  for (const auto& row : valid_rows()) {
    RawClient client(server_.port());
    client.send(row.bytes);
    EXPECT_EQ(seen(client, row), wanted(row)) << row.name;
  }
}

TEST_F(HttpRequests, AreAnsweredAlikeWhereverTheyAreSplit) {
  for (const auto& row : valid_rows()) {
    for (std::size_t split = 1; split < row.bytes.size(); ++split) {
      RawClient client(server_.port());
      client.send(std::string_view(row.bytes).substr(0, split));
      client.send(std::string_view(row.bytes).substr(split));
      ASSERT_EQ(seen(client, row), wanted(row)) << row.name << ", split at " << split;
    }
  }
}

TEST_F(HttpRequests, ThatAreMalformedAreRefusedAndEndTheConnection) {
  for (const auto& row : refused_rows()) {
    RawClient client(server_.port());
    client.send(row.bytes);
    EXPECT_EQ(seen(client, row), wanted(row)) << row.name;
  }
}

TEST_F(HttpRequests, ThatAreMalformedReachNoHandlerWhereverTheyAreSplit) {
  for (const auto& row : refused_rows()) {
    if (row.bytes.size() > 1000) continue;
    for (std::size_t split = 1; split < row.bytes.size(); ++split) {
      RawClient client(server_.port());
      client.send(std::string_view(row.bytes).substr(0, split));
      client.send(std::string_view(row.bytes).substr(split));
      ASSERT_EQ(seen(client, row), wanted(row)) << row.name << ", split at " << split;
    }
  }
}

TEST_F(HttpRequests, RefusalsAreProblemsThatAnyPageMayRead) {
  for (const auto& row : refused_rows()) {
    if (!row.bodies.empty()) continue;
    RawClient client(server_.port());
    client.send(row.bytes);
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer) << row.name;
    EXPECT_EQ(answer->header("content-type"), "application/problem+json") << row.name;
    EXPECT_EQ(answer->header("access-control-allow-origin"), "*") << row.name;
    EXPECT_EQ(answer->header("connection"), "close") << row.name;
    EXPECT_NE(answer->body.find(answer->header("x-trace-id")), std::string::npos) << row.name;
  }
}

}  // namespace
}  // namespace conversed::api::test
