#include "daemon/ctl/output/watch.h"

#include <unistd.h>

#include <csignal>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "daemon/ctl/output/screen.h"

namespace conversed::ctl {
namespace {

// No output is half written at this point: `write` blocks the signal.
void end_program(int) {
  ::_exit(0);
}

void write(const std::string& text) {
  sigset_t interrupt;
  sigset_t before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  std::cout << text << std::flush;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// The text as it replaces all that the terminal shows. Lines are cut at the terminal's border, and
// lines below its end are left out.
std::string frame_of(std::string_view text, const Screen& screen) {
  std::string frame = "\x1b[?7l\x1b[H";
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size() && ++lines < screen.lines;) {
    const auto end = std::min(text.find('\n', at), text.size());
    frame.append(text.substr(at, end - at)) += "\x1b[K\n";
    at = end + 1;
  }
  return frame + "\x1b[J\x1b[?7h";
}

// Lower codes tell that the command has failed. `why` answers with the others.
constexpr int first_code_of_answers = 10;

}  // namespace

int watch(std::chrono::seconds pause, const char* between, const std::function<int()>& once) {
  struct sigaction action {};
  action.sa_handler = end_program;
  sigaction(SIGINT, &action, nullptr);
  for (bool is_first = true;; is_first = false) {
    std::ostringstream printed;
    auto* const terminal = std::cout.rdbuf(printed.rdbuf());
    int code = 0;
    try {
      code = once();
    } catch (...) {
      std::cout.rdbuf(terminal);
      throw;
    }
    std::cout.rdbuf(terminal);
    const bool failed = code != 0 && code < first_code_of_answers;
    if (failed && is_first) return code;
    const Screen now = screen();
    if (!failed && now.is_terminal) {
      write((is_first ? "\x1b[2J" : "") + frame_of(printed.str(), now));
    } else if (!failed) {
      write((is_first ? "" : between) + printed.str());
    }
    if (!std::cout) return 0;  // the program reports it
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace conversed::ctl
