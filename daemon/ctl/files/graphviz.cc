#include "daemon/ctl/files/graphviz.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <memory>

namespace conversed::ctl {

// `dot` reads from a pipe and writes to a temporary file.
model::Result<std::string> drawn_by_graphviz(const std::string& dot) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  if (!file) return model::fail(model::Errc::unavailable, "no temporary file can be made");
  const std::string command = "dot -Tsvg >&" + std::to_string(fileno(file.get()));
  std::FILE* pipe = popen(command.c_str(), "w");
  if (pipe == nullptr) return model::fail(model::Errc::unavailable, "dot can't be started");
  // If `dot` is missing, the pipe has no reader. The exit code tells.
  auto* const on_pipe = std::signal(SIGPIPE, SIG_IGN);
  std::fwrite(dot.data(), 1, dot.size(), pipe);
  const int code = pclose(pipe);
  std::signal(SIGPIPE, on_pipe);
  if (code != 0) {
    return model::fail(model::Errc::unavailable,
                       "dot failed; it comes with Graphviz (apt install graphviz). Without it "
                       "use --format dot, or the name of a file that ends in .dot");
  }
  std::string picture;
  std::array<char, 16 * 1024> part;
  std::rewind(file.get());
  while (const auto count = std::fread(part.data(), 1, part.size(), file.get())) {
    picture.append(part.data(), count);
  }
  return picture;
}

}  // namespace conversed::ctl
