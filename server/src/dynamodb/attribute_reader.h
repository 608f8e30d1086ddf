#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string_view>

#include "drover/model/attribute.h"

/// Attribute values from a request's JSON, strictly.
namespace drover::server {

/// `{"N":"61.5"}`. Throws a SerializationException on a wrong shape and a ValidationException on a wrong value.
model::AttributeValue read_value(const boost::json::value& value);

/// A map of such; names are checked too.
model::Item read_item(const boost::json::object& object);

/// Refuses names of attributes that are too long; throws a ValidationException.
void check_attribute_name(std::string_view name);

/// Whether lists and maps nest deeper than DynamoDB allows; throws a ValidationException if so.
void check_depth(const model::Item& item);

}  // namespace drover::server
