#include <algorithm>
#include <array>

#include "flows/expression/text.h"
#include "flows/json_members.h"
#include "flows/node_types.h"
#include "flows/nodes/answers.h"
#include "flows/regex.h"
#include "flows/time/time_zone.h"
#include "flows/turn/turn.h"
#include "store/text/words.h"

namespace conversed::flows {
namespace {

constexpr int default_attempts = 3;
constexpr std::chrono::milliseconds shortest_time = std::chrono::seconds(1);
constexpr std::chrono::milliseconds longest_time = std::chrono::hours(24 * 30);

constexpr std::array<std::string_view, 12> answer_types{"any",       "date",   "email", "integer",
                                                        "keyphrase", "number", "phone", "regex",
                                                        "text",      "time",   "url",   "yesNo"};
constexpr std::array<std::string_view, 12> yes_words{"yes",  "y",  "yeah", "yep", "sure", "ok",
                                                     "okay", "ja", "j",    "oui", "sí",   "true"};
constexpr std::array<std::string_view, 7> no_words{"no",   "n",   "nope", "nah",
                                                   "nein", "non", "false"};
constexpr std::array<std::string_view, 2> date_orders{"dayFirst", "monthFirst"};

struct Asking {
  expression::Template text;
  std::vector<expression::Template> reprompts{};  // the last one is repeated
  std::string type;
  std::vector<std::string> yes;
  std::vector<std::string> no;
  std::string slot;
  std::optional<Regex> pattern;
  DateOrder date_order = DateOrder::day_first;
  std::optional<TimeZone> zone{};  // nothing: UTC
  std::optional<expression::Expression> valid{};
  std::optional<expression::Path> store_in;
  std::optional<expression::JsonTemplate> data;
  int max_attempts = default_attempts;
  NodeIndex on_no_answer = end_of_flow;
  std::vector<std::string> escape{};
  std::optional<expression::Expression> escape_if{};
  NodeIndex on_escape = end_of_flow;
  std::optional<std::chrono::milliseconds> time_out{};  // nothing: no limit
  std::optional<NodeIndex> on_time_out{};
};

bool is_among(const std::vector<std::string>& phrases, std::string_view text) {
  const auto phrase = text::phrase_of(text);
  return !phrase.empty() && std::ranges::find(phrases, phrase) != phrases.end();
}

class QuestionNode final : public Node {
 public:
  explicit QuestionNode(Asking asking) : asking_(std::move(asking)) {}

  Result<Step> run(Turn& turn) const override {
    turn.node_state() = {{"attempts", 0}};
    return ask(turn, asking_.text);
  }

  Result<Step> on_input(Turn& turn) const override {
    if (escapes(turn)) return Jump{asking_.on_escape};
    auto answer = read(turn);
    if (!answer) return turn.failure(answer.error().code, answer.error().message);
    if (*answer && is_valid(turn, **answer)) return step_after(store(turn, std::move(**answer)));
    return count_attempt(turn);
  }

  Result<Step> on_time_out(Turn& turn) const override {
    if (asking_.on_time_out) return Jump{*asking_.on_time_out};
    return count_attempt(turn);
  }
  bool takes_time_out() const override { return asking_.time_out.has_value(); }

  Awaits awaits() const override { return Awaits::input; }

 private:
  // There was no answer: asks again, or gives up.
  Result<Step> count_attempt(Turn& turn) const {
    const auto attempts = find_count(turn.node_state(), "attempts");
    if (!attempts) return turn.failure(model::Errc::internal, "its stored state can't be read");
    const auto made = *attempts + 1;
    if (made >= asking_.max_attempts) {
      return step_after(store(turn, nullptr), Jump{asking_.on_no_answer});
    }
    turn.node_state() = {{"attempts", made}};
    const auto& again = asking_.reprompts;
    if (again.empty()) return ask(turn, asking_.text);
    return ask(turn, again[std::min(static_cast<std::size_t>(made), again.size()) - 1]);
  }

  Result<Step> ask(Turn& turn, const expression::Template& text) const {
    auto data = asking_.data ? asking_.data->value(turn.scope()) : nlohmann::json();
    return step_after(turn.output(text.render(turn.scope()), std::move(data)),
                      Wait{asking_.time_out});
  }

  bool escapes(Turn& turn) const {
    return is_among(asking_.escape, turn.input_text()) ||
           (asking_.escape_if && asking_.escape_if->truthy(turn.scope()));
  }

  // Nothing if it is no answer. `too_large`: the pattern takes too many steps.
  Result<std::optional<nlohmann::json>> read(Turn& turn) const {
    const std::string& text = turn.input_text();
    const std::string& type = asking_.type;
    if (type == "regex" && asking_.pattern) {
      const std::string_view trimmed = expression::trim(text);
      const auto fits = asking_.pattern->fits(trimmed, &turn.budget());
      if (!fits) return model::fail(fits.error());
      return *fits ? std::optional<nlohmann::json>(std::string(trimmed)) : std::nullopt;
    }
    return read_plain(turn);
  }

