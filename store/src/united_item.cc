#include "united_item.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "drover/model/value_view.h"

namespace drover::store {
namespace {

using model::Bytes;
using model::RowView;
using model::Version;

void append_version(Bytes& out, Version version) {
  out.append(reinterpret_cast<const char*>(&version), sizeof version);
}

/// The attributes of a row by version: so many of each, from the front on. Then come those of the floor.
struct Origins {
  std::uint64_t newest = 0;
  std::vector<std::pair<std::uint64_t, Version>> runs;
  Version floor;

  static Origins of(std::string_view encoded) {
    const char* at = encoded.data();
    const auto take_version = [&at] {
      Version version;
      std::memcpy(&version, at, sizeof version);
      at += sizeof version;
      return version;
    };
    Origins origins;
    std::uint64_t runs = 0;
    at = model::get_varint(model::get_varint(at, origins.newest), runs);
    for (; runs > 0; --runs) {
      std::uint64_t count = 0;
      at = model::get_varint(at, count);
      origins.runs.emplace_back(count, take_version());
    }
    if (at != encoded.data() + encoded.size()) origins.floor = take_version();
    return origins;
  }

  /// Appends everything of a row in front of its attributes.
  void append_head(Bytes& out, Version version, std::string_view sort_key) const {
    Bytes encoded;
    model::append_varint(encoded, newest);
    model::append_varint(encoded, runs.size());
    for (const auto& [count, of] : runs) {
      model::append_varint(encoded, count);
      append_version(encoded, of);
    }
    if (floor != Version{}) append_version(encoded, floor);
    model::append_row(out, version, model::kRowUnites | model::kRowOrigins, sort_key, RowView::kOriginsHead);
    model::append_varint(out, encoded.size());
    out.append(encoded);
  }
};

}  // namespace

UnitedItem UnitedItem::of(const RowView& row, const model::AttributeNames& names) {
  UnitedItem item;
  item.version = row.version();
  item.deleted = row.tombstone();
  Origins origins{UINT64_MAX, {}, row.unites() ? Version{} : row.version()};
  if (const std::string_view encoded = row.origins(); !encoded.empty()) origins = Origins::of(encoded);
  item.floor = origins.floor;
  origins.runs.emplace(origins.runs.begin(), origins.newest, row.version());
  auto run = origins.runs.begin();
  const std::string_view own = row.attributes();
  for (const char* at = own.data(); at != own.data() + own.size();) {
    const model::RawAttribute attribute = model::take_raw_attribute(at);
    while (run != origins.runs.end() && run->first == 0) ++run;
    const bool above_floor = run != origins.runs.end();
    item.attributes.push_back({attribute.name(names), attribute.encoded, above_floor ? run->second : origins.floor});
    if (above_floor) --run->first;
  }
  std::sort(item.attributes.begin(), item.attributes.end(),
            [](const Attribute& a, const Attribute& b) { return a.name < b.name; });
  return item;
}

void UnitedItem::raise_floor(Version to) {
  floor = std::max(floor, to);
  std::erase_if(attributes, [this](const Attribute& attribute) { return attribute.version < floor; });
}

UnitedItem unite(const UnitedItem& a, const UnitedItem& b) {
  UnitedItem both;
  both.version = std::max(a.version, b.version);
  both.deleted = b.version > a.version ? b.deleted : a.deleted;
  both.attributes.reserve(a.attributes.size() + b.attributes.size());
  auto in_a = a.attributes.begin();
  auto in_b = b.attributes.begin();
  while (in_a != a.attributes.end() || in_b != b.attributes.end()) {
    if (in_b == b.attributes.end() || (in_a != a.attributes.end() && in_a->name < in_b->name)) {
      both.attributes.push_back(*in_a++);
    } else if (in_a == a.attributes.end() || in_b->name < in_a->name) {
      both.attributes.push_back(*in_b++);
    } else {
      both.attributes.push_back(in_b->version > in_a->version ? *in_b : *in_a);
      ++in_a;
      ++in_b;
    }
  }
  both.raise_floor(std::max(a.floor, b.floor));
  return both;
}

bool UnitedItem::same_content(const UnitedItem& other) const {
  return deleted == other.deleted &&
         std::equal(attributes.begin(), attributes.end(), other.attributes.begin(), other.attributes.end(),
                    [](const Attribute& a, const Attribute& b) { return a.name == b.name && a.encoded == b.encoded; });
}

bool UnitedItem::contains(const UnitedItem& other) const {
  if (deleted) return false;
  auto mine = attributes.begin();
  return std::all_of(other.attributes.begin(), other.attributes.end(), [&](const Attribute& wanted) {
    mine = std::lower_bound(mine, attributes.end(), wanted.name,
                            [](const Attribute& attribute, std::string_view name) { return attribute.name < name; });
    return mine != attributes.end() && mine->name == wanted.name && mine->encoded == wanted.encoded;
  });
}

void UnitedItem::append_row(Bytes& out, std::string_view sort_key, std::string_view stamp) const {
  std::vector<Attribute> newest_first = attributes;
  std::stable_sort(newest_first.begin(), newest_first.end(),
                   [](const Attribute& a, const Attribute& b) { return a.version > b.version; });
  Origins origins{0, {}, floor};
  for (const Attribute& attribute : newest_first) {
    if (attribute.version == floor) break;
    if (attribute.version == version) {
      ++origins.newest;
    } else if (!origins.runs.empty() && origins.runs.back().second == attribute.version) {
      ++origins.runs.back().first;
    } else {
      origins.runs.emplace_back(1, attribute.version);
    }
  }
  if (floor == version) {
    model::append_row(out, version, deleted ? model::kRowTombstone : std::uint8_t{0}, sort_key, {});
  } else if (floor == Version{} && origins.newest == newest_first.size() && stamp.empty()) {
    model::append_row(out, version, model::kRowUnites, sort_key, {});
  } else {
    origins.append_head(out, version, sort_key);
  }
  for (const Attribute& attribute : newest_first) out.append(attribute.encoded);
  out.append(stamp);
}

void append_stamped_row(Bytes& out, const RowView& row, std::string_view stamp) {
  const std::string_view own = row.attributes();
  Origins origins;
  for (const char* at = own.data(); at != own.data() + own.size(); ++origins.newest) model::take_raw_attribute(at);
  origins.append_head(out, row.version(), row.sort_key());
  out.append(own).append(stamp);
}

}  // namespace drover::store
