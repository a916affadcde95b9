// Replays the corpus of messages, whole, split and mutated. The server answers only complete
// requests, closes refused connections and keeps serving other clients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "api/http/request_reader.h"
#include "tests/unit/api/test_server.h"

namespace conversed::api::test {
namespace {

std::vector<std::pair<std::string, std::string>> corpus() {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : std::filesystem::directory_iterator(CONVERSED_HTTP_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files.emplace_back(entry.path().filename().string(),
                       std::string(std::istreambuf_iterator<char>(file), {}));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The requests that the reader finds in the bytes, and the reader's last state, as text.
std::string reading(std::string_view bytes, const std::vector<std::size_t>& steps) {
  const HttpSettings limits{.max_header = 4096, .max_body = 4096};
  RequestReader reader(limits);
  std::string text;
  std::size_t turn = 0;
  while (!bytes.empty()) {
    auto part = bytes.substr(0, steps[turn++ % steps.size()]);
    bytes.remove_prefix(part.size());
    while (!part.empty()) {
      const auto progress = reader.feed(part);
      if (progress == RequestReader::Progress::refused) {
        return text + "refused " + std::to_string(reader.refusal().status);
      }
      if (progress == RequestReader::Progress::complete) text += describe(reader.take()) + "\n";
    }
  }
  return text + "waiting";
}

std::string mutate(std::string bytes, std::mt19937_64& random) {
  const auto up_to = [&](std::size_t limit) { return random() % (limit + 1); };
  static const std::vector<std::string> bits{"\r\n",
                                             "\n",
                                             "\r",
                                             std::string(1, '\0'),
                                             ":",
                                             " ",
                                             "\t",
                                             "0\r\n\r\n",
                                             "%",
                                             "%00",
                                             "chunked",
                                             ",",
                                             "Content-Length: 1\r\n",
                                             "Transfer-Encoding: chunked\r\n",
                                             "HTTP/1.1",
                                             ";",
                                             "\xFF",
                                             "ffffffffffffffff",
                                             "-1",
                                             "Host: x\r\n",
                                             "Connection: close\r\n"};
  for (auto changes = 1 + up_to(3); changes > 0; --changes) {
    const auto at = up_to(bytes.size());
    switch (up_to(4)) {
      case 0:
        bytes.insert(at, bits[up_to(bits.size() - 1)]);
        break;
      case 1:
        bytes.erase(at, up_to(8));
        break;
      case 2:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random());
        break;
      case 3:
        bytes.insert(at, bytes.substr(up_to(bytes.size()), up_to(64)));
        break;
      default:
        bytes.resize(at);
        break;
    }
  }
  return bytes;
}

std::uint64_t seed() {
  const char* given = std::getenv("CONVERSED_SEED");
  const std::uint64_t value =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "CONVERSED_SEED=" << value << "\n";
  return value;
}

TEST(HttpCorpus, ReadingDoesNotDependOnHowBytesAreSplit) {
  std::mt19937_64 random(seed());
  const auto files = corpus();
  ASSERT_FALSE(files.empty());
  for (const auto& [name, bytes] : files) {
    const auto whole = reading(bytes, {std::string::npos});
    for (const std::size_t step : {1U, 2U, 3U, 5U, 17U})
      EXPECT_EQ(reading(bytes, {step}), whole) << name;
    for (int i = 0; i < 300; ++i) {
      const auto mutated = mutate(bytes, random);
      std::vector<std::size_t> steps;
      for (int k = 0; k < 5; ++k) steps.push_back(1 + random() % 40);
      EXPECT_EQ(reading(mutated, steps), reading(mutated, {std::string::npos})) << name << ":\n"
                                                                                << mutated;
    }
  }
}

// The name of a file tells its result: "ok-2-..." is two answers of 200, "400-..." is a refusal.
TEST(HttpCorpus, EachFileGetsTheAnswersThatItsNameSays) {
  TestServer server;
  for (const auto& [name, bytes] : corpus()) {
    SCOPED_TRACE(name);
    RawClient client(server.port());
    client.send(bytes);
    client.half_close();
    const bool fine = name.starts_with("ok-");
    const int expected = fine ? 200 : std::atoi(name.c_str());
    const int count = fine ? std::atoi(name.c_str() + 3) : 1;
    for (int i = 0; i < count; ++i) {
      const auto answer = client.read_answer();
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->status, expected);
    }
    EXPECT_TRUE(client.read_end());
  }
}

TEST(HttpCorpus, MutatedMessagesLeaveTheServerServing) {
  std::mt19937_64 random(seed());
  TestServer server;
  for (const auto& [name, bytes] : corpus()) {
    for (int i = 0; i < 40; ++i) {
      const auto mutated = mutate(bytes, random);
      SCOPED_TRACE(name + ":\n" + mutated);
      RawClient client(server.port());
      const auto split = random() % (mutated.size() + 1);
      client.send(std::string_view(mutated).substr(0, split));
      client.send(std::string_view(mutated).substr(split));
      client.half_close();
      const auto output = client.read_all();
      EXPECT_TRUE(output.empty() || output.starts_with("HTTP/1.1 ")) << output;
    }
  }
  RawClient client(server.port());
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_answer()->status, 200);
  EXPECT_EQ(server.defects(), 0);
}

}  // namespace
}  // namespace conversed::api::test
