#include "daemon/code/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "daemon/code/protocol.h"
#include "store/model/json.h"
#include "store/text/utf8.h"

namespace conversed::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

CodeOutcome failure(std::string_view code, std::string message) {
  CodeOutcome outcome;
  outcome.error_code = code;
  outcome.error_message = std::move(message);
  return outcome;
}

template <typename Header>
void add(std::string& text, const Header& header) {
  text.append(reinterpret_cast<const char*>(&header), sizeof header);
}

std::string request_of(const model::CodeCall& code, std::size_t most_bytes) {
  const std::string values = model::json_text(code.values);
  std::string request;
  add(request, RequestHeader{.script_bytes = static_cast<std::uint32_t>(code.script.size()),
                             .values_bytes = static_cast<std::uint32_t>(values.size()),
                             .result_bytes = static_cast<std::uint32_t>(most_bytes),
                             .timeout_ms = static_cast<std::uint32_t>(code.timeout.count())});
  return request + code.script + values;
}

// The reply of a process that has ended well. Nothing: it is not one reply.
std::optional<CodeOutcome> read_reply(std::string_view reply) {
  ReplyHeader header;
  if (reply.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, reply.data(), sizeof header);
  reply.remove_prefix(sizeof header);
  if (reply.size() != header.bytes) return std::nullopt;
  switch (header.kind) {
    case ReplyKind::value: {
      auto value = model::parse_json(reply);
      if (!value) {
        return failure("script_error", "the result is no JSON: " + value.error().message);
      }
      CodeOutcome outcome;
      outcome.value = std::move(*value);
      return outcome;
    }
    case ReplyKind::failed:
      return failure("script_error", text::well_formed(reply));
    case ReplyKind::memory:
      return failure("memory", "the script needs too much memory");
    case ReplyKind::too_large:
      return failure("result_too_large", "the result of the script is too large");
  }
  return std::nullopt;
}

CodeOutcome timed_out(milliseconds timeout) {
  return failure("timeout",
                 "the script takes more than " + std::to_string(timeout.count()) + " ms");
}

void close_file(int& file) {
  if (file >= 0) ::close(file);
  file = -1;
}

// The place of the program in the new process. Not /proc/PID/fd of the daemon: the kernel refuses
// it, since the daemon is not dumpable.
constexpr const char* place_of_program = "/proc/self/fd/3";
static_assert(sandbox_program == 3);

// Without this process's environment, files and blocked signals. -1: it failed.
pid_t spawn(int program, int socket, int pipe) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  if (::posix_spawn_file_actions_init(&files) != 0) return -1;
  if (::posix_spawnattr_init(&attributes) != 0) {
    ::posix_spawn_file_actions_destroy(&files);
    return -1;
  }
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  const bool prepared =
      ::posix_spawn_file_actions_adddup2(&files, socket, sandbox_socket) == 0 &&
      ::posix_spawn_file_actions_adddup2(&files, pipe, sandbox_pipe) == 0 &&
      ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
      ::posix_spawn_file_actions_adddup2(&files, program, sandbox_program) == 0 &&
      ::posix_spawn_file_actions_addclosefrom_np(&files, sandbox_program + 1) == 0 &&
      ::posix_spawnattr_setsigmask(&attributes, &none) == 0 &&
      ::posix_spawnattr_setsigdefault(&attributes, &all) == 0 &&
      ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) == 0;
  std::string name("conversed-code");
  std::string parent = std::to_string(::getpid());
  std::array<char*, 3> arguments{name.data(), parent.data(), nullptr};
  std::array<char*, 1> environment{nullptr};
  pid_t process = -1;
  if (!prepared || ::posix_spawn(&process, place_of_program, &files, &attributes, arguments.data(),
                                 environment.data()) != 0) {
    process = -1;
  }
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return process;
}

}  // namespace

// One request, its reply, and the wait status of its process.
struct Sandbox::Exchange {
  std::string request;
  std::size_t sent = 0;
  std::string reply{};
  std::size_t most_reply = 0;
  int status = 0;
  std::size_t status_bytes = 0;
  Clock::time_point deadline{};

