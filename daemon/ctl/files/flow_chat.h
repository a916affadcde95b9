#pragma once

#include <string>

namespace conversed::ctl {

struct FlowChatOptions {
  std::string file;      // a bundle, or a test file, whose stubs answer the calls
  std::string endpoint;  // empty: the first one, or the test file's
  std::string flow;      // empty: the Endpoint's, or the test file's
  bool trace = false;    // show the steps of each Turn
  bool json = false;
};

// `conversectl flow chat`: a conversation with a bundle in the terminal, without a daemon. Runs the
// lines of the standard input. Returns the exit code when the input ends.
int flow_chat(const FlowChatOptions& options);

}  // namespace conversed::ctl
