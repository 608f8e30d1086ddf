#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>

#include "drover/store/store.h"
#include "dynamodb/errors.h"

/// The operations of the DynamoDB API. Each takes the request's JSON and gives the answer's; a refusal is thrown as an
/// ApiError before anything has been changed.
namespace drover::server {

std::string create_table(store::Store& store, const boost::json::object& request);
std::string update_table(store::Store& store, const boost::json::object& request);
std::string delete_table(store::Store& store, const boost::json::object& request);
std::string describe_table(store::Store& store, const boost::json::object& request);
std::string list_tables(store::Store& store, const boost::json::object& request);
std::string update_time_to_live(store::Store& store, const boost::json::object& request);
std::string describe_time_to_live(store::Store& store, const boost::json::object& request);

std::string get_item(store::Store& store, const boost::json::object& request);
std::string batch_get_item(store::Store& store, const boost::json::object& request);
std::string query(store::Store& store, const boost::json::object& request);
std::string scan(store::Store& store, const boost::json::object& request);

/// Where a write's answer goes, from whatever thread has it.
struct Reply {
  std::function<void(std::string&& body)> ok;
  std::function<void(const ApiError& error)> fail;
};

void put_item(store::Store& store, const boost::json::object& request, Reply reply);
void delete_item(store::Store& store, const boost::json::object& request, Reply reply);
void update_item(store::Store& store, const boost::json::object& request, Reply reply);
void batch_write_item(store::Store& store, const boost::json::object& request, Reply reply);

}  // namespace drover::server
