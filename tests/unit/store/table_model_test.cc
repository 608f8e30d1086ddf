#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "drover/store/item.h"
#include "drover/store/store.h"
#include "tests/support/rows.h"
#include "tests/support/seeds.h"
#include "tests/support/tables.h"
#include "tests/support/temporary_directory.h"

namespace drover::store {
namespace {

using model::AttributeValue;
using model::IndexSchema;
using model::Item;
using model::KeyAttribute;
using model::KeyType;
using model::ProjectionType;
using model::SourceId;
using model::TableSchema;
using model::Version;
using test::number;
using test::text;

constexpr std::int64_t kDrainMs = 20'000;

std::int64_t clock_ms = 0;  // what the store under test takes for the time

/// Every kind of index: inherited key, number keys, sparse, all three projections, the table's keys turned round.
TableSchema schema_under_test() {
  return test::telemetry_schema(
      {test::depot_index(),
       {"speed", {{"speedKph", KeyType::kNumber}, std::nullopt}, false, ProjectionType::kKeysOnly, {}},
       {"driver",
        {{"driver", KeyType::kString}, KeyAttribute{"fuelPct", KeyType::kNumber}},
        false,
        ProjectionType::kInclude,
        {"speedKph", "note"}},
       {"turned",
        {{"recordedAt", KeyType::kString}, KeyAttribute{"vehicleId", KeyType::kString}},
        false,
        ProjectionType::kKeysOnly,
        {}}});
}

std::optional<model::Bytes> encoded_key(const KeyAttribute& attribute, const Item& item) {
  const auto found = item.find(attribute.name);
  model::Bytes encoded;
  if (found == item.end()) return std::nullopt;
  EXPECT_TRUE(model::append_key(encoded, attribute, found->second, model::kPartitionKeySizeBytesMax).ok());
  return encoded;
}

struct Entry {
  Version version;
  bool deleted = false;
  Item attributes;
};
/// By encoded partition key, then by encoded sort key.
using Collections = std::map<std::string, std::map<std::string, Item>>;

/// A table as its contract describes it, in the simplest way.
class NaiveTable {
 public:
  explicit NaiveTable(const TableSchema& schema) : schema_(schema) {}

  void stream(const std::string& partition_key, const std::string& sort_key, const Item& attributes, Version version) {
    auto& collection = entries_[partition_key];
    const auto present = collection.find(sort_key);
    if (present != collection.end()) {
      if (!present->second.deleted && same(sort_key, present->second.attributes, attributes)) {
        ++repeated;
        present->second.version = std::max(present->second.version, version);
        return;
      }
      if (version <= present->second.version) {
        ++conflicting;
        return;
      }
    }
    const Item full = stamped(partition_key, sort_key, attributes);
    if (!fits_indexes(full)) {
      ++refused;
      return;
    }
    ++(present != collection.end() ? conflicting : stored);
    store(partition_key, sort_key, {version, false, full});
  }

  /// What the API write's decision is to see.
  std::optional<Item> look(const std::string& partition_key, const std::string& sort_key) {
    const auto& collection = entries_[partition_key];
    const auto present = collection.find(sort_key);
    return present == collection.end() || present->second.deleted ? std::nullopt
                                                                  : std::optional(present->second.attributes);
  }

  bool put(const std::string& partition_key, const std::string& sort_key, const Item& attributes) {
    const Item full = stamped(partition_key, sort_key, attributes);
    if (!fits_indexes(full)) return false;
    store(partition_key, sort_key, {api_version(partition_key, sort_key), false, full});
    return true;
  }

  void remove(const std::string& partition_key, const std::string& sort_key) {
    if (!look(partition_key, sort_key)) return;
    store(partition_key, sort_key, {api_version(partition_key, sort_key), true, {}});
  }

  /// Whole items, key attributes included.
  Collections items() const {
    Collections all;
    for (const auto& [partition_key, collection] : entries_) {
      for (const auto& [sort_key, entry] : collection) {
        if (entry.deleted) continue;
        Item item = entry.attributes;
        item.emplace("vehicleId", text(partition_key));
        item.emplace("recordedAt", text(sort_key));
        all[partition_key].emplace(sort_key, std::move(item));
      }
    }
    return all;
  }

  std::uint64_t stored = 0, repeated = 0, conflicting = 0, refused = 0;

 private:
  bool is_inherited(const std::string& name) const {
    return std::find(schema_.inherit.begin(), schema_.inherit.end(), name) != schema_.inherit.end();
  }