  std::optional<nlohmann::json> read_plain(Turn& turn) const {
    const std::string& text = turn.input_text();
    const std::string& type = asking_.type;
    if (type == "number") return read_number(text);
    if (type == "integer") return read_integer(text);
    if (type == "yesNo") {
      if (is_among(asking_.yes, text)) return true;
      if (is_among(asking_.no, text)) return false;
      return std::nullopt;
    }
    if (type == "keyphrase") return keyphrase(turn);
    if (type == "any") return text.empty() ? turn.input_object()["data"] : nlohmann::json(text);
    if (auto form = read_form(text, turn.scope().now)) return std::move(*form);
    return std::nullopt;
  }

  // The types whose answers are texts.
  std::optional<std::string> read_form(const std::string& text, model::Timestamp now) const {
    const std::string& type = asking_.type;
    if (type == "email") return read_email(text);
    if (type == "url") return read_url(text);
    if (type == "phone") return read_phone(text);
    if (type == "time") return read_time(text);
    if (type == "date") return read_date(text, asking_.date_order, local(now));
    return expression::trim(text).empty() ? std::nullopt : std::optional(text);
  }

  // The time of the user's time zone, read as if it were UTC.
  model::Timestamp local(model::Timestamp now) const {
    return asking_.zone ? model::from_unix_ms(asking_.zone->local(now)) : now;
  }

  // The first keyphrase of the slot that is not negated.
  std::optional<nlohmann::json> keyphrase(Turn& turn) const {
    const auto& slots = turn.input_object()["slots"];
    const auto found = slots.find(asking_.slot);
    if (found == slots.end() || !found->is_array()) return std::nullopt;
    for (const auto& hit : *found) {
      if (hit.is_object() && hit.contains("keyphrase") && !hit.value("neg", false)) {
        return hit["keyphrase"];
      }
    }
    return std::nullopt;
  }

  bool is_valid(Turn& turn, const nlohmann::json& answer) const {
    if (!asking_.valid) return true;
    turn.input_object()["answer"] = answer;
    return asking_.valid->truthy(turn.scope());
  }

  Result<void> store(Turn& turn, nlohmann::json value) const {
    if (!asking_.store_in) return {};
    return turn.assign(*asking_.store_in, std::move(value));
  }

