// The native loads of bench.py: a bare Pistache handler, a load of injects, a load with the webhook
// for its outputs, and Turns alone. Prints the results as one line of JSON.
#include <pistache/endpoint.h>
#include <pistache/http.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <vector>

#include "tests/bench/load.h"
#include "tests/bench/produce.h"
#include "tests/bench/receiver.h"
#include "tests/bench/turn_cost.h"

namespace {

using conversed::bench::Latency;
using conversed::bench::LoadResult;
using conversed::bench::LoadSettings;
using Clock = std::chrono::steady_clock;

// Answers every request at once: the upper limit of the front end.
class BareHandler : public Pistache::Http::Handler {
 public:
  HTTP_PROTOTYPE(BareHandler)
  void onRequest(const Pistache::Http::Request&, Pistache::Http::ResponseWriter response) override {
    response.send(Pistache::Http::Code::Ok, "Message was sent to AI for Flow processing");
  }
};

int serve_bare(std::uint16_t port, int threads) {
  Pistache::Http::Endpoint server(Pistache::Address("127.0.0.1", port));
  server.init(Pistache::Http::Endpoint::options().threads(threads).flags(
      Pistache::Tcp::Options::ReuseAddr));
  server.setHandler(Pistache::Http::make_handler<BareHandler>());
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  server.serveThreaded();
  int signal = 0;
  sigwait(&signals, &signal);
  server.shutdown();
  return 0;
}

struct Options {
  std::vector<std::uint16_t> ports;
  std::uint16_t receive_port = 0;
  std::string key;
  std::string url_token;
  std::size_t connections = 64;
  int seconds = 5;
  std::uint64_t events = 50'000;
  std::uint64_t sessions = 1000;
  int threads = 2;
  bool one_by_one = false;
  conversed::bench::ProduceSettings produce;
};

// A prime: consecutive requests go to sessions far apart, and all sessions get the same count.
constexpr std::uint64_t scatter = 2'654'435'761;

LoadSettings inject_load(const Options& options) {
  LoadSettings load;
  load.ports = options.ports;
  load.connections = options.connections;
  load.head =
      "POST /v2.0/endpoint/inject HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: " + options.key +
      "\r\nContent-Type: application/json\r\n";
  load.body = [options](std::uint64_t n) {
    const auto now = Clock::now().time_since_epoch().count();
    const std::string session = std::to_string(n * scatter % options.sessions);
    return R"({"URLToken":")" + options.url_token + R"(","userId":"u)" + session +
           R"(","sessionId":"s)" + session + R"(","text":"Where is my parcel?","data":{"t":)" +
           std::to_string(now) + R"(,"event":"shipped","orderId":"A-1017"}})";
  };
  return load;
}

nlohmann::json summary(LoadResult& result) {
  const double seconds = std::chrono::duration<double>(result.took).count();
  return {{"answered", result.answered},
          {"refused", result.refused},
          {"rate", static_cast<double>(result.answered) / seconds},
          {"p50_ms", result.latency.percentile_ms(0.5)},
          {"p99_ms", result.latency.percentile_ms(0.99)}};
}

int load(const Options& options) {
  LoadSettings settings = inject_load(options);
  settings.duration = std::chrono::seconds(options.seconds);
  auto result = conversed::bench::run_load(settings);
  std::cout << summary(result).dump() << std::endl;
  return 0;
}

