#include <algorithm>
#include <array>

#include "flows/expression/text.h"
#include "flows/json_members.h"
#include "flows/node_types.h"
#include "flows/nodes/answers.h"
#include "flows/nodes/output_parts.h"
#include "flows/regex.h"
#include "flows/time/time_zone.h"
#include "flows/turn/turn.h"
#include "store/model/json.h"
#include "store/text/words.h"

namespace conversed::flows {
namespace {

constexpr std::array<std::string_view, 13> answer_types{
    "text",  "number", "integer", "yesNo", "choice",    "email", "url",
    "phone", "date",   "time",    "regex", "keyphrase", "any"};
constexpr std::array<std::string_view, 12> yes_words{"yes",  "y",  "yeah", "yep", "sure", "ok",
                                                     "okay", "ja", "j",    "oui", "sí",   "true"};
constexpr std::array<std::string_view, 7> no_words{"no",   "n",   "nope", "nah",
                                                   "nein", "non", "false"};
constexpr std::array<std::string_view, 2> date_orders{"dayFirst", "monthFirst"};

// The phrases of a list. They match without case, accents and punctuation.
struct Phrases {
  std::vector<std::string> folded;

  Phrases() = default;
  explicit Phrases(std::span<const std::string_view> words) {
    for (const auto word : words) folded.push_back(text::phrase_of(word));
  }
  static void read(NodeConfig& config, const View& at, Phrases& into) {
    into.folded.clear();
    if (!at.expect_list("a list of texts")) return;
    for (const View& item : at.items()) {
      const auto phrase = item.name();
      if (!phrase) continue;
      into.folded.push_back(text::phrase_of(*phrase));
      if (into.folded.back().empty()) {
        config.import_problem(at, "'" + *phrase + "' has no words to compare; write a word");
      }
    }
  }

  [[nodiscard]] bool contain(std::string_view text) const {
    const auto phrase = text::phrase_of(text);
    return !phrase.empty() && std::ranges::find(folded, phrase) != folded.end();
  }
};

void read_pattern(NodeConfig& config, const View& at, std::optional<Regex>& into) {
  into = config.regex_at(at, Regex::Case::kept);
}

void read_zone(NodeConfig&, const View& at, std::optional<TimeZone>& into) {
  const auto name = at.text();
  if (name) into = TimeZone::find(*name);
  if (name && !into) at.problem("unknown time zone; expected one such as UTC or Europe/Berlin");
}

struct QuestionNode final : Node {
  LocalText text;
  std::string type;
  std::optional<expression::Path> store_in;
  std::vector<LocalText> reprompts;  // the last one repeats
  int max_attempts = 0;
  std::optional<NodeIndex> on_no_answer;  // empty: the execution ends
  std::optional<expression::Expression> valid;
  Phrases escape;
  std::optional<expression::Expression> escape_if;
  std::optional<NodeIndex> on_escape;
  std::optional<std::chrono::milliseconds> time_out;  // empty: no limit
  std::optional<NodeIndex> if_timed_out;
  std::string slot;
  std::optional<Regex> pattern;
  std::string date_order;
  std::optional<TimeZone> zone;  // empty: UTC
  Phrases yes{yes_words};
  Phrases no{no_words};
  std::optional<expression::JsonTemplate> data;
  OutputPart quick_replies;

  void check(NodeConfig& config) const;

  Result<Step> run(Turn& turn) const override {
    turn.node_state() = {{"attempts", 0}};
    return ask(turn, text);
  }

  Result<Step> on_input(Turn& turn) const override {
    if (escapes(turn)) {
      turn.take_input();
      return on_escape ? Step(Jump{*on_escape}) : Continue{};
    }
    auto answer = read(turn);
    if (!answer) return turn.failure(answer.error().code, answer.error().message);
    if (*answer && is_valid(turn, **answer)) {
      turn.take_input();
      return step_after(store(turn, std::move(**answer)));
    }
    return count_attempt(turn);
  }

  Result<Step> on_time_out(Turn& turn) const override {
    if (if_timed_out) return Jump{*if_timed_out};
    return count_attempt(turn);
  }
  bool takes_time_out() const override { return time_out.has_value(); }

  Awaits awaits() const override { return Awaits::input; }

