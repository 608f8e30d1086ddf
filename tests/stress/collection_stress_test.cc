#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "collection.h"
#include "epoch.h"
#include "space.h"
#include "tests/support/rows.h"

// The structures that are read without a lock, each with one writer and several readers, and blocks so small that they
// grow, fill and are replaced every few rows. ThreadSanitizer and AddressSanitizer judge what the assertions don't.
namespace drover::store {
namespace {

constexpr CollectionTuning kTinyBlocks{.block_size_bytes = 160, .first_block_size_bytes = 56};
constexpr int kReaders = 3;

std::string key_of(std::uint32_t n) {
  char text[16];
  std::snprintf(text, sizeof text, "%07u", n);
  return text;
}

/// Attributes that tell whether they are whole and whose they are: the key, as often as `n` says.
std::string attributes_of(const std::string& key, std::uint32_t n) {
  std::string attributes;
  for (std::uint32_t i = 0; i <= n % 5; ++i) attributes += key;
  return attributes;
}

bool is_whole(const model::RowView& row) {
  std::string_view rest = row.attributes();
  while (rest.starts_with(row.sort_key())) rest.remove_prefix(row.sort_key().size());
  return rest.empty() && !row.attributes().empty();
}

/// Starts readers, runs the writer in this thread, then lets the readers end.
template <typename Writer, typename Reader>
void run_beside(const Writer& write, const Reader& read_once) {
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&, i] {
      std::mt19937 random(static_cast<std::uint32_t>(i));
      while (!done.load()) read_once(random);
      read_once(random);
    });
  }
  write();
  done.store(true);
  for (std::thread& reader : readers) reader.join();
}

// Goal: a reader of an open block sees whole rows, in order, never fewer than before, while the block fills, is
// enlarged
//       and becomes history.
// Method: the writer only appends consecutive keys; so every view must be exactly the keys from 0 to some last one, and
//         the last one must never fall from one look to the next.
TEST(OpenBlockStress, AReaderSeesAGrowingPrefixOfWholeRows) {
  constexpr std::uint32_t kRows = 6'000;
  EpochDomain epochs;
  Collection collection(1, "VEH#V-7741", kTinyBlocks);
  RetireList retired(epochs);
  const auto write = [&] {
    for (std::uint32_t n = 0; n < kRows; ++n) {
      const model::Bytes row = test::make_row(key_of(n), attributes_of(key_of(n), n));
      collection.append(model::RowView(row), retired);
      if (n % 16 == 0) retired.collect();
    }
  };
  run_beside(write, [&](std::mt19937& random) {
    static thread_local std::uint32_t seen_before = 0;
    const EpochDomain::Guard guard(epochs);
    Cursor cursor(collection);
    std::uint32_t seen = 0;
    for (cursor.seek_first(); cursor.at_row(); cursor.next()) {
      ASSERT_EQ(cursor.row().sort_key(), key_of(seen));
      ASSERT_TRUE(is_whole(cursor.row()));
      ++seen;
    }
    ASSERT_GE(seen, seen_before);
    seen_before = seen;
    // The same view, backwards and by key, must agree with the walk.
    cursor.seek_end();
    ASSERT_EQ(cursor.previous(), seen > 0);
    if (seen == 0) return;
    ASSERT_EQ(cursor.row().sort_key(), key_of(seen - 1));
    const std::uint32_t wanted = std::uniform_int_distribution<std::uint32_t>(0, seen - 1)(random);
    cursor.seek_lower_bound(key_of(wanted));
    ASSERT_EQ(cursor.row().sort_key(), key_of(wanted));
    cursor.seek_upper_bound(key_of(seen - 1));
    ASSERT_FALSE(cursor.at_row());
  });
  EXPECT_EQ(collection.writer.items, kRows);
}

