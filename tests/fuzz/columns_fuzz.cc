// Goal: no bytes from disk make the decoder of blocks crash, hang, or hand out more than the block says; and whatever
//       rows there are, they come back byte for byte.
// Method: the input's first byte chooses. 0: the rest is a block, whose checksum is put right, so that the decoder gets
//         behind it. 1: the rest makes rows, which are encoded, decoded and compared. 2: as 1, then the rest of the
//         input changes bytes of the block, the checksum is put right, and it is decoded.
// Run:     `tests/run fuzz`; tests/unit/store runs it on random inputs.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "columns.h"
#include "drover/model/check.h"
#include "drover/model/key.h"
#include "drover/model/row.h"
#include "drover/model/time.h"
#include "drover/model/value_view.h"

namespace drover::store {
namespace {

using model::Bytes;

/// Takes an input apart; behind its end there are zeros.
class Dice {
 public:
  explicit Dice(std::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    for (; size > 0; --size) {
      value = value << 8 | (bytes_.empty() ? 0 : static_cast<unsigned char>(bytes_.front()));
      if (!bytes_.empty()) bytes_.remove_prefix(1);
    }
    return value;
  }
  std::size_t below(std::size_t limit) { return number(1) % limit; }
  std::string_view text(std::size_t size_max) {
    const std::string_view text = bytes_.substr(0, below(size_max + 1));
    bytes_.remove_prefix(text.size());
    return text;
  }

 private:
  std::string_view bytes_;
};

void append_value(Bytes& out, Dice& dice) {
  switch (dice.below(6)) {
    case 0:
      out.push_back(static_cast<char>(dice.below(3)));  // null, false, true
      break;
    case 1:
      model::append_string_value(out, dice.text(20));
      break;
    case 2: {
      // A list of one binary: what the columns don't look into.
      const std::string_view text = dice.text(20);
      Bytes payload(1, 1);
      payload.push_back(static_cast<char>(model::ValueTag::kBinary));
      model::append_varint(payload, text.size());
      payload.append(text);
      out.push_back(static_cast<char>(model::ValueTag::kList));
      model::append_varint(out, payload.size());
      out.append(payload);
      break;
    }
    default: {
      const auto coefficient = static_cast<std::int64_t>(dice.number(dice.below(8) + 1));
      char value[model::kNumberValueSizeBytesMax];
      out.append(value, model::put_number_value(value, coefficient, static_cast<std::int32_t>(dice.below(9)) - 4));
    }
  }
}

Bytes make_row(Dice& dice, model::Version& version, std::int64_t& time_ns) {
  static constexpr model::TimePrecision kPrecisions[] = {model::TimePrecision::kSeconds, model::TimePrecision::kMillis,
                                                         model::TimePrecision::kMicros, model::TimePrecision::kNanos};
  Bytes key(dice.text(4));
  time_ns += static_cast<std::int64_t>(dice.number(dice.below(5)));
  time_ns %= 9'000'000'000'000'000'000;
  if (dice.below(8) != 0) {
    const Bytes time = "TS#" + model::format_time(model::TimeNs{time_ns}, kPrecisions[dice.below(4)]);
    if (dice.below(2) == 0) {
      key += time;
    } else {
      model::append_key_part(key, time);
      model::append_key_part(key, dice.text(6));
    }
  }
  version.time_and_source += dice.number(dice.below(9));
  version.offset += dice.number(dice.below(9));
  Bytes attributes;
  const std::size_t count = dice.below(5);
  for (std::size_t i = 0; i < count; ++i) {
    if (dice.below(8) == 0) {
      attributes.push_back('\0');
      const std::string_view name = dice.text(3);
      model::append_varint(attributes, name.size());
      attributes.append(name);
    } else {
      model::append_varint(attributes, 1 + i * 100 + dice.below(2));
    }
    append_value(attributes, dice);
  }
  Bytes row;
  model::append_row(row, version, static_cast<std::uint8_t>(dice.below(2)), key, attributes);
  return row;
}

std::vector<Bytes> make_rows(Dice& dice) {
  std::vector<Bytes> rows;
  model::Version version = model::Version::of(1'782'203'400'000, model::SourceId{1}, 7);
  std::int64_t time_ns = 1'782'203'400'000'000'000;
  const std::size_t repeats = dice.below(40);
  do {
    rows.push_back(make_row(dice, version, time_ns));
    // Columns need many rows, and inputs are short: some come again, a little later.
    for (std::size_t i = dice.below(4) == 0 ? repeats : 0; i > 0; --i) {
      version.offset += 1;
      const model::RowView last(rows.back());
      Bytes row;
      model::append_row(row, version, 0, last.sort_key(), last.attributes());
      rows.push_back(row);
    }
  } while (dice.below(16) != 0 && rows.size() < 2'000);
  return rows;
}

/// Whether it is a block; its rows are then as many and as large as it says.
bool decodes(std::string_view encoded, std::vector<Bytes>* rows) {
  std::size_t count = 0;
  std::uint64_t size = 0;
  const model::Status status = decode_columns(encoded, [&](std::string_view row) {
    ++count;
    size += row.size();
    if (rows != nullptr) rows->emplace_back(row);
  });
  if (!status.ok()) return false;
  const auto info = columns_info(encoded);
  DROVER_CHECK(info.ok() && info->rows == count && info->row_bytes == size, "a block says what is in it");
  return true;
}

void run(std::string_view input) {
  Dice dice(input);
  const std::uint64_t mode = dice.number(1) % 3;
  if (mode == 0) {
    Bytes block(input.substr(1));
    if (!block.empty()) block[0] = static_cast<char>(kColumnsVersion);
    set_columns_checksum(block);
    decodes(block, nullptr);
    return;
  }
  const std::vector<Bytes> rows = make_rows(dice);
  Bytes block;
  encode_columns(std::vector<model::RowView>(rows.begin(), rows.end()), block);
  std::vector<Bytes> decoded;
  DROVER_CHECK(decodes(block, &decoded) && decoded == rows, "rows come back");
  if (mode == 1) return;
  while (!dice.empty()) {
    const std::size_t at = 9 + dice.number(2) % (block.size() - 9);
    block[at] = static_cast<char>(dice.number(1));
  }
  set_columns_checksum(block);
  decodes(block, nullptr);
}

}  // namespace
}  // namespace drover::store

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0) drover::store::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
