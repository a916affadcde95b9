#include "api/http/http_server.h"

// Pistache's headers do not pass our warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <pistache/listener.h>
#include <pistache/peer.h>
#include <pistache/tcp.h>
#include <pistache/transport.h>
#pragma GCC diagnostic pop

#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/http/gate.h"
#include "api/http/keeper.h"
#include "store/runtime/fault_points.h"

namespace conversed::api {
namespace {

constexpr int backlog = 1024;
// How long stop() waits for the reactor to close connections. A blocking handler delays it.
constexpr std::chrono::seconds stop_grace{2};

// Brings the bytes of one reactor thread's connections to their Gates. Pistache clones it for each
// of its threads and calls each clone on its own thread only.
//
// No exception may leave this class: it would end the process.
class InputHandler final : public Pistache::Tcp::Handler {
 public:
  explicit InputHandler(std::shared_ptr<Keeper> keeper) : keeper_(std::move(keeper)) {}
  InputHandler(const InputHandler& other) : Handler(other), keeper_(other.keeper_) {}
  InputHandler& operator=(const InputHandler&) = delete;

  std::shared_ptr<Pistache::Tcp::Handler> clone() const override {
    return std::make_shared<InputHandler>(*this);
  }

  void onConnection(const std::shared_ptr<Pistache::Tcp::Peer>& peer) override try {
    const auto index = static_cast<std::size_t>(peer->fd());
    if (gates_.size() <= index) gates_.resize(index + 1);
    gates_[index] = keeper_->admit(peer->fd(), peer->address().host());
  } catch (...) {
    // Out of memory: without a Gate the connection would have no time-outs, so it ends here.
    ::shutdown(peer->fd(), SHUT_RDWR);
    keeper_->defect("A connection could not be taken in", "none");
  }

  void onInput(const char* buffer, std::size_t length,
               const std::shared_ptr<Pistache::Tcp::Peer>& peer) override {
    Gate* gate = find(peer->fd());
    if (gate == nullptr) return;
    try {
      gate->received({buffer, length});
    } catch (...) {
      keeper_->defect("A connection ran into an exception and was closed", "none");
      gate->abort();
    }
  }

  void onDisconnection(const std::shared_ptr<Pistache::Tcp::Peer>& peer) override {
    if (find(peer->fd()) == nullptr) return;
    const auto gate = std::move(gates_[static_cast<std::size_t>(peer->fd())]);
    gate->disconnected();
  }

 private:
  Gate* find(int descriptor) {
    const auto index = static_cast<std::size_t>(descriptor);
    return index < gates_.size() ? gates_[index].get() : nullptr;
  }

  const std::shared_ptr<Keeper> keeper_;
  std::vector<std::shared_ptr<Gate>> gates_;  // by descriptor
};

// The transport of one reactor thread. Pistache clones it for each thread and calls `onReady` there
// for every event. A timer causes an event when no other does, so that an idle thread differs from
// a hanging one.
class BeatingTransport final : public Pistache::Tcp::Transport {
 public:
  BeatingTransport(std::shared_ptr<Pistache::Tcp::Handler> handler, std::shared_ptr<Keeper> keeper)
      : Transport(handler), handler_(std::move(handler)), keeper_(std::move(keeper)) {}
  ~BeatingTransport() override {
    if (timer_ >= 0) ::close(timer_);
  }
  BeatingTransport(const BeatingTransport&) = delete;
  BeatingTransport& operator=(const BeatingTransport&) = delete;

  std::shared_ptr<Pistache::Aio::Handler> clone() const override {
    return std::make_shared<BeatingTransport>(handler_->clone(), keeper_);
  }

  // Called on clones only. Each clone registers with the poller of its own thread.
  void registerPoller(Pistache::Polling::Epoll& poller) override {
    Transport::registerPoller(poller);
    timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    constexpr auto seconds = std::chrono::seconds(1);
    static_assert(seconds <= model::beat_interval);
    const itimerspec every{.it_interval = {.tv_sec = seconds.count(), .tv_nsec = 0},
                           .it_value = {.tv_sec = seconds.count(), .tv_nsec = 0}};
    if (timer_ < 0 || ::timerfd_settime(timer_, 0, &every, nullptr) != 0) {
      throw std::runtime_error("no descriptor is left for a timer");
    }
    using Pistache::Polling::NotifyOn;
    poller.addFd(timer_, Pistache::Flags<NotifyOn>(NotifyOn::Read), tag());
    heartbeat_ = keeper_->new_heartbeat();
  }

  void onReady(const Pistache::Aio::FdSet& ready) override {
    model::fault_point("api.loop");
    heartbeat_.beat();
    std::vector<Pistache::Polling::Event> others;
    for (const auto& entry : ready) {
      if (entry.getTag() == tag()) {
        std::uint64_t expirations = 0;
        [[maybe_unused]] const auto taken = ::read(timer_, &expirations, sizeof expirations);
        continue;
      }
      // The base is private, and the only way to the flag of a half-closed connection.
      const auto& event = (const Pistache::Polling::Event&)entry;  // NOLINT(*-cstyle-cast)
      if (!receive(event)) others.push_back(event);
    }
    if (!others.empty()) Transport::onReady(Pistache::Aio::FdSet(std::move(others)));
  }

