#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/code/protocol.h"

namespace conversed::daemon {

// The JavaScript engine, SpiderMonkey, behind one seam: an interpreter without JIT, WebAssembly and
// threads, and without any function for files, networks, processes or modules. One thread.
class Engine {
 public:
  // Takes some 50 ms: it compiles the engine's own functions. Null: out of memory. The engine lives
  // as long as its process, which has to end by `_exit`.
  [[nodiscard]] static Engine* start();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  struct Reply {
    ReplyKind kind = ReplyKind::value;
    std::string text;
  };
  // Runs the script, the body of a strict function, with the members of `values` as its arguments,
  // frozen at any depth. Called once, because the script may change the global object.
  [[nodiscard]] Reply run(std::string_view script, std::string_view values, std::size_t most_bytes);

  // `give_up` is called at the first allocation of a script that fails, and must not return.
  void on_out_of_memory(void (*give_up)());

 private:
  struct Runtime;
  explicit Engine(std::unique_ptr<Runtime> runtime);
  ~Engine();

  std::unique_ptr<Runtime> runtime_;
};

}  // namespace conversed::daemon
