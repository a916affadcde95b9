#include "api/http/request_reader.h"

#include <gtest/gtest.h>

namespace conversed::api {
namespace {

using Progress = RequestReader::Progress;

const HttpSettings limits{.max_header = 1024, .max_body = 256};

// The status of the refusal; 0 if the bytes are a whole request, -1 if more bytes are needed.
int verdict(std::string_view bytes, std::size_t step = std::string_view::npos) {
  RequestReader reader(limits);
  while (!bytes.empty()) {
    auto part = bytes.substr(0, step);
    bytes.remove_prefix(part.size());
    while (!part.empty()) {
      const auto progress = reader.feed(part);
      if (progress == Progress::refused) return reader.refusal().status;
      if (progress == Progress::complete) return 0;
    }
  }
  return -1;
}

std::string get(const std::string& fields) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}
std::string chunked(const std::string& body) {
  return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body;
}

struct Case {
  std::string name;
  std::string bytes;
  int status;
};

class EachMessage : public testing::TestWithParam<Case> {};

TEST_P(EachMessage, GetsItsVerdictHoweverItIsSplit) {
  const auto& [name, bytes, status] = GetParam();
  for (const std::size_t step :
       {std::string::npos, std::size_t{1}, std::size_t{2}, std::size_t{7}}) {
    EXPECT_EQ(verdict(bytes, step), status) << "in steps of " << step;
  }
}

const std::vector<Case> cases{
    {"Plain", get(""), 0},
    {"EmptyLinesFirst", "\r\n\r\n" + get(""), 0},
    {"ManyEmptyLinesFirst", "\r\n\r\n\r\n\r\n\r\n" + get(""), 400},
    {"BareLfInRequestLine", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400},
    {"BareLfInFields", "GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
    {"BareLfFirst", "\nGET / HTTP/1.1\r\n", 400},
    {"BareCrInValue", get("A: b\rc\r\n"), 400},
    {"NulInValue", get(std::string("A: b\0c\r\n", 8)), 400},
    {"NulInName", get(std::string("A\0: b\r\n", 7)), 400},
    {"DelInValue", get("A: b\x7F\r\n"), 400},
    {"Folding", get("A: b\r\n c\r\n"), 400},
    {"SpaceBeforeColon", get("A : b\r\n"), 400},
    {"SpaceInName", get("A b: c\r\n"), 400},
    {"NoColon", get("abc\r\n"), 400},
    {"EmptyName", get(": b\r\n"), 400},
    {"EmptyValue", get("A:\r\n"), 0},
    {"ObsText", get("A: \xE9\r\n"), 0},
    {"NoHost", "GET / HTTP/1.1\r\n\r\n", 400},
    {"NoHostIn10", "GET / HTTP/1.0\r\n\r\n", 0},
    {"TwoHosts", get("Host: a\r\n"), 400},
    {"BadHost", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
    {"EmptyHost", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 0},
    {"Http09", "GET /\r\n\r\n", 400},
    {"Http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
    {"Http12", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 0},
    {"BadVersion", "GET / HTTP/1\r\nHost: a\r\n\r\n", 400},
    {"LowerCaseVersion", "GET / http/1.1\r\nHost: a\r\n\r\n", 400},
    {"TwoSpaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"SpaceInTarget", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"FragmentInTarget", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"RawUtf8InTarget", "GET /\xC3\x9F HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"BadEscapeInPath", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"NulInPath", "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"BadEscapeInQuery", "GET /?a=%f HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"AbsoluteForm", "GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n", 0},
    {"AuthorityForm", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"StarForGet", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"StarForOptions", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 0},
    {"UnknownMethod", "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
    {"LowerCaseMethod", "get / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
    {"Trace", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
    {"CompressedBody", get("Content-Encoding: br, gzip\r\nContent-Length: 1\r\n") + "x", 415},
    {"UnknownContentCoding", get("Content-Encoding: utf-8\r\nContent-Length: 1\r\n") + "x", 0},
    {"CodingWithoutBody", get("Content-Encoding: gzip\r\n"), 0},
    {"Connect", "CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n", 501},
    {"MethodNoToken", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"LengthGarbage", get("Content-Length: x\r\n"), 400},
    {"LengthNegative", get("Content-Length: -1\r\n"), 400},
    {"LengthPlus", get("Content-Length: +1\r\n"), 400},
    {"LengthEmpty", get("Content-Length:\r\n"), 400},
    {"LengthList", get("Content-Length: 1, 1\r\n"), 400},
    {"LengthTwice", get("Content-Length: 1\r\nContent-Length: 1\r\n"), 400},
    {"LengthConflict", get("Content-Length: 1\r\nContent-Length: 2\r\n"), 400},
    {"LengthOverLimit", get("Content-Length: 257\r\n"), 413},
    {"LengthWraps", get("Content-Length: 18446744073709551617\r\n"), 413},
    {"LengthOfThousandDigits", get("Content-Length: " + std::string(900, '9') + "\r\n"), 413},
    {"LengthAndCoding", get("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400},
    {"CodingIn10", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"CodingGzip", get("Transfer-Encoding: gzip\r\n"), 501},
    {"CodingGzipChunked", get("Transfer-Encoding: gzip, chunked\r\n"), 501},
    {"CodingIdentity", get("Transfer-Encoding: identity\r\n"), 501},
    {"CodingChunkedTwice", get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
     400},
    {"CodingAfterChunked", get("Transfer-Encoding: chunked, gzip\r\n"), 400},
    {"CodingEmpty", get("Transfer-Encoding:\r\n"), 400},
    {"CodingWithTab", get("Transfer-Encoding: \tchunked\t\r\n") + "0\r\n\r\n", 0},
    {"CodingVerticalTab", get("Transfer-Encoding: \vchunked\r\n"), 400},
    {"CodingUpperCase", get("TRANSFER-ENCODING: CHUNKED\r\n") + "0\r\n\r\n", 0},
    {"Chunks", chunked("3\r\nabc\r\n00a\r\n0123456789\r\n0\r\n\r\n"), 0},
    {"ChunkExtensions", chunked("3;a=b;c=\"d\"\r\nabc\r\n3 ;a\r\nabc\r\n0;last\r\n\r\n"), 0},
    {"Trailers", chunked("0\r\nA: b\r\nContent-Length: 5\r\n\r\n"), 0},
    {"ChunkEndWrong", chunked("3\r\nabcXX0\r\n\r\n"), 400},
    {"ChunkEndBareLf", chunked("3\r\nabc\n0\r\n\r\n"), 400},
    {"ChunkSizeBareLf", chunked("3\nabc\r\n0\r\n\r\n"), 400},
    {"ChunkSizeCrX", chunked("3\rXabc\r\n"), 400},
    {"ChunkSizeEmpty", chunked("\r\nabc\r\n"), 400},
    {"ChunkSizeNoHexYet", chunked("x"), 400},
    {"ChunkSizeCrXYet", chunked("3\rX"), 400},
    {"ChunkSizeCrYet", chunked("3\r"), -1},
    {"ChunkEndWrongYet", chunked("3\r\nabcX"), 400},
    {"ChunkEndCrXYet", chunked("3\r\nabc\rX"), 400},
    {"ChunkEndCrYet", chunked("3\r\nabc\r"), -1},
    {"ChunkSizeNegative", chunked("-1\r\n"), 400},
    {"ChunkSizePrefixed", chunked("0x3\r\nabc\r\n"), 400},
    {"ChunkSizeWraps", chunked("10000000000000003\r\nabc\r\n"), 413},
    {"ChunkSizeSpaceOnly", chunked("3 \r\nabc\r\n"), 400},
    {"ChunkExtensionNul", chunked(std::string("3;\0\r\nabc\r\n", 10)), 400},
    {"ChunksOverLimit", chunked("ff\r\n" + std::string(255, 'x') + "\r\n2\r\nab\r\n"), 413},
    {"TrailerFolded", chunked("0\r\nA: b\r\n c\r\n\r\n"), 400},
    {"TrailerBareLf", chunked("0\r\nA: b\n\r\n"), 400},
    {"TrailersTooLarge", chunked("0\r\nA: " + std::string(1100, 'b') + "\r\n\r\n"), 431},
    {"ChunksOfExtensionOnly", chunked("1;" + std::string(2000, 'x') + "\r\n"), 400},
    {"ExpectOther", get("Expect: the-unexpected\r\n"), 417},
    {"TargetTooLong", "GET /" + std::string(1100, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
    {"FieldsTooLarge", get("A: " + std::string(1100, 'b') + "\r\n"), 431},
    {"FieldsNeverEnd", "GET / HTTP/1.1\r\nA: " + std::string(2000, 'b'), 431},
    {"Unfinished", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab", -1},
};
INSTANTIATE_TEST_SUITE_P(RequestReader, EachMessage, testing::ValuesIn(cases),
                         [](const auto& each) { return each.param.name; });

Request read_whole(std::string_view bytes) {
  RequestReader reader(limits);
  EXPECT_EQ(reader.feed(bytes), Progress::complete);
  EXPECT_TRUE(bytes.empty());
  return reader.take();
}

TEST(RequestReader, PartsOfTheRequestAreDecoded) {
  const auto request = read_whole(
      "PATCH /a%20b/../c?x=1&y=%C3%9F HTTP/1.1\r\nHost: h:1\r\nX-Two:  b \t\r\nx-TWO: c\r\n"
      "Content-Length: 3\r\n\r\nabc");
  EXPECT_EQ(request.method, Method::patch);
  EXPECT_EQ(request.target, "/a%20b/../c?x=1&y=%C3%9F");
  EXPECT_EQ(request.path, "/a b/../c");
  EXPECT_EQ(request.parameter("x"), "1");
  EXPECT_EQ(request.parameter("y"), "\xC3\x9F");
  EXPECT_EQ(request.parameter("z"), std::nullopt);
  EXPECT_EQ(request.header("x-two"), "b");
  EXPECT_EQ(request.headers.at(2), (std::pair<std::string, std::string>("x-two", "c")));
  EXPECT_EQ(request.body, "abc");
  EXPECT_TRUE(request.keep_alive);
}

TEST(RequestReader, ARefusedRequestLineLeavesTheTrace) {
  for (const char* const line : {"GET /%zz HTTP/1.1", "BREW / HTTP/1.1"}) {
    RequestReader reader(limits);
    const std::string whole =
        std::string(line) + "\r\nHost: a\r\ntraceparent: trace\r\nno colon\r\n\r\n";
    std::string_view bytes = whole;
    ASSERT_EQ(reader.feed(bytes), Progress::refused);
    EXPECT_EQ(reader.partial().header("traceparent"), "trace") << line;
  }
  RequestReader reader(limits);
  std::string_view bytes = "BREW / HTTP/1.1\r\nHost: a\r\n\r\n";
  ASSERT_EQ(reader.feed(bytes), Progress::refused);
  EXPECT_EQ(method_name(reader.partial().method), "") << "the log names no other method";
}

TEST(RequestReader, AbsoluteTargetBecomesAPath) {
  EXPECT_EQ(read_whole("GET HTTP://a.b:80?x=1 HTTP/1.1\r\nHost: a\r\n\r\n").target, "/?x=1");
  EXPECT_EQ(read_whole("GET https://a/b/c HTTP/1.1\r\nHost: a\r\n\r\n").path, "/b/c");
}

TEST(RequestReader, ChunksAreJoined) {
  EXPECT_EQ(read_whole(chunked("3\r\nabc\r\nA;x\r\n0123456789\r\n0\r\nT: u\r\n\r\n")).body,
            "abc0123456789");
}

TEST(RequestReader, KeepAliveFollowsVersionAndConnection) {
  EXPECT_TRUE(read_whole(get("")).keep_alive);
  EXPECT_FALSE(read_whole(get("Connection: x, Close\r\n")).keep_alive);
  EXPECT_FALSE(read_whole("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(read_whole("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
  EXPECT_FALSE(read_whole("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n").keep_alive);
}

TEST(RequestReader, OneRequestIsTakenFromAPipelineAtATime) {
  std::string bytes = get("A: 1\r\n") + chunked("1\r\nx\r\n0\r\n\r\n") + get("A: 3\r\n");
  RequestReader reader(limits);
  std::string_view rest = bytes;
  ASSERT_EQ(reader.feed(rest), Progress::complete);
  EXPECT_EQ(reader.take().header("a"), "1");
  ASSERT_EQ(reader.feed(rest), Progress::complete);
  EXPECT_EQ(reader.take().body, "x");
  ASSERT_EQ(reader.feed(rest), Progress::complete);
  EXPECT_EQ(reader.take().header("a"), "3");
  EXPECT_TRUE(rest.empty());
  EXPECT_TRUE(reader.idle());
}

TEST(RequestReader, ARefusedRequestGivesTheMemoryOfItsBodyBack) {
  const std::string bytes = chunked("80\r\n" + std::string(0x80, 'x') + "no end");
  RequestReader reader(limits);
  std::string_view rest = bytes;
  ASSERT_EQ(reader.feed(rest), Progress::refused);
  EXPECT_EQ(reader.partial().body.capacity(), std::string().capacity());
}

TEST(RequestReader, ContinueIsSentOnlyToAClientThatWaits) {
  const std::string head =
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n";
  RequestReader reader(limits);
  std::string_view bytes = head;
  EXPECT_EQ(reader.feed(bytes), Progress::expects_continue);
  bytes = "x";
  EXPECT_EQ(reader.feed(bytes), Progress::complete);
  (void)reader.take();

  const std::string eager = head + "x";
  bytes = eager;
  EXPECT_EQ(reader.feed(bytes), Progress::complete);

  const std::string bodiless = get("Expect: 100-continue\r\n");
  EXPECT_EQ(verdict(bodiless), 0);
  EXPECT_EQ(verdict("POST / HTTP/1.0\r\nExpect: odd\r\nContent-Length: 1\r\n\r\nx"), 0);
}

}  // namespace
}  // namespace conversed::api
