#include "flows/nodes/output_parts.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "flows/json_members.h"
#include "store/model/json.h"
#include "store/model/url.h"

namespace conversed::flows {
namespace {

using model::Errc;
using nlohmann::json;

constexpr const char* expected_link = "a URL that begins with https://, http://, mailto: or tel:";

// Clients open the URL, so it must not be a script.
bool is_link(std::string_view url) {
  return model::is_http_url(url) || url.starts_with("mailto:") || url.starts_with("tel:");
}

bool is_template(std::string_view text) {
  return text.find("{{") != std::string_view::npos;
}

void check_link(const View& at) {
  const auto url = at.text();
  if (url && !is_template(*url) && !is_link(*url)) {
    at.problem(std::string("expected ") + expected_link);
  }
}

void check_filled(const View& at) {
  const auto text = at.text();
  if (text && text->empty()) at.problem("the text is empty; write one");
}

void check_text(const View& at) {
  (void)at.text();
}

// Checks a text, or each text of a mapping of locales, if the field is there.
void check_local(NodeConfig& config, const Fields& fields, std::string_view field,
                 void (*check)(const View&)) {
  const auto at = fields.find(field);
  if (!at) return;
  if (!at->value().is_object()) return check(*at);
  config.check_locales(*at);
  for (const auto& member : at->value().members()) check(at->member(member));
}

// An image or a file.
void check_linked(NodeConfig& config, const View& at, std::span<const Key> keys) {
  if (at.value().is_text()) return check_link(at);
  const Fields fields(at, keys);
  check_local(config, fields, "url", &check_link);
  check_local(config, fields, keys.back().name, &check_text);
}

void check_button(NodeConfig& config, const View& at) {
  if (at.value().is_text()) return;
  const Fields fields(at, button_keys);
  check_local(config, fields, "text", &check_filled);
  check_local(config, fields, "url", &check_link);
  const auto url = fields.find("url");
  if (url && fields.find("value")) {
    url->problem("a button sends its value or opens its URL; remove one");
  }
}

// A text is a template of the list.
void check_parts(NodeConfig& config, const View& at, void (*check)(NodeConfig&, const View&)) {
  if (at.value().is_text()) {
    if (!is_template(at.value().text())) (void)at.expect_list();
  } else if (at.expect_list()) {
    for (const View& item : at.items()) check(config, item);
  }
}

void check_card(NodeConfig& config, const View& at) {
  const Fields fields(at, card_keys);
  check_local(config, fields, "title", &check_filled);
  check_local(config, fields, "text", &check_text);
  if (const auto image = fields.find("image")) check_linked(config, *image, image_keys);
  if (const auto buttons = fields.find("buttons")) check_parts(config, *buttons, &check_button);
}

tl::unexpected<model::Error> wrong(const char* what, const char* expected) {
  return model::fail(Errc::invalid_argument, std::string("expected ") + expected + " as " + what);
}

// The text of a member, chosen by locale. Null if it is missing or another value.
const std::string* local_text(const Wording& wording, const json& value, const char* name) {
  const json* found = find_member(value, name);
  return found == nullptr ? nullptr : wording.text_of(*found);
}

Result<json> button_from(const Wording& wording, json value) {
  if (!value.is_structured() && !value.is_null()) {
    const std::string text = value.is_string() ? value.get<std::string>() : model::json_text(value);
    return json{{"text", text}, {"value", std::move(value)}};
  }
  const std::string* text = local_text(wording, value, "text");
  if (text == nullptr || text->empty())
    return wrong("a button", "a text, or a mapping with a text,");
  const json* link = find_member(value, "url");
  if (link != nullptr && !link->is_null()) {
    const std::string* url = wording.text_of(*link);
    if (url == nullptr || !is_link(*url)) return wrong("the url of a button", expected_link);
    return json{{"text", *text}, {"url", *url}};
  }
  const json* sent = find_member(value, "value");
  return json{{"text", *text}, {"value", sent == nullptr || sent->is_null() ? json(*text) : *sent}};
}

Result<json> list_from(const Wording& wording, json value, const char* what,
                       Result<json> (*form)(const Wording&, json)) {
  if (!value.is_array()) return wrong(what, "a list");
  for (auto& item : value) {
    auto whole = form(wording, std::move(item));
    if (!whole) return whole;
    item = *std::move(whole);
  }
  return value;
}

Result<json> card_from(const Wording& wording, json value) {
  const std::string* title = local_text(wording, value, "title");
  if (title == nullptr || title->empty()) return wrong("a card", "a mapping with a title");
  json card{{"title", *title}};
  if (const std::string* text = local_text(wording, value, "text")) card["text"] = *text;
  const std::array parts{std::pair("image", &link_from), std::pair("buttons", &buttons_from)};
  for (const auto& [name, form] : parts) {
    const json* part = find_member(value, name);
    if (part == nullptr || part->is_null()) continue;
    auto whole = form(wording, *part);
    if (!whole) return whole;
    card[name] = *std::move(whole);
  }
  return card;
}

}  // namespace

void read_quick_replies(NodeConfig& config, const View& at, OutputPart& into) {
  check_parts(config, at, &check_button);
  into = config.json_template_at(at);
}

void read_cards(NodeConfig& config, const View& at, OutputPart& into) {
  check_parts(config, at, &check_card);
  into = config.json_template_at(at);
}

void read_image(NodeConfig& config, const View& at, OutputPart& into) {
  check_linked(config, at, image_keys);
  into = config.json_template_at(at);
}

void read_file(NodeConfig& config, const View& at, OutputPart& into) {
  check_linked(config, at, file_keys);
  into = config.json_template_at(at);
}

Result<json> buttons_from(const Wording& wording, json value) {
  return list_from(wording, std::move(value), "the buttons", &button_from);
}

Result<json> cards_from(const Wording& wording, json value) {
  return list_from(wording, std::move(value), "the cards", &card_from);
}

Result<json> link_from(const Wording& wording, json value) {
  if (value.is_string()) value = {{"url", std::move(value)}};
  for (const char* name : {"url", "alt", "name"}) {
    const json* by_locale = find_member(value, name);
    if (by_locale == nullptr || !by_locale->is_object()) continue;
    const std::string* text = wording.text_of(*by_locale);
    value[name] = text == nullptr ? json() : json(*text);
  }
  const std::string* url = find_text(value, "url");
  if (url == nullptr || !is_link(*url)) return wrong("the url of an image or file", expected_link);
  return value;
}

Result<void> add_part(Turn& turn, const OutputPart& part, const char* name,
                      Result<json> (*form)(const Wording&, json), json& data) {
  if (!part) return {};
  auto value = part->value(turn.scope());
  if (value.is_null()) return {};
  auto whole = form(turn.wording(), std::move(value));
  if (!whole) return turn.failure(whole.error().code, whole.error().message);
  if (!data.is_object()) data = json::object();
  data[name] = *std::move(whole);
  return {};
}

}  // namespace conversed::flows
