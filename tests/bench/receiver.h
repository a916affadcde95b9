#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

namespace conversed::bench {

// A webhook on 127.0.0.1 that answers every POST with 204 at little cost: one thread, epoll,
// kept-alive connections.
class Receiver {
 public:
  // Called on the receiver's thread with the `webhook-id` and the body of each POST.
  using OnPost = std::function<void(const std::string& id, std::string_view body)>;

  Receiver(std::uint16_t port, OnPost on_post);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Waits until a POST has come since the last call; false if none came in time.
  bool wait_for_progress(std::chrono::milliseconds at_most);
  void stop();

 private:
  void serve();
  void read_from(int fd);

  const OnPost on_post_;
  int listener_ = -1;
  int epoll_ = -1;
  int stop_event_ = -1;
  std::unordered_map<int, std::string> received_;
  std::mutex mutex_;
  std::condition_variable progressed_;
  bool progress_ = false;
  std::jthread thread_;
};

}  // namespace conversed::bench
