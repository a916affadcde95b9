#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "flows/node_config.h"
#include "flows/turn/turn.h"

// Buttons, cards, images and files of an output: a form of its data that every channel can show.
// docs/flows/concepts.md describes it.
namespace conversed::flows {

inline constexpr Key button_keys[]{must_have("text", Form::local_text),
                                   may_have("value", Form::anything),
                                   may_have("url", Form::local_text)};
inline constexpr Key image_keys[]{must_have("url", Form::local_text),
                                  may_have("alt", Form::local_text)};
inline constexpr Key file_keys[]{must_have("url", Form::local_text),
                                 may_have("name", Form::local_text)};
inline constexpr Key card_keys[]{
    must_have("title", Form::local_text), may_have("text", Form::local_text),
    may_have("image", Form::text_or_mapping).of(image_keys),
    may_have("buttons", Form::text_or_texts_and_mappings).of(button_keys)};

using OutputPart = std::optional<expression::JsonTemplate>;

// Readers of the fields. A text instead of a list or mapping is a template of the value.
void read_quick_replies(NodeConfig& config, const View& at, OutputPart& into);
void read_cards(NodeConfig& config, const View& at, OutputPart& into);
void read_image(NodeConfig& config, const View& at, OutputPart& into);
void read_file(NodeConfig& config, const View& at, OutputPart& into);

// The evaluated part in its whole form: each button is `{text, value}` or `{text, url}`, each image
// and file has its `url`. Texts by locale are chosen. `invalid_argument`: the value has another
// form.
[[nodiscard]] Result<nlohmann::json> buttons_from(const Wording& wording, nlohmann::json value);
[[nodiscard]] Result<nlohmann::json> cards_from(const Wording& wording, nlohmann::json value);
[[nodiscard]] Result<nlohmann::json> link_from(const Wording& wording, nlohmann::json value);

// Evaluates the part and puts it into the data of an output. Null is left out.
[[nodiscard]] Result<void> add_part(Turn& turn, const OutputPart& part, const char* name,
                                    Result<nlohmann::json> (*form)(const Wording&, nlohmann::json),
                                    nlohmann::json& data);

}  // namespace conversed::flows
