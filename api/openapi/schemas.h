// Functions that make the JSON Schemas (2020-12) of requests and answers. A limit in a schema is
// the constant that the check uses.
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
// A text in a query or a form, which can't contain NUL.
[[nodiscard]] Schema form_text(std::size_t min = 0);
// A text that matches the regular expression (ECMA-262).
[[nodiscard]] Schema text_like(std::string_view expression);
[[nodiscard]] Schema one_of(std::span<const std::string_view> values);
[[nodiscard]] Schema one_of(std::initializer_list<std::string_view> values);
[[nodiscard]] Schema constant(Value value);
[[nodiscard]] Schema integer(std::int64_t min,
                             std::int64_t max = std::numeric_limits<std::int64_t>::max());
[[nodiscard]] Schema boolean();
[[nodiscard]] Schema anything();
// An object with any members.
[[nodiscard]] Schema free_object();
[[nodiscard]] Schema object(std::initializer_list<Property> properties);
[[nodiscard]] Schema with_members(Schema schema, std::initializer_list<Property> properties);
[[nodiscard]] Schema map_of(Schema values);
[[nodiscard]] Schema list_of(Schema items, std::optional<std::size_t> max = std::nullopt);
[[nodiscard]] Schema nullable(Schema schema);
[[nodiscard]] Schema any_of(std::initializer_list<Schema> schemas);
// A condition beyond `properties` and `required`: a value that fits `condition` has to fit `then`,
// any other value `otherwise`. It uses keywords that client generators ignore. They make a separate
// type of an `anyOf` beside `properties`, and their clients then can't send the object.
[[nodiscard]] Schema with_condition(Schema schema, Schema condition, Schema then, Schema otherwise);
// An object with a non-empty text `name`.
[[nodiscard]] Schema has_text(std::string_view name);

// The schema with a description, a default, or an example.
[[nodiscard]] Schema described(std::string_view description, Schema schema);
[[nodiscard]] Schema with_default(Value value, Schema schema);
[[nodiscard]] Schema with_example(Value value, Schema schema);

// Gives the schema a name. The document keeps it once under this name and refers to it elsewhere.
// Two different schemas must not share a name.
[[nodiscard]] Schema named(std::string_view name, Schema schema);
inline constexpr const char* component_mark = "$component";  // where `named` notes the name

// ---- Schemas that many operations use

[[nodiscard]] Schema id();  // 24 characters of a-z and 0-9
[[nodiscard]] Schema nullable_id();
[[nodiscard]] Schema url_token();  // 64 hexadecimal digits, in either case
[[nodiscard]] Schema trace_id();
[[nodiscard]] Schema unix_time();  // seconds
[[nodiscard]] Schema email();
// A name or address of `max_bytes` in UTF-8 at most. JSON Schema can limit only characters.
[[nodiscard]] Schema bounded_bytes(std::size_t max_bytes);
[[nodiscard]] Schema conversation_name();

// ---- Errors

[[nodiscard]] Schema problem();
[[nodiscard]] Schema not_found_problem();
[[nodiscard]] Schema reduced_error();
[[nodiscard]] Schema oauth_error();

}  // namespace conversed::api::openapi
