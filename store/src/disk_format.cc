#include "disk_format.h"

#include <utility>

namespace drover::store {
namespace {

void append_key_attribute(model::Bytes& out, const model::KeyAttribute& attribute) {
  append_bytes(out, attribute.name);
  model::append_varint(out, static_cast<std::uint64_t>(attribute.type));
}

void append_key_schema(model::Bytes& out, const model::KeySchema& key) {
  append_key_attribute(out, key.partition_key);
  model::append_varint(out, key.sort_key ? 1 : 0);
  if (key.sort_key) append_key_attribute(out, *key.sort_key);
}

void append_texts(model::Bytes& out, const std::vector<std::string>& texts) {
  model::append_varint(out, texts.size());
  for (const std::string& text : texts) append_bytes(out, text);
}

/// A number below `count`, as an enumerator.
template <typename Enum>
Enum take_enum(DiskReader& in, std::uint64_t count, bool& good) {
  const std::uint64_t value = in.varint();
  good &= value < count;
  return static_cast<Enum>(value < count ? value : 0);
}

model::KeyAttribute take_key_attribute(DiskReader& in, bool& good) {
  model::KeyAttribute attribute;
  attribute.name = in.bytes();
  attribute.type = take_enum<model::KeyType>(in, 3, good);
  return attribute;
}

model::KeySchema take_key_schema(DiskReader& in, bool& good) {
  model::KeySchema key;
  key.partition_key = take_key_attribute(in, good);
  if (in.varint() != 0) key.sort_key = take_key_attribute(in, good);
  return key;
}

std::vector<std::string> take_texts(DiskReader& in) {
  std::vector<std::string> texts;
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) texts.emplace_back(in.bytes());
  return texts;
}

}  // namespace

model::Bytes space_key(SpaceId space) {
  model::Bytes key;
  append_big_endian(key, space.table);
  append_big_endian(key, space.index);
  return key;
}

model::Bytes filled_key(SpaceId space) {
  return model::Bytes(kFilledPrefix) + space_key(space);
}

model::Bytes collection_key(SpaceId space, model::KeyHash hash, std::string_view partition_key) {
  model::Bytes key = space_key(space);
  append_big_endian(key, hash);
  model::append_key_part(key, partition_key);
  return key;
}

model::Bytes collection_end_key(model::Bytes collection) {
  ++collection.back();  // of a key part, whose last byte is 0x01
  return collection;
}

model::Bytes segment_begin_key(SpaceId space, std::uint32_t segment) {
  if (segment == model::kSegments) {
    // One behind all hashes: the next space, be it there or not.
    return space.index == 0xffff ? space_key({space.table + 1, 0})
                                 : space_key({space.table, static_cast<std::uint16_t>(space.index + 1)});
  }
  model::Bytes key = space_key(space);
  append_big_endian(key, model::KeyHash{segment} << (64 - model::kSegmentBits));
  return key;
}

model::Bytes tails_key(SpaceId space, std::uint32_t segment) {
  model::Bytes key = space_key(space);
  append_big_endian(key, static_cast<std::uint16_t>(segment));
  return key;
}

model::Bytes log_key(std::uint32_t interval, std::uint64_t sequence) {
  model::Bytes key;
  append_big_endian(key, interval);
  append_big_endian(key, sequence);
  return key;
}

std::uint64_t DiskReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  ok_ = false;
  return 0;
}

std::string_view DiskReader::bytes() {
  const std::uint64_t size = varint();
  if (!ok_ || size > rest_.size()) {
    ok_ = false;
    return {};
  }
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

void append_bytes(model::Bytes& out, std::string_view bytes) {
  model::append_varint(out, bytes.size());
  out.append(bytes);
}

model::Bytes encode(const model::TableSchema& schema) {
  model::Bytes out;
  append_bytes(out, schema.name);
  append_key_schema(out, schema.key);
  model::append_varint(out, schema.time_sort_key ? 1 : 0);
  if (schema.time_sort_key) {
    append_bytes(out, schema.time_sort_key->prefix);
    model::append_varint(out, static_cast<std::uint64_t>(schema.time_sort_key->precision));
  }
  append_texts(out, schema.inherit);
  append_bytes(out, schema.inherit_from);
  model::append_varint(out, schema.indexes.size());
  for (const model::IndexSchema& index : schema.indexes) {
    append_bytes(out, index.name);
    append_key_schema(out, index.key);
    model::append_varint(out, index.local ? 1 : 0);
    model::append_varint(out, static_cast<std::uint64_t>(index.projection));
    append_texts(out, index.included);
  }
  return out;
}

std::optional<model::TableSchema> decode_schema(std::string_view encoded) {
  DiskReader in(encoded);
  bool good = true;
  model::TableSchema schema;
  schema.name = in.bytes();
  schema.key = take_key_schema(in, good);
  if (in.varint() != 0) {
    model::TimeSortKey& time = schema.time_sort_key.emplace();
    time.prefix = in.bytes();
    time.precision = take_enum<model::TimePrecision>(in, 10, good);
  }
  schema.inherit = take_texts(in);
  schema.inherit_from = in.bytes();
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    model::IndexSchema& index = schema.indexes.emplace_back();
    index.name = in.bytes();
    index.key = take_key_schema(in, good);
    index.local = in.varint() != 0;
    index.projection = take_enum<model::ProjectionType>(in, 3, good);
    index.included = take_texts(in);
  }
  if (!good || !in.ok() || !in.at_end()) return std::nullopt;
  return schema;
}

model::Bytes encode(const model::Retention& retention) {
  model::Bytes out;
  append_bytes(out, retention.ttl_attribute);
  model::append_varint(out, static_cast<std::uint64_t>(retention.retain_ms));
  return out;
}

std::optional<model::Retention> decode_retention(std::string_view encoded) {
  DiskReader in(encoded);
  model::Retention retention;
  retention.ttl_attribute = in.bytes();
  retention.retain_ms = static_cast<std::int64_t>(in.varint());
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return retention;
}

model::Bytes encode(const model::SourcePosition& position) {
  model::Bytes out;
  append_bytes(out, position.topic);
  model::append_varint(out, static_cast<std::uint64_t>(position.partition));
  model::append_varint(out, model::zigzag(position.next_offset));
  model::append_varint(out, model::zigzag(position.log_time_ms));
  model::append_varint(out, model::zigzag(position.last.offset.value));
  model::append_varint(out, position.last.hash);
  return out;
}

std::optional<model::SourcePosition> decode_position(model::SourceId source, std::string_view encoded) {
  DiskReader in(encoded);
  model::SourcePosition position;
  position.source = source;
  position.topic = in.bytes();
  position.partition = static_cast<std::int32_t>(in.varint());
  position.next_offset = model::unzigzag(in.varint());
  position.log_time_ms = model::unzigzag(in.varint());
  position.last.offset.value = model::unzigzag(in.varint());
  position.last.hash = in.varint();
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return position;
}

}  // namespace drover::store