  const Asking asking_;
};

std::vector<std::string> phrases(NodeConfig& config, std::string_view field,
                                 std::span<const std::string_view> otherwise) {
  std::vector<std::string> list(otherwise.begin(), otherwise.end());
  if (config.has(field)) list = config.names(field);
  for (auto& phrase : list) {
    auto folded = text::phrase_of(phrase);
    if (folded.empty())
      config.import_problem(field, "'" + phrase + "' has no words to compare; write a word");
    phrase = std::move(folded);
  }
  return list;
}

// Fields of one type. A stored Flow may have them with other types, which ignore them.
void check_type_fields(NodeConfig& config, const Asking& asking) {
  struct Rule {
    std::string_view field;
    std::string_view type;
    bool needed;
  };
  static constexpr std::array<Rule, 6> rules{{{"slot", "keyphrase", true},
                                              {"pattern", "regex", true},
                                              {"dateOrder", "date", false},
                                              {"timezone", "date", false},
                                              {"yes", "yesNo", false},
                                              {"no", "yesNo", false}}};
  for (const auto& [field, type, needed] : rules) {
    std::string message;
    if (asking.type == type && needed && !config.has(field)) {
      message.append("a question of type ").append(type).append(" needs '").append(field);
      config.problem(field, message + "'");
    } else if (asking.type != type && config.has(field)) {
      message.append("'").append(field).append("' is for questions of type ").append(type);
      config.import_problem(field, message + " only");
    }
  }
}

void read_escape(NodeConfig& config, Asking& asking) {
  asking.escape = phrases(config, "escape", {});
  if (config.has("escapeIf")) asking.escape_if = config.condition("escapeIf");
  if (config.has("onEscape") && asking.escape.empty() && !asking.escape_if) {
    config.import_problem("onEscape", "is never run without 'escape' or 'escapeIf'");
  }
  asking.on_escape = config.has("onEscape") ? config.branch("onEscape") : config.next();
}

void read_time_out(NodeConfig& config, Asking& asking) {
  if (config.has("timeout")) {
    asking.time_out = config.duration("timeout", std::nullopt, shortest_time, longest_time);
  } else if (config.has("onTimeout")) {
    config.problem("onTimeout", "is never run without 'timeout'");
  }
  if (config.has("onTimeout")) asking.on_time_out = config.branch("onTimeout");
}

NodePtr create_question(NodeConfig& config) {
  Asking asking{.text = config.text_template("text"),
                .type = config.choice("type", answer_types, "text"),
                .yes = phrases(config, "yes", yes_words),
                .no = phrases(config, "no", no_words),
                .slot = config.slot("slot"),
                .pattern = config.regex("pattern", Regex::Case::kept),
                .store_in = config.path("storeIn"),
                .data = config.json_template("data"),
                .max_attempts = config.integer("maxAttempts", default_attempts, 1, 100),
                .on_no_answer = config.branch("onNoAnswer")};
  if (config.has("reprompt")) asking.reprompts = config.alternatives("reprompt");
  if (config.has("validIf")) asking.valid = config.condition("validIf");
  if (config.choice("dateOrder", date_orders, "dayFirst") == "monthFirst") {
    asking.date_order = DateOrder::month_first;
  }
  if (const auto zone = config.find("timezone")) {
    const auto name = zone->text();
    if (name) asking.zone = TimeZone::find(*name);
    if (name && !asking.zone) {
      zone->problem("unknown time zone; expected one such as UTC or Europe/Berlin");
    }
  }
  read_escape(config, asking);
  read_time_out(config, asking);
  check_type_fields(config, asking);
  return std::make_unique<const QuestionNode>(std::move(asking));
}

constexpr NodeField question_fields[]{
    {"text", "template", "The question. Required."},
    {"type", "text, number, integer, yesNo, email, url, phone, date, time, regex, keyphrase or any",
     "What counts as an answer. `text`: anything but blanks. Numbers and `yesNo` (true or false) "
     "take the whole text. An e-mail address and a URL are found among other words. A phone number "
     "is stored as digits, a date as `YYYY-MM-DD`, a time as `HH:MM`. `any` takes data, too. "
     "Default `text`."},
    {"storeIn", "path", "Where the answer is stored, such as `context.city`."},
    {"reprompt", "template or list",
     "Said after a wrong answer. A list is used one after the other, and its last text is "
     "repeated. Default: the question."},
    {"maxAttempts", "number", "How many inputs are tried, 1 to 100. Default 3."},
    {"onNoAnswer", "nodes",
     "Run when the attempts are used up. Null is stored, and the Flow continues."},
    {"validIf", "expression",
     "Evaluated with the answer as `input.answer`. If it is false, the answer is wrong."},
    {"escape", "list",
     "Words that leave the question, such as `cancel`. Case, accents and punctuation don't "
     "matter."},
    {"escapeIf", "expression", "Leaves the question if it is true, such as `input.data.back`."},
    {"onEscape", "nodes",
     "Run when the user leaves the question. Nothing is stored, and the Flow continues."},
    {"timeout", "duration",
     "How long the question waits, 1s to 30d. A wrong answer of the user begins the time again. An "
     "inject does not. Default: no limit."},
    {"onTimeout", "nodes",
     "Run when the time is over. Nothing is stored, and the Flow continues. Without `onTimeout` "
     "the time-out counts as a wrong answer."},
    {"slot", "name", "For `keyphrase`: the slot of `input.slots`. Its first keyphrase counts."},
    {"pattern", "regular expression",
     "For `regex`: the whole text must match it, and have at most 4 KiB. A pattern that takes too "
     "many steps for a text fails the Turn."},
    {"dateOrder", "dayFirst or monthFirst",
     "For `date`: what `1/2/2027` means. With dots the day is always first. Default `dayFirst`."},
    {"timezone", "name",
     "For `date`: the time zone that decides on today, such as Europe/Berlin. Default UTC."},
    {"yes", "list", "For `yesNo`: the words for yes, instead of the built-in ones."},
    {"no", "list", "For `yesNo`: the words for no."},
    {"data", "JSON template", "The data of the output."}};

}  // namespace

constinit const NodeType question_node{
    .name = "question",
    .summary = "Asks, waits for the next input, and asks again after a wrong answer.",
    .shorthand = "text",
    .fields = question_fields,
    .example =
        "- id: ask\n"
        "  question:\n"
        "    text: How many?\n"
        "    type: integer\n"
        "    validIf: input.answer > 0\n"
        "    storeIn: context.count\n"
        "    reprompt: [\"Sorry, how many?\", \"A number, please.\"]\n"
        "    onNoAnswer: [{say: Never mind.}, {stop: true}]\n"
        "    escape: [cancel]\n"
        "    onEscape: [{say: Cancelled.}, {stop: true}]\n"
        "    timeout: 10m\n"
        "    onTimeout: [{say: Come back any time.}, {stop: true}]\n",
    .create = create_question};

}  // namespace conversed::flows
