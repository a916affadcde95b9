#pragma once

#include <pthread.h>

#include <string>
#include <string_view>

namespace conversed::model {

// Names the calling thread for top, perf and `./dev bench`. The kernel keeps 15 bytes.
inline void name_this_thread(std::string_view name) {
  ::pthread_setname_np(::pthread_self(), std::string(name.substr(0, 15)).c_str());
}

}  // namespace conversed::model
