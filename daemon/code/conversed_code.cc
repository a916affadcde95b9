// conversed-code: the sandbox in which scripts of `code` Nodes run. The daemon starts it, and gives
// it a socket and a pipe (protocol.h). It starts the engine once, before any request is there. For
// each request it forks: the new process gives up all rights that it does not need, reads the
// request, runs the script, replies and ends. This process never reads a request, so no run sees
// another's data.
//
// A run ends at its time limit by a signal of the kernel that it can't block. All processes end
// with the daemon.
//
//   conversed-code PARENT       PARENT: the process id of the daemon
//   conversed-code --self-test  tries each forbidden thing, and exits with 0 if all are refused
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string>
#include <string_view>

#include "daemon/code/engine.h"
#include "daemon/code/protocol.h"

namespace conversed::daemon {
namespace {

// Address space of a run beyond that of the started engine.
constexpr rlim_t memory_bytes = rlim_t{64} << 20;
constexpr rlim_t cpu_seconds = 2;
constexpr int failed = 1;
// Of one part of a request. The daemon's limits are lower.
constexpr std::uint32_t most_bytes = std::uint32_t{64} << 20;

bool read_all(void* to, std::size_t size) {
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t count = ::read(sandbox_socket, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool write_all(int file, const void* from, std::size_t size) {
  const auto* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t count = ::write(file, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

[[noreturn]] void reply_and_end(ReplyKind kind, std::string_view text) {
  const ReplyHeader header{kind, static_cast<std::uint32_t>(text.size())};
  const bool sent = write_all(sandbox_socket, &header, sizeof header) &&
                    write_all(sandbox_socket, text.data(), text.size());
  ::_exit(sent ? 0 : failed);
}

void end_for_memory() {
  reply_and_end(ReplyKind::memory, {});
}

bool limit(__rlimit_resource resource, rlim_t most) {
  const rlimit value{most, most};
  return ::setrlimit(resource, &value) == 0;
}

// The address space of this process. 0: unknown.
rlim_t address_space() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long pages = 0;
  const int read = std::fscanf(file, "%lu", &pages);
  std::fclose(file);
  return read == 1 ? pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

// From here on every system call but these kills the process. `read` is not among them, so a run
// never gets the request of the next one. Memory can't become executable.
bool allow_few_calls() {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
  if (filter == nullptr) return false;
  constexpr std::array calls{SCMP_SYS(write),         SCMP_SYS(exit),         SCMP_SYS(exit_group),
                             SCMP_SYS(brk),           SCMP_SYS(munmap),       SCMP_SYS(mremap),
                             SCMP_SYS(madvise),       SCMP_SYS(futex),        SCMP_SYS(getrandom),
                             SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(getrusage)};
  bool good = true;
  for (const int call : calls) {
    good = good && seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) == 0;
  }
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) {
    good = good && seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1,
                                    SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) == 0;
  }
  good = good && seccomp_load(filter) == 0;
  seccomp_release(filter);
  return good;
}

// Gives up all rights that a script does not need. `used`: the address space of the engine.
bool lock_up(rlim_t used, std::uint32_t timeout_ms) {
  const itimerval timer{
      .it_interval = {},
      .it_value = {.tv_sec = timeout_ms / 1'000,
                   .tv_usec = static_cast<suseconds_t>(timeout_ms % 1'000) * 1'000}};
  return ::setitimer(ITIMER_REAL, &timer, nullptr) == 0 && limit(RLIMIT_AS, used + memory_bytes) &&
         limit(RLIMIT_CPU, cpu_seconds) && limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_NOFILE, 0) &&
         limit(RLIMIT_NPROC, 0) && allow_few_calls();
}

// Ends this process with its parent, even if the parent has already ended.
bool end_with(pid_t parent) {
  return ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent;
}

[[noreturn]] void run_request(Engine& engine, rlim_t used, pid_t parent) {
  ::close(sandbox_pipe);
  RequestHeader header;
  if (!end_with(parent) || !read_all(&header, sizeof header) || header.timeout_ms == 0 ||
      header.script_bytes > most_bytes || header.values_bytes > most_bytes ||
      header.result_bytes > most_bytes) {
    ::_exit(failed);
  }
  std::string script(header.script_bytes, '\0');
  std::string values(header.values_bytes, '\0');
  if (!read_all(script.data(), script.size()) || !read_all(values.data(), values.size()) ||
      !lock_up(used + script.size() + values.size(), header.timeout_ms)) {
    ::_exit(failed);
  }
  engine.on_out_of_memory(end_for_memory);
  std::set_new_handler(end_for_memory);  // for memory beside the engine's
  const auto reply = engine.run(script, values, header.result_bytes);
  reply_and_end(reply.kind, reply.text);
}

// Waits for the first byte of a request. False: the daemon has closed the socket.
bool await_request() {
  pollfd file{.fd = sandbox_socket, .events = POLLIN, .revents = 0};
  while (::poll(&file, 1, -1) < 0) {
    if (errno != EINTR) return false;
  }
  return (file.revents & POLLIN) != 0 && (file.revents & (POLLHUP | POLLERR)) == 0;
}

int serve(Engine& engine, rlim_t used) {
  const pid_t own = ::getpid();
  while (await_request()) {
    const pid_t run = ::fork();
    if (run < 0) return failed;
    if (run == 0) run_request(engine, used, own);
    int status = 0;
    while (::waitpid(run, &status, 0) < 0) {
      if (errno != EINTR) return failed;
    }
    if (!write_all(sandbox_pipe, &status, sizeof status)) return failed;
  }
  return 0;
}

// One forbidden action of a run. Returns only if the action was possible.
struct Attempt {
  const char* name;
  void (*run)();
};
constexpr std::array<Attempt, 9> attempts{{
    {"open a file", [] { (void)::open("/dev/null", O_RDONLY); }},
    {"read", [] { [[maybe_unused]] const auto count = ::read(sandbox_socket, nullptr, 0); }},
    {"make a socket", [] { (void)::socket(AF_INET, SOCK_STREAM, 0); }},
    {"fork", [] { (void)::fork(); }},
    {"run a program",
     [] {
       std::array<char*, 1> none{nullptr};
       (void)::execve("/bin/true", none.data(), none.data());
     }},
    {"send a signal", [] { (void)::kill(::getppid(), 0); }},
    {"stop its timer", [] { (void)::setitimer(ITIMER_REAL, nullptr, nullptr); }},
    {"block a signal", [] { (void)::sigprocmask(SIG_BLOCK, nullptr, nullptr); }},
    {"map executable memory",
     [] {
       (void)::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
     }},
}};

int self_test(rlim_t used) {
  int possible = 0;
  for (const auto& attempt : attempts) {
    const pid_t run = ::fork();
    if (run == 0) {
      if (!lock_up(used, 1'000)) ::_exit(failed);
      attempt.run();
      ::_exit(0);
    }
    int status = 0;
    const bool refused = run > 0 && ::waitpid(run, &status, 0) == run && WIFSIGNALED(status) &&
                         WTERMSIG(status) == SIGSYS;
    const bool locked = refused || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    std::printf("%s: %s\n", attempt.name,
                refused  ? "refused"
                : locked ? "POSSIBLE"
                         : "the process can't be locked up");
    if (!refused) ++possible;
  }
  std::fflush(stdout);
  return possible == 0 ? 0 : failed;
}

// If memory is short, the kernel ends scripts before the daemon.
void offer_to_the_kernel() {
  if (std::FILE* file = std::fopen("/proc/self/oom_score_adj", "we")) {
    std::fputs("1000", file);
    std::fclose(file);
  }
}

int run(std::string_view argument) {
  ::prctl(PR_SET_NAME, "conversed-code");  // else its name is that of the descriptor it came from
  ::close(sandbox_program);
  offer_to_the_kernel();  // before PR_SET_DUMPABLE, which makes root the file's owner
  // No core and no debugger of the same user, because a run holds a tenant's data.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_DUMPABLE, 0) != 0 ||
      !limit(RLIMIT_CORE, 0)) {
    return failed;
  }
  const bool tests = argument == "--self-test";
  pid_t parent = 0;
  const auto parsed = std::from_chars(argument.data(), argument.data() + argument.size(), parent);
  if (!tests && (parsed.ec != std::errc{} || !end_with(parent))) return failed;
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  Engine* const engine = Engine::start();
  const rlim_t used = address_space();
  if (engine == nullptr || used == 0) return failed;
  return tests ? self_test(used) : serve(*engine, used);
}

}  // namespace
}  // namespace conversed::daemon

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("conversed-code is run by conversed; try conversed-code --self-test\n", stderr);
    return 2;
  }
  ::_exit(conversed::daemon::run(arguments[1]));
}
