#include "expression/placeholders.h"

namespace drover::server::expression {
namespace {

template <typename Map>
model::Status check_used(const Map& map, std::string_view parameter) {
  std::string unused;
  for (const auto& [key, entry] : map) {
    if (!entry.used) unused += (unused.empty() ? "" : ", ") + key;
  }
  if (unused.empty()) return {};
  return model::invalid("Value provided in " + std::string(parameter) + " unused in expressions: keys: {" + unused +
                        "}");
}

}  // namespace

model::Status Placeholders::all_used() const {
  if (model::Status status = check_used(names, "ExpressionAttributeNames"); !status.ok()) return status;
  return check_used(values, "ExpressionAttributeValues");
}

}  // namespace drover::server::expression
