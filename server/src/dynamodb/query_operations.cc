#include <algorithm>
#include <utility>

#include "drover/model/key.h"
#include "drover/model/limits.h"
#include "dynamodb/attribute_reader.h"
#include "dynamodb/capacity.h"
#include "dynamodb/json_writer.h"
#include "dynamodb/keys.h"
#include "dynamodb/operations.h"
#include "dynamodb/page.h"
#include "dynamodb/params.h"
#include "dynamodb/request_expressions.h"
#include "expression/evaluate.h"
#include "expression/projection.h"

namespace drover::server {
namespace {

constexpr std::int64_t kTotalSegmentsMax = 1'000'000;

/// What Query and Scan have in common.
struct ReadRequest {
  std::shared_ptr<store::Table> table;
  const model::TableSchema* schema = nullptr;  ///< The table's as the request found it.
  std::string_view index_name;
  RequestExpressions expressions;
  std::string_view select;
  std::optional<model::Item> start_key;
  std::uint64_t limit = UINT64_MAX;
  bool consistent = false;
  CapacityReport capacity = CapacityReport::kNone;

  ReadTarget target() const { return {*schema, schema->find_index(index_name)}; }
};

std::optional<model::Item> read_start_key(const json::object& request) {
  const json::object* key = find_object(request, "ExclusiveStartKey", "AttributeValue");
  if (key == nullptr) return std::nullopt;
  try {
    return read_item(*key);
  } catch (ApiError& error) {
    if (error.type == kValidationType) error.message = "The provided starting key is invalid: " + error.message;
    throw;
  }
}

void check_select(const ReadRequest& read, const json::object& request, std::string_view verb) {
  const bool projected = read.expressions.projection.has_value();
  if (read.select == "ALL_PROJECTED_ATTRIBUTES" && read.index_name.empty()) {
    throw invalid_parameter("ALL_PROJECTED_ATTRIBUTES can be used only when " + std::string(verb) +
                            " using an IndexName");
  }
  if (read.select == "SPECIFIC_ATTRIBUTES" && !projected) {
    throw invalid_parameter(
        "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES");
  }
  if (!projected || read.select.empty() || read.select == "SPECIFIC_ATTRIBUTES") return;
  const char* parameter =
      find_member(request, "ProjectionExpression") != nullptr ? "ProjectionExpression" : "AttributesToGet";
  const std::string what = read.select == "COUNT" ? "only the Count" : std::string(read.select);
  throw invalid_parameter("Cannot specify the " + std::string(parameter) + " when choosing to get " + what);
}

/// A global index answers from what it holds.
void check_projected(const ReadRequest& read) {
  const ReadTarget target = read.target();
  if (!target.global() || target.index->projection == model::ProjectionType::kAll) return;
  const std::string& name = target.index->name;
  if (read.select == "ALL_ATTRIBUTES") {
    throw invalid_parameter("Select type ALL_ATTRIBUTES is not supported for global secondary index " + name +
                            " because its projection type is not ALL");
  }
  if (!read.expressions.projection) return;
  const std::vector<std::string>& included = target.index->included;
  for (const std::string& attribute : expression::Projection(*read.expressions.projection).attributes()) {
    if (is_key_attribute(target.table.key, attribute) || is_key_attribute(target.index->key, attribute)) continue;
    if (std::find(included.begin(), included.end(), attribute) != included.end()) continue;
    throw invalid_parameter(std::string("Global secondary index ").append(name) + " does not project [" + attribute +
                            "]");
  }
}

ReadRequest read_request(store::Store& store, const json::object& request, const ExpressionParameters& parameters,
                         Constraints& constraints, std::string_view verb) {
  ReadRequest read;
  const std::string_view table = table_name(request, constraints);
  const std::optional<std::string_view> index = find_string(request, "IndexName");
  if (index) constraints.name("indexName", *index);
  const std::optional<std::int64_t> limit = find_integer(request, "Limit");
  constraints.at_least("limit", limit, 1);
  const std::optional<std::string_view> select = find_string(request, "Select");
  constraints.one_of("select", select, {"SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"});
  read.capacity = capacity_report(request, constraints);
  read.consistent = find_bool(request, "ConsistentRead").value_or(false);
  constraints.check();

  read.index_name = index.value_or("");
  read.select = select.value_or("");
  if (limit) read.limit = static_cast<std::uint64_t>(*limit);
  read.expressions = read_expressions(request, parameters);
  read.start_key = read_start_key(request);
  check_select(read, request, verb);

  read.table = store.find_table(table);
  if (read.table == nullptr) throw table_not_found();
  read.schema = &read.table->schema();
  const ReadTarget target = read.target();
  if (index && target.index == nullptr) {
    throw validation_error("The table does not have the specified index: " + std::string(*index));
  }
  if (target.global() && read.consistent) {
    throw validation_error("Consistent reads are not supported on global secondary indexes");
  }
  if (target.global() && read.table->is_filling(*index)) {
    throw validation_error("Cannot read from backfilling global secondary index: " + std::string(*index));
  }
  check_projected(read);
  if (read.expressions.projection) check_scalar_keys(target.table, *read.expressions.projection);
  return read;
}

PageOptions page_options(const ReadRequest& read) {
  PageOptions options;
  if (read.expressions.filter) options.filter = &*read.expressions.filter;
  if (read.expressions.projection) options.projection = &*read.expressions.projection;
  options.limit = read.limit;
  options.count_only = read.select == "COUNT";
  options.all_attributes = read.select == "ALL_ATTRIBUTES";
  return options;
}

std::string begin_answer(const PageOptions& options) {
  std::string out;
  out.reserve(4096);
  out += options.count_only ? "{" : "{\"Items\":[";
  return out;
}

void finish_answer(std::string& out, const ReadRequest& read, const PageOptions& options, const Page& page) {
  out += options.count_only ? "\"Count\":" : "],\"Count\":";
  append_json_integer(out, page.matched());
  out += ",\"ScannedCount\":";
  append_json_integer(out, page.scanned());
  if (page.last_key()) {
    out += ",\"LastEvaluatedKey\":";
    append_json_item(out, *page.last_key());
  }
  if (read.capacity != CapacityReport::kNone) {
    const double units = read_units(page.size_bytes(), read.consistent);
    const ReadTarget target = read.target();
    ConsumedCapacity capacity;
    capacity.table = target.table.name;
    if (target.index == nullptr) {
      capacity.table_units = units;
    } else {
      capacity.indexes.push_back({target.index->name, target.index->local, units});
    }
    append_capacity_member(out, capacity, read.capacity);
  }
  out += '}';
}

/// The primary key of what is queried cannot be filtered by.
void check_filter(const ReadRequest& read) {
  if (!read.expressions.filter) return;
  for (const std::string& attribute : expression::attributes_of(*read.expressions.filter)) {
    if (!is_key_attribute(read.target().key(), attribute)) continue;
    throw validation_error(std::string(read.expressions.filter_parameter) +
                           " can only contain non-primary key attributes: Primary key attribute: " + attribute);
  }
}

/// Narrows a Query's range to what stands behind its ExclusiveStartKey.
void begin_behind(const ReadTarget& target, const model::Item& start_key, const model::Bytes& partition_key,
                  bool ascending, store::KeyRange& range) {
  store::Table::ScanPosition start = start_position(target, start_key, false);
  if (start.partition_key != partition_key) {
    throw validation_error("The provided starting key is outside query boundaries based on provided conditions");
  }
  if (!contains(range, start.sort_key)) {
    throw validation_error("The provided starting key does not match the range key predicate");
  }
  (ascending ? range.lower : range.upper) = {std::move(start.sort_key), false};
}

/// A segment's part of the hash segments, as a Scan with `total` segments divides them.
std::uint32_t segment_begin(std::int64_t segment, std::int64_t total) {
  return static_cast<std::uint32_t>(segment * model::kSegments / total);
}

struct Segments {
  std::uint32_t begin = 0;
  std::uint32_t end = model::kSegments;
};

Segments read_segments(const json::object& request, Constraints& constraints) {
  const std::optional<std::int64_t> segment = find_integer(request, "Segment");
  const std::optional<std::int64_t> total = find_integer(request, "TotalSegments");
  constraints.at_least("segment", segment, 0);
  constraints.at_least("totalSegments", total, 1);
  constraints.at_most("totalSegments", total, kTotalSegmentsMax);
  constraints.check();
  if (segment && !total) {
    throw validation_error(
        "The TotalSegments parameter is required but was not present in the request when Segment parameter is present");
  }
  if (!total) return {};
  if (!segment) {
    throw validation_error(
        "The Segment parameter is required but was not present in the request when parameter TotalSegments is present");
  }
  if (*segment >= *total) {
    throw validation_error(
        "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: " +
        std::to_string(*segment) + " is not less than TotalSegments: " + std::to_string(*total));
  }
  return {segment_begin(*segment, *total), segment_begin(*segment + 1, *total)};
}

void check_segment(const store::Table::ScanPosition& start, const Segments& segments, const json::object& request) {
  const std::uint32_t segment = model::segment_of(model::hash_key(start.partition_key));
  if (segment >= segments.begin && segment < segments.end) return;
  throw validation_error(
      "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct "
      "Segment. TotalSegments: " +
      std::to_string(*find_integer(request, "TotalSegments")) +
      " Segment: " + std::to_string(*find_integer(request, "Segment")));
}

}  // namespace

std::string query(store::Store& store, const json::object& request) {
  static const ExpressionParameters kParameters{
      {"ProjectionExpression", "FilterExpression", "KeyConditionExpression"},
      {"AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"}};
  Constraints constraints;
  const ReadRequest read = read_request(store, request, kParameters, constraints, "Querying");
  if (!read.expressions.key_conditions) {
    throw validation_error(
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.");
  }
  const ReadTarget target = read.target();
  const bool ascending = find_bool(request, "ScanIndexForward").value_or(true);
  const expression::KeyConditions keys =
      value_of(expression::match_key(*read.expressions.key_conditions, target.key()));
  const model::Bytes partition_key = encode_partition_key(target, *keys.partition_key);
  store::KeyRange range = to_range(target, keys.sort_key);
  if (read.start_key) begin_behind(target, *read.start_key, partition_key, ascending, range);
  check_filter(read);

  const PageOptions options = page_options(read);
  std::string out = begin_answer(options);
  Page page(target, store.names(), options, out);
  if (target.local()) {
    LocalIndexItems items(target, store.names(), range, ascending, read.limit);
    check(read.table->read("", partition_key, {}, true, [&](const store::StoredItem& item) {
      items.add(item);
      return true;
    }));
    items.read(partition_key, page);
  } else if (!is_empty(range)) {
    check(read.table->read(read.index_name, partition_key, range, ascending,
                           [&page](const store::StoredItem& item) { return page.add(item); }));
  }
  finish_answer(out, read, options, page);
  return out;
}

std::string scan(store::Store& store, const json::object& request) {
  static const ExpressionParameters kParameters{{"ProjectionExpression", "FilterExpression"},
                                                {"AttributesToGet", "ScanFilter", "ConditionalOperator"}};
  Constraints constraints;
  const Segments segments = read_segments(request, constraints);
  const ReadRequest read = read_request(store, request, kParameters, constraints, "Scanning");
  const ReadTarget target = read.target();
  std::optional<store::Table::ScanPosition> after;
  if (read.start_key) {
    after = start_position(target, *read.start_key, true);
    check_segment(*after, segments, request);
  }

  const PageOptions options = page_options(read);
  std::string out = begin_answer(options);
  Page page(target, store.names(), options, out);
  const bool local = target.local();
  if (segments.begin < segments.end) {
    check(read.table->scan(local ? "" : read.index_name, segments.begin, segments.end, after,
                           [&](const store::StoredItem& item) {
                             return (local && !local_index_key(target, store.names(), item)) || page.add(item);
                           }));
  }
  finish_answer(out, read, options, page);
  return out;
}

}  // namespace drover::server
