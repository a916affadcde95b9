// JSON Schemas (2020-12) of what the API takes and gives, made by the functions below, so that a
// limit stands here as the constant that the check has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "api/representation/document.h"

namespace conversed::api::openapi {

using Schema = Value;

enum class Need : std::uint8_t { required, optional };

struct Property {
  std::string_view name;
  Schema schema;
  Need need = Need::required;
};

// A text of `min` to `max` characters.
[[nodiscard]] Schema text(std::size_t min = 0, std::optional<std::size_t> max = std::nullopt);
// The same in a query or a form, where there is no NUL.
[[nodiscard]] Schema form_text(std::size_t min = 0);
// A text that the regular expression (ECMA-262) fits.
[[nodiscard]] Schema text_like(std::string_view expression);
[[nodiscard]] Schema one_of(std::span<const std::string_view> values);
[[nodiscard]] Schema one_of(std::initializer_list<std::string_view> values);
[[nodiscard]] Schema constant(Value value);
[[nodiscard]] Schema integer(std::int64_t min,
                             std::int64_t max = std::numeric_limits<std::int64_t>::max());
[[nodiscard]] Schema boolean();
[[nodiscard]] Schema anything();
// An object with members that nobody prescribes.
[[nodiscard]] Schema free_object();
[[nodiscard]] Schema object(std::initializer_list<Property> properties);
[[nodiscard]] Schema with_members(Schema schema, std::initializer_list<Property> properties);
[[nodiscard]] Schema map_of(Schema values);
[[nodiscard]] Schema list_of(Schema items, std::optional<std::size_t> max = std::nullopt);
[[nodiscard]] Schema nullable(Schema schema);
[[nodiscard]] Schema any_of(std::initializer_list<Schema> schemas);
// What `properties` and `required` can't say: a value that fits `condition` has to fit `then`,
// every other one `otherwise`. In words that generators of clients pass over: an `anyOf` beside
// `properties` they take for a type of its own, and make clients of that can't send the object.
[[nodiscard]] Schema with_condition(Schema schema, Schema condition, Schema then, Schema otherwise);
// An object whose text `name` is there and not empty.
[[nodiscard]] Schema has_text(std::string_view name);

// The schema with words about it, with a default, or with an example.
[[nodiscard]] Schema described(std::string_view description, Schema schema);
[[nodiscard]] Schema with_default(Value value, Schema schema);
[[nodiscard]] Schema with_example(Value value, Schema schema);

// The schema as one that the document keeps once, under this name, and refers to elsewhere. Under
// one name there is one schema.
[[nodiscard]] Schema named(std::string_view name, Schema schema);
inline constexpr const char* component_mark = "$component";  // where `named` notes the name

// ---- What many operations have

[[nodiscard]] Schema id();         // 24 characters of a-z and 0-9
[[nodiscard]] Schema url_token();  // 64 hexadecimal digits, in either case
[[nodiscard]] Schema trace_id();
[[nodiscard]] Schema unix_time();  // seconds
[[nodiscard]] Schema email();
// A name or address of `max_bytes` in UTF-8 at most, which JSON Schema can only say in characters.
[[nodiscard]] Schema bounded_bytes(std::size_t max_bytes);
[[nodiscard]] Schema conversation_name();

// ---- Errors

[[nodiscard]] Schema problem();
[[nodiscard]] Schema not_found_problem();
[[nodiscard]] Schema reduced_error();
[[nodiscard]] Schema oauth_error();

}  // namespace conversed::api::openapi
