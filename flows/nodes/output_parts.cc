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

// An image or a file.
void check_linked(const View& at, std::span<const Key> keys) {
  if (at.value().is_text()) return check_link(at);
  const Fields fields(at, keys);
  if (const auto url = fields.find("url")) check_link(*url);
  (void)fields.optional_text(keys.back().name);
}

void check_button(const View& at) {
  if (at.value().is_text()) return;
  const Fields fields(at, button_keys);
  (void)fields.text("text");
  const auto url = fields.find("url");
  if (url) check_link(*url);
  if (url && fields.find("value")) {
    url->problem("a button sends its value or opens its URL; remove one");
  }
}

// A text is a template of the list.
void check_parts(const View& at, void (*check)(const View&)) {
  if (at.value().is_text()) {
    if (!is_template(at.value().text())) (void)at.expect_list();
  } else if (at.expect_list()) {
    for (const View& item : at.items()) check(item);
  }
}

void check_card(const View& at) {
  const Fields fields(at, card_keys);
  (void)fields.text("title");
  (void)fields.optional_text("text");
  if (const auto image = fields.find("image")) check_linked(*image, image_keys);
  if (const auto buttons = fields.find("buttons")) check_parts(*buttons, &check_button);
}

tl::unexpected<model::Error> wrong(const char* what, const char* expected) {
  return model::fail(Errc::invalid_argument, std::string("expected ") + expected + " as " + what);
}

Result<json> button_from(json value) {
  if (!value.is_structured() && !value.is_null()) {
    const std::string text = value.is_string() ? value.get<std::string>() : model::json_text(value);
    return json{{"text", text}, {"value", std::move(value)}};
  }
  const std::string* text = find_text(value, "text");
  if (text == nullptr || text->empty())
    return wrong("a button", "a text, or a mapping with a text,");
  const json* url = find_member(value, "url");
  if (url != nullptr && !url->is_null()) {
    if (!url->is_string() || !is_link(url->get_ref<const std::string&>())) {
      return wrong("the url of a button", expected_link);
    }
    return json{{"text", *text}, {"url", *url}};
  }
  const json* sent = find_member(value, "value");
  return json{{"text", *text}, {"value", sent == nullptr || sent->is_null() ? json(*text) : *sent}};
}

Result<json> list_from(json value, const char* what, Result<json> (*form)(json)) {
  if (!value.is_array()) return wrong(what, "a list");
  for (auto& item : value) {
    auto whole = form(std::move(item));
    if (!whole) return whole;
    item = *std::move(whole);
  }
  return value;
}

Result<json> card_from(json value) {
  const std::string* title = find_text(value, "title");
  if (title == nullptr || title->empty()) return wrong("a card", "a mapping with a title");
  json card{{"title", *title}};
  if (const std::string* text = find_text(value, "text")) card["text"] = *text;
  const std::array parts{std::pair("image", &link_from), std::pair("buttons", &buttons_from)};
  for (const auto& [name, form] : parts) {
    const json* part = find_member(value, name);
    if (part == nullptr || part->is_null()) continue;
    auto whole = form(*part);
    if (!whole) return whole;
    card[name] = *std::move(whole);
  }
  return card;
}

}  // namespace

void read_quick_replies(NodeConfig& config, const View& at, OutputPart& into) {
  check_parts(at, &check_button);
  into = config.json_template_at(at);
}

void read_cards(NodeConfig& config, const View& at, OutputPart& into) {
  check_parts(at, &check_card);
  into = config.json_template_at(at);
}

void read_image(NodeConfig& config, const View& at, OutputPart& into) {
  check_linked(at, image_keys);
  into = config.json_template_at(at);
}

void read_file(NodeConfig& config, const View& at, OutputPart& into) {
  check_linked(at, file_keys);
  into = config.json_template_at(at);
}

Result<json> buttons_from(json value) {
  return list_from(std::move(value), "the buttons", &button_from);
}

Result<json> cards_from(json value) {
  return list_from(std::move(value), "the cards", &card_from);
}

Result<json> link_from(json value) {
  if (value.is_string()) value = {{"url", std::move(value)}};
  const std::string* url = find_text(value, "url");
  if (url == nullptr || !is_link(*url)) return wrong("the url of an image or file", expected_link);
  return value;
}

Result<void> add_part(Turn& turn, const OutputPart& part, const char* name,
                      Result<json> (*form)(json), json& data) {
  if (!part) return {};
  auto value = part->value(turn.scope());
  if (value.is_null()) return {};
  auto whole = form(std::move(value));
  if (!whole) return turn.failure(whole.error().code, whole.error().message);
  if (!data.is_object()) data = json::object();
  data[name] = *std::move(whole);
  return {};
}

}  // namespace conversed::flows
