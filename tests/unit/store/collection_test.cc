#include "collection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/rows.h"
#include "tests/support/seeds.h"

namespace drover::store {
namespace {

using test::make_row;

/// A sort key of fixed width, so that number order is text order.
std::string key_of(std::uint32_t n) {
  char text[16];
  std::snprintf(text, sizeof text, "%07u", n);
  return text;
}

/// Rows of one collection as the collection shall have them: by sort key.
using Model = std::map<std::string, std::string>;

/// Collects what a cursor shows from where it stands.
std::vector<std::string> rows_from(Cursor& cursor, bool forwards) {
  std::vector<std::string> rows;
  for (bool more = forwards ? cursor.at_row() : cursor.previous(); more;
       more = forwards ? cursor.next() : cursor.previous()) {
    rows.emplace_back(cursor.row().bytes());
  }
  return rows;
}

std::vector<std::string> rows_of(Model::const_iterator begin, Model::const_iterator end) {
  std::vector<std::string> rows;
  for (; begin != end; ++begin) rows.push_back(begin->second);
  return rows;
}

std::vector<std::string> reversed(std::vector<std::string> rows) {
  return {rows.rbegin(), rows.rend()};
}

void expect_same(const Cursor& cursor, const Model& model) {
  const std::vector<std::string> all = rows_of(model.begin(), model.end());
  Cursor forwards = cursor;
  forwards.seek_first();
  ASSERT_EQ(rows_from(forwards, true), all);
  Cursor backwards = cursor;
  backwards.seek_end();
  EXPECT_FALSE(backwards.at_row());
  ASSERT_EQ(rows_from(backwards, false), reversed(all));
}

void expect_same_seeks(const Cursor& cursor, const Model& model, const std::string& key) {
  Cursor at = cursor;
  at.seek_lower_bound(key);
  ASSERT_EQ(rows_from(at, true), rows_of(model.lower_bound(key), model.end())) << key;
  at.seek_lower_bound(key);
  ASSERT_EQ(rows_from(at, false), reversed(rows_of(model.begin(), model.lower_bound(key)))) << key;
  at.seek_upper_bound(key);
  ASSERT_EQ(rows_from(at, true), rows_of(model.upper_bound(key), model.end())) << key;
  at.seek_upper_bound(key);
  ASSERT_EQ(rows_from(at, false), reversed(rows_of(model.begin(), model.upper_bound(key)))) << key;
}

/// A collection and its model, changed together.
class Pair {
 public:
  explicit Pair(const CollectionTuning& tuning)
      : tuning_(tuning), collection_(1, "VEH#V-7741", tuning_), retired_(epochs_) {}

  void append(const std::string& key, const std::string& attributes) {
    ASSERT_TRUE(collection_.is_append(key));
    const std::string row = make_row(key, attributes);
    collection_.append(model::RowView(row), retired_);
    model_[key] = row;
  }

  /// As the shard's writer puts a row. `more`: attributes that it inherits.
  void put(const std::string& key, const std::string& attributes, const std::string& more = {}) {
    const std::string row = make_row(key, attributes);
    if (collection_.is_append(key)) {
      collection_.append(model::RowView(row), retired_, more);
    } else {
      ASSERT_EQ(collection_.put_late(model::RowView(row), more, collection_.find(key), retired_), 0u);
    }
    model_[key] = row + more;
  }

  /// `attributes` by key; nothing removes.
  void merge(const std::map<std::string, std::optional<std::string>>& wanted) {
    std::vector<std::string> rows;
    for (const auto& [key, attributes] : wanted) rows.push_back(make_row(key, attributes.value_or("")));
    std::vector<Change> changes;
    std::size_t i = 0;
    for (const auto& [key, attributes] : wanted) {
      changes.push_back({rows[i], !attributes});
      if (attributes) {
        model_[key] = rows[i];
      } else {
        model_.erase(key);
      }
      ++i;
    }
    collection_.merge(changes, retired_);
  }

