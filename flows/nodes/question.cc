// Asks, waits for the answer, and asks again if it is none.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "flows/node_types.h"

namespace conversed::flows {
namespace {

constexpr int default_attempts = 3;

constexpr std::array<std::string_view, 3> types{"number", "text", "yesNo"};
constexpr std::array<std::string_view, 12> yes_words{"yes",  "y",  "yeah", "yep", "sure", "ok",
                                                     "okay", "ja", "j",    "oui", "sí",   "true"};
constexpr std::array<std::string_view, 7> no_words{"no",   "n",   "nope", "nah",
                                                   "nein", "non", "false"};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// A word as people type it: without an end mark, in ASCII lower case.
std::string as_word(std::string_view text) {
  text = trimmed(text);
  while (!text.empty() && (text.back() == '.' || text.back() == '!')) text.remove_suffix(1);
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  return word;
}

// A decimal number and nothing else; whole ones that fit stay whole.
std::optional<nlohmann::json> read_number(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  const char* end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto [rest, error] = std::from_chars(text.data(), end, whole);
      error == std::errc() && rest == end) {
    return whole;
  }
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

struct Asking {
  expression::Template text;
  std::optional<expression::Template> reprompt;
  std::string type;
  std::vector<std::string> yes;
  std::vector<std::string> no;
  std::optional<expression::Path> store_in;
  std::optional<expression::JsonTemplate> data;
  int max_attempts = default_attempts;
  NodeIndex on_no_answer = end_of_flow;
};

class QuestionNode final : public Node {
 public:
  explicit QuestionNode(Asking asking) : asking_(std::move(asking)) {}

  Result<Step> run(Turn& turn) const override {
    turn.node_state() = {{"attempts", 0}};
    return ask(turn, asking_.text);
  }

  Result<Step> on_input(Turn& turn) const override {
    if (auto answer = read(turn.input_text())) {
      if (auto done = store(turn, std::move(*answer)); !done) return model::fail(done.error());
      return Continue{};
    }
    const auto& state = turn.node_state();
    const auto attempts = state.is_object() ? state.find("attempts") : state.end();
    if (!state.is_object() || attempts == state.end() || !attempts->is_number_integer()) {
      return turn.failure(model::Errc::internal, "its stored state can't be read");
    }
    const auto made = attempts->get<std::int64_t>() + 1;
    if (made >= asking_.max_attempts) {
      if (auto done = store(turn, nullptr); !done) return model::fail(done.error());
      return Jump{asking_.on_no_answer};
    }
    turn.node_state() = {{"attempts", made}};
    return ask(turn, asking_.reprompt ? *asking_.reprompt : asking_.text);
  }

  Awaits awaits() const override { return Awaits::input; }

 private:
  Result<Step> ask(Turn& turn, const expression::Template& text) const {
    auto data = asking_.data ? asking_.data->value(turn.scope()) : nlohmann::json();
    if (auto said = turn.output(text.render(turn.scope()), std::move(data)); !said) {
      return model::fail(said.error());
    }
    return Wait{};
  }

  std::optional<nlohmann::json> read(const std::string& text) const {
    if (asking_.type == "number") return read_number(text);
    if (asking_.type == "text") {
      if (trimmed(text).empty()) return std::nullopt;
      return text;
    }
    const std::string word = as_word(text);
    if (std::find(asking_.yes.begin(), asking_.yes.end(), word) != asking_.yes.end()) return true;
    if (std::find(asking_.no.begin(), asking_.no.end(), word) != asking_.no.end()) return false;
    return std::nullopt;
  }

  Result<void> store(Turn& turn, nlohmann::json value) const {
    if (!asking_.store_in) return {};
    return turn.assign(*asking_.store_in, std::move(value));
  }

  const Asking asking_;
};

std::vector<std::string> words(NodeConfig& config, std::string_view field,
                               std::span<const std::string_view> otherwise) {
  if (!config.has(field)) return {otherwise.begin(), otherwise.end()};
  auto list = config.names(field);
  for (auto& word : list) word = as_word(word);
  return list;
}

std::unique_ptr<const Node> create(NodeConfig& config) {
  Asking asking{.text = config.text_template("text"),
                .reprompt = config.optional_template("reprompt"),
                .type = config.choice("type", types, "text"),
                .yes = words(config, "yes", yes_words),
                .no = words(config, "no", no_words),
                .store_in = config.path("storeIn"),
                .data = config.json_template("data"),
                .max_attempts = config.integer("maxAttempts", default_attempts, 1, 100),
                .on_no_answer = config.branch("onNoAnswer")};
  return std::make_unique<const QuestionNode>(std::move(asking));
}

constexpr NodeField fields[]{
    {"text", "template", "The question. Required."},
    {"type", "text, number or yesNo",
     "What counts as an answer; default `text`: anything but blanks. `yesNo` gives true or false."},
    {"storeIn", "path", "Where the answer goes, such as `context.city`."},
    {"reprompt", "template", "Said after what was no answer; default: the question again."},
    {"maxAttempts", "number", "How many inputs may be tried, 1 to 100; default 3."},
    {"onNoAnswer", "nodes",
     "Run when the attempts are used up. With or without it, null is stored and the Flow goes on."},
    {"yes", "list", "For `yesNo`: the words for yes, instead of the built-in ones."},
    {"no", "list", "Likewise for no."},
    {"data", "JSON template", "What programs at the other end get beside the text."}};

}  // namespace

constinit const NodeType question_node{
    .name = "question",
    .summary = "Asks, waits for the next input, and asks again if that is no answer.",
    .shorthand = "text",
    .fields = fields,
    .example =
        "- id: ask\n"
        "  question:\n"
        "    text: How many?\n"
        "    type: number\n"
        "    storeIn: context.count\n"
        "    reprompt: Sorry, how many?\n"
        "    maxAttempts: 2\n"
        "    onNoAnswer: [{say: Never mind.}, {stop: true}]\n",
    .create = create};

}  // namespace conversed::flows
