#include "columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/key.h"
#include "drover/model/names.h"
#include "drover/model/time.h"
#include "drover/model/value_view.h"
#include "integers.h"
#include "tests/support/rows.h"
#include "tests/unit/model/random_values.h"
#include "united_item.h"

namespace drover::store {
namespace {

using model::Bytes;
using model::pick;
using model::Random;
using model::TimePrecision;
using model::Version;
using test::make_row;

constexpr std::int64_t kFirstMs = 1'782'203'400'000;

Bytes encode(const std::vector<Bytes>& rows) {
  const std::vector<model::RowView> views(rows.begin(), rows.end());
  Bytes encoded;
  encode_columns(views, encoded);
  return encoded;
}

/// The rows; none if they are refused.
std::vector<Bytes> decode(std::string_view encoded) {
  std::vector<Bytes> rows;
  const model::Status status = decode_columns(encoded, [&rows](std::string_view row) { rows.emplace_back(row); });
  EXPECT_TRUE(status.ok()) << status.message();
  return rows;
}

/// Encodes and decodes; the encoded size in bytes.
std::size_t expect_same(const std::vector<Bytes>& rows) {
  const Bytes encoded = encode(rows);
  const auto info = columns_info(encoded);
  EXPECT_TRUE(info.ok());
  EXPECT_EQ(info->rows, rows.size());
  std::size_t row_bytes = 0;
  for (const Bytes& row : rows) row_bytes += row.size();
  EXPECT_EQ(info->row_bytes, row_bytes);
  const std::vector<Bytes> decoded = decode(encoded);
  EXPECT_EQ(decoded.size(), rows.size());
  for (std::size_t i = 0; i < std::min(decoded.size(), rows.size()); ++i) {
    EXPECT_EQ(decoded[i], rows[i]) << "row " << i << " of " << rows.size();
    if (decoded[i] != rows[i]) break;
  }
  return encoded.size();
}

/// Attributes in the order in which they are written down.
class Attributes {
 public:
  Attributes& number(std::uint32_t id, std::int64_t coefficient, std::int32_t exponent) {
    model::append_varint(bytes_, id);
    char value[model::kNumberValueSizeBytesMax];
    bytes_.append(value, model::put_number_value(value, coefficient, exponent));
    return *this;
  }
  Attributes& text(std::uint32_t id, std::string_view value) {
    model::append_varint(bytes_, id);
    model::append_string_value(bytes_, value);
    return *this;
  }
  operator std::string_view() const { return bytes_; }  // NOLINT(google-explicit-constructor): in place of the bytes

