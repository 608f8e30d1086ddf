#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "drover/ingest/decoder.h"
#include "drover/model/limits.h"
#include "drover/model/names.h"
#include "item_plan.h"

namespace drover::ingest {

/// Reads any JSON record, by simdjson, and checks its whole text, whatever of it is stored.
///
/// Threads: one at a time.
class JsonReader {
 public:
  /// `mapping` and `names` outlive the reader.
  JsonReader(const CompiledMapping& mapping, model::AttributeNames& names) : mapping_(mapping), names_(names) {}

  /// Reads one record; false: reject_reason() says why not. The parts live until the next call.
  bool read(std::string_view json, ItemParts& parts);
  RejectReason reject_reason() const { return reject_reason_; }

 private:
  using Document = simdjson::ondemand::document;
  using Object = simdjson::ondemand::object;
  using Array = simdjson::ondemand::array;
  using Value = simdjson::ondemand::value;

  /// A value that is neither object nor array: unescaped text of a string, other tokens as they stand.
  struct Scalar {
    simdjson::ondemand::json_type type = simdjson::ondemand::json_type::null;
    std::string_view text;
  };
  struct NameHash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  bool open(std::string_view json, Document& document);
  bool refuse_other_than_object(Document& document, simdjson::ondemand::json_type type, std::string_view json);
  bool find_plan(Document& document);
  bool tells_meta(Object object, std::size_t depth, bool& meta);
  bool walk(Value value, const PathNode* node, model::Bytes* out, std::size_t depth);
  bool walk_object(Object object, const PathNode* node, bool every_field, std::size_t depth);
  bool walk_map(Object object, const PathNode* node, model::Bytes& out, std::size_t depth);
  bool walk_array(Array array, model::Bytes* out, std::size_t depth);
  bool read_scalar(Value& value, Scalar& scalar);
  void take_key_field(const PathNode& node, const Scalar& scalar);
  void take_time(const Scalar& scalar);
  void append_scalar(model::Bytes& out, const Scalar& scalar);
  void append_name(model::Bytes& out, std::string_view name);
  void visit(const PathNode* node);
  void check_whole(std::string_view json, ItemParts& parts);
  bool too_large(const ItemParts& parts) const;

  /// The text can't be read on: reading ends here.
  bool fail(RejectReason reason);
  /// There will be no item, but the text behind is still to be checked. The first reason stands.
  void refuse(RejectReason reason);

  const CompiledMapping& mapping_;
  model::AttributeNames& names_;
  simdjson::ondemand::parser parser_;
  std::vector<char> padded_;  ///< The record with the slack behind it that simdjson reads into.
  std::unordered_map<std::string, model::Bytes, NameHash, std::equal_to<>> encoded_names_;  ///< Spares a lock; bounded.
  std::vector<model::Bytes> levels_ = std::vector<model::Bytes>(model::kItemDepthMax + 1);  ///< One a depth, reused.

  // Of the present record.
  RejectReason reject_reason_ = RejectReason::kCount;  ///< kCount: none.
  const ItemPlan* plan_ = nullptr;
  std::vector<bool> visited_;                ///< By PathNode::index.
  std::vector<std::string_view> own_names_;  ///< Of the fields that are stored under them.
  model::Bytes id_;
  model::Bytes time_;
  model::Bytes attributes_;
};

}  // namespace drover::ingest
