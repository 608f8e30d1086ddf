#include "expirer.h"

#include <algorithm>
#include <thread>
#include <tuple>
#include <utility>

#include "drover/model/decimal.h"
#include "drover/model/key.h"
#include "drover/model/time.h"
#include "drover/model/value_view.h"

namespace drover::store {
namespace {

/// What one step looks at: about a millisecond's work.
constexpr std::uint32_t kItemsPerStep = 16 * 1024;
/// Removals in hand: few beside the API writes that a shard takes, so that these never wait long.
constexpr std::uint32_t kRemovalsInHandMax = 256;
/// An item that expired longer ago is taken for a mistake, as DynamoDB does (a zero is the year 1970).
constexpr std::int64_t kExpiredAgoSecondsMax = std::int64_t{5} * 365 * 24 * 3600;

/// A table is looked through for what it does not retain any more so often in the time that it retains …
constexpr std::int64_t kTrimsPerRetain = 100;
constexpr std::int64_t kTrimPauseMsMin = 1'000;
/// … and a reading in a cold block with younger ones stays longer by this part of that time, at most.
constexpr std::int64_t kOverdueDivisor = 10;

std::optional<model::Decimal> number_of(const std::optional<model::ValueView>& value) {
  const bool is_number =
      value && (value->tag() == model::ValueTag::kNumber || value->tag() == model::ValueTag::kBigNumber);
  return is_number ? std::optional(value->number()) : std::nullopt;
}

/// What a table does not retain: keys of the times from the first that there can be up to the bound. Whatever else has
/// the prefix sorts in front of them, or is taken for the time that it sorts behind.
std::optional<Trim> trim_of(const model::TableSchema& schema, std::int64_t retain_ms, std::int64_t now_ms) {
  if (retain_ms == 0 || !schema.time_sort_key) return std::nullopt;
  const model::TimeNs first = *model::parse_time("1678-01-01T00:00:00Z");
  const auto key_of = [&](std::int64_t ms) {
    return model::time_key(*schema.time_sort_key,
                           model::time_of_number(ms, 0, model::TimeUnit::kMillis).value_or(first));
  };
  const std::int64_t end_ms = now_ms - retain_ms;
  return Trim{model::time_key(*schema.time_sort_key, first), key_of(end_ms),
              key_of(end_ms - retain_ms / kOverdueDivisor)};
}

}  // namespace

TtlRule::TtlRule(const model::TableSchema& schema, std::string attribute, const model::AttributeNames& names)
    : attribute_(std::move(attribute)), names_(&names) {
  const auto from_key = [this](const model::KeyAttribute& key, From from) {
    if (key.name == attribute_) from_ = key.type == model::KeyType::kNumber ? from : From::kNowhere;
  };
  from_key(schema.key.partition_key, From::kPartitionKey);
  if (schema.key.sort_key) from_key(*schema.key.sort_key, From::kSortKey);
}

bool TtlRule::is_expired(std::string_view partition_key, std::string_view sort_key, std::string_view attributes,
                         std::int64_t now_ms) const {
  std::optional<model::Decimal> at;
  switch (from_) {
    case From::kAttribute:
      at = number_of(model::find_attribute(attributes, attribute_, *names_));
      break;
    case From::kPartitionKey:
      at = model::Decimal::decode_ordered(partition_key);
      break;
    case From::kSortKey:
      at = model::Decimal::decode_ordered(sort_key);
      break;
    case From::kNowhere:
      break;
  }
  const std::int64_t now = now_ms / 1000;
  return at && *at < model::Decimal(now) && *at >= model::Decimal(now - kExpiredAgoSecondsMax);
}

bool Expirer::step(const std::vector<std::shared_ptr<MemoryTable>>& tables) {
  items_left_ = kItemsPerStep;
  auto table = std::find_if(tables.begin(), tables.end(), [this](const auto& t) { return t->schema().name >= table_; });
  for (; table != tables.end(); ++table) {
    if ((*table)->schema().name != table_) begin(**table);
    if (!walk(**table)) return false;
  }
  table_.clear();
  return true;
}

void Expirer::trim(const std::vector<std::shared_ptr<MemoryTable>>& tables) {
  for (const auto& table : tables) {
    begin(*table);
    ttl_ = nullptr;
    for (items_left_ = kItemsPerStep; !walk(*table); items_left_ = kItemsPerStep) std::this_thread::yield();
  }
  table_.clear();
}

void Expirer::begin(const MemoryTable& table) {
  table_ = table.schema().name;
  segment_ = 0;
  from_ = {};
  const model::Retention retention = table.retention();
  ttl_ = retention.ttl_attribute.empty()
             ? nullptr
             : std::make_shared<const TtlRule>(table.schema(), retention.ttl_attribute, shared_.names);
  trim_.reset();
  const std::int64_t now_ms = shared_.options.clock();
  std::int64_t& next_ms = next_trim_ms_[table.id()];
  if (now_ms < next_ms) return;
  trim_ = trim_of(table.schema(), retention.retain_ms, now_ms);
  if (trim_) next_ms = now_ms + std::max(retention.retain_ms / kTrimsPerRetain, kTrimPauseMsMin);
}

bool Expirer::walk(MemoryTable& table) {
  if (ttl_ == nullptr && !trim_) return true;
  for (; segment_ < model::kSegments; ++segment_) {
    const EpochDomain::Guard guard(shared_.epochs);
    const auto collections = table.spaces().front()->collections(segment_);
    for (const Collection* collection : collections) {
      if (is_passed(*collection)) continue;
      if (collection->partition_key() != from_.partition_key) from_ = {model::Bytes(collection->partition_key()), {}};
      if (!walk(table, *collection)) return false;
    }
    from_ = {};
  }
  return true;
}

/// Whether the walk has left the collection behind, in its segment.
bool Expirer::is_passed(const Collection& collection) const {
  return !from_.partition_key.empty() &&
         std::tuple(collection.hash(), collection.partition_key()) <
             std::tuple(model::hash_key(from_.partition_key), std::string_view(from_.partition_key));
}

bool Expirer::walk(MemoryTable& table, const Collection& collection) {
  if (items_left_ == 0) return false;
  --items_left_;  // an empty one costs a look, too
  if (trim_ && from_.sort_key.empty() && collection.may_hold(trim_->begin, trim_->end) && !trim(table, collection)) {
    return false;
  }
  if (ttl_ == nullptr) return true;
  const std::int64_t now_ms = shared_.options.clock();
  Cursor cursor(collection);
  cursor.seek_lower_bound(from_.sort_key);
  for (bool more = cursor.at_row(); more; more = cursor.next()) {
    const model::RowView row = cursor.row();
    const bool expired =
        !row.tombstone() && ttl_->is_expired(collection.partition_key(), row.sort_key(), row.attributes(), now_ms);
    if (items_left_ == 0 || (expired && !remove(table, collection.partition_key(), row.sort_key()))) {
      from_.sort_key = row.sort_key();
      return false;
    }
    --items_left_;
  }
  return true;
}

bool Expirer::remove(MemoryTable& table, std::string_view partition_key, std::string_view sort_key) {
  ItemWrite write;
  write.done = take_place();
  if (write.done == nullptr) return false;
  write.partition_key = partition_key;
  write.sort_key = sort_key;
  // The table outlives its writer's turns.
  write.decide = [ttl = ttl_, clock = shared_.options.clock, &expired = table.counters().expired,
                  partition_key = write.partition_key,
                  sort_key = write.sort_key](std::optional<std::string_view> present) -> ItemWrite::Decision {
    if (!present || !ttl->is_expired(partition_key, sort_key, *present, clock())) return {};
    expired.fetch_add(1, std::memory_order_relaxed);
    return {ItemWrite::Action::kDelete, {}};
  };
  const model::Status status = table.write(std::move(write));
  if (!status.ok()) in_hand_->fetch_sub(1, std::memory_order_relaxed);
  return status.code() != model::StatusCode::kFull;
}

bool Expirer::trim(MemoryTable& table, const Collection& collection) {
  auto done = take_place();
  if (done == nullptr) return false;
  const model::Status status = table.trim(model::Bytes(collection.partition_key()), *trim_, std::move(done));
  if (!status.ok()) in_hand_->fetch_sub(1, std::memory_order_relaxed);
  return status.code() != model::StatusCode::kFull;
}

std::function<void(model::Status)> Expirer::take_place() {
  if (in_hand_->load(std::memory_order_relaxed) >= kRemovalsInHandMax) return nullptr;
  in_hand_->fetch_add(1, std::memory_order_relaxed);
  return [in_hand = in_hand_](const model::Status&) { in_hand->fetch_sub(1, std::memory_order_relaxed); };
}

}  // namespace drover::store
