#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "drover/model/attribute.h"
#include "drover/model/batch.h"
#include "drover/model/key.h"
#include "drover/model/names.h"
#include "drover/model/row.h"
#include "drover/model/value_view.h"
#include "drover/model/version.h"

namespace drover::model {

/// How GoogleTest shows a value.
inline void PrintTo(const AttributeValue& value, std::ostream* out) {
  *out << wire_name(value.type) << ' ';
  if (value.type == AttributeType::kNumber) {
    *out << value.number.text();
  } else {
    *out << '"' << value.bytes << '"';
  }
}

}  // namespace drover::model

/// Rows and batches as decoding makes them, from values that a test can write down.
namespace drover::test {

inline model::AttributeValue text(std::string value) {
  return model::AttributeValue::string(std::move(value));
}
inline model::AttributeValue number(std::int64_t value) {
  return model::AttributeValue::of_number(model::Decimal(value));
}

/// A number key as keys are encoded.
inline model::Bytes number_key(const model::Decimal& value) {
  model::Bytes encoded;
  value.append_ordered(encoded);
  return encoded;
}

inline model::Bytes encode_attributes(const model::Item& attributes, model::AttributeNames& names) {
  model::Bytes encoded;
  for (const auto& [name, value] : attributes) {
    model::append_name(encoded, name, names);
    model::append_value(encoded, value, names);
  }
  return encoded;
}

inline model::Item decode_attributes(std::string_view encoded, const model::AttributeNames& names) {
  model::Item attributes;
  for (model::AttributeReader reader(encoded, names); reader.next();) {
    attributes.emplace(reader.attribute().name, reader.attribute().value.to_value(names));
  }
  return attributes;
}

inline model::Bytes make_row(std::string_view sort_key, std::string_view attributes, model::Version version = {},
                             std::uint8_t flags = 0) {
  model::Bytes row;
  model::append_row(row, version, flags, sort_key, attributes);
  return row;
}

/// Collects the rows of one batch.
class BatchBuilder {
 public:
  explicit BatchBuilder(model::AttributeNames& names) : names_(names) {}

  BatchBuilder& add(std::string_view partition_key, std::string_view sort_key, const model::Item& attributes,
                    model::Version version, std::uint8_t flags = 0) {
    const model::Bytes row = make_row(sort_key, encode_attributes(attributes, names_), version, flags);
    model::RowBatch::Row at;
    at.hash = model::hash_key(partition_key);
    at.begin = static_cast<std::uint32_t>(batch_.bytes.size());
    at.partition_key_size = static_cast<std::uint32_t>(partition_key.size());
    at.row_size = static_cast<std::uint32_t>(row.size());
    batch_.bytes.insert(batch_.bytes.end(), partition_key.begin(), partition_key.end());
    batch_.bytes.insert(batch_.bytes.end(), row.begin(), row.end());
    batch_.rows.push_back(at);
    return *this;
  }

  /// The batch; the builder begins a new one.
  std::shared_ptr<const model::RowBatch> take() {
    return std::make_shared<const model::RowBatch>(std::exchange(batch_, {}));
  }

 private:
  model::AttributeNames& names_;
  model::RowBatch batch_;
};

}  // namespace drover::test
