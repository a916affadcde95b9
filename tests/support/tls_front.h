#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

namespace conversed::tests {

// A TLS server on loopback that passes the bytes of its connections to a server without TLS, such
// as HttpReceiver, and back. Its certificate names `localhost`, is signed by itself, and is made
// anew for each front. A request ends before its answer begins: a connection passes one direction
// at a time.
class TlsFront {
 public:
  explicit TlsFront(std::uint16_t backend);
  ~TlsFront();
  TlsFront(const TlsFront&) = delete;
  TlsFront& operator=(const TlsFront&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // The certificate's file, in PEM.
  [[nodiscard]] const std::filesystem::path& certificate() const { return certificate_; }
  // Handshakes that worked, and those of them that resumed a session.
  [[nodiscard]] int handshakes() const { return handshakes_.load(); }
  [[nodiscard]] int resumed() const { return resumed_.load(); }

 private:
  struct Context;

  void run();
  void serve(int client);

  const std::uint16_t backend_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  int stop_ = -1;  // readable once the front ends
  std::filesystem::path certificate_;
  std::unique_ptr<Context> context_;
  std::atomic<int> handshakes_{0};
  std::atomic<int> resumed_{0};
  std::vector<std::thread> connections_;  // for `thread_`
  std::thread thread_;
};

}  // namespace conversed::tests
