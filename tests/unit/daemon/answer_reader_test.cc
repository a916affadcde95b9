#include "daemon/outbound/answer_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace conversed::daemon {
namespace {

using Progress = AnswerReader::Progress;

constexpr std::size_t max_body = 1000;

// The result of a reader. It gets the answer in pieces; then the connection ends.
struct Told {
  Progress progress = Progress::need_more;
  int status = 0;
  std::string body{};
  std::string retry_after{};
  bool keeps = false;

  bool operator==(const Told&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Told& told) {
  return out << "progress " << static_cast<int>(told.progress) << ", status " << told.status
             << ", body '" << told.body << "', retry after '" << told.retry_after << "', keeps "
             << told.keeps;
}

Told told_by(const std::vector<std::string>& pieces, bool to_head = false) {
  AnswerReader reader;
  reader.begin(to_head, max_body);
  auto progress = Progress::need_more;
  for (std::size_t i = 0; i < pieces.size() && progress == Progress::need_more; ++i) {
    progress = reader.feed(pieces[i]);
  }
  if (progress == Progress::need_more) progress = reader.close();
  if (progress != Progress::complete) return {.progress = progress};
  return {progress, reader.status(), reader.body(), std::string(reader.retry_after()),
          reader.keeps_connection()};
}

struct Answer {
  std::string bytes;
  Told told;
};

std::vector<Answer> answers() {
  using enum AnswerReader::Progress;
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  return {
      {ok + "Content-Length: 5\r\n\r\nhello", {complete, 200, "hello", "", true}},
      {ok + "Content-Length: 0\r\n\r\n", {complete, 200, "", "", true}},
      {ok + "content-length:5\r\nX-A: \t b \r\n\r\nhello", {complete, 200, "hello", "", true}},
      {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", {complete, 200, "", "", true}},
      {ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: 1\r\n\r\n",
       {complete, 200, "hello", "", true}},
      {ok + "\r\nup to the end", {complete, 200, "up to the end", "", false}},
      {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", {complete, 200, "ok", "", false}},
      {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
       {complete, 200, "ok", "", true}},
      {ok + "Connection: close\r\nContent-Length: 2\r\n\r\nok", {complete, 200, "ok", "", false}},
      {"HTTP/1.1 204 No Content\r\n\r\n", {complete, 204, "", "", true}},
      {"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", {complete, 204, "", "", true}},
      {"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", {complete, 304, "", "", true}},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nRetry-After: 9\r\n\r\n" + ok +
           "Content-Length: 2\r\n\r\nok",
       {complete, 200, "ok", "", true}},
      {"HTTP/1.1 503 Busy\r\nX-Retry-After-All: 1\r\nretry-after: 17\r\nRetry-Afte: 2\r\n"
       "Content-Length: 0\r\n\r\n",
       {complete, 503, "", "17", true}},
      {ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nRetry-After: 5\r\n\r\n",
       {complete, 200, "", "", true}},
      // Some servers break the standard in these ways.
      {ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
       {complete, 200, "ok", "", false}},
      {"HTTP/1.1 103 Early Hints\r\nConnection: close\r\n\r\n" + ok + "Content-Length: 0\r\n\r\n",
       {complete, 200, "", "", true}},
      {"HTTP/1.1 103 x\r\nConnection: close\r\nContent-Length: 5\r\n\r\n" + ok +
           "Content-Length: 2\r\n\r\nok",
       {complete, 200, "ok", "", true}},
      {"HTTP/1.0 100 x\r\nContent-Length: 5\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nok",
       {complete, 200, "ok", "", true}},
      {ok + "X-Odd: a\x01z\r\nContent-Length: 0\r\n\r\n", {complete, 200, "", "", true}},
      {ok + "Retry-After: 1\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n",
       {complete, 200, "", "2", true}},
      // Errors, and ends before the end of the answer.
      {"", {need_more}},
      {"HTTP/1.1 100 Continue\r\n\r\n", {need_more}},
      {"SSH-2.0-OpenSSH_9.2\r\n", {malformed}},
      {ok + "Content-Length: -5\r\n\r\nhello", {malformed}},
      {ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", {malformed}},
      {ok + "Transfer-Encoding: chunked\r\n\r\nx\r\n", {malformed}},
      {ok + "Content-Length: 5\r\n\r\nhell", {malformed}},
      {ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", {malformed}},
      {ok + "Content-Le", {malformed}},
      {"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", {malformed}},
      {ok + "Content-Length: 1001\r\n\r\n" + std::string(1001, 'x'), {too_large}},
      {ok + "\r\n" + std::string(1001, 'x'), {too_large}},
  };
}

TEST(AnswerReaderTest, AnAnswerIsTheSameHoweverItIsSplit) {
  for (const auto& [bytes, told] : answers()) {
    EXPECT_EQ(told_by({bytes}), told) << bytes;
    std::vector<std::string> single;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_EQ(told_by({bytes.substr(0, i), bytes.substr(i)}), told)
          << bytes << "\nsplit at " << i;
      single.emplace_back(1, bytes[i]);
    }
    EXPECT_EQ(told_by(single), told) << bytes;
  }
}

// All but the body has a limit, whatever it stands in.
TEST(AnswerReaderTest, FramingWithoutEndIsTooLarge) {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string many(AnswerReader::max_header_bytes, '0');
  std::string lines;
  while (lines.size() <= AnswerReader::max_header_bytes) lines += "\r\n";
  for (const auto& bytes :
       {chunked + "1;" + many, chunked + many, lines, "HTTP/1.1 200 " + many,
        "HTTP/1.1 200 OK\r\nX:" + std::string(AnswerReader::max_header_bytes, ' ')}) {
    EXPECT_EQ(told_by({bytes}).progress, Progress::too_large) << bytes.substr(0, 60);
  }
  std::string body;
  for (std::size_t i = 0; i < max_body; ++i) body += "1;x=y\r\nz\r\n";
  EXPECT_EQ(told_by({chunked + body + "0\r\n\r\n"}).body, std::string(max_body, 'z'));
}

TEST(AnswerReaderTest, AnAnswerToHeadHasNoBody) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(told_by({head}, true), (Told{Progress::complete, 200, "", "", true}));
  EXPECT_EQ(told_by({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"}, true),
            (Told{Progress::complete, 200, "", "", true}));
}

TEST(AnswerReaderTest, BytesBehindAnAnswerEndTheConnection) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  EXPECT_EQ(told_by({ok + ok}), (Told{Progress::complete, 200, "ok", "", false}));
}

TEST(AnswerReaderTest, OneReaderReadsManyAnswersAndForgetsEach) {
  AnswerReader reader;
  for (const auto& [bytes, told] : answers()) {
    reader.begin(false, max_body);
    auto progress = reader.feed(bytes);
    if (progress == Progress::need_more) progress = reader.close();
    EXPECT_EQ(progress, told.progress) << bytes;
    reader.begin(false, max_body);
    EXPECT_FALSE(reader.has_begun());
    EXPECT_EQ(reader.status(), 0);
    EXPECT_TRUE(reader.body().empty());
    EXPECT_TRUE(reader.retry_after().empty());
  }
}

// Wrong answers of any kind: they must not crash the reader, nor depend on how they are split.
TEST(AnswerReaderTest, AChangedAnswerIsTheSameHoweverItIsSplit) {
  const auto all = answers();
  std::mt19937 random(20261130);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  std::size_t changed = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = all[below(all.size())].bytes + all[below(all.size())].bytes;
    if (bytes.empty()) continue;
    for (auto edits = 1 + below(3); edits > 0; --edits) {
      const auto place = below(bytes.size());
      const auto part = all[below(all.size())].bytes;
      switch (below(3)) {
        case 0:
          bytes[place] = static_cast<char>(random());
          break;
        case 1:
          bytes.insert(place, part.substr(below(part.size() + 1), below(20)));
          break;
        default:
          bytes.erase(place, 1 + below(5));
          if (bytes.empty()) bytes = "H";
      }
    }
    const auto whole = told_by({bytes});
    const auto split = below(bytes.size());
    // A body up to the connection's end, or bytes behind the answer: the split decides which part
    // comes with the answer's end, and both end the connection.
    auto halves = told_by({bytes.substr(0, split), bytes.substr(split)});
    halves.keeps = halves.keeps && whole.keeps;
    EXPECT_EQ(whole, halves) << bytes << "\nsplit at " << split;
    changed += whole.progress == Progress::complete ? 1 : 0;
  }
  EXPECT_GT(changed, 1000U) << "most answers are still readable";
}

}  // namespace
}  // namespace conversed::daemon
