// conversectl chat: sends each line of the input to the Endpoint, and prints the session's outputs.
#include <unistd.h>

#include <exception>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "daemon/ctl/commands.h"
#include "store/model/ids.h"
#include "store/text/terminal.h"

namespace conversed::ctl {
namespace {

// Shows a session's outputs as they come. The poller and the main thread both ask for new outputs;
// the lock makes sure that each is shown once and in order. Thread-safe.
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
    if (answer->status >= 300) return model::fail(error_of(*answer, client.options().url));
    const Fields page(answer->body);
    const std::lock_guard lock(mutex_);
    // The session has begun anew: its numbers start at 1 again.
    if (page.has("restarted") && page.flag("restarted") && last_ == after) last_ = 0;
    for (const auto& item : page.any("items")) show(item);
    return {};
  }

 private:
  void show(const nlohmann::json& item) {
    const Fields output(item);
    const auto seq = output.number("seq");
    if (seq <= last_) return;
    last_ = seq;
    if (json_) {
      say_json(item);
    } else {
      std::cout << "\r< " << indented(text::shown(output.text_if_any("text"), text::Lines::many))
                << '\n';
    }
    std::cout.flush();
  }

  // Indents the further lines, so that none looks like the begin of another text.
  static std::string indented(const std::string& lines) {
    std::string text;
    for (const char c : lines) {
      text += c;
      if (c == '\n') text += "  ";
    }
    return text;
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

  // Shows injected messages while this thread waits for a line. A poll lasts two seconds at most,
  // so that the end is quick.
  std::jthread poller([&](const std::stop_token& stop) {
    Client own(client.options());
    try {
      while (!stop.stop_requested() && transcript.fetch(own, 2)) {
      }
    } catch (const std::exception&) {
    }
    // The main thread gets the same error and reports it.
  });

  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.empty()) continue;
    const nlohmann::json message{{"userId", user_id}, {"sessionId", session_id}, {"text", line}};
    const auto send = [&, key = model::new_id()] {
      return client.request("POST", "/" + encode(url_token), message, Credentials::none,
                            Client::usual_wait, key);
    };
    auto answer = send();
    if (!answer && client.is_outcome_unknown()) answer = send();  // the key makes it one message
    if (!answer) return failed(answer.error());
    if (answer->status >= 300) note("! " + error_of(*answer, client.options().url).message);
    if (auto shown = transcript.fetch(client, 0); !shown) return failed(shown.error());
  }
  return 0;
}

}  // namespace conversed::ctl