 private:
  [[nodiscard]] Pistache::Polling::Tag tag() const {
    return Pistache::Polling::Tag(static_cast<std::uint64_t>(timer_));
  }

  // Reads from a connection until a read finds less than it has room for. Pistache would read once
  // more to find nothing. Sockets are edge-triggered: more bytes cause the next event (epoll(7)).
  // A client that sends urgent data (RFC 6093) may wait for that event longer than needed.
  // False: the base class has to handle the event, such as the end of a connection.
  bool receive(const Pistache::Polling::Event& event) {
    using Pistache::Polling::NotifyOn;
    const auto known = peers.find(static_cast<int>(event.tag.value()));
    const bool ends =
        event.flags.hasFlag(NotifyOn::Hangup) || event.flags.hasFlag(NotifyOn::Shutdown);
    if (known == peers.end() || ends || !event.flags.hasFlag(NotifyOn::Read)) return false;
    const auto peer = known->second;
    for (;;) {
      const auto got = ::recv(peer->fd(), input_.data(), input_.size(), 0);
      if (got <= 0) return false;
      const auto bytes = static_cast<std::size_t>(got);
      handler_->onInput(input_.data(), bytes, peer);
      if (bytes < input_.size()) return true;
    }
  }

  const std::shared_ptr<Pistache::Tcp::Handler> handler_;
  const std::shared_ptr<Keeper> keeper_;
  int timer_ = -1;
  std::array<char, 16 * 1024> input_{};
  model::Heartbeat heartbeat_;
};

Pistache::Address address_of(const HttpSettings& settings) {
  const bool v6 = settings.address.find(':') != std::string::npos && settings.address[0] != '[';
  return {v6 ? "[" + settings.address + "]" : settings.address, Pistache::Port(settings.port)};
}

}  // namespace

HttpServer::HttpServer(std::shared_ptr<Keeper> keeper,
                       std::unique_ptr<Pistache::Tcp::Listener> listener)
    : keeper_(std::move(keeper)), listener_(std::move(listener)), port_(listener_->getPort()) {}

HttpServer::~HttpServer() {
  stop();
}

model::Result<std::unique_ptr<HttpServer>> HttpServer::open(HttpSettings settings,
                                                            Handler handler) {
  using Pistache::Tcp::Options;
  if (settings.threads == 0 || settings.max_header == 0 || settings.max_connections == 0) {
    return model::fail(model::Errc::invalid_argument,
                       "threads, max_header and max_connections must be at least 1");
  }
  const std::string place = settings.address + ":" + std::to_string(settings.port);
  const std::size_t threads = settings.threads;
  try {
    const auto address = address_of(settings);
    auto keeper = Keeper::open(std::move(settings), std::move(handler));
    if (!keeper) return model::fail(keeper.error());
    auto listener = std::make_unique<Pistache::Tcp::Listener>();
    listener->init(
        threads,
        Pistache::Flags<Options>(Options::ReuseAddr) | Options::NoDelay | Options::CloseOnExec,
        "http", backlog);
    auto input = std::make_shared<InputHandler>(*keeper);
    listener->setHandler(input);
    listener->setTransportFactory([input, kept = *keeper] {
      return std::make_shared<BeatingTransport>(input->clone(), kept);
    });
    listener->bind(address);
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(*keeper), std::move(listener)));
  } catch (const std::exception& failure) {
    return model::fail(model::Errc::unavailable,
                       "cannot listen on " + place + ": " + failure.what());
  }
}

std::size_t HttpServer::connections() const {
  return keeper_->connections();
}

AnswerCounts HttpServer::answer_counts() const {
  return keeper_->answer_counts();
}

model::Result<void> HttpServer::start() {
  if (started_) return {};
  try {
    keeper_->start();
    listener_->runThreaded();
    started_ = true;
    return {};
  } catch (const std::exception& failure) {
    return model::fail(model::Errc::internal,
                       std::string("cannot start the HTTP server: ") + failure.what());
  }
}

bool HttpServer::drain(std::chrono::milliseconds limit) {
  keeper_->begin_drain();
  return keeper_->wait_until_empty(std::chrono::steady_clock::now() + limit);
}

void HttpServer::stop() {
  if (!listener_) return;
  if (started_) {
    keeper_->begin_drain();
    keeper_->abort_all();
    // Only the reactor closes descriptors, so it has to run until it has closed all of them.
    (void)keeper_->wait_until_empty(std::chrono::steady_clock::now() + stop_grace);
  }
  listener_.reset();  // joins the accepting thread and the reactor's
  keeper_->stop();
}

}  // namespace conversed::api