 private:
  // The input is no answer: asks again, or gives up.
  Result<Step> count_attempt(Turn& turn) const {
    const auto attempts = find_count(turn.node_state(), "attempts");
    if (!attempts) return turn.failure(model::Errc::internal, "its stored state can't be read");
    const auto made = *attempts + 1;
    if (made >= max_attempts) {
      return step_after(store(turn, nullptr), on_no_answer ? Step(Jump{*on_no_answer}) : Stop{});
    }
    turn.node_state() = {{"attempts", made}};
    if (reprompts.empty()) return ask(turn, text);
    return ask(turn, reprompts[std::min(static_cast<std::size_t>(made), reprompts.size()) - 1]);
  }

  Result<Step> ask(Turn& turn, const LocalText& question) const {
    auto value = data ? data->value(turn.scope()) : nlohmann::json();
    auto added = add_part(turn, quick_replies, "quickReplies", &buttons_from, value);
    if (!added) return model::fail(added.error());
    return step_after(turn.output(turn.worded(question), std::move(value)), Wait{time_out});
  }

  bool escapes(Turn& turn) const {
    return escape.contain(turn.input_text()) || (escape_if && escape_if->truthy(turn.scope()));
  }

  // The value of the quick reply that the text names.
  Result<std::optional<nlohmann::json>> choice(Turn& turn) const {
    std::optional<nlohmann::json> chosen;
    auto replies = quick_replies ? quick_replies->value(turn.scope()) : nlohmann::json();
    if (replies.is_null()) return chosen;
    const auto buttons = buttons_from(turn.wording(), std::move(replies));
    if (!buttons) return model::fail(buttons.error());
    const std::string& said = turn.input_text();
    const auto phrase = text::phrase_of(said);
    const auto is_named = [&](const nlohmann::json& name) {
      const auto shown = name.is_string() ? name.get<std::string>() : model::json_text(name);
      return shown == said || (!phrase.empty() && text::phrase_of(shown) == phrase);
    };
    for (const auto& button : *buttons) {
      const auto value = button.find("value");
      if (value == button.end() || !(is_named(button["text"]) || is_named(*value))) continue;
      chosen = *value;
      break;
    }
    return chosen;
  }

  // Nothing if the input is no answer. `too_large`: the pattern takes too many steps.
  Result<std::optional<nlohmann::json>> read(Turn& turn) const {
    if (type == "choice") return choice(turn);
    if (type != "regex" || !pattern) return read_plain(turn);
    const std::string_view trimmed = expression::trim(turn.input_text());
    const auto fits = pattern->fits(trimmed, &turn.budget());
    if (!fits) return model::fail(fits.error());
    return *fits ? std::optional<nlohmann::json>(std::string(trimmed)) : std::nullopt;
  }

  std::optional<nlohmann::json> read_plain(Turn& turn) const {
    const std::string& said = turn.input_text();
    if (type == "number") return number_in(turn);
    if (type == "integer") {
      const auto number = number_in(turn);
      return number ? as_integer(*number) : std::nullopt;
    }
    if (type == "yesNo") {
      if (yes.contain(said)) return true;
      if (no.contain(said)) return false;
      return std::nullopt;
    }
    if (type == "keyphrase") return keyphrase(turn);
    if (type == "any") return said.empty() ? turn.input_object()["data"] : nlohmann::json(said);
    if (type == "email") return read_email(said);
    if (type == "url") return read_url(said);
    if (type == "phone") return read_phone(said);
    if (type == "time") {
      auto time = read_time(said);
      return time || !pay_for_words(turn) ? time : read_time_in_words(said);
    }
    if (type == "date") {
      const bool day_first = date_order == "dayFirst";
      return read_date(said, day_first ? DateOrder::day_first : DateOrder::month_first,
                       local(turn.scope().now));
    }
    return expression::trim(said).empty() ? std::nullopt : std::optional<nlohmann::json>(said);
  }

  static std::optional<nlohmann::json> number_in(Turn& turn) {
    const std::string& said = turn.input_text();
    auto number = read_number(said, turn.locale());
    if (number || !pay_for_words(turn)) return number;
    return read_spelled_number(said, turn.locale());
  }