  bool same(const std::string& sort_key, Item present, const Item& incoming) const {
    if (sort_key != schema_.inherit_from) {
      std::erase_if(present,
                    [&](const auto& named) { return is_inherited(named.first) && !incoming.contains(named.first); });
    }
    return present == incoming;
  }

  Item stamped(const std::string& partition_key, const std::string& sort_key, Item attributes) {
    if (sort_key == schema_.inherit_from) return attributes;
    const std::optional<Item> meta = look(partition_key, schema_.inherit_from);
    for (const std::string& name : schema_.inherit) {
      if (meta && meta->contains(name)) attributes.emplace(name, meta->at(name));
    }
    return attributes;
  }

  bool fits_indexes(const Item& item) const {
    for (const IndexSchema& index : schema_.indexes) {
      for (const std::optional<KeyAttribute>& key : {std::optional(index.key.partition_key), index.key.sort_key}) {
        const auto value = key ? item.find(key->name) : item.end();
        model::Bytes encoded;
        if (value != item.end() && !model::append_key(encoded, *key, value->second, model::kSortKeySizeBytesMax).ok())
          return false;
      }
    }
    return true;
  }

  Version api_version(const std::string& partition_key, const std::string& sort_key) {
    const auto present = entries_[partition_key].find(sort_key);
    const std::int64_t above = present == entries_[partition_key].end() ? 0 : present->second.version.log_time_ms() + 1;
    return Version::of(std::max(clock_ms, above), model::kApiSource, ++api_writes_);
  }

  void store(const std::string& partition_key, const std::string& sort_key, Entry entry) {
    entries_[partition_key][sort_key] = std::move(entry);
  }

  const TableSchema schema_;
  std::map<std::string, std::map<std::string, Entry>> entries_;
  std::uint64_t api_writes_ = 0;
};

/// An index's collections as they follow from the table's items.
Collections entries_of(const TableSchema& schema, const IndexSchema& index, const Collections& items) {
  Collections entries;
  for (const auto& [partition_key, collection] : items) {
    for (const auto& [sort_key, item] : collection) {
      const auto partition = encoded_key(index.key.partition_key, item);
      const auto sort = index.key.sort_key ? encoded_key(*index.key.sort_key, item) : std::optional<model::Bytes>("");
      if (!partition || !sort) continue;
      Item entry;
      for (const auto& [name, value] : item) {
        const bool key = name == schema.key.partition_key.name || name == schema.key.sort_key->name ||
                         name == index.key.partition_key.name ||
                         (index.key.sort_key && name == index.key.sort_key->name);
        const bool included = std::find(index.included.begin(), index.included.end(), name) != index.included.end();
        if (key || index.projection == ProjectionType::kAll || included) entry.emplace(name, value);
      }
      entries[*partition].emplace(index_sort_key(schema, index, *sort, partition_key, sort_key), std::move(entry));
    }
  }
  return entries;
}

/// A store, a table in it, and everything that can be asked of them.
class TableUnderTest {
 public:
  explicit TableUnderTest(const TableSchema& schema)
      : store_(Store::open(options(0))), table_(store_->create_table(schema).value()) {}
  /// One in a directory: what doesn't fit into the budget is on the disk only.
  TableUnderTest(const TableSchema& schema, std::string directory, std::uint64_t memory_budget_bytes)
      : directory_(std::move(directory)), memory_budget_bytes_(memory_budget_bytes) {
    open();
    table_ = store_->create_table(schema).value();
  }

  void checkpoint() {
    auto cut = store_->cut(kDrainMs);
    ASSERT_TRUE(cut.ok()) << cut.status().message();
    ASSERT_TRUE((*cut)->write({}).ok());
    ASSERT_TRUE(store_->drain(kDrainMs));
  }
  /// What the stream brought since the last checkpoint is gone then.
  void restart() {
    const std::string name = table_->schema().name;
    table_.reset();
    store_.reset();
    open();
    EXPECT_TRUE(store_->recovery().damaged.empty());
    table_ = store_->find_table(name);
  }

  Store& store() { return *store_; }
  Table& table() { return *table_; }
  model::AttributeNames& names() { return store_->names(); }