  /// Removes [begin, end), as many rows at a time as `rows_max` says; 0: all at once, unread.
  void trim(const std::string& begin, const std::string& end, std::size_t rows_max) {
    const auto first = model_.lower_bound(begin);
    const auto last = end > begin ? model_.lower_bound(end) : first;
    ASSERT_EQ(collection_.may_hold(begin, end), first != last) << begin << ' ' << end;
    std::vector<std::string> used;
    const Collection::UseRow use = [&](const model::RowView& row) { used.emplace_back(row.bytes()); };
    bool more = true;
    for (std::size_t calls = 1; more; ++calls) {
      more = collection_.trim({begin, end, ""}, rows_max > 0 ? use : nullptr, rows_max, retired_).more;
      ASSERT_LE(used.size(), calls * rows_max);
    }
    if (rows_max > 0) {
      ASSERT_EQ(used, rows_of(first, last));
    }
    model_.erase(first, last);
  }

  void check_find(const std::string& key) {
    const std::optional<model::RowView> found = collection_.find(key).row;
    const auto expected = model_.find(key);
    ASSERT_EQ(found.has_value(), expected != model_.end()) << key;
    if (found) {
      ASSERT_EQ(found->bytes(), expected->second);
    }
  }

  void check_size() const {
    std::int64_t bytes = 0;
    for (const auto& [key, row] : model_) bytes += static_cast<std::int64_t>(row.size());
    ASSERT_EQ(collection_.writer.items, static_cast<std::int64_t>(model_.size()));
    ASSERT_EQ(collection_.writer.bytes, bytes);
  }

  std::size_t levels() const {
    const View* view = collection_.view();
    return view == nullptr || view->history == nullptr ? 0 : view->history->level + 1u;
  }

  /// Rows that arrived late and are not folded yet.
  std::uint32_t late_rows() const { return collection_.state().late_count; }

  const Collection& collection() const { return collection_; }
  const Model& model() const { return model_; }
  EpochDomain& epochs() { return epochs_; }
  void end_turn() { retired_.collect(); }