 private:
  Bytes bytes_;
};

std::string time_key(std::int64_t ms, TimePrecision precision = TimePrecision::kMillis) {
  return "TS#" + model::format_time({ms * 1'000'000}, precision);
}

Bytes reading(std::size_t i) {
  const auto n = static_cast<std::int64_t>(i);
  return make_row(time_key(kFirstMs + n * 5'000 + n * 7919 % 512),
                  Attributes()
                      .number(7, 600 + n * 31 % 64, -1)
                      .number(8, 880 + n % 9, -1)
                      .number(9, 541 - n / 16, -1)
                      .text(3, "DEP-LON-3"),
                  Version::of(kFirstMs + n * 5'000, model::SourceId{2}, 1'000 + i * 1'100));
}

std::vector<Bytes> readings(std::size_t count) {
  std::vector<Bytes> rows;
  for (std::size_t i = 0; i < count; ++i) rows.push_back(reading(i));
  return rows;
}

TEST(Columns, ReadingsTakeAFewBytesEach) {
  EXPECT_LT(expect_same(readings(512)), 512 * 4);
}

TEST(Columns, OneRowAndManyRowsComeBack) {
  expect_same(readings(1));
  expect_same(readings(2));
  expect_same(readings(3));
  expect_same(readings(kColumnsRowsMax));
}

// Goal: whatever a row is made of, it comes back. Method: rows of random keys, versions and attributes.
TEST(Columns, RandomRowsComeBack) {
  Random random(7741);
  model::AttributeNames names;
  for (int round = 0; round < 300; ++round) {
    std::vector<Bytes> rows;
    const std::int64_t looks = pick(random, 1, 6);
    for (std::int64_t n = pick(random, 1, 60); n > 0; --n) {
      Bytes attributes;
      const std::int64_t look = pick(random, 0, looks);
      for (std::int64_t i = 0; i < look; ++i) {
        model::append_name(attributes, "name" + std::to_string(i * look), names);
        model::append_value(attributes, model::random_value(random, 3), names);
      }
      const std::string key =
          pick(random, 0, 3) == 0 ? model::random_bytes(random, 40) : time_key(kFirstMs + pick(random, 0, 100'000));
      rows.push_back(make_row(key, attributes, {random(), random()}, static_cast<std::uint8_t>(pick(random, 0, 1))));
    }
    std::sort(rows.begin(), rows.end(), [](const Bytes& a, const Bytes& b) {
      return model::RowView(a).sort_key() < model::RowView(b).sort_key();
    });
    expect_same(rows);
  }
}

TEST(Columns, AnOddRowCostsItselfOnly) {
  std::vector<Bytes> rows = readings(512);
  const std::size_t size = expect_same(rows);
  const Bytes odd = make_row(time_key(kFirstMs + 100 * 5'000 + 4'000), Attributes().text(900, std::string(100, 'x')),
                             Version::of(kFirstMs + 3'600'000, model::kApiSource, 0));
  rows.insert(rows.begin() + 101, odd);
  EXPECT_LT(expect_same(rows), size + odd.size() + 100);
}

TEST(Columns, ShapesMayChangeFromRowToRow) {
  Random random(1);
  std::vector<Bytes> rows;
  for (int i = 0; i < 600; ++i) {
    Attributes attributes;
    std::vector<std::uint32_t> ids = {1, 2, 3, 4, 200, 70'000};
    if (pick(random, 0, 9) == 0) std::shuffle(ids.begin(), ids.end(), random);
    for (const std::uint32_t id : ids) {
      if (pick(random, 0, 9) == 0) continue;
      if (pick(random, 0, 19) == 0) {
        attributes.text(id, "n/a");
      } else {
        attributes.number(id, pick(random, -500, 500), static_cast<std::int32_t>(pick(random, -2, 0)));
      }
    }
    rows.push_back(make_row(time_key(kFirstMs + i * 1'000), attributes, Version::of(kFirstMs, model::SourceId{1}, i)));
  }
  expect_same(rows);
}

TEST(Columns, NumbersOfEverySizeComeBack) {
  Random random(2);
  std::vector<Bytes> rows;
  for (int i = 0; i < 2'000; ++i) {
    Attributes attributes;
    attributes.number(1, static_cast<std::int64_t>(random()), static_cast<std::int32_t>(pick(random, -60, 60)))
        .number(2, static_cast<std::int64_t>(random()) >> pick(random, 0, 63), -1)
        .number(3, i % 2 == 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min(), 0)
        .number(4, pick(random, 0, 1'000), static_cast<std::int32_t>(pick(random, -1, 1)))
        .number(5, pick(random, 0, 3), pick(random, 0, 99) == 0 ? -12 : -1)
        .number(6, 0, 0);
    rows.push_back(make_row(time_key(kFirstMs + i), attributes, {random(), random()}));
  }
  expect_same(rows);
}

TEST(Columns, TimesOfEveryPrecisionComeBack) {
  const std::int64_t leap_day_ms = 951'782'400'000;  // 2000-02-29
  for (const TimePrecision precision :
       {TimePrecision::kSeconds, TimePrecision::kMillis, TimePrecision::kMicros, TimePrecision::kNanos}) {
    std::vector<Bytes> rows;
    for (const std::int64_t begin : {std::int64_t{-9'214'560'000'000}, std::int64_t{-5'000'000}, leap_day_ms, kFirstMs,
                                     std::int64_t{9'214'646'300'000}}) {
      for (int i = 0; i < 200; ++i) {
        rows.push_back(make_row(time_key(begin + i * 499, precision), Attributes().number(1, i, 0)));
      }
    }
    expect_same(rows);
  }
}

TEST(Columns, TimesOfOtherMinutesDaysAndHeadsComeBack) {
  std::vector<Bytes> rows;
  for (const char* head : {"", "TS#", "TT#", "12345678", "123456789"}) {
    for (const TimePrecision precision : {TimePrecision::kMillis, TimePrecision::kSeconds}) {
      for (int i = 0; i < 400; ++i) {
        const std::string time = model::format_time({(kFirstMs + i * i * 6'007) * 1'000'000}, precision);
        rows.push_back(make_row(head + time + (i % 7 == 3 ? "#" : ""), Attributes().number(1, i, 0)));
        if (i % 100 == 50) rows.push_back(make_row(head, Attributes().number(1, i, 0)));
      }
    }
  }
  expect_same(rows);
}

// Goal: what is taken as a time since it stands where one stood in the key in front is one.
TEST(Columns, ATimeWithAnyByteChangedComesBack) {
  for (const TimePrecision precision : {TimePrecision::kMillis, TimePrecision::kSeconds, TimePrecision::kNanos}) {
    std::vector<Bytes> rows;
    const std::string right = time_key(kFirstMs, precision);
    for (std::size_t at = 0; at < right.size(); ++at) {
      for (const char byte : {'0', '5', '6', '9', ':', '.', '/', 'Z', 'T', '\0', '\x3a', '\x7f', '\xb0', '\xff'}) {
        std::string changed = right;
        changed[at] = byte;
        rows.push_back(make_row(right, Attributes().number(1, 1, 0)));
        rows.push_back(make_row(changed, Attributes().number(1, 1, 0)));
        rows.push_back(make_row(changed.substr(0, at), Attributes().number(1, 1, 0)));
      }
    }
    expect_same(rows);
  }
}

TEST(Columns, NumbersAndTextsOfAllLengthsComeBackSideBySide) {
  std::vector<Bytes> rows;
  for (int i = 0; i < 500; ++i) {
    Attributes attributes;
    attributes.number(1, i < 250 ? i : std::int64_t{1} << i % 62, -(i % 3))
        .number(300, i * 4'001 - 1'000'000, 0)
        .number(70'000, i, i == 400 ? 70 : -1)
        .text(4, i % 90 < 45 ? "a" : "b");
    // Rows of a shape up to their last attribute.
    if (i % 40 == 17) attributes.text(5, "more");
    if (i % 40 != 31) attributes.number(3'000'000, 61 * i, -1);
    rows.push_back(make_row(time_key(kFirstMs + i), attributes));
  }
  expect_same(rows);
}

TEST(Columns, WhatOnlyLooksLikeATimeComesBack) {
  std::vector<Bytes> rows;
  for (const char* key :
       {"", "2026-02-29T00:00:00Z", "2026-06-23T09:00:60Z", "2026-06-23t09:00:01Z", "2026-06-23T09:00:01+01:00",
        "2026-06-23T09:00:01,123Z", "2026-06-23T09:00:01.12Z", "1677-12-31T23:59:59Z", "2262-01-01T00:00:00Z",
        "9999-99-99T99:99:99Z", "TTTTTTTTTTTTTTTTTTTTTTTT", "a2026-06-23T09:00:01Zb2026-06-23T09:00:02Zc"}) {
    rows.push_back(make_row(key, Attributes().number(1, 1, 0)));
  }
  expect_same(rows);
}

TEST(Columns, IndexRowsAndTombstonesComeBack) {
  std::vector<Bytes> rows;
  for (int i = 0; i < 1'000; ++i) {
    Bytes key;
    model::append_key_part(key, time_key(kFirstMs + i * 20));
    model::append_key_part(key, "VEH#V-" + std::to_string(i * 37 % 250) + std::string(1, '\0'));
    const bool gone = i % 50 == 3;
    rows.push_back(make_row(key, gone ? std::string_view() : Attributes().number(7, 600 + i % 64, -1),
                            Version::of(kFirstMs + i, model::SourceId{static_cast<std::uint16_t>(i % 4)}, i),
                            gone ? model::kRowTombstone : std::uint8_t{0}));
  }
  EXPECT_LT(expect_same(rows), rows.size() * 12);
}

TEST(Columns, UnitedRowsComeBack) {
  model::AttributeNames names;
  for (int id = 1; id < 9; ++id) names.intern("name " + std::to_string(id));
  std::vector<Bytes> rows;
  for (std::size_t i = 0; i < 1'000; ++i) {
    const auto n = static_cast<std::int64_t>(i);
    const Bytes later = make_row({}, Attributes().number(8, 880 + n % 9, -1).text(3, "DEP-LON-3"),
                                 Version::of(kFirstMs + n * 5'000, model::SourceId{2}, i), model::kRowUnites);
    const Bytes first = make_row({}, Attributes().number(7, 600 + n * 31 % 64, -1),
                                 Version::of(kFirstMs + n * 5'000 - 60, model::SourceId{1}, i), model::kRowUnites);
    UnitedItem item = UnitedItem::of(model::RowView(later), names);
    if (i % 3 != 0) item = unite(item, UnitedItem::of(model::RowView(first), names));
    if (i % 50 == 0) item.raise_floor(Version::of(kFirstMs, {}, 1));
    item.append_row(rows.emplace_back(), time_key(kFirstMs + n * 5'000), {});
  }
  EXPECT_EQ(UnitedItem::of(model::RowView(rows[1]), names).attributes.size(), 3u);
  EXPECT_LT(expect_same(rows), rows.size() * 12);
}

TEST(Columns, EachChangedByteIsNoticed) {
  const Bytes encoded = encode(readings(40));
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    Bytes changed = encoded;
    changed[i] = static_cast<char>(changed[i] ^ (1 + i % 255));
    bool used = false;
    EXPECT_FALSE(decode_columns(changed, [&used](std::string_view) { used = true; }).ok()) << i;
    EXPECT_FALSE(used) << i;
  }
  for (std::size_t size = 0; size < encoded.size(); ++size) {
    EXPECT_FALSE(decode_columns(encoded.substr(0, size), [](std::string_view) {}).ok()) << size;
  }
}

TEST(Columns, AnUnknownVersionIsNamed) {
  Bytes encoded = encode(readings(1));
  encoded[0] = 9;
  const model::Status status = decode_columns(encoded, [](std::string_view) {});
  EXPECT_EQ(status.message(), "block format 9, this Drover reads up to 1");
  EXPECT_EQ(columns_info(encoded).status().message(), status.message());
}

// The example of ARCHITECTURE.md, "Blocks on disk".
TEST(Columns, TheBytesAreThoseOfTheDocumentation) {
  std::vector<Bytes> rows;
  std::int64_t ms = 1'782'205'201'000;
  std::uint64_t offset = 41;
  for (const std::int64_t tenths : {615, 620, 631, 625}) {
    rows.push_back(make_row(time_key(ms, TimePrecision::kSeconds), Attributes().number(7, tenths, -1),
                            Version::of(ms, model::SourceId{1}, offset)));
    ms += 5'000;
    offset += 3;
  }
  std::string hex;
  for (const char byte : encode(rows)) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", static_cast<unsigned char>(byte));
    hex += text;
  }
  EXPECT_EQ(hex,
            "01985ff45a534d034804b701"
            "01020107"
            "010001000000"
            "04c09ba9bbde67904e0002"
            "044c060000"
            "01035453230100"
            "0498acd2a30d0a"
            "01000001ce0905a04005");
}

// Columns of integers, each kind in which some packing is good.
TEST(Columns, IntegersComeBack) {
  Random random(3);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<std::uint64_t> values(static_cast<std::size_t>(pick(random, 1, 300)));
    std::vector<std::uint64_t> reference(values.size());
    const std::int64_t kind = pick(random, 0, 7);
    const std::int64_t bits = pick(random, 0, 63);
    std::uint64_t last = random();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t noise = random() >> bits;
      reference[i] = last = kind == 0 ? noise : kind == 1 ? last + noise : kind == 2 ? last + 5'000 : last - noise % 3;
      values[i] = kind == 5 ? reference[i] + (pick(random, 0, 99) == 0 ? random() : random() % 9) : reference[i];
      if (kind == 7) values[i] = static_cast<std::uint64_t>(pick(random, -1, 1)) * ((1ull << 62) + (random() >> 3));
      if (kind == 6) values[i] = pick(random, 0, 20) == 0 || i == 0 ? noise : values[i - 1];
    }
    Bytes encoded;
    append_integers(values, reference, encoded);
    const std::size_t size = encoded.size();
    encoded.append(kInputPaddingBytes, '\xee');
    Input in(std::string_view(encoded).substr(0, size));
    std::vector<std::uint64_t> decoded(values.size());
    ASSERT_TRUE(take_integers(in, decoded, reference));
    ASSERT_EQ(in.size(), 0u);
    ASSERT_EQ(decoded, values);
  }
}

}  // namespace
}  // namespace drover::store
