#include "heat_window.h"

#include <gtest/gtest.h>

namespace drover::metrics {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

store::StoreStats with_writer_time(std::uint64_t writer_time_ns) {
  store::ShardStats shard;
  shard.heat.writer_time_ns = writer_time_ns;
  store::SpaceStats space;
  space.table = "telemetry";
  space.shards.push_back(shard);
  store::StoreStats stats;
  stats.spaces.push_back(space);
  return stats;
}

/// The heat ratio of the one shard after a scrape at `now_ns`.
double scrape(HeatWindow& window, std::int64_t now_ns, std::int64_t writer_time_ns) {
  const store::StoreStats stats = with_writer_time(static_cast<std::uint64_t>(writer_time_ns));
  window.advance(stats, now_ns);
  return window.ratio(stats.spaces[0], stats.spaces[0].shards[0]);
}

TEST(HeatWindow, TheFirstScrapeHasNoWindowYet) {
  HeatWindow window;
  EXPECT_EQ(scrape(window, 5 * kSecond, 3 * kSecond), 0);
}

TEST(HeatWindow, BeginsWithTheFirstScrapeUntilItIsLongEnough) {
  HeatWindow window;
  scrape(window, 0, 0);
  EXPECT_DOUBLE_EQ(scrape(window, 2 * kSecond, kSecond), 0.5);
  EXPECT_DOUBLE_EQ(scrape(window, 4 * kSecond, kSecond), 0.25);
}

TEST(HeatWindow, ForgetsWhatIsOlderThanTwoWindows) {
  HeatWindow window;
  std::int64_t busy = 0;
  for (int second = 0; second <= 30; ++second) scrape(window, second * kSecond, busy += kSecond);
  double ratio = 1;
  for (int second = 31; second <= 60; ++second) ratio = scrape(window, second * kSecond, busy);
  EXPECT_EQ(ratio, 0);
}

TEST(HeatWindow, DoesNotDependOnHowOftenOrByHowManyItIsScraped) {
  HeatWindow often;
  double ratio_often = 0;
  for (int tenth = 0; tenth <= 600; ++tenth) ratio_often = scrape(often, tenth * kSecond / 10, tenth * kSecond / 40);
  HeatWindow seldom;
  double ratio_seldom = 0;
  for (int second = 0; second <= 60; second += 15)
    ratio_seldom = scrape(seldom, second * kSecond, second * kSecond / 4);
  EXPECT_NEAR(ratio_often, 0.25, 1e-6);
  EXPECT_NEAR(ratio_seldom, 0.25, 1e-6);
}

TEST(HeatWindow, AShardThatBeganAnewOrWasNotThereIsCold) {
  HeatWindow window;
  scrape(window, 0, 10 * kSecond);
  EXPECT_EQ(scrape(window, kSecond, kSecond), 0) << "its counter fell: the table was made anew";
  store::StoreStats other = with_writer_time(5 * kSecond);
  other.spaces[0].table = "other";
  window.advance(other, 2 * kSecond);
  EXPECT_EQ(window.ratio(other.spaces[0], other.spaces[0].shards[0]), 0);
}

TEST(HeatWindow, NeverExceedsOne) {
  HeatWindow window;
  scrape(window, 0, 0);
  EXPECT_EQ(scrape(window, kSecond, 3 * kSecond), 1);
}

}  // namespace
}  // namespace drover::metrics
