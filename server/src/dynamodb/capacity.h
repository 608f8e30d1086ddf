#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/attribute.h"
#include "drover/model/schema.h"
#include "dynamodb/params.h"

/// ConsumedCapacity, by DynamoDB's rules: reads in steps of 4 KB, half of it if eventually consistent; writes of 1 KB.
namespace drover::server {

struct ConsumedCapacity {
  struct Index {
    std::string_view name;
    bool local = false;
    double units = 0;
  };
  std::string_view table;
  double table_units = 0;
  std::vector<Index> indexes;

  double total() const;
};

double read_units(std::size_t size_bytes, bool consistent);

/// What writing costs the table and its indexes. Null: no item before, or none after.
ConsumedCapacity write_capacity(const model::TableSchema& table, const model::Item* before, const model::Item* after);

/// Adds up the capacities of one table.
void add(ConsumedCapacity& sum, const ConsumedCapacity& part);

/// `{"TableName":"fleet","CapacityUnits":0.5}`, with "Table" and the indexes if `report` asks for them.
void append_capacity(std::string& out, const ConsumedCapacity& capacity, CapacityReport report);

/// `,"ConsumedCapacity":{…}`; nothing if `report` is kNone.
void append_capacity_member(std::string& out, const ConsumedCapacity& capacity, CapacityReport report);

}  // namespace drover::server