  // Pays for the search in spelled numbers, which bounds its work itself.
  static bool pay_for_words(Turn& turn) {
    constexpr std::size_t steps = 100'000;  // 10 ms
    return turn.budget().step(steps);
  }

  // The time of the user's time zone as if it were UTC.
  model::Timestamp local(model::Timestamp now) const {
    return zone ? model::from_unix_ms(zone->local(now)) : now;
  }

  // The first keyphrase of the slot without a negation.
  std::optional<nlohmann::json> keyphrase(Turn& turn) const {
    const auto& slots = turn.input_object()["slots"];
    const auto found = slots.find(slot);
    if (found == slots.end() || !found->is_array()) return std::nullopt;
    for (const auto& hit : *found) {
      if (hit.is_object() && hit.contains("keyphrase") && !hit.value("neg", false)) {
        return hit["keyphrase"];
      }
    }
    return std::nullopt;
  }

  bool is_valid(Turn& turn, const nlohmann::json& answer) const {
    if (!valid) return true;
    turn.input_object()["answer"] = answer;
    return valid->truthy(turn.scope());
  }

  Result<void> store(Turn& turn, nlohmann::json value) const {
    if (!store_in) return {};
    return turn.assign(*store_in, std::move(value));
  }
};

void QuestionNode::check(NodeConfig& config) const {
  // Fields of one type of question. In a stored Flow other types may have and ignore them.
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
  for (const auto& rule : rules) {
    const std::string field(rule.field);
    if (type == rule.type && rule.needed && !config.has(field)) {
      config.problem(field,
                     "a question of type " + std::string(rule.type) + " needs '" + field + "'");
    } else if (const auto at = config.find(field); at && type != rule.type) {
      config.import_problem(
          *at, "'" + field + "' is for questions of type " + std::string(rule.type) + " only");
    }
  }
  if (type == "choice" && !quick_replies) {
    config.problem("type", "a question of type choice needs 'quickReplies'");
  }
  if (const auto at = config.find("data"); at && quick_replies && !at->value().is_object()) {
    at->problem("must be a mapping, since the quick replies are added to it");
  }
  if (const auto at = config.find("onEscape"); at && escape.folded.empty() && !escape_if) {
    config.import_problem(*at, "is never run without 'escape' or 'escapeIf'");
  }
  if (type == "yesNo") config.note_flag();
  if (if_timed_out && !time_out) config.problem("onTimeout", "is never run without 'timeout'");
}

constexpr NodeField question_fields[]{
    required<&QuestionNode::text>("text"),
    optional<&QuestionNode::type>("type").one_of(answer_types).by_default("text"),
    optional<&QuestionNode::store_in>("storeIn"),
    optional<&QuestionNode::reprompts>("reprompt"),
    optional<&QuestionNode::max_attempts>("maxAttempts").within(1, 100).by_default(3),
    optional<&QuestionNode::on_no_answer>("onNoAnswer"),
    optional<&QuestionNode::valid>("validIf"),
    optional<&QuestionNode::escape, &Phrases::read>("escape").as(Form::names),
    optional<&QuestionNode::escape_if>("escapeIf"),
    optional<&QuestionNode::on_escape>("onEscape"),
    optional<&QuestionNode::time_out>("timeout").within(std::chrono::seconds(1),
                                                        std::chrono::hours(24 * 30)),
    optional<&QuestionNode::if_timed_out>("onTimeout"),
    optional<&QuestionNode::slot, &NodeConfig::slot>("slot"),
    optional<&QuestionNode::pattern, &read_pattern>("pattern"),
    optional<&QuestionNode::date_order>("dateOrder").one_of(date_orders).by_default("dayFirst"),
    optional<&QuestionNode::zone, &read_zone>("timezone").as(Form::text),
    optional<&QuestionNode::yes, &Phrases::read>("yes").as(Form::names),
    optional<&QuestionNode::no, &Phrases::read>("no").as(Form::names),
    optional<&QuestionNode::data>("data"),
    optional<&QuestionNode::quick_replies, &read_quick_replies>("quickReplies")
        .as(Form::text_or_texts_and_mappings)
        .of(button_keys)};

}  // namespace

constinit const NodeType question_node{.name = "question",
                                       .shorthand = "text",
                                       .fields = question_fields,
                                       .create = create<QuestionNode>};

}  // namespace conversed::flows
