#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/names.h"
#include "item_plan.h"
#include "time_text.h"

// The short way: records that look like the ones before
//
// Idea.     One producer writes the same fields in the same order with the same spaces: between the values of its
// records
//           stand the same bytes. A shape is those bytes (literals) and what to do with each value between them
//           (slots).
// Learning. From a record that JsonReader has accepted, so its literals are good JSON and name no field twice. A shape
// is
//           taken up after kShapeSightings such records; at most kShapesMax are kept.
// Reading.  Each literal is compared, each value is read in place: text of plain ASCII without escapes, true, false,
// null,
//           decimals of a few digits, UTC times. A match of all literals with good values between them is valid JSON.
// Falling back. Anything else (an escape, an exponent, another order, a bad value) is left to JsonReader, which finds
// the
//           same row or the reason to refuse. So a shape never refuses, and never needs to be complete.
// Kinds.    Whether a record is META may hang on a value: a shape belongs to one kind and gives up where the value
// tells
//           of the other one.
// Not learned. Stored objects and lists, names with escapes, records beyond kShapeRecordSizeBytesMax.
// Tested.   tests/unit/ingest/json_decoder_fuzz_test.cc: both ways on random and mutated records.
namespace drover::ingest {

/// Threads: one at a time.
class LearnedShapes {
 public:
  static constexpr std::size_t kShapesMax = 4;
  static constexpr std::size_t kShapeSightings = 8;
  static constexpr std::size_t kShapeSlotsMax = 256;
  static constexpr std::size_t kCandidatesMax = 8;
  static constexpr std::size_t kEagerLooks =
      1024;  ///< After as many in vain, one record in kLookInterval is looked at.
  static constexpr std::size_t kLookInterval = 16;
  static constexpr std::size_t kShapeRecordSizeBytesMax = 16 * 1024;

  /// `mapping` and `names` outlive this.
  LearnedShapes(const CompiledMapping& mapping, model::AttributeNames& names)
      : mapping_(mapping), names_(names), time_(mapping.precision) {}

  /// Reads a record of a known shape; false: it is none, or something in it needs JsonReader. The parts live until the
  /// next call.
  bool read(std::string_view json, ItemParts& parts);

  /// Looks at a record that JsonReader made `plan`'s item of.
  void learn(std::string_view json, const ItemPlan& plan);

 private:
  enum class Use : std::uint8_t { kNone, kId, kTime };
  struct Slot {
    std::uint32_t literal_begin = 0;  ///< Of the bytes in front of the value, in Shape::literals.
    std::uint32_t literal_size = 0;
    std::uint32_t name_begin = 0;  ///< Of the encoded attribute name, in Shape::names.
    std::uint32_t name_size = 0;   ///< 0: not stored.
    Use use = Use::kNone;
    bool tells_meta = false;
  };
  struct Shape {
    const ItemPlan* plan = nullptr;
    std::string literals;  ///< In the record's order, each ended by a NUL (which stands in no JSON text).
    std::vector<Slot> slots;
    std::uint32_t last_literal_begin = 0;  ///< Of what stands behind the last value.
    model::Bytes names;
    model::NameMask name_mask = model::NameMask::none();
    std::vector<char> attributes;  ///< Room for those of any record of this shape.
  };
  struct Candidate {
    const ItemPlan* plan = nullptr;
    std::string literals;
    std::size_t sightings = 0;
  };
  class Outline;

  /// Reading of one record.
  struct Cursor {
    const char* at;
    const char* end;
    char* out;               ///< Where the next attribute goes.
    std::string_view token;  ///< The value taken last, without quotes.
  };
  bool take_text(const Slot& slot, Cursor& cursor);
  bool take_number(const Slot& slot, Cursor& cursor);
  bool take_word(const Slot& slot, Cursor& cursor);
  bool take_value(const Slot& slot, Cursor& cursor);
  bool read(Shape& shape, std::string_view json, ItemParts& parts);
  bool sighted_often(const Outline& outline, const ItemPlan& plan);
  Shape make_shape(Outline&& outline, const ItemPlan& plan);

  const CompiledMapping& mapping_;
  model::AttributeNames& names_;
  TimeText time_;
  std::vector<Shape> shapes_;
  std::size_t last_used_ = 0;      ///< In shapes_: the first that is tried.
  std::size_t next_replaced_ = 0;  ///< In shapes_, once they are kShapesMax.
  std::vector<Candidate> candidates_;
  std::size_t next_candidate_replaced_ = 0;
  std::size_t looks_ = 0;  ///< At records of no known shape, since the last shape was taken up.
};

}  // namespace drover::ingest