// Measures from the first inject's send to the last distinct output's arrival. Texts begin with the
// inject's send time. `meanwhile`: how many outputs arrive while injects are accepted, of as many
// injects; without the first tenth, in which the daemon begins.
int end_to_end(const Options& options) {
  std::atomic<std::uint64_t> distinct{0};
  std::unordered_set<std::string> seen;
  Latency latency;
  Clock::time_point last_arrival;
  conversed::bench::Receiver receiver(
      options.receive_port, [&](const std::string& id, std::string_view body) {
        const auto now = Clock::now();
        if (!seen.insert(id).second) return;
        if (const auto at = body.find("\"text\":\"t="); at != std::string_view::npos) {
          const auto sent = std::strtoll(body.data() + at + 10, nullptr, 10);
          latency.add(now.time_since_epoch() - std::chrono::nanoseconds(sent));
        }
        last_arrival = now;
        distinct.fetch_add(1);
      });
  LoadSettings settings = inject_load(options);
  settings.requests = options.events;
  const auto first = options.events / 10;
  std::uint64_t before = 0;
  bool waits = options.one_by_one;
  settings.body = [&, body = std::move(settings.body)](std::uint64_t n) {
    if (n == first) before = distinct.load();
    while (waits && distinct.load() < n) {
      waits = receiver.wait_for_progress(std::chrono::seconds(15));  // false: an output is lost
    }
    return body(n);
  };
  const auto began = Clock::now();
  auto result = conversed::bench::run_load(settings);
  const auto meanwhile = distinct.load() - before;
  for (auto so_far = distinct.load(); so_far < result.answered; so_far = distinct.load()) {
    if (!receiver.wait_for_progress(std::chrono::seconds(15))) break;
  }
  receiver.stop();
  auto summed = summary(result);
  const double seconds = std::chrono::duration<double>(last_arrival - began).count();
  summed["accept_rate"] = summed["rate"];
  summed["meanwhile"] =
      static_cast<double>(meanwhile) / static_cast<double>(options.events - first);
  summed["delivered"] = distinct.load();
  summed["rate"] = static_cast<double>(distinct.load()) / seconds;
  summed["p50_ms"] = latency.percentile_ms(0.5);
  summed["p99_ms"] = latency.percentile_ms(0.99);
  std::cout << summed.dump() << std::endl;
  return distinct.load() == result.answered ? 0 : 1;
}

int produce(Options options) {
  options.produce.duration = std::chrono::seconds(options.seconds);
  options.produce.sessions = options.sessions;
  auto result = conversed::bench::run_producer(options.produce);
  std::cout << summary(result).dump() << std::endl;
  return 0;
}

int turn() {
  const double cost = conversed::bench::turn_cost_us();
  if (cost < 0) return 1;
  std::cout << nlohmann::json{{"turn_us", cost}}.dump() << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The native part of bench.py"};
  app.require_subcommand(1);
  Options options;
  auto* bare = app.add_subcommand("bare", "Serve a bare Pistache handler until SIGTERM");
  auto* accept = app.add_subcommand("load", "Send injects for some seconds");
  auto* whole = app.add_subcommand("end-to-end", "Send injects and wait for their outputs");
  auto* turns = app.add_subcommand("turn", "Measure the CPU of a Turn of eight Nodes, without I/O");
  for (auto* command : {bare, accept, whole})
    command->add_option("--port", options.ports)->required();
  bare->add_option("--threads", options.threads);
  for (auto* command : {accept, whole}) {
    command->add_option("--key", options.key)->required();
    command->add_option("--url-token", options.url_token)->required();
    command->add_option("--connections", options.connections);
    command->add_option("--sessions", options.sessions);
  }
  auto* producer = app.add_subcommand("produce", "Send records by librdkafka for some seconds");
  producer->add_option("--brokers", options.produce.brokers)->required();
  producer->add_option("--topic", options.produce.topic)->required();
  producer->add_option("--partitions", options.produce.partitions);
  producer->add_option("--bytes", options.produce.bytes);
  producer->add_option("--in-flight", options.produce.in_flight);
  producer->add_option("--sessions", options.sessions);
  for (auto* command : {accept, producer}) command->add_option("--seconds", options.seconds);
  whole->add_option("--receive-port", options.receive_port)->required();
  whole->add_option("--events", options.events);
  whole->add_flag("--one-by-one", options.one_by_one,
                  "Send an inject after the output of the last one");
  CLI11_PARSE(app, argc, argv);
  if (turns->parsed()) return turn();
  if (producer->parsed()) return produce(options);
  if (bare->parsed()) return serve_bare(options.ports.front(), options.threads);
  return accept->parsed() ? load(options) : end_to_end(options);
}
