#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "store/model/effects.h"
#include "store/model/event.h"

namespace conversed::daemon {

// The result of a script, or why there is none.
struct CodeOutcome {
  nlohmann::json value;
  // Empty: the script has returned `value`. "script_error": it has failed; the message has its
  // line. "timeout", "memory", "result_too_large": it has exceeded a limit. "crashed": its process
  // has ended by a signal. "sandbox_failed": it did not run, and may run later.
  std::string error_code{};
  std::string error_message{};
};

[[nodiscard]] model::CallResult code_result(const std::string& call_id, CodeOutcome outcome);

// The program conversed-code: beside this process's program, or in ../libexec/conversed. Nothing:
// it is not installed.
[[nodiscard]] std::optional<std::filesystem::path> find_code_program();

// The opened program conversed-code. An upgrade of the package may replace the file while this
// process runs. The opened program is the old one, whose protocol this process speaks. Immutable.
class CodeProgram {
 public:
  // A file that can't be opened leaves it without a program.
  explicit CodeProgram(const std::filesystem::path& file);
  ~CodeProgram();
  CodeProgram(const CodeProgram&) = delete;
  CodeProgram& operator=(const CodeProgram&) = delete;

  [[nodiscard]] bool is_there() const { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// A process of conversed-code, in which scripts run one after the other, each in a process of its
// own that the first one forks. The first process never has data of a script.
//
// A run's process is locked up before its script begins (conversed_code.cc): no files, network,
// processes or executable memory; bounded memory and time. The process inherits no environment, and
// no open file but its own program, which it closes at its start. The first process ends with the
// thread that started it (PR_SET_PDEATHSIG), a run with the first process. So they do not outlive
// the daemon, and `run` is for threads that live as long as the Sandbox.
//
// Invariants:
// - A reply counts only if its process has ended well and wrote nothing else, so no run writes into
//   the reply of the next one. Otherwise the next run gets a new sandbox.
//   Kept by: SandboxTest.ARunAfterAKilledOneGetsItsOwnResult.
//
// One thread at a time.
class Sandbox {
 public:
  // `program` must outlive it. Without a program every run fails with "sandbox_failed".
  explicit Sandbox(const CodeProgram& program) : program_(program) {}
  ~Sandbox() { end(); }
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  // Blocks until the script has ended: at most for its time and `grace`. `most_bytes`: of the
  // result as JSON.
  [[nodiscard]] CodeOutcome run(const model::CodeCall& code, std::size_t most_bytes);

  // For a process that is slow to start or to end, beyond the time of its script.
  static constexpr std::chrono::milliseconds grace{5'000};

 private:
  struct Exchange;

  [[nodiscard]] bool start();
  // Kills the process, and reaps it.
  void end();
  // Sends the request, and receives the reply and the status of its process. False: no status came.
  [[nodiscard]] bool exchange(Exchange& exchange) const;

  const CodeProgram& program_;
  pid_t process_ = -1;
  int socket_ = -1;
  int pipe_ = -1;
};

}  // namespace conversed::daemon
