#pragma once

#include <string>
#include <string_view>

#include "drover/model/attribute.h"
#include "drover/model/names.h"
#include "drover/model/value_view.h"

/// Attribute values as DynamoDB's JSON, appended to an answer.
namespace drover::server {

/// With quotes, escaped. Requires: UTF-8.
void append_json_string(std::string& out, std::string_view text);
/// The same without the quotes.
void append_json_escaped(std::string& out, std::string_view text);
void append_json_integer(std::string& out, std::uint64_t value);

/// `{"N":"61.5"}`.
void append_json_value(std::string& out, const model::AttributeValue& value);
/// The same, straight from a row's bytes.
void append_json_value(std::string& out, model::ValueView value, const model::AttributeNames& names);

/// `{"name":{"S":"text"},…}`.
void append_json_item(std::string& out, const model::Item& item);

}  // namespace drover::server
