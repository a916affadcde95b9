// The memory of bodies that are larger than `max_body`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace conversed::api {

// Whether the sender of a body is known. The daemon reads a stranger's body before it verifies the
// password, because a reactor thread may not wait for that.
enum class Sender : std::uint8_t { stranger, known };

// Bounds the memory of all large bodies of a server together, from their first byte beyond
// `max_body` until their requests are handled. Strangers get half of it at most, so they can't keep
// known senders out. Thread-safe.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t bytes) : bytes_(bytes) {}

  // False, and nothing is taken, if fewer bytes are left.
  [[nodiscard]] bool take(std::size_t bytes, Sender sender);
  void give_back(std::size_t bytes) { taken_.fetch_sub(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  const std::size_t bytes_;
  std::atomic<std::size_t> taken_{0};
};

// The memory that one body has taken. The destructor gives it back. One thread at a time.
class BodyShare {
 public:
  BodyShare(std::shared_ptr<BodyBudget> budget, Sender sender)
      : budget_(std::move(budget)), sender_(sender) {}
  ~BodyShare() { budget_->give_back(bytes_); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;

  // Makes room for `needed` bytes. Reserves more, up to `largest`, so that a growing body moves
  // seldom. The budget pays for the reserved bytes. False if it has too little left.
  [[nodiscard]] bool make_room(std::string& body, std::size_t needed, std::size_t largest);

 private:
  const std::shared_ptr<BodyBudget> budget_;
  const Sender sender_;
  std::size_t bytes_ = 0;
};

}  // namespace conversed::api
