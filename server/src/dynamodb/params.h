#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

/// Typed access to the members of a request. A JSON null counts as absent; a member of another type throws the
/// SerializationException that DynamoDB gives.
namespace drover::server {

namespace json = boost::json;

const json::value* find_member(const json::object& object, std::string_view name);
std::optional<std::string_view> find_string(const json::object& object, std::string_view name);
std::optional<std::int64_t> find_integer(const json::object& object, std::string_view name);
std::optional<bool> find_bool(const json::object& object, std::string_view name);
/// `type` is the Java type of DynamoDB's error: "AttributeValue" for a map of such.
const json::object* find_object(const json::object& object, std::string_view name, std::string_view type);
const json::array* find_array(const json::object& object, std::string_view name);

/// The same of one value: an element of a list, a value of a map.
std::string_view to_string(const json::value& value);
/// `type` as in find_object().
const json::object& to_object(const json::value& value, std::string_view type);

/// Gathers what is wrong with a request's members, so that one ValidationException names it all, as DynamoDB does:
/// "2 validation errors detected: Value '0' at 'limit' failed to satisfy constraint: …; Value …".
class Constraints {
 public:
  /// `member` as DynamoDB writes it, "exclusiveStartTableName"; `value` is what was found.
  void fail(std::string_view member, std::string_view value, std::string_view constraint);

  void not_null(std::string_view member, bool present);
  void length(std::string_view member, std::string_view text, std::size_t min, std::size_t max);
  /// [a-zA-Z0-9_.-]+, 3 to 255 characters: names of tables and indexes.
  void name(std::string_view member, std::string_view text);
  void at_least(std::string_view member, std::optional<std::int64_t> value, std::int64_t min);
  void at_most(std::string_view member, std::optional<std::int64_t> value, std::int64_t max);
  /// The values are listed in DynamoDB's order.
  void one_of(std::string_view member, std::optional<std::string_view> value,
              std::initializer_list<std::string_view> values);

  /// Throws if anything was wrong.
  void check() const;

 private:
  std::size_t count_ = 0;
  std::string problems_;
};

/// TableName, checked.
std::string_view table_name(const json::object& request, Constraints& constraints);
/// ReturnConsumedCapacity, checked.
enum class CapacityReport { kNone, kTotal, kIndexes };
CapacityReport capacity_report(const json::object& request, Constraints& constraints);
/// ReturnItemCollectionMetrics, checked: whether it asks for sizes.
bool wants_collection_metrics(const json::object& request, Constraints& constraints);

}  // namespace drover::server
