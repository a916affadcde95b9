#include "flows/journey.h"

#include <array>
#include <utility>

#include "flows/flow.h"
#include "flows/problem.h"
#include "store/text/quantity.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

// The question to a silent user, by language (ISO 639-1). Other languages get the first one.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> questions{{
    {"en", "Are you still there? I am happy to help."},
    {"cs", "Jste tam ještě? Rád pomohu."},
    {"da", "Er du der stadig? Jeg hjælper gerne."},
    {"de", "Sind Sie noch da? Ich helfe gerne weiter."},
    {"es", "¿Sigue ahí? Estaré encantado de ayudarle."},
    {"fr", "Êtes-vous toujours là ? Je peux vous aider."},
    {"it", "È ancora lì? Sono a disposizione per aiutarla."},
    {"nl", "Bent u er nog? Ik help u graag verder."},
    {"pl", "Czy nadal tu jesteś? Chętnie pomogę."},
    {"pt", "Ainda está aí? Terei todo o gosto em ajudar."},
    {"sv", "Är du kvar? Jag hjälper gärna till."},
    {"tr", "Hâlâ orada mısınız? Yardımcı olmaktan memnuniyet duyarım."},
}};

std::string_view question_in(std::string_view locale) {
  const auto language = locale.substr(0, locale.find_first_of("-_"));
  for (const auto& [known, question] : questions) {
    if (known == language) return question;
  }
  return questions.front().second;
}

// Stores the milliseconds beside the text, for model::journey_from.
void put_duration(json& journey, const char* from, const char* to) {
  if (!journey.contains(from)) return;
  const auto duration = text::parse_duration(journey.at(from).get_ref<const std::string&>());
  if (duration) journey[to] = duration->count();
}

}  // namespace

std::optional<int> minute_of_day(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  for (const std::size_t at : {0U, 1U, 3U, 4U}) {
    if (text[at] < '0' || text[at] > '9') return std::nullopt;
  }
  const auto number = [&](std::size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  if (number(0) > 23 || number(3) > 59) return std::nullopt;
  return number(0) * 60 + number(3);
}

json complete_journey(const json& proactive, std::string_view locale) {
  json journey = json::object();
  if (proactive.is_object() && proactive.contains("journey")) journey = proactive.at("journey");
  if (journey.empty()) {
    journey["after"] = "20m";
    journey["text"] = question_in(locale);
    journey["expiresAfter"] = "4h";
    journey["quietHours"] = {{"from", "22:00"}, {"to", "07:00"}, {"timezone", "UTC"}};
    journey["maxPerDay"] = 3;
  }
  if (!journey.contains("maxPerSession")) journey["maxPerSession"] = default_per_session;
  put_duration(journey, "after", "afterMs");
  put_duration(journey, "expiresAfter", "expiresAfterMs");
  if (journey.contains("quietHours")) {
    json& quiet = journey["quietHours"];
    const auto minute = [&](const char* name) {
      return minute_of_day(quiet.at(name).get_ref<const std::string&>()).value_or(0);
    };
    quiet["fromMinute"] = minute("from");
    quiet["toMinute"] = minute("to");
  }
  return journey;
}

model::Result<json> follow_up_flow(const json& journey, const std::string& name) {
  json definition = {{"name", name},
                     {"nodes", json::array({{{"say", {{"text", journey.at("text")}}}}})}};
  if (auto compiled = Flow::compile(definition); !compiled) {
    return model::fail(model::Errc::invalid_argument,
                       "proactive.journey.text can't be said: " + to_string(compiled.error()));
  }
  return definition;
}

}  // namespace conversed::flows
