#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "api/live/blocking_pool.h"
#include "daemon/code/sandbox.h"
#include "store/model/effects.h"
#include "store/runtime/guarded.h"

namespace conversed::daemon {

// Runs scripts in sandboxes, as many at once as there are threads. Opens the program once. Its user
// shares the threads between projects (CallQueue). Thread-safe.
class CodePool {
 public:
  // Without a program, every run fails with "sandbox_failed".
  CodePool(const std::filesystem::path& program, std::size_t processes)
      : program_(program), threads_(processes, processes) {}
  ~CodePool() { stop(); }
  CodePool(const CodePool&) = delete;
  CodePool& operator=(const CodePool&) = delete;

  [[nodiscard]] bool has_program() const { return program_.is_there(); }

  // `done` is called on a thread of the pool. False: all threads have work, or the pool has
  // stopped.
  [[nodiscard]] bool run(model::CodeCall code, std::size_t most_bytes,
                         std::function<void(CodeOutcome)> done);

  // Waits for the scripts that run, then ends the sandboxes. Tolerates being called twice.
  void stop();

 private:
  using Sandboxes = std::vector<std::unique_ptr<Sandbox>>;
  [[nodiscard]] std::unique_ptr<Sandbox> take();

  const CodeProgram program_;
  model::Guarded<Sandboxes> idle_;
  api::BlockingPool threads_;
};

}  // namespace conversed::daemon
