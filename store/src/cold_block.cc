#include "cold_block.h"

#include <chrono>
#include <thread>
#include <utility>

#include "columns.h"
#include "disk.h"
#include "disk_format.h"

namespace drover::store {
namespace {

std::atomic<std::uint64_t> bytes_in_memory{0};

}  // namespace

void encode_block(std::span<const model::RowView> rows, model::Bytes& out) {
  std::uint64_t tombstones = 0;
  for (const model::RowView& row : rows) tombstones += row.tombstone() ? 1 : 0;
  model::append_varint(out, tombstones);
  encode_columns(rows, out);
}

model::Result<std::shared_ptr<Block>> decode_block(std::string_view encoded) {
  DiskReader in(encoded);
  (void)in.varint();
  const auto info = columns_info(in.rest());
  if (!info.ok()) return info.status();
  const std::shared_ptr<Block> block(
      Block::make(static_cast<std::uint32_t>(info->row_bytes + info->rows * Block::room_for(0)), 0), &Block::destroy);
  bool fits = true;
  const model::Status status = decode_columns(in.rest(), [&](std::string_view row) {
    fits = fits && block->fits(row.size());
    if (fits) block->append(row);
  });
  if (!status.ok()) return status;
  if (!fits || block->writer_count() == 0) return model::invalid("a block is not as large as it says");
  return block;
}

ColdBlock::ColdBlock(const Place& place, std::string_view first_key, std::string_view last_key, model::Bytes encoded)
    : disk_(place.disk),
      key_(model::Bytes(place.collection_key).append(first_key)),
      first_key_begin_(place.collection_key.size()),
      last_key_(last_key) {
  bytes_in_memory.fetch_add(encoded.size(), std::memory_order_relaxed);
  encoded_.store(new model::Bytes(std::move(encoded)), std::memory_order_release);
}

std::unique_ptr<ColdBlock> ColdBlock::of_rows(const Place& place, std::span<const model::RowView> rows,
                                              std::uint32_t born) {
  model::Bytes encoded;
  encode_block(rows, encoded);
  encoded.shrink_to_fit();
  std::unique_ptr<ColdBlock> block(
      new ColdBlock(place, rows.front().sort_key(), rows.back().sort_key(), std::move(encoded)));
  block->born_ = born;
  block->rows_ = static_cast<std::uint32_t>(rows.size());
  for (const model::RowView& row : rows) {
    block->tombstones_ += row.tombstone() ? 1 : 0;
    block->row_bytes_ += row.bytes().size();
  }
  return block;
}

std::unique_ptr<ColdBlock> ColdBlock::of_value(const Place& place, std::string_view first_key, model::Bytes encoded) {
  const auto rows = decode_block(encoded);
  if (!rows.ok()) return nullptr;
  const std::uint32_t count = (*rows)->writer_count();
  std::unique_ptr<ColdBlock> block(
      new ColdBlock(place, first_key, (*rows)->row(count - 1).sort_key(), std::move(encoded)));
  block->rows_ = count;
  for (std::uint32_t i = 0; i < count; ++i) {
    block->tombstones_ += (*rows)->row(i).tombstone() ? 1 : 0;
    block->row_bytes_ += (*rows)->row_bytes(i).size();
  }
  return block;
}

ColdBlock::~ColdBlock() {
  const model::Bytes* const encoded = encoded_.load(std::memory_order_relaxed);  // nobody else is left
  if (encoded != nullptr) bytes_in_memory.fetch_sub(encoded->size(), std::memory_order_relaxed);
  delete encoded;
}

model::Result<std::shared_ptr<Block>> ColdBlock::decode() const {
  if (!read_.load(std::memory_order_relaxed)) read_.store(true, std::memory_order_relaxed);
  if (const model::Bytes* encoded = in_memory()) return decode_block(*encoded);
  model::Bytes encoded;
  if (model::Status status = disk_.read(Family::kBlocks, key_, encoded); !status.ok()) return status;
  auto rows = decode_block(encoded);
  if (rows.ok() && ((*rows)->writer_count() != rows_ || (*rows)->row(rows_ - 1).sort_key() != last_key_)) {
    return model::invalid("a block on disk has been replaced");
  }
  return rows;
}

model::Result<std::shared_ptr<Block>> ColdBlock::decode_patiently() const {
  constexpr auto kPause = std::chrono::milliseconds(20);
  constexpr int kTries = 3'000;
  for (int left = kTries;; --left) {
    auto rows = decode();
    if (rows.ok() || rows.status().code() != model::StatusCode::kUnavailable || left == 0) return rows;
    std::this_thread::sleep_for(kPause);
  }
}

void ColdBlock::forget() {
  const model::Bytes* const encoded = encoded_.exchange(nullptr, std::memory_order_relaxed);
  bytes_in_memory.fetch_sub(encoded->size(), std::memory_order_relaxed);
  delete encoded;
}

std::size_t ColdBlock::evict(RetireList& retired) {
  if (in_memory() == nullptr || read_.exchange(false, std::memory_order_relaxed)) return 0;
  const model::Bytes* const encoded = encoded_.exchange(nullptr, std::memory_order_acq_rel);  // pairs with in_memory()
  const std::size_t size = encoded->size();
  bytes_in_memory.fetch_sub(size, std::memory_order_relaxed);
  retired.retire(const_cast<model::Bytes*>(encoded), [](void* old) { delete static_cast<model::Bytes*>(old); });
  return size;
}

std::uint64_t cold_bytes_in_memory() {
  return bytes_in_memory.load(std::memory_order_relaxed);
}

}  // namespace drover::store
