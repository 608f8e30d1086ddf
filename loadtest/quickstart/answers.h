#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "drover/model/status.h"
#include "loadtest/support/dynamodb_client.h"

namespace drover::loadtest {

/// A Query as a person asks it and as DynamoDB's protocol says it.
struct Question {
  std::string words;
  std::string condition;  ///< The KeyConditionExpression with its values in place, for people.
  boost::json::object request;
};

struct Answer {
  Question question;
  boost::json::array first_items;  ///< The first kRowsShown.
  std::uint64_t items_read = 0;
  std::uint64_t pages = 0;
  double milliseconds = 0;
};

inline constexpr std::size_t kRowsShown = 6;

/// The four questions that the key design is for. Asks the server for the vehicle's newest reading, from which the ten
/// minutes of the second question are counted back.
model::Result<std::vector<Question>> fleet_questions(DynamoDbClient& client, const std::string& vehicle,
                                                     const std::string& depot);

/// Runs the Query to its last page.
model::Result<Answer> ask(DynamoDbClient& client, Question question);

/// Items of the table: what a Scan would read.
model::Result<std::uint64_t> count_items(DynamoDbClient& client);

/// The answer as text: the question, its first rows as a table, and what it cost beside a Scan.
std::string render(const Answer& answer, std::size_t number, std::uint64_t items_of_a_scan);

/// 1234567 as 1,234,567.
std::string with_thousands(std::uint64_t value);

}  // namespace drover::loadtest
