#include <set>

#include "tests/unit/queue/kafka_mock_world.h"

// Runs against librdkafka's mock cluster. The conformance suite runs against a real cluster.
namespace conversed::queue {
namespace {

TEST_F(KafkaLogTest, AProducerThatHasFailedForGoodIsReplaced) {
  open();
  ASSERT_TRUE(append(record("k", "before")).has_value());
  rd_kafka_mock_push_request_errors(cluster_, produce_request, 1,
                                    RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
  std::vector<std::promise<Result<Appended>>> done(200);
  for (std::size_t n = 0; n < done.size(); ++n) {
    log_->append(record("k", std::to_string(n)),
                 [&, n](Result<Appended> outcome) { done[n].set_value(std::move(outcome)); });
  }
  std::set<std::string> stored{"before"};
  std::size_t answered = 0;
  for (auto& each : done) {
    const auto outcome = each.get_future().get();
    const std::string id = std::to_string(answered++);
    if (outcome) {
      stored.insert(id);
    } else {
      EXPECT_EQ(outcome.error().code, Errc::timed_out) << outcome.error().message;
    }
  }
  await_report("is replaced");
  EXPECT_TRUE(append(record("k", "after")).has_value());
  stored.insert("after");
  // Every record that was reported as stored is in the log, once and in order.
  Ignoring listener;
  auto consumer = log_->subscribe(listener);  // the earlier failure does not affect it
  ASSERT_TRUE(consumer.has_value()) << consumer.error().message;
  const auto there = static_cast<std::size_t>(end_of("p.events", partition_of("k", partitions)));
  std::multiset<std::string> read;
  int last = -1;
  for (const auto& each : poll(**consumer, there)) {
    read.insert(each.record.id);
    if (each.record.id == "before" || each.record.id == "after") continue;
    EXPECT_GT(std::stoi(each.record.id), last);
    last = std::stoi(each.record.id);
  }
  for (const auto& id : stored) EXPECT_EQ(read.count(id), 1U) << id;
}

TEST_F(KafkaLogTest, RefusalsOfTheBrokerHaveTheirOwnCodes) {
  open();
  const std::map<rd_kafka_resp_err_t, Errc> refusals{
      {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, Errc::too_large},
      {RD_KAFKA_RESP_ERR_INVALID_RECORD, Errc::bad_upstream}};
  for (const auto& [refusal, code] : refusals) {
    rd_kafka_mock_push_request_errors(cluster_, produce_request, 1, refusal);
    const auto outcome = append(record("k", "refused"));
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().code, code) << outcome.error().message;
  }
  EXPECT_TRUE(append(record("k", "taken")).has_value());
}

TEST_F(KafkaLogTest, ARecordAboveTheClientsLimitIsTooLarge) {
  open();
  Record large = record("k", "large");
  large.value.assign(17'000'000, 'x');
  EXPECT_EQ(append(large).error().code, Errc::too_large);
}

TEST_F(KafkaLogTest, AFullBufferRefuses) {
  settings_.max_waiting_bytes = 10;
  open();
  Record record_of_some_size = record("k", "id");
  record_of_some_size.value.assign(100, 'x');
  EXPECT_EQ(append(record_of_some_size).error().code, Errc::too_many);
}

TEST_F(KafkaLogTest, AnUnreadableRecordIsADeadLetterAndDelaysNoOthers) {
  open();
  const std::string key = "k";
  const std::int32_t right = partition_of(key, partitions);
  const std::map<std::string, std::string> good{{"v", "1"}, {"id", "x"}, {"type", "inject"}};
  ASSERT_NO_FATAL_FAILURE(produce(right, nullptr, good));
  ASSERT_NO_FATAL_FAILURE(produce(right, "k", {{"v", "1"}, {"type", "inject"}}));
  ASSERT_NO_FATAL_FAILURE(produce(right, "k", {{"v", "2"}, {"id", "x"}, {"type", "inject"}}));
  ASSERT_NO_FATAL_FAILURE(produce((right + 1) % partitions, "k", good));
  ASSERT_NO_FATAL_FAILURE(produce(right, "k", {{"id", "foreign"}, {"type", "inject"}}));
  ASSERT_TRUE(append(record(key, "own")).has_value());
  Ignoring listener;
  auto consumer = log_->subscribe(listener);
  ASSERT_TRUE(consumer.has_value());
  const auto all = poll(**consumer, 2);
  EXPECT_EQ(all.front().record.id, "foreign");
  EXPECT_EQ(all.back().record.id, "own");
  while (end_of("p.deadletters", 0) < 4) {
    ASSERT_TRUE((*consumer)->poll(1, 10ms).has_value());
  }
  EXPECT_EQ(end_of("p.deadletters", 0), 4);
  const std::vector<Position> finished{all.back().position};
  ASSERT_TRUE((*consumer)->commit(finished).has_value());
  const auto ranges = log_->ranges();
  ASSERT_TRUE(ranges.has_value());
  for (const auto& range : *ranges) EXPECT_EQ(range.committed, range.end) << range.partition;
}

// As README.md tells it to other programs.
TEST_F(KafkaLogTest, RecordOfAnotherProgramHasItsSessionInAHeader) {
  open();
  const std::string key = "project\x1fuser";
  const std::map<std::string, std::string> headers{
      {"id", "x"}, {"type", "inject"}, {"session", "endpoint\x1fsession"}};
  const auto right = partition_of(key, partitions);
  ASSERT_NO_FATAL_FAILURE(produce(right, key.c_str(), headers));
  const auto whole = model::SessionKey{"project", "endpoint", "user", "session"}.encode();
  ASSERT_NO_FATAL_FAILURE(produce(right, whole.c_str(), headers));
  ASSERT_NO_FATAL_FAILURE(produce(right, "project", headers));
  ASSERT_TRUE(append(record(whole, "own")).has_value());
  Ignoring listener;
  auto consumer = log_->subscribe(listener);
  ASSERT_TRUE(consumer.has_value());
  std::vector<LogRecord> records;
  while (records.size() < 2) {
    auto some = (*consumer)->poll(10, 1s);
    ASSERT_TRUE(some.has_value());
    std::ranges::move(*some, std::back_inserter(records));
  }
  EXPECT_EQ(records[0].record.key, whole);
  EXPECT_EQ(records[1].record.key, whole);
  EXPECT_EQ(records[1].record.id, "own");
  EXPECT_EQ(end_of("p.deadletters", 0), 2);
  for (const std::string reason : {"more parts", "does not name the user"}) {
    EXPECT_NE(reports().find(reason), std::string::npos) << reason << reports();
  }
}

TEST_F(KafkaLogTest, ADeadLetterAtTheEndIsCommittedWithWhatIsBeforeIt) {
  open();
  const std::int32_t right = partition_of("k", partitions);
  ASSERT_TRUE(append(record("k", "own")).has_value());
  ASSERT_NO_FATAL_FAILURE(produce(right, "k", {}));
  Ignoring listener;
  auto consumer = log_->subscribe(listener);
  const auto all = poll(**consumer, 1);
  while (end_of("p.deadletters", 0) < 1) ASSERT_TRUE((*consumer)->poll(1, 10ms).has_value());
  const auto at = static_cast<std::size_t>(right);
  EXPECT_EQ(log_->ranges().value()[at].committed, 0) << "the record before it is not finished";
  const std::vector<Position> finished{all.front().position};
  ASSERT_TRUE((*consumer)->commit(finished).has_value());
  EXPECT_EQ(log_->ranges().value()[at].committed, 2);
}

TEST_F(KafkaLogTest, PollsOfNoneLoseNoRecords) {
  open();
  for (int n = 0; n < 20; ++n) ASSERT_TRUE(append(record("k", std::to_string(n))).has_value());
  Ignoring listener;
  auto consumer = log_->subscribe(listener);
  // Long enough to get an assignment and to reach the limit of the buffer. A shorter time weakens
  // this test but does not fail it.
  const auto deadline = std::chrono::steady_clock::now() + 3s;
  while (std::chrono::steady_clock::now() < deadline) {
    const auto none = (*consumer)->poll(0, 0ms);
    ASSERT_TRUE(none.has_value());
    ASSERT_TRUE(none->empty());
  }
  int expected = 0;
  for (const auto& each : poll(**consumer, 20)) {
    EXPECT_EQ(each.record.id, std::to_string(expected++));
  }
}

TEST_F(KafkaLogTest, AChangedNumberOfPartitionsIsRefusedUntilANewEpoch) {
  // The log of a topic that had two partitions and now has four.
  write_epochs(KafkaEpochs::initial(2).to_value());
  auto opened = open_kafka_log(settings_);
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ((*opened)->ranges().error().code, Errc::conflict);
  const auto epoch = (*opened)->new_epoch(5);
  ASSERT_TRUE(epoch.has_value()) << epoch.error().message;
  EXPECT_EQ(*epoch, 6);
  opened->reset();
  open();
  EXPECT_EQ(append(record("k", "1"))->position.epoch, 6);
}

TEST_F(KafkaLogTest, OneConsumerAtATime) {
  open();
  Ignoring listener;
  auto first = log_->subscribe(listener);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(log_->subscribe(listener).error().code, Errc::conflict);
  first->reset();
  EXPECT_TRUE(log_->subscribe(listener).has_value());
}

// The record waits for its dead letter while the library begins to read the partition again.
TEST_F(KafkaLogTest, AnUnreadableRecordIsBuriedOnceWhenAnotherPartitionIsSetAside) {
  open();
  ASSERT_NO_FATAL_FAILURE(produce(0, "k", {}));
  rd_kafka_mock_push_request_errors(cluster_, produce_request, 1,
                                    RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
  Ignoring listener;
  auto consumer = log_->subscribe(listener);
  Result<std::vector<LogRecord>> polled = (*consumer)->poll(10, 10ms);
  while (polled) polled = (*consumer)->poll(10, 10ms);
  EXPECT_EQ(polled.error().code, Errc::bad_upstream) << polled.error().message;
  ASSERT_TRUE((*consumer)->set_aside(std::vector<std::int32_t>{1}).has_value());
  while (log_->ranges().value()[0].committed < 1) {
    polled = (*consumer)->poll(10, 10ms);
    ASSERT_TRUE(polled || polled.error().code == Errc::bad_upstream) << polled.error().message;
  }
  EXPECT_EQ(end_of("p.deadletters", 0), 1);
}

TEST_F(KafkaLogTest, ManyUnreadableRecordsDoNotDelayAPoll) {
  open();
  for (int n = 0; n < 20; ++n) ASSERT_NO_FATAL_FAILURE(produce(0, "k", {}));
  Ignoring listener;
  auto consumer = log_->subscribe(listener);
  std::int64_t before = 0;
  while (before < 20) {
    ASSERT_TRUE((*consumer)->poll(10, 0ms).has_value());
    const std::int64_t now = end_of("p.deadletters", 0);
    ASSERT_LE(now, before + 1) << "one poll reads over all of them";
    before = now;
  }
  EXPECT_EQ(log_->ranges().value()[0].committed, 20);
}

TEST_F(KafkaLogTest, LargeUnreadableRecordsAreDeadLettersWithoutTheirLargeParts) {
  settings_.properties = {{"message.max.bytes", "3000"}};
  open();
  const std::string large(4'000, 'x');
  ASSERT_NO_FATAL_FAILURE(produce(0, "k", {{"big", large}}));
  ASSERT_NO_FATAL_FAILURE(produce(0, large.c_str(), {}));
  ASSERT_NO_FATAL_FAILURE(produce(0, "k", {}, "p.events", large));
  Ignoring listener;
  auto consumer = log_->subscribe(listener);
  while (log_->ranges().value()[0].committed < 3) {
    const auto polled = (*consumer)->poll(10, 10ms);
    ASSERT_TRUE(polled.has_value()) << polled.error().message;
  }
  EXPECT_EQ(end_of("p.deadletters", 0), 3);
}

TEST_F(KafkaLogTest, AnUnreadableRecordThatFitsNowhereIsSkipped) {
  open();
  ASSERT_NO_FATAL_FAILURE(produce(0, "k", {}));
  rd_kafka_mock_push_request_errors(
      cluster_, produce_request, 3, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
  Ignoring listener;
  auto consumer = log_->subscribe(listener);
  while (log_->ranges().value()[0].committed < 1) {
    const auto polled = (*consumer)->poll(10, 10ms);
    ASSERT_TRUE(polled.has_value()) << polled.error().message;
  }
  EXPECT_EQ(end_of("p.deadletters", 0), 0);
  EXPECT_NE(reports().find("partition 0, offset 0"), std::string::npos) << reports();
}

// The daemon was away. When it came back, a part of the log was gone.
TEST_F(KafkaLogTest, APartitionThatEndsBelowTheCommittedOffsetIsNotRead) {
  settings_.request_timeout = 1s;
  open();
  ASSERT_NO_FATAL_FAILURE(commit_as_the_group(0, 100));
  Ignoring listener;
  auto consumer = log_->subscribe(listener);
  Errc last = Errc::unavailable;
  while (last == Errc::unavailable || last == Errc::timed_out) {
    const auto polled = (*consumer)->poll(10, 10ms);
    ASSERT_EQ(listener.assigned, 0U);
    if (!polled) last = polled.error().code;
  }
  EXPECT_EQ(last, Errc::conflict);
}

TEST_F(KafkaLogTest, AFailedCheckOfTheTopicsIsRepeated) {
  settings_.topic_check = KafkaTopicCheck::full;
  settings_.request_timeout = 500ms;
  auto opened = open_kafka_log(settings_);
  ASSERT_TRUE(opened.has_value());
  const auto ranges = (*opened)->ranges();
  ASSERT_FALSE(ranges.has_value());
  EXPECT_EQ(ranges.error().code, Errc::unavailable) << ranges.error().message;
  EXPECT_FALSE((*opened)->health().has_value());
}

TEST(KafkaLogSettings, AllProblemsOfPropertiesAreReportedAtOnce) {
  const auto problems = kafka_property_problems({{"acks", "hunter2"},
                                                 {"client.rack", "a"},
                                                 {"nosuch", "hunter2"},
                                                 {"socket.timeout.ms", "hunter2"}});
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_NE(problems[0].find("acks"), std::string::npos);
  EXPECT_NE(problems[1].find("nosuch"), std::string::npos);
  EXPECT_NE(problems[2].find("socket.timeout.ms"), std::string::npos);
  for (const auto& problem : problems) EXPECT_EQ(problem.find("hunter2"), std::string::npos);
}

TEST(KafkaLogSettings, PropertiesThatThePromisesRestOnAreRefused) {
  KafkaLogSettings settings;
  settings.bootstrap_servers = {"127.0.0.1:1"};
  settings.instance_id = "reader";
  for (const char* name :
       {"acks", "allow.auto.create.topics", "enable.idempotence", "group.id", "partitioner"}) {
    settings.properties = {{name, "hunter2"}};
    const auto opened = open_kafka_log(settings);
    ASSERT_FALSE(opened.has_value()) << name;
    EXPECT_EQ(opened.error().code, Errc::invalid_argument);
  }
}

TEST(KafkaLogSettings, MessagesContainNoValues) {
  KafkaLogSettings settings;
  settings.bootstrap_servers = {"127.0.0.1:1"};
  settings.instance_id = "reader";
  for (const char* name : {"no.such.property", "socket.timeout.ms", "security.protocol"}) {
    settings.properties = {{name, "hunter2"}};
    const auto opened = open_kafka_log(settings);
    ASSERT_FALSE(opened.has_value()) << name;
    EXPECT_EQ(opened.error().message.find("hunter2"), std::string::npos);
    EXPECT_NE(opened.error().message.find(name), std::string::npos);
  }
}

TEST(KafkaLogAway, AppendsAreRefusedAtOnceAndNothingBlocks) {
  KafkaLogSettings settings;
  settings.bootstrap_servers = {"127.0.0.1:1"};
  settings.instance_id = "reader";
  settings.request_timeout = 200ms;
  auto log = open_kafka_log(settings);
  ASSERT_TRUE(log.has_value());
  const auto ranges = (*log)->ranges();
  ASSERT_FALSE(ranges.has_value());
  EXPECT_EQ(ranges.error().code, Errc::unavailable) << ranges.error().message;
  std::optional<Result<Appended>> outcome;
  (*log)->append(record("k", "id"), [&](Result<Appended> told) { outcome = std::move(told); });
  ASSERT_TRUE(outcome.has_value()) << "the append is refused within the call";
  EXPECT_EQ(outcome->error().code, Errc::unavailable);
  EXPECT_FALSE((*log)->health().has_value());
}

TEST(KafkaEpochs, TellTheEpochOfEachRecord) {
  const auto epochs = KafkaEpochs::initial(2).with(4, {10, 0}).with(7, {10, 5});
  EXPECT_EQ(epochs.at(0, 9).epoch, 1);
  EXPECT_EQ(epochs.at(0, 10).epoch, 7);
  EXPECT_EQ(epochs.at(1, 4).epoch, 4);
  EXPECT_EQ(epochs.at(1, 5).epoch, 7);
  EXPECT_EQ(epochs.newest(), 7);
  const auto again = KafkaEpochs::parse(epochs.to_value());
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->to_value(), epochs.to_value());
}

TEST(KafkaEpochs, APositionOfALostLogDoesNotSkipTheNewOne) {
  // The topic was created again and had three records when the second epoch began.
  const auto epochs = KafkaEpochs::initial(1).with(2, {3});
  EXPECT_EQ(epochs.resume_at(0, 100, 1), 3);
  EXPECT_EQ(epochs.resume_at(0, 2, 1), 2);
  EXPECT_EQ(epochs.resume_at(0, 100, 2), 100);
}

TEST(KafkaEpochs, AnInvalidRecordIsAnError) {
  for (const char* wrong :
       {"", "[]", "{}", R"({"v":"1"})", R"({"v":null,"epochs":[]})", R"({"v":1})",
        R"({"v":2,"epochs":[{"epoch":1,"first":[0]}]})", R"({"v":1,"epochs":[]})",
        R"({"v":1,"epochs":[{"epoch":0,"first":[0]}]})", R"({"v":1,"epochs":[{"epoch":1}]})",
        R"({"v":1,"epochs":[{"epoch":1,"first":[]}]})",
        R"({"v":1,"epochs":[{"epoch":2,"first":[0]},{"epoch":2,"first":[0]}]})"}) {
    EXPECT_FALSE(KafkaEpochs::parse(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace conversed::queue
