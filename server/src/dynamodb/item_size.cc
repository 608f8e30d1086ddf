#include "dynamodb/item_size.h"

#include "drover/model/attribute.h"

namespace drover::server {

std::size_t value_size_bytes(model::ValueView value, const model::AttributeNames& names) {
  switch (value.tag()) {
    case model::ValueTag::kNull:
    case model::ValueTag::kFalse:
    case model::ValueTag::kTrue:
      return 1;
    case model::ValueTag::kString:
    case model::ValueTag::kBinary:
      return value.bytes().size();
    case model::ValueTag::kNumber:
    case model::ValueTag::kBigNumber:
      return model::number_size_bytes(value.number());
    default:
      return model::value_size_bytes(value.to_value(names));
  }
}

}  // namespace drover::server