  // False: the other side is gone.
  [[nodiscard]] bool send(int file) {
    const ssize_t count =
        ::send(file, request.data() + sent, request.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    sent += static_cast<std::size_t>(count);
    return true;
  }
  // Receives the available bytes. False: the other side is gone, or sends too much.
  [[nodiscard]] bool receive(int file) {
    std::array<char, 16'384> part{};
    for (;;) {
      const ssize_t count = ::recv(file, part.data(), part.size(), MSG_DONTWAIT);
      if (count < 0) return errno == EINTR || errno == EAGAIN;
      if (count == 0) return false;
      reply.append(part.data(), static_cast<std::size_t>(count));
      if (reply.size() > most_reply) return false;
    }
  }
  [[nodiscard]] bool has_status() const { return status_bytes == sizeof status; }
  [[nodiscard]] bool receive_status(int file) {
    auto* to = reinterpret_cast<char*>(&status) + status_bytes;
    const ssize_t count = ::read(file, to, sizeof status - status_bytes);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    status_bytes += static_cast<std::size_t>(count);
    return count > 0;
  }
  [[nodiscard]] int time_left() const {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    return left.count() <= 0 ? 0 : static_cast<int>(left.count());
  }
};

model::CallResult code_result(const std::string& call_id, CodeOutcome outcome) {
  model::CallResult result;
  result.call_id = call_id;
  result.body = std::move(outcome.value);
  result.error_code = std::move(outcome.error_code);
  result.error_message = std::move(outcome.error_message);
  if (result.error_code.empty()) result.status = 200;
  return result;
}

std::optional<std::filesystem::path> find_code_program() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return std::nullopt;
  for (const auto& place :
       {folder / "conversed-code", folder / ".." / "libexec" / "conversed" / "conversed-code"}) {
    if (::access(place.c_str(), X_OK) == 0) return place;
  }
  return std::nullopt;
}

// Keeps the program at a number behind the standard descriptors, because a new process replaces
// those. `open` returns one of these numbers if it is closed at the start.
CodeProgram::CodeProgram(const std::filesystem::path& file) {
  const int opened = ::open(file.c_str(), O_PATH | O_CLOEXEC);
  if (opened < 0) return;
  descriptor_ = ::fcntl(opened, F_DUPFD_CLOEXEC, sandbox_program);
  ::close(opened);
}

CodeProgram::~CodeProgram() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Sandbox::start() {
  if (!program_.is_there()) return false;
  std::array<int, 2> sockets{-1, -1};
  std::array<int, 2> pipes{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) return false;
  if (::pipe2(pipes.data(), O_CLOEXEC | O_NONBLOCK) == 0) {
    // Its own end of the pipe blocks.
    ::fcntl(pipes[1], F_SETFL, 0);
    process_ = spawn(program_.descriptor(), sockets[1], pipes[1]);
  }
  close_file(sockets[1]);
  close_file(pipes[1]);
  socket_ = sockets[0];
  pipe_ = pipes[0];
  if (process_ < 0) end();
  return process_ >= 0;
}

void Sandbox::end() {
  if (process_ >= 0) {
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  process_ = -1;
  close_file(socket_);
  close_file(pipe_);
}

bool Sandbox::exchange(Exchange& exchange) const {
  while (!exchange.has_status()) {
    const bool sends = exchange.sent < exchange.request.size();
    std::array<pollfd, 2> files{{{.fd = socket_,
                                  .events = static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN),
                                  .revents = 0},
                                 {.fd = pipe_, .events = POLLIN, .revents = 0}}};
    const int ready = ::poll(files.data(), files.size(), exchange.time_left());
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    if ((files[0].revents & POLLOUT) != 0 && sends && !exchange.send(socket_)) return false;
    if ((files[0].revents & POLLIN) != 0 && !exchange.receive(socket_)) return false;
    if (files[1].revents != 0 && !exchange.receive_status(pipe_)) return false;
    if ((files[0].revents & (POLLHUP | POLLERR)) != 0) return false;
  }
  return exchange.receive(socket_);
}

CodeOutcome Sandbox::run(const model::CodeCall& code, std::size_t most_bytes) {
  if (process_ < 0 && !start()) {
    return failure("sandbox_failed", "the sandbox of scripts can't start");
  }
  Exchange exchange{.request = request_of(code, most_bytes),
                    .most_reply = sizeof(ReplyHeader) + std::max(most_bytes, max_error_bytes),
                    .deadline = Clock::now() + code.timeout + grace};
  const bool ended = this->exchange(exchange);
  if (ended && WIFEXITED(exchange.status) && WEXITSTATUS(exchange.status) == 0) {
    if (auto outcome = read_reply(exchange.reply)) return std::move(*outcome);
  }
  end();  // it may hold a part of the request or of the reply
  if (!ended) {
    // The kernel ends a script in time, so a late status is no fault of the script.
    return failure("sandbox_failed", "the sandbox of scripts has ended, or is too slow");
  }
  if (!WIFSIGNALED(exchange.status)) {
    return failure("sandbox_failed", "the sandbox of scripts can't be locked");
  }
  const int signal = WTERMSIG(exchange.status);
  if (signal == SIGALRM || signal == SIGXCPU) return timed_out(code.timeout);
  return failure("crashed", "the script has ended its process by signal " + std::to_string(signal));
}

}  // namespace conversed::daemon
