#include "store/yaml/open_marks.h"

#include <algorithm>

namespace conversed::yaml {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Goes through a text once. One use, one thread.
class Marks {
 public:
  Marks(std::string_view text, std::size_t end) : text_(text.substr(0, end)) {}

  OpenMarks find() {
    while (at_ < text_.size()) step();
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool in_flow() const { return !found_.brackets.empty(); }
  [[nodiscard]] bool blank_follows() const {
    return at_ + 1 >= text_.size() || is_blank(text_[at_ + 1]);
  }

  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      begins_ = true;
      ++at_;
    } else if (is_blank(c)) {
      ++at_;
    } else if (c == '#' && (at_ == 0 || is_blank(text_[at_ - 1]))) {
      skip_comment();
    } else if (begins_ && (c == '"' || c == '\'')) {
      skip_quoted(c);
    } else if ((begins_ || in_flow()) && (c == '[' || c == '{')) {
      found_.brackets.push_back(at_++);
      found_.comment.reset();
      begins_ = true;
    } else if (in_flow() && (c == ']' || c == '}')) {
      found_.brackets.pop_back();
      found_.comment.reset();
      begins_ = false;
      ++at_;
    } else if (begins_ && !in_flow() && (c == '|' || c == '>')) {
      skip_block();
    } else {
      step_in_plain(c);
    }
  }

  // Behind these marks a value begins.
  void step_in_plain(char c) {
    const bool is_entry = c == '-' || c == '?';
    if (c == ':') {
      begins_ = blank_follows() || (in_flow() && at_ > 0 && text_[at_ - 1] == '"');
    } else if (is_entry && begins_ && blank_follows()) {
      begins_ = true;
    } else {
      begins_ = c == ',' && in_flow();
    }
    ++at_;
  }

  void skip_comment() {
    const auto end = std::min(text_.find('\n', at_), text_.size());
    const auto comment = text_.substr(at_, end - at_);
    if (in_flow() && comment.find_first_of("]}") != std::string_view::npos) found_.comment = at_;
    at_ = end;
  }

  void skip_quoted(char quote) {
    const std::size_t begin = at_++;
    begins_ = false;
    for (; at_ < text_.size(); ++at_) {
      if (quote == '"' && text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == quote) {
        if (quote == '"' || at_ + 1 >= text_.size() || text_[at_ + 1] != quote) {
          found_.last_quote = begin;
          found_.last_quote_end = ++at_;
          return;
        }
        ++at_;
      }
    }
    at_ = text_.size();
    found_.quote = begin;
  }

  // A block scalar has the lines that are indented further than its key, or than its `-`.
  void skip_block() {
    const auto indent = [&](std::size_t line) {
      const auto first = text_.find_first_not_of(' ', line);
      return first == std::string_view::npos ? text_.size() - line : first - line;
    };
    const auto before = text_.rfind('\n', at_);
    const std::size_t line = before == std::string_view::npos ? 0 : before + 1;
    const bool has_key = text_.substr(line, at_ - line).find(':') != std::string_view::npos;
    const std::size_t own =
        has_key ? std::min(text_.find_first_not_of(" -", line), at_) - line : indent(line);
    for (;;) {
      const auto end = text_.find('\n', at_);
      if (end == std::string_view::npos) {
        at_ = text_.size();
        return;
      }
      at_ = end + 1;
      const std::size_t first = at_ + indent(at_);
      if (first < text_.size() && text_[first] != '\n' && indent(at_) <= own) break;
    }
    begins_ = true;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  bool begins_ = true;  // a value may begin here
  OpenMarks found_;
};

}  // namespace

OpenMarks open_marks(std::string_view text, std::size_t end) {
  return Marks(text, end).find();
}

}  // namespace conversed::yaml
