#include "tests/support/tls_front.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace conversed::tests {
namespace {

template <typename T, void (*F)(T*)>
struct Freed {
  void operator()(T* freed) const { F(freed); }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Session = std::unique_ptr<SSL, Freed<SSL, SSL_free>>;

void check(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::abort();
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void extend(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  check(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1, value);
  X509_EXTENSION_free(extension);
}

Certificate certify(EVP_PKEY* key) {
  constexpr long an_hour = 3600;
  Certificate made(X509_new());
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -an_hour);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), an_hour);
  X509_set_pubkey(made.get(), key);
  X509_NAME* name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  extend(made.get(), NID_basic_constraints, "critical,CA:TRUE");
  extend(made.get(), NID_subject_alt_name, "DNS:localhost");
  check(X509_sign(made.get(), key, EVP_sha256()) > 0, "sign");
  return made;
}

}  // namespace

struct TlsFront::Context {
  std::unique_ptr<SSL_CTX, Freed<SSL_CTX, SSL_CTX_free>> tls{SSL_CTX_new(TLS_server_method())};
};

TlsFront::TlsFront(std::uint16_t backend)
    : backend_(backend), context_(std::make_unique<Context>()) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate made = certify(key.get());
  auto* const tls = context_->tls.get();
  check(
      SSL_CTX_use_certificate(tls, made.get()) == 1 && SSL_CTX_use_PrivateKey(tls, key.get()) == 1,
      "certificate");
  std::string pattern = std::filesystem::temp_directory_path() / "tls-front-XXXXXX";
  const int file = mkstemp(pattern.data());
  certificate_ = pattern;
  FILE* const out = fdopen(file, "w");
  check(out != nullptr && PEM_write_X509(out, made.get()) == 1 && std::fclose(out) == 0, "file");

  stop_ = eventfd(0, EFD_CLOEXEC);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t size = sizeof(address);
  check(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
            listen(listener_, SOMAXCONN) == 0 &&
            getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0,
        "listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

TlsFront::~TlsFront() {
  eventfd_write(stop_, 1);
  thread_.join();
  for (auto& connection : connections_) connection.join();
  close(listener_);
  close(stop_);
  std::filesystem::remove(certificate_);
}

void TlsFront::run() {
  // OpenSSL writes to a client that may have closed. The threads of connections inherit this.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  for (;;) {
    std::array<pollfd, 2> waits{{{listener_, POLLIN, 0}, {stop_, POLLIN, 0}}};
    poll(waits.data(), waits.size(), -1);
    if (waits[1].revents != 0) return;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) connections_.emplace_back([this, client] { serve(client); });
  }
}

void TlsFront::serve(int client) {
  Session session(SSL_new(context_->tls.get()));
  SSL_set_fd(session.get(), client);
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(backend_);
  bool goes_on = SSL_accept(session.get()) == 1 &&
                 connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  if (goes_on) ++handshakes_;
  if (goes_on && SSL_session_reused(session.get()) == 1) ++resumed_;
  std::array<char, 16384> bytes;
  while (goes_on) {
    std::array<pollfd, 3> waits{{{client, POLLIN, 0}, {server, POLLIN, 0}, {stop_, POLLIN, 0}}};
    if (SSL_pending(session.get()) == 0) poll(waits.data(), waits.size(), -1);
    if (waits[2].revents != 0) break;
    if (SSL_pending(session.get()) > 0 || waits[0].revents != 0) {
      const int read = SSL_read(session.get(), bytes.data(), static_cast<int>(bytes.size()));
      const auto count = static_cast<std::size_t>(std::max(read, 0));
      goes_on = read > 0 && send(server, bytes.data(), count, MSG_NOSIGNAL) == read;
    }
    if (goes_on && waits[1].revents != 0) {
      const auto read = recv(server, bytes.data(), bytes.size(), 0);
      goes_on = read > 0 && SSL_write(session.get(), bytes.data(), static_cast<int>(read)) == read;
    }
  }
  SSL_shutdown(session.get());
  close(server);
  close(client);
}

}  // namespace conversed::tests
