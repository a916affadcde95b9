#pragma once

#include <string>
#include <vector>

namespace conversed::ctl {

struct FlowTestOptions {
  std::vector<std::string> files;
  std::string only;   // a part of the tests' names; empty: all
  std::string junit;  // the file of the report; empty: none
  bool coverage = false;
  std::string picture;   // the file of the coverage's picture; empty: none
  bool watched = false;  // shows the tests that fail, and succeeds
  bool json = false;
};

// `conversectl flow test`: runs test files and prints their results. A file that can't be read
// counts as failed. The other files run, and all results are written. Returns the exit code.
int flow_test(const FlowTestOptions& options);

}  // namespace conversed::ctl
