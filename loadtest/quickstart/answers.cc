#include "loadtest/quickstart/answers.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>

#include "drover/model/time.h"
#include "loadtest/support/fleet_config.h"

namespace drover::loadtest {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 8> kColumns = {"vehicleId", "recordedAt", "speedKph", "coolantC",
                                                      "fuelPct",   "plate",      "model",    "depotCode"};
constexpr std::string_view kTimePrefix = "TS#";
constexpr std::int64_t kTenMinutesNs = 600'000'000'000;

json::object string_value(const std::string& text) {
  return {{"S", text}};
}

std::string quoted(const std::string& text) {
  return '"' + text + '"';
}

model::Result<json::object> call(DynamoDbClient& client, std::string_view operation, const json::object& request) {
  auto body = client.call(operation, json::serialize(request));
  if (!body) return body.status();
  return json::parse(*body).as_object();
}

/// The text or the number of an attribute; nothing if the item has none of that name.
std::string text_of(const json::object& item, std::string_view attribute) {
  const json::value* value = item.if_contains(attribute);
  if (value == nullptr || !value->is_object() || value->as_object().empty()) return {};
  const json::value& content = value->as_object().begin()->value();
  return content.is_string() ? std::string(content.as_string()) : json::serialize(content);
}

/// Sort keys of ten minutes, the last one being that of the vehicle's newest reading.
struct Slice {
  std::string from;
  std::string to;
};
model::Result<Slice> newest_ten_minutes(DynamoDbClient& client, const std::string& partition_key) {
  auto newest = call(client, "Query",
                     {{"TableName", kTable},
                      {"KeyConditionExpression", "vehicleId = :v"},
                      {"ExpressionAttributeValues", json::object{{":v", string_value(partition_key)}}},
                      {"ScanIndexForward", false},
                      {"Limit", 1}});
  if (!newest) return newest.status();
  const json::array& items = newest->at("Items").as_array();
  const std::string to = items.empty() ? "" : text_of(items.front().as_object(), "recordedAt");
  const auto time = model::parse_time(std::string_view(to).substr(std::min(to.size(), kTimePrefix.size())));
  if (!time) return Slice{std::string(kTimePrefix), std::string(kTimePrefix) + "9"};
  const model::TimeNs from{time->value - kTenMinutesNs};
  return Slice{std::string(kTimePrefix) + model::format_time(from, model::TimePrecision::kSeconds), to};
}

std::vector<std::string> columns_of(const json::array& items) {
  std::vector<std::string> columns;
  for (const std::string_view column : kColumns) {
    const bool used = std::any_of(items.begin(), items.end(),
                                  [column](const json::value& item) { return item.as_object().contains(column); });
    if (used) columns.emplace_back(column);
  }
  return columns;
}

void append_row(std::string& out, const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line = "    ";
  for (std::size_t i = 0; i < cells.size(); ++i) line += cells[i] + std::string(widths[i] - cells[i].size() + 2, ' ');
  out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
}

void append_table(std::string& out, const json::array& items) {
  std::vector<std::vector<std::string>> rows = {columns_of(items)};
  for (const json::value& item : items) {
    std::vector<std::string> row;
    for (const std::string& column : rows.front()) row.push_back(text_of(item.as_object(), column));
    rows.push_back(std::move(row));
  }
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) append_row(out, row, widths);
}

}  // namespace

model::Result<std::vector<Question>> fleet_questions(DynamoDbClient& client, const std::string& vehicle,
                                                     const std::string& depot) {
  const std::string key = "VEH#" + vehicle;
  auto slice = newest_ten_minutes(client, key);
  if (!slice) return slice.status();
  std::vector<Question> questions;
  questions.push_back({"Everything about " + vehicle + ": its META, then its readings",
                       "vehicleId = " + quoted(key),
                       {{"TableName", kTable},
                        {"KeyConditionExpression", "vehicleId = :v"},
                        {"ExpressionAttributeValues", json::object{{":v", string_value(key)}}}}});
  questions.push_back(
      {"Its last ten minutes, newest first",
       "vehicleId = " + quoted(key) + " AND recordedAt BETWEEN " + quoted(slice->from) + " AND " + quoted(slice->to),
       {{"TableName", kTable},
        {"KeyConditionExpression", "vehicleId = :v AND recordedAt BETWEEN :a AND :b"},
        {"ExpressionAttributeValues",
         json::object{{":v", string_value(key)}, {":a", string_value(slice->from)}, {":b", string_value(slice->to)}}},
        {"ScanIndexForward", false}}});
  questions.push_back(
      {"The vehicle itself",
       "vehicleId = " + quoted(key) + " AND recordedAt = \"META\"",
       {{"TableName", kTable},
        {"KeyConditionExpression", "vehicleId = :v AND recordedAt = :m"},
        {"ExpressionAttributeValues", json::object{{":v", string_value(key)}, {":m", string_value("META")}}}}});
  questions.push_back({"All readings of " + depot + ", newest first, through the index " + kDepotIndex,
                       "depotCode = " + quoted(depot) + " AND begins_with(recordedAt, \"TS#\")",
                       {{"TableName", kTable},
                        {"IndexName", kDepotIndex},
                        {"KeyConditionExpression", "depotCode = :d AND begins_with(recordedAt, :t)"},
                        {"ExpressionAttributeValues",
                         json::object{{":d", string_value(depot)}, {":t", string_value(std::string(kTimePrefix))}}},
                        {"ScanIndexForward", false}}});
  return questions;
}

model::Result<Answer> ask(DynamoDbClient& client, Question question) {
  Answer answer;
  json::object request = question.request;
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    auto page = call(client, "Query", request);
    if (!page) return page.status();
    ++answer.pages;
    answer.items_read += page->at("ScannedCount").to_number<std::uint64_t>();
    for (json::value& item : page->at("Items").as_array()) {
      if (answer.first_items.size() == kRowsShown) break;
      answer.first_items.push_back(std::move(item));
    }
    const json::value* last = page->if_contains("LastEvaluatedKey");
    if (last == nullptr) break;
    request["ExclusiveStartKey"] = *last;
  }
  answer.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  answer.question = std::move(question);
  return answer;
}

model::Result<std::uint64_t> count_items(DynamoDbClient& client) {
  auto description = call(client, "DescribeTable", {{"TableName", kTable}});
  if (!description) return description.status();
  return description->at("Table").at("ItemCount").to_number<std::uint64_t>();
}

std::string render(const Answer& answer, std::size_t number, std::uint64_t items_of_a_scan) {
  std::string out = std::to_string(number) + "  " + answer.question.words + '\n';
  out += "    " + answer.question.condition + "\n\n";
  append_table(out, answer.first_items);
  if (answer.items_read > answer.first_items.size()) out += "    …\n";
  char cost[200];
  std::snprintf(cost, sizeof cost, "\n    %s item%s read in %.1f ms (%s page%s); a Scan would have read %s.\n",
                with_thousands(answer.items_read).c_str(), answer.items_read == 1 ? "" : "s", answer.milliseconds,
                with_thousands(answer.pages).c_str(), answer.pages == 1 ? "" : "s",
                with_thousands(items_of_a_scan).c_str());
  return out + cost;
}

std::string with_thousands(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace drover::loadtest