 private:
  const CollectionTuning tuning_;
  EpochDomain epochs_;
  Collection collection_;
  RetireList retired_;
  Model model_;
};

constexpr CollectionTuning kTinyBlocks{.block_size_bytes = 140, .first_block_size_bytes = 50};
constexpr CollectionTuning kOneRowBlocks{.block_size_bytes = 48, .first_block_size_bytes = 48};

class CollectionModel : public testing::TestWithParam<std::uint32_t> {};

// Goal: whatever is appended, put late, merged and removed, in whatever mix, a collection holds what an ordered map
// holds. Method: random operations on both, with blocks of a few rows so that the tree has several levels; after each,
// finds and
//         sizes, and from time to time everything that a cursor can do, are compared. The seed is the test's parameter.
TEST_P(CollectionModel, HoldsWhatAnOrderedMapHolds) {
  std::mt19937 random(GetParam());
  const auto below = [&](std::uint32_t bound) {
    return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random);
  };
  const auto attributes = [&] {
    return std::string(below(20) == 0 ? below(400) : below(12), static_cast<char>('a' + below(26)));
  };
  Pair pair(kTinyBlocks);
  constexpr std::uint32_t kKeys = 6'000;
  std::uint32_t newest = 0;
  std::size_t levels_max = 0;
  std::uint32_t late_max = 0;
  for (int step = 0; step < 1'500; ++step) {
    const std::uint32_t kind = below(100);
    if (kind < 25) {
      // Within a window near the end, or over others of the run, or anywhere.
      const std::uint32_t size = 1 + below(40);
      const std::uint32_t around = kind < 8 ? below(newest + 1) : newest - std::min(newest, 20u);
      for (std::uint32_t i = 0; i < size; ++i) {
        const std::string key = key_of(kind % 3 == 0   ? around + below(4)
                                       : kind % 3 == 1 ? around + below(21)
                                                       : below(newest + 1));
        pair.put(key, attributes(), below(4) == 0 ? "stamp" : "");
      }
      late_max = std::max(late_max, pair.late_rows());
    } else if (kind < 50 && newest + 8 < kKeys) {
      for (std::uint32_t i = 0; i < 8; ++i) {
        newest += 1 + below(2);
        if (pair.collection().is_append(key_of(newest))) pair.append(key_of(newest), attributes());
      }
    } else if (kind < 53) {
      const std::uint32_t begin = below(newest + 2);
      pair.trim(key_of(begin), key_of(begin + below(kind == 52 ? newest + 2 : 40)), below(2) * (1 + below(9)));
    } else {
      // Dense, sparse, or around one place; mostly puts, or mostly removals.
      std::map<std::string, std::optional<std::string>> changes;
      const std::uint32_t size = 1 + below(kind < 90 ? 5 : 300);
      const std::uint32_t around = below(newest + 2);
      const std::uint32_t removals = below(10);
      for (std::uint32_t i = 0; i < size; ++i) {
        const std::string key = key_of(kind % 2 == 0 ? below(newest + 2) : around + i);
        changes[key] = below(10) < removals ? std::nullopt : std::optional(attributes());
      }
      pair.merge(changes);
    }
    levels_max = std::max(levels_max, pair.levels());
    pair.check_find(key_of(below(newest + 3)));
    if (step % 4 == 0) pair.end_turn();
    if (step % 50 == 0) {
      pair.check_size();
      expect_same(Cursor(pair.collection()), pair.model());
      expect_same_seeks(Cursor(pair.collection()), pair.model(), key_of(below(newest + 3)));
      expect_same_seeks(Cursor(pair.collection()), pair.model(), key_of(below(newest + 3)) + "+");
      expect_same_seeks(Cursor(pair.collection()), pair.model(), "");
      expect_same_seeks(Cursor(pair.collection()), pair.model(), "~");
    }
    if (HasFatalFailure()) return;
  }
  expect_same(Cursor(pair.collection()), pair.model());
  EXPECT_GE(levels_max, 2u);
  EXPECT_GE(late_max, 2u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CollectionModel, test::seeds(4));

TEST(Collection, AppendsKeepTheirOrderThroughFourLevels) {
  Pair pair(kOneRowBlocks);
  constexpr std::uint32_t kRows = kNodeFanout * kNodeFanout * kNodeFanout + 500;
  for (std::uint32_t n = 0; n < kRows; ++n) {
    pair.append(key_of(2 * n), "");
    if (n % 64 == 0) pair.end_turn();
  }
  EXPECT_EQ(pair.levels(), 4u);
  pair.check_size();
  expect_same(Cursor(pair.collection()), pair.model());
  for (const std::uint32_t n : {0u, 63u, 64u, 2'047u, 2'048u, 65'535u, 65'536u, 2 * kRows - 2, 2 * kRows}) {
    expect_same_seeks(Cursor(pair.collection()), pair.model(), key_of(n));
    pair.check_find(key_of(n));
  }
}

// Goal: a late run shows its rows among the others, whatever its fill and whatever it hides, in both directions.
// Method: late rows one at a time into collections of full-size blocks, between others, over others and over each
// other,
//         through two folds; after each, every seek at every key, in both directions, against the model.
TEST(Collection, LateRowsOfEveryFillStandWhereTheyBelong) {
  std::mt19937 random(7);
  for (const std::uint32_t rows : {1u, 2u, 17u, 150u}) {
    Pair pair(CollectionTuning{});
    for (std::uint32_t n = 0; n < rows; ++n) pair.append(key_of(10 * n), std::string(20, 'm'));
    std::uint32_t late_max = 0;
    for (std::uint32_t i = 0; i < 3 * LateRows::kMax; ++i) {
      // A third of them in the place of others.
      const std::uint32_t n = std::uniform_int_distribution<std::uint32_t>(0, 10 * rows - 10)(random);
      pair.put(key_of(i % 3 == 0 ? n / 10 * 10 : n), "late" + std::to_string(i), i % 2 == 0 ? "" : "stamp");
      if (i % 16 == 0) pair.put(key_of(10 * rows + i), "newest");  // appended meanwhile
      late_max = std::max(late_max, pair.late_rows());
      const std::string key = key_of(std::uniform_int_distribution<std::uint32_t>(0, 10 * rows)(random));
      expect_same(Cursor(pair.collection()), pair.model());
      for (const std::string& at : {key, key_of(n), key_of(n) + "+"}) {
        expect_same_seeks(Cursor(pair.collection()), pair.model(), at);
        pair.check_find(at);
      }
      pair.check_size();
      if (HasFatalFailure()) return;
      pair.end_turn();
    }
    EXPECT_EQ(late_max, LateRows::kMax);
  }
}

TEST(Collection, ACursorMayTurnAtAnyRow) {
  std::mt19937 random(11);
  Pair pair(kTinyBlocks);
  for (std::uint32_t n = 1; n < 40; ++n) pair.append(key_of(4 * n), "main");
  for (std::uint32_t n = 0; n < 5; ++n) pair.put(key_of(n * n * 8), "late");
  ASSERT_GT(pair.late_rows(), 0u);
  const Model& model = pair.model();
  Cursor cursor(pair.collection());
  cursor.seek_lower_bound(key_of(60));
  auto at = model.lower_bound(key_of(60));
  for (int step = 0; step < 2'000; ++step) {
    // Longer walks one way, so that both ends are met.
    const bool forwards = random() % 8 < (step / 100 % 2 == 0 ? 5u : 3u);
    if (forwards ? at == model.end() || std::next(at) == model.end() : at == model.begin()) continue;
    ASSERT_TRUE(forwards ? cursor.next() : cursor.previous());
    forwards ? ++at : --at;
    ASSERT_EQ(cursor.row().bytes(), at->second);
  }
}

TEST(Collection, LateRowsAreTrimmedAndCountAsHeld) {
  Pair pair(CollectionTuning{});
  pair.append(key_of(0), "META");
  pair.append(key_of(100), "x");
  pair.put(key_of(50), "late");
  pair.put(key_of(40), "late");
  EXPECT_TRUE(pair.collection().may_hold(key_of(45), key_of(60)));
  EXPECT_FALSE(pair.collection().may_hold(key_of(51), key_of(60)));
  EXPECT_FALSE(pair.collection().may_hold(key_of(41), key_of(50)));
  pair.trim(key_of(30), key_of(45), 1);
  pair.check_size();
  expect_same(Cursor(pair.collection()), pair.model());
}

TEST(Collection, ALateRowLargerThanABlockIsMergedAtOnce) {
  Pair pair(kTinyBlocks);
  pair.append(key_of(10), "x");
  pair.append(key_of(20), "x");
  pair.put(key_of(15), "late");
  pair.put(key_of(16), std::string(300'000, 'l'), "stamp");
  EXPECT_EQ(pair.late_rows(), 0u);
  pair.put(key_of(15), std::string(70'000, 'l'));
  pair.put(key_of(16), "small again");
  pair.check_size();
  expect_same(Cursor(pair.collection()), pair.model());
}

TEST(Collection, OneMergeOverAllOfItsBlocksKeepsEveryRow) {
  Pair pair(kTinyBlocks);
  for (std::uint32_t n = 0; n < 6'000; ++n) pair.append(key_of(3 * n), "old");
  std::map<std::string, std::optional<std::string>> changes;
  for (std::uint32_t n = 0; n < 20'000; ++n) {
    if (n % 7 != 0) changes[key_of(n)] = n % 5 == 0 ? std::nullopt : std::optional<std::string>("new");
  }
  pair.merge(changes);
  pair.end_turn();
  EXPECT_GE(pair.levels(), 3u);
  pair.check_size();
  expect_same(Cursor(pair.collection()), pair.model());
}

TEST(Collection, EveryRowRemovedLeavesAnEmptyCollectionThatGrowsAgain) {
  Pair pair(kTinyBlocks);
  for (int round = 0; round < 3; ++round) {
    std::map<std::string, std::optional<std::string>> removals;
    for (std::uint32_t n = 0; n < 5'000; ++n) {
      pair.append(key_of(n), "x");
      removals[key_of(n)] = std::nullopt;
    }
    pair.merge(removals);
    EXPECT_EQ(pair.levels(), 0u);
    pair.check_size();
    expect_same(Cursor(pair.collection()), {});
    expect_same_seeks(Cursor(pair.collection()), {}, key_of(17));
    pair.end_turn();
  }
}

TEST(Collection, RemovingTheNewestRowsMakesRoomForThemAgain) {
  Pair pair(kTinyBlocks);
  for (std::uint32_t n = 0; n < 400; ++n) pair.append(key_of(n), "x");
  // From the end, so that first the tail and then block after block of the history goes.
  for (std::uint32_t n = 400; n-- > 100;) {
    pair.merge({{key_of(n), std::nullopt}});
    ASSERT_TRUE(pair.collection().is_append(key_of(n)));
    ASSERT_FALSE(pair.collection().is_append(key_of(n - 1)));
    expect_same_seeks(Cursor(pair.collection()), pair.model(), key_of(n - 1));
  }
  for (std::uint32_t n = 100; n < 400; ++n) pair.append(key_of(n), "again");
  expect_same(Cursor(pair.collection()), pair.model());
}

TEST(Collection, ARowLargerThanABlockGetsABlockOfItsOwn) {
  Pair pair(kTinyBlocks);
  const std::string large(5'000, 'x');
  pair.append(key_of(10), large);
  pair.append(key_of(20), "small");
  pair.append(key_of(30), large);
  pair.merge({{key_of(5), large}, {key_of(20), large}, {key_of(25), "small"}});
  pair.merge({{key_of(10), "small"}, {key_of(30), std::nullopt}});
  pair.check_size();
  expect_same(Cursor(pair.collection()), pair.model());
}

TEST(Collection, TheLargestItemsStandAmongSmallOnes) {
  Pair pair(CollectionTuning{});
  const std::string largest(400 * 1024, 'x');
  const std::string of_64_kib(64 * 1024, 'y');
  for (std::uint32_t n = 0; n < 300; ++n) {
    pair.append(key_of(10 * n), n % 50 == 7 ? largest : n % 50 == 9 ? of_64_kib : std::string(n % 200, 's'));
  }
  pair.merge({{key_of(5), largest}, {key_of(75), of_64_kib}, {key_of(76), "s"}, {key_of(70), "s"}});
  pair.merge({{key_of(2'991), largest}, {key_of(2'992), "s"}});
  pair.check_size();
  expect_same(Cursor(pair.collection()), pair.model());
}

TEST(Collection, KeysMayBeLongerThanWhatIsRememberedOfTheLastOne) {
  Pair pair(kTinyBlocks);
  for (std::uint32_t n = 0; n < 120; ++n) {
    const std::string key = key_of(n) + std::string(n % 3 == 0 ? 1'000 : n % 40, 'k');
    EXPECT_FALSE(n > 0 && pair.collection().is_append(pair.model().rbegin()->first));
    pair.append(key, "x");
    EXPECT_FALSE(pair.collection().is_append(key));
    EXPECT_FALSE(pair.collection().is_append(key.substr(0, key.size() - 1)));
    EXPECT_TRUE(pair.collection().is_append(key + '\0'));
    if (n % 10 == 9) pair.merge({{key, std::nullopt}});  // the last row goes
  }
  expect_same(Cursor(pair.collection()), pair.model());
}

TEST(Collection, KeysAreComparedAsUnsignedBytes) {
  Pair pair(kTinyBlocks);
  const std::vector<std::string> keys{"",
                                      std::string(1, '\0'),
                                      std::string("\0\xff", 2),
                                      "a",
                                      std::string("a\0", 2),
                                      "a\x01",
                                      "b",
                                      "\x7f",
                                      "\x80",
                                      "\xff",
                                      "\xff\xff"};
  for (const std::string& key : keys) pair.append(key, "x");
  expect_same(Cursor(pair.collection()), pair.model());
  for (const std::string& key : keys) expect_same_seeks(Cursor(pair.collection()), pair.model(), key);
}

TEST(Collection, ACollectionWithoutRowsShowsNoneAndFindsNone) {
  Pair pair(kTinyBlocks);
  expect_same(Cursor(pair.collection()), {});
  expect_same_seeks(Cursor(pair.collection()), {}, "TS#");
  pair.check_find("TS#");
  pair.merge({{"TS#", std::nullopt}});
  expect_same(Cursor(pair.collection()), {});
  EXPECT_TRUE(pair.collection().is_append(""));
}

TEST(Collection, ALateTombstoneHidesItsItemBeforeAndAfterTheFold) {
  EpochDomain epochs;
  RetireList retired(epochs);
  Collection collection(1, "k", CollectionTuning{});
  for (std::uint32_t n = 0; n < 100; ++n) collection.append(model::RowView(make_row(key_of(n), "x")), retired);
  const std::int64_t bytes = collection.writer.bytes;
  const std::string tombstone = make_row(key_of(7), "", {}, model::kRowTombstone);
  const auto put = [&](const std::string& row) {
    const FoundRow found = collection.find(model::RowView(row).sort_key());
    collection.put_late(model::RowView(row), {}, found, retired);
  };
  put(tombstone);
  EXPECT_EQ(collection.writer.items, 99);
  EXPECT_EQ(collection.writer.bytes, bytes - 1);
  EXPECT_TRUE(collection.find(key_of(7)).row->tombstone());
  put(make_row(key_of(7), "xyz"));
  EXPECT_EQ(collection.writer.items, 100);
  EXPECT_EQ(collection.writer.bytes, bytes + 2);
  put(tombstone);
  collection.merge({}, retired);
  EXPECT_EQ(collection.state().late_count, 0u);
  EXPECT_EQ(collection.writer.items, 99);
  EXPECT_EQ(collection.writer.bytes, bytes - 1);
  EXPECT_TRUE(collection.find(key_of(7)).row->tombstone());
}

TEST(Collection, TombstonesCountAsBytesAndNotAsItems) {
  EpochDomain epochs;
  RetireList retired(epochs);
  Collection collection(1, "k", kTinyBlocks);
  const model::Bytes row = make_row("a", "x");
  collection.append(model::RowView(row), retired);
  const std::string tombstone = make_row("a", "", {}, model::kRowTombstone);
  const Change change{tombstone, false};
  EXPECT_EQ(collection.merge({&change, 1}, retired).items, -1);
  EXPECT_EQ(collection.writer.items, 0);
  EXPECT_EQ(collection.writer.bytes, static_cast<std::int64_t>(tombstone.size()));
  ASSERT_TRUE(collection.find("a").row);
  EXPECT_TRUE(collection.find("a").row->tombstone());
}

// Goal: a reader that has begun sees one state, whatever the writer does meanwhile, and nothing it sees is freed.
// Method: cursors are kept over random changes, each beside the model of its moment; the writer ends turns (which
// frees)
//         all the time; at the end every cursor is compared with its model. AddressSanitizer sees a freed block.
TEST(Collection, AnEarlierCursorGoesOnShowingItsMoment) {
  std::mt19937 random(20260623);
  const auto below = [&](std::uint32_t bound) {
    return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random);
  };
  Pair pair(kTinyBlocks);
  const EpochDomain::Guard guard(pair.epochs());
  std::vector<std::pair<Cursor, Model>> moments;
  std::uint32_t newest = 0;
  for (int step = 0; step < 400; ++step) {
    if (step % 10 == 0) moments.emplace_back(Cursor(pair.collection()), pair.model());
    if (below(3) == 0 && newest > 0) {
      pair.put(key_of(newest - std::min(newest, below(30))), "late" + std::to_string(step));
    } else if (below(3) == 0) {
      pair.merge({{key_of(below(newest + 1)), below(3) == 0 ? std::nullopt : std::optional<std::string>("late")}});
    } else if (const std::string key = key_of(++newest); pair.collection().is_append(key)) {
      pair.append(key, "row");
    }
    pair.end_turn();
  }
  for (const auto& [cursor, model] : moments) expect_same(cursor, model);
}

}  // namespace
}  // namespace drover::store