  /// What a scan finds, in pages of `page` items; checks the order and that no item comes twice.
  Collections scan(std::string_view index, std::size_t page, std::uint32_t segment_begin = 0,
                   std::uint32_t segment_end = model::kSegments) {
    ItemReader reader(table_->schema(), index.empty() ? nullptr : table_->schema().find_index(index), names());
    Collections found;
    std::optional<Table::ScanPosition> after;
    std::tuple<model::KeyHash, std::string, std::string> last;
    bool first = true;
    for (bool more = true; more;) {
      std::size_t visited = 0;
      EXPECT_TRUE(table_
                      ->scan(index, segment_begin, segment_end, after,
                             [&](const StoredItem& item) {
                               const std::string partition_key(item.partition_key);
                               const std::string sort_key(item.row.sort_key());
                               const std::tuple at(model::hash_key(partition_key), partition_key, sort_key);
                               EXPECT_TRUE(first || last < at);
                               EXPECT_LE(segment_begin, model::segment_of(model::hash_key(partition_key)));
                               EXPECT_GT(segment_end, model::segment_of(model::hash_key(partition_key)));
                               first = false;
                               last = at;
                               found[partition_key].emplace(sort_key, reader.to_item(item));
                               after = {partition_key, sort_key};
                               return ++visited < page;
                             })
                      .ok());
      more = visited == page;
    }
    return found;
  }

  std::vector<Item> read(std::string_view index, const std::string& partition_key, const KeyRange& range,
                         bool ascending) {
    return test::read_items(*table_, names(), index, partition_key, range, ascending);
  }

 private:
  static StoreOptions options(std::uint64_t memory_budget_bytes) {
    return {.workers = 2, .shards_per_table = 3, .memory_budget_bytes = memory_budget_bytes, .clock = [] {
              return clock_ms;
            }};
  }
  void open() {
    auto store = Store::open(directory_, options(memory_budget_bytes_));
    DROVER_CHECK(store.ok(), "the directory can be opened");
    store_ = std::move(store).value();
  }

  const std::string directory_;
  const std::uint64_t memory_budget_bytes_ = 0;
  std::unique_ptr<Store> store_;
  std::shared_ptr<Table> table_;
};

std::vector<Item> slice(const std::map<std::string, Item>& collection, const KeyRange& range, bool ascending) {
  std::vector<Item> items;
  for (const auto& [key, item] : collection) {
    if (range.lower && (range.lower->inclusive ? key < range.lower->key : key <= range.lower->key)) continue;
    if (range.upper && (range.upper->inclusive ? key > range.upper->key : key >= range.upper->key)) continue;
    items.push_back(item);
  }
  return ascending ? items : std::vector<Item>(items.rbegin(), items.rend());
}

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(engine_); }
  bool one_in(int n) { return below(n) == 0; }
  std::mt19937& engine() { return engine_; }
  std::uint64_t next_offset() { return ++offset_; }

