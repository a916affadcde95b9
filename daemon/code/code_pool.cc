#include "daemon/code/code_pool.h"

#include <utility>

namespace conversed::daemon {

bool CodePool::run(model::CodeCall code, std::size_t most_bytes,
                   std::function<void(CodeOutcome)> done) {
  return threads_.post([this, code = std::move(code), most_bytes, done = std::move(done)] {
    auto sandbox = take();
    auto outcome = sandbox->run(code, most_bytes);
    idle_.with([&](Sandboxes& idle) { idle.push_back(std::move(sandbox)); });
    done(std::move(outcome));
  });
}

void CodePool::stop() {
  threads_.stop();
  idle_.with([](Sandboxes& idle) { idle.clear(); });
}

// The last one used, since its pages are in the caches.
std::unique_ptr<Sandbox> CodePool::take() {
  auto sandbox = idle_.with([](Sandboxes& idle) -> std::unique_ptr<Sandbox> {
    if (idle.empty()) return nullptr;
    auto last = std::move(idle.back());
    idle.pop_back();
    return last;
  });
  return sandbox ? std::move(sandbox) : std::make_unique<Sandbox>(program_);
}

}  // namespace conversed::daemon
