// conversectl chat: lines from the input go to the Endpoint, everything said comes from its
// outputs.
#include <unistd.h>

#include <iostream>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/ctl/commands.h"

namespace conversed::ctl {
namespace {

// Shows a session's outputs as they come. The poller and the main thread both ask for what is new;
// the lock keeps each output shown once and in order. Thread-safe.
class Transcript {
 public:
  Transcript(std::string path, bool json) : path_(std::move(path)), json_(json) {}

  // Asks for outputs past the last shown one, waiting up to `wait_seconds` for some, and shows
  // them.
  model::Result<void> fetch(Client& client, int wait_seconds) {
    std::int64_t after = 0;
    {
      const std::lock_guard lock(mutex_);
      after = last_;
    }
    auto answer = client.request(
        "GET", path_ + "&after=" + std::to_string(after) + "&wait=" + std::to_string(wait_seconds),
        nullptr, Credentials::none);
    if (!answer) return model::fail(answer.error());
    if (answer->status >= 400) return model::fail(error_of(*answer));
    const std::lock_guard lock(mutex_);
    for (const auto& item : answer->body.at("items")) show(item);
    return {};
  }

 private:
  void show(const nlohmann::json& item) {
    const auto seq = item.value("seq", std::int64_t{0});
    if (seq <= last_) return;
    last_ = seq;
    if (json_) {
      std::cout << item.dump() << std::endl;
    } else {
      std::cout << "\r< " << item.value("text", "") << std::endl;
    }
  }

  const std::string path_;
  const bool json_;
  std::mutex mutex_;
  std::int64_t last_ = 0;
};

}  // namespace

int chat(Client& client, const std::string& url_token, const std::string& user_id,
         const std::string& session_id) {
  Transcript transcript("/" + encode(url_token) + "/outputs?userId=" + encode(user_id) +
                            "&sessionId=" + encode(session_id),
                        client.options().json);
  if (auto known = transcript.fetch(client, 0); !known) return failed(known.error());
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) {
    std::cerr << "userId " << user_id << ", sessionId " << session_id << ". Ctrl-D ends.\n";
  }

  // Shows what others inject while we wait for a line. A poll lasts two seconds at most, so that
  // the end is quick.
  std::jthread poller([&](const std::stop_token& stop) {
    Client own(client.options());
    while (!stop.stop_requested()) {
      if (!transcript.fetch(own, 2)) return;  // the main thread reports what is wrong
    }
  });

  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.empty()) continue;
    auto answer = client.request("POST", "/" + encode(url_token),
                                 {{"userId", user_id}, {"sessionId", session_id}, {"text", line}},
                                 Credentials::none);
    if (!answer) return failed(answer.error());
    if (answer->status >= 400) std::cerr << "! " << error_of(*answer).message << std::endl;
    if (auto shown = transcript.fetch(client, 0); !shown) return failed(shown.error());
  }
  return 0;
}

}  // namespace conversed::ctl