// Goal: a merge of many rows is seen whole or not at all.
// Method: the writer replaces all rows of a collection at once, generation after generation, and now and then removes
// or
//         adds a share of them; so every view must hold rows of one generation only, and generations must not fall.
TEST(MergeStress, AReaderSeesAMergeWholeOrNotAtAll) {
  constexpr std::uint32_t kGenerations = 250;
  constexpr std::uint32_t kKeys = 120;
  EpochDomain epochs;
  Collection collection(1, "VEH#V-7741", kTinyBlocks);
  RetireList retired(epochs);
  const auto write = [&] {
    for (std::uint32_t generation = 1; generation <= kGenerations; ++generation) {
      std::vector<std::string> rows;
      std::vector<Change> changes;
      rows.reserve(kKeys);
      for (std::uint32_t n = 0; n < kKeys; ++n) {
        const std::string key = key_of(n);
        rows.push_back(test::make_row(key, attributes_of(key, n), model::Version{generation, 0}));
        changes.push_back({rows.back(), (n + generation) % 7 == 0});
      }
      collection.merge(changes, retired);
      retired.collect();
    }
  };
  run_beside(write, [&](std::mt19937&) {
    static thread_local std::uint64_t generation_before = 0;
    const EpochDomain::Guard guard(epochs);
    Cursor cursor(collection);
    cursor.seek_first();
    if (!cursor.at_row()) return;
    const std::uint64_t generation = cursor.row().version().time_and_source;
    ASSERT_GE(generation, generation_before);
    generation_before = generation;
    for (std::uint32_t n = 0; n < kKeys; ++n) {
      if ((n + generation) % 7 == 0) continue;
      ASSERT_TRUE(cursor.at_row());
      ASSERT_EQ(cursor.row().sort_key(), key_of(n));
      ASSERT_EQ(cursor.row().version().time_and_source, generation);
      ASSERT_TRUE(is_whole(cursor.row()));
      cursor.next();
    }
    ASSERT_FALSE(cursor.at_row());
  });
}

// Goal: a reader sees what had come by some moment, all of it and nothing else, be it late or not.
// Method: the writer appends and puts late rows in turn, numbered, and folds over and over; so the numbers that a
// reader
//         sees must be all from 0 to some last one, which must never fall.
TEST(LateRunStress, AReaderSeesAllThatHadComeBySomeMoment) {
  constexpr std::uint32_t kRows = 6'000;
  EpochDomain epochs;
  Collection collection(1, "VEH#V-7741", CollectionTuning{.block_size_bytes = 700, .first_block_size_bytes = 100});
  RetireList retired(epochs);
  const auto write = [&] {
    for (std::uint32_t n = 0; n < kRows; ++n) {
      const std::string key = key_of(n % 3 == 0 ? kRows + n : kRows - n);
      const std::string row = test::make_row(key, attributes_of(key, n % 4), model::Version{n, 0});
      if (collection.is_append(key)) {
        collection.append(model::RowView(row), retired);
      } else {
        collection.put_late(model::RowView(row), {}, collection.find(key), retired);
      }
      if (n % 16 == 0) retired.collect();
    }
  };
  run_beside(write, [&](std::mt19937&) {
    static thread_local std::uint64_t seen_before = 0;
    const EpochDomain::Guard guard(epochs);
    Cursor cursor(collection);
    std::uint64_t seen = 0;
    std::uint64_t last = 0;
    std::string key_before;
    for (cursor.seek_first(); cursor.at_row(); cursor.next(), ++seen) {
      ASSERT_TRUE(is_whole(cursor.row()));
      ASSERT_TRUE(seen == 0 || key_before < cursor.row().sort_key());
      key_before = cursor.row().sort_key();
      last = std::max(last, cursor.row().version().time_and_source);
    }
    ASSERT_EQ(seen, seen == 0 ? 0 : last + 1);
    ASSERT_GE(seen, seen_before);
    seen_before = seen;
  });
  EXPECT_EQ(collection.writer.items, kRows);
}

// Goal: a view stays what it was while the writer appends, merges late rows, overwrites and removes beside it.
// Method: random changes; a reader walks each view forwards and backwards, which must show the same whole rows in
// order.
TEST(MergeStress, AViewIsTheSameInBothDirections) {
  EpochDomain epochs;
  Collection collection(1, "VEH#V-7741", kTinyBlocks);
  RetireList retired(epochs);
  const auto write = [&] {
    std::mt19937 random(4);
    const auto below = [&](std::uint32_t bound) {
      return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random);
    };
    std::uint32_t newest = 0;
    for (int step = 0; step < 3'000; ++step) {
      const std::uint32_t n = below(3) == 0 ? below(newest + 1) : newest++;
      const std::string row = test::make_row(key_of(n), attributes_of(key_of(n), below(5)));
      if (collection.is_append(key_of(n))) {
        collection.append(model::RowView(row), retired);
      } else if (below(8) == 0) {
        const Change change{row, below(3) == 0};
        collection.merge({&change, 1}, retired);
      } else {
        collection.put_late(model::RowView(row), {}, collection.find(key_of(n)), retired);
      }
      if (step % 8 == 0) retired.collect();
      if (newest > 400) newest = 200;  // goes back, so that the middle stays busy
    }
  };
  run_beside(write, [&](std::mt19937&) {
    const EpochDomain::Guard guard(epochs);
    Cursor cursor(collection);
    std::vector<std::string> forwards;
    for (cursor.seek_first(); cursor.at_row(); cursor.next()) {
      ASSERT_TRUE(is_whole(cursor.row()));
      ASSERT_TRUE(forwards.empty() || forwards.back() < cursor.row().sort_key());
      forwards.emplace_back(cursor.row().sort_key());
    }
    cursor.seek_end();
    for (auto expected = forwards.rbegin(); expected != forwards.rend(); ++expected) {
      ASSERT_TRUE(cursor.previous());
      ASSERT_EQ(cursor.row().sort_key(), *expected);
    }
    ASSERT_FALSE(cursor.previous());
  });
}

