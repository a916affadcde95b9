#include "daemon/ctl/files/code_runs.h"

#include <cstddef>
#include <utility>

#include "daemon/code/sandbox.h"

namespace conversed::ctl {
namespace {

constexpr std::size_t most_result_bytes = std::size_t{256} << 10;  // the daemon's default

}  // namespace

model::CallResult run_script(const model::PendingCall& call) {
  static const daemon::CodeProgram program(daemon::find_code_program().value_or(""));
  if (!program.is_there()) {
    daemon::CodeOutcome outcome;
    outcome.error_code = "sandbox_failed";
    outcome.error_message = "the program conversed-code is not installed beside conversectl";
    return daemon::code_result(call.id, std::move(outcome));
  }
  static daemon::Sandbox sandbox(program);
  return daemon::code_result(call.id, sandbox.run(*call.code, most_result_bytes));
}

}  // namespace conversed::ctl