  std::string vehicle() { return "VEH#" + std::to_string(below(12)); }
  std::string sort_key() { return one_in(15) ? "META" : "TS#" + std::to_string(10'000 + below(120)); }
  Item attributes(const std::string& sort_key) {
    Item item;
    if (sort_key == "META") {
      item.emplace("plate", text("LB " + std::to_string(below(2))));
      if (!one_in(4)) item.emplace("depotCode", text("DEP-" + std::to_string(below(3))));
      return item;
    }
    item.emplace("speedKph", number(below(4) * 10 - 10));
    if (one_in(2)) item.emplace("driver", text(std::string("d\0river", 7) + std::to_string(below(3))));
    if (one_in(2))
      item.emplace("fuelPct", AttributeValue::of_number(model::Decimal::parse(one_in(2) ? "0.5" : "-12.25").value()));
    if (one_in(5)) item.emplace("note", text(std::string(static_cast<std::size_t>(below(300)), 'n')));
    if (one_in(30)) item.insert_or_assign("driver", number(7));  // of another type than the index says
    return item;
  }

  KeyRange range(const std::map<std::string, Item>& collection) {
    const auto bound = [&]() -> std::optional<KeyRange::Bound> {
      if (one_in(3)) return std::nullopt;
      std::string key =
          collection.empty() ? "TS#" : std::next(collection.begin(), below(static_cast<int>(collection.size())))->first;
      if (one_in(3)) key += "+";
      return KeyRange::Bound{key, one_in(2)};
    };
    return {bound(), bound()};
  }

 private:
  std::mt19937 engine_;
  std::uint64_t offset_ = 0;
};

void expect_same(TableUnderTest& actual, const Collections& expected, std::string_view index, Random& random) {
  ASSERT_EQ(actual.scan(index, static_cast<std::size_t>(1 + random.below(50))), expected) << index;
  const auto middle = static_cast<std::uint32_t>(random.below(static_cast<int>(model::kSegments)));
  Collections halves = actual.scan(index, 7, 0, middle);
  halves.merge(actual.scan(index, 7, middle, model::kSegments));
  ASSERT_EQ(halves, expected) << index;
  std::uint64_t items = 0;
  for (const auto& [partition_key, collection] : expected) {
    items += collection.size();
    for (const bool ascending : {true, false}) {
      ASSERT_EQ(actual.read(index, partition_key, {}, ascending), slice(collection, {}, ascending)) << index;
      const KeyRange range = random.range(collection);
      ASSERT_EQ(actual.read(index, partition_key, range, ascending), slice(collection, range, ascending)) << index;
    }
  }
  ASSERT_EQ(actual.table().size(index).items, items) << index;
}

void expect_same(TableUnderTest& actual, const Collections& items, Random& random) {
  expect_same(actual, items, "", random);
  const TableSchema& schema = actual.table().schema();
  for (const IndexSchema& index : schema.indexes) {
    if (testing::Test::HasFatalFailure()) return;
    expect_same(actual, entries_of(schema, index, items), index.name, random);
  }
}

class TableModel : public testing::TestWithParam<std::uint32_t> {};

/// One API write on both; checks what its decision saw and how it ended.
void write_both(TableUnderTest& actual, NaiveTable& naive, Random& random) {
  const std::string vehicle = random.vehicle();
  const std::string sort_key = random.sort_key();
  const Item attributes = random.attributes(sort_key);
  const auto action = static_cast<ItemWrite::Action>(random.below(3));
  const std::optional<Item> expected = naive.look(vehicle, sort_key);
  std::optional<Item> seen;
  const model::Status status =
      test::write_and_wait(actual.table(), vehicle, sort_key, [&](std::optional<std::string_view> present) {
        if (present) seen = test::decode_attributes(*present, actual.names());
        return ItemWrite::Decision{action, test::encode_attributes(attributes, actual.names())};
      });
  ASSERT_EQ(seen, expected);
  if (action == ItemWrite::Action::kPut) {
    ASSERT_EQ(naive.put(vehicle, sort_key, attributes), status.ok()) << status.message();
  } else {
    ASSERT_TRUE(status.ok());
    if (action == ItemWrite::Action::kDelete) naive.remove(vehicle, sort_key);
  }
}

/// A batch of stream rows and some API writes on both.
void change_both(TableUnderTest& actual, NaiveTable& naive, Random& random) {
  test::BatchBuilder batch(actual.names());
  for (int i = random.below(60); i >= 0; --i) {
    const std::string vehicle = random.vehicle();
    const std::string sort_key = random.sort_key();
    const Item attributes = random.attributes(sort_key);
    const Version version =
        Version::of(clock_ms + random.below(40) - 20, SourceId{static_cast<std::uint16_t>(1 + random.below(3))},
                    random.next_offset());
    for (int times = random.one_in(4) ? 2 : 1; times > 0; --times) {
      batch.add(vehicle, sort_key, attributes, version);
      naive.stream(vehicle, sort_key, attributes, version);
    }
  }
  ASSERT_TRUE(test::feed(actual.table(), batch.take()));
  ASSERT_TRUE(actual.store().drain(kDrainMs));
  for (int i = random.below(10); i > 0; --i) ASSERT_NO_FATAL_FAILURE(write_both(actual, naive, random));
  clock_ms += random.below(10);
}

// Goal: a table and its indexes hold what their contract says, whatever mix of stream rows and API writes made them.
// Method: the same random operations on the store and on a naive table; after some, every collection of the table and
// of
//         every index is compared, through reads in both directions with random bounds and through paged scans. Few
//         keys and few values, so that repeats, conflicts, late rows and moving index entries are common.
TEST_P(TableModel, HoldsWhatTheNaiveTableHolds) {
  Random random(GetParam());
  TableUnderTest actual(schema_under_test());
  NaiveTable naive(schema_under_test());
  clock_ms = 1'000;
  for (int round = 0; round < 80; ++round) {
    ASSERT_NO_FATAL_FAILURE(change_both(actual, naive, random));
    if (round % 20 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_same(actual, naive.items(), random));
    }
  }
  expect_same(actual, naive.items(), random);
  const StoreStats stats = actual.store().stats();
  EXPECT_EQ(stats.rows_stored, naive.stored);
  EXPECT_EQ(stats.rows_repeated, naive.repeated);
  EXPECT_EQ(stats.rows_conflicting, naive.conflicting);
  EXPECT_EQ(stats.rows_refused, naive.refused);
  for (const std::uint64_t counted : {naive.stored, naive.repeated, naive.conflicting, naive.refused})
    EXPECT_GT(counted, 0u);
}

// Goal: the same of a table that is on the disk, little of it in memory.
// Method: as above, with checkpoints, and restarts behind one and some API writes: what a restart reads from Kafka
// again
//         is DurableStoreRandom's, since what readings inherit then is of another moment.
TEST_P(TableModel, HoldsItThroughCheckpointsAndRestarts) {
  Random random(GetParam());
  const test::TemporaryDirectory directory;
  const auto memory_budget_bytes = static_cast<std::uint64_t>(random.below(3)) * 50'000;
  TableUnderTest actual(schema_under_test(), directory.path(), memory_budget_bytes);
  NaiveTable naive(schema_under_test());
  clock_ms = 1'000;
  for (int round = 0; round < 80; ++round) {
    ASSERT_NO_FATAL_FAILURE(change_both(actual, naive, random));
    if (random.one_in(3)) {
      ASSERT_NO_FATAL_FAILURE(actual.checkpoint());
    }
    if (random.one_in(10)) {
      ASSERT_NO_FATAL_FAILURE(actual.checkpoint());
      for (int i = random.below(10); i > 0; --i) ASSERT_NO_FATAL_FAILURE(write_both(actual, naive, random));
      actual.restart();
      ASSERT_NO_FATAL_FAILURE(expect_same(actual, naive.items(), random));
    }
  }
  expect_same(actual, naive.items(), random);
}

INSTANTIATE_TEST_SUITE_P(Seeds, TableModel, test::seeds(4));

/// All but what was inherited, and the version.
using Contents = std::map<std::pair<std::string, std::string>, std::pair<Version, Item>>;

Contents contents_of(TableUnderTest& table) {
  Contents contents;
  EXPECT_TRUE(table.table()
                  .scan("", 0, model::kSegments, std::nullopt,
                        [&](const StoredItem& item) {
                          Item attributes = test::decode_attributes(item.row.attributes(), table.names());
                          if (item.row.sort_key() != "META") attributes.erase("depotCode");
                          contents[{std::string(item.partition_key), std::string(item.row.sort_key())}] = {
                              item.row.version(), std::move(attributes)};
                          return true;
                        })
                  .ok());
  return contents;
}

// Goal: the order in which stream rows arrive decides nothing but what readings inherit.
// Method: rows with repeats and conflicts, in many random orders and batch sizes; the outcome must be, for every key,
// the
//         content of its highest version, and every index must follow from its table.
TEST_P(TableModel, TheOrderOfArrivalDoesNotMatter) {
  Random random(GetParam());
  struct Row {
    std::string vehicle;
    std::string sort_key;
    Item attributes;
    Version version;
  };
  std::vector<Row> rows;
  Contents expected;
  for (std::uint64_t offset = 1; offset <= 1'200; ++offset) {
    Row row{random.vehicle(),
            random.sort_key(),
            {},
            Version::of(random.below(50), SourceId{static_cast<std::uint16_t>(1 + random.below(3))}, offset)};
    do {
      row.attributes = random.attributes(row.sort_key);
    } while (row.attributes.contains("driver") && row.attributes.at("driver").type == model::AttributeType::kNumber);
    auto& [version, attributes] = expected[{row.vehicle, row.sort_key}];
    if (version < row.version) std::tie(version, attributes) = std::tie(row.version, row.attributes);
    rows.push_back(row);
    if (random.one_in(5)) rows.push_back(row);
  }
  for (int order = 0; order < 4; ++order) {
    std::shuffle(rows.begin(), rows.end(), random.engine());
    TableUnderTest table(schema_under_test());
    test::BatchBuilder batch(table.names());
    for (const Row& row : rows) {
      batch.add(row.vehicle, row.sort_key, row.attributes, row.version);
      if (random.one_in(100)) {
        ASSERT_TRUE(test::feed(table.table(), batch.take()));
      }
    }
    ASSERT_TRUE(test::feed(table.table(), batch.take()));
    ASSERT_TRUE(table.store().drain(kDrainMs));
    ASSERT_EQ(contents_of(table), expected);
    expect_same(table, table.scan("", 1'000), random);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace drover::store