// Goal: nothing is freed while a reader may see it, and everything is freed in the end.
// Method: the writer publishes objects one after the other and retires each predecessor; freeing overwrites the
// object's
//         mark. More readers than an epoch can know apart come and go; the count of living objects must end at one.
TEST(EpochStress, NoReaderSeesAFreedObject) {
  struct Object {
    explicit Object(std::atomic<int>& living) : living_objects(&living) { ++living; }
    ~Object() {
      mark = 0;
      --*living_objects;
    }
    std::uint64_t mark = 0xfeedfacecafebeef;
    std::atomic<int>* living_objects;
  };
  constexpr int kObjects = 20'000;
  std::atomic<int> living{0};
  EpochDomain epochs;
  std::atomic<const Object*> published{new Object(living)};
  {
    RetireList retired(epochs);
    const auto write = [&] {
      for (int n = 0; n < kObjects; ++n) {
        const Object* replaced = published.exchange(new Object(living));
        retired.retire(const_cast<Object*>(replaced), [](void* object) { delete static_cast<Object*>(object); });
        if (n % 3 == 0) retired.collect();
      }
    };
    run_beside(write, [&](std::mt19937&) {
      const EpochDomain::Guard outer(epochs);
      const Object* first = published.load();
      {
        const EpochDomain::Guard inner(epochs);
        ASSERT_EQ(published.load()->mark, 0xfeedfacecafebeef);
      }
      ASSERT_EQ(first->mark, 0xfeedfacecafebeef);
    });
    retired.collect();
    EXPECT_EQ(living, 1);
  }
  delete published.load();
}

// Goal: a collection that was once found is found again, whatever is added to its segment meanwhile.
// Method: the writer fills few segments with many collections, so that their tables grow; readers look for keys that
// are
//         known to be there and list whole segments.
TEST(SpaceStress, FindsWhatIsThereWhileTheSegmentGrows) {
  constexpr std::uint64_t kCollections = 4'000;
  const auto hash_of = [](std::uint64_t n) { return (n % 3) << 60 | n / 2; };
  EpochDomain epochs;
  const CollectionTuning tuning{};
  Space space(tuning);
  RetireList retired(epochs);
  std::atomic<std::uint64_t> created{0};
  const auto write = [&] {
    for (std::uint64_t n = 0; n < kCollections; ++n) {
      space.find_or_create(hash_of(n), std::to_string(n), retired);
      created.store(n + 1, std::memory_order_release);
      if (n % 8 == 0) retired.collect();
    }
  };
  run_beside(write, [&](std::mt19937& random) {
    const EpochDomain::Guard guard(epochs);
    const std::uint64_t known = created.load(std::memory_order_acquire);
    if (known == 0) return;
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t n = std::uniform_int_distribution<std::uint64_t>(0, known - 1)(random);
      const Collection* found = space.find(hash_of(n), std::to_string(n));
      ASSERT_NE(found, nullptr);
      ASSERT_EQ(found->partition_key(), std::to_string(n));
    }
    const std::uint64_t segment_key = std::uniform_int_distribution<std::uint64_t>(0, 2)(random);
    const std::vector<const Collection*> listed = space.collections(model::segment_of(segment_key << 60));
    ASSERT_GE(listed.size(), known / 3);
    ASSERT_TRUE(std::is_sorted(listed.begin(), listed.end(),
                               [](const Collection* a, const Collection* b) { return a->hash() < b->hash(); }));
  });
}

}  // namespace
}  // namespace drover::store
