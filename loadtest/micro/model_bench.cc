#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "drover/model/decimal.h"
#include "drover/model/key.h"
#include "drover/model/time.h"
#include "drover/model/value_view.h"

// What the model costs per record, on the values of a believable fleet: keys like VEH#V-7741, times of one day at
// second or millisecond precision, metrics of two to four digits. Inputs are drawn anew from a fixed seed for each
// benchmark and visited in turn, so that no branch learns a single value.
namespace drover::model {
namespace {

constexpr std::uint64_t kSeed = 7741;
constexpr std::size_t kInputs = 4096;  // fits the second-level cache with what is made of it

std::int64_t pick(std::mt19937_64& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

template <typename Make>
auto make_inputs(Make&& make) {
  std::mt19937_64 random(kSeed);
  std::vector<decltype(make(random))> inputs;
  inputs.reserve(kInputs);
  for (std::size_t i = 0; i < kInputs; ++i) inputs.push_back(make(random));
  return inputs;
}

/// Runs `use` once per iteration on the next input; counts items, and bytes where inputs are text.
template <typename Inputs, typename Use>
void run(benchmark::State& state, const Inputs& inputs, Use&& use) {
  std::size_t next = 0;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    const auto& input = inputs[next++ % kInputs];
    use(input);
    if constexpr (requires { input.size(); }) bytes += static_cast<std::int64_t>(input.size());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  if (bytes > 0) state.SetBytesProcessed(bytes);
}

std::string vehicle_key(std::mt19937_64& random) {
  return "VEH#V-" + std::to_string(pick(random, 0, 999'999));
}

TimeNs time_of_day(std::mt19937_64& random) {
  constexpr std::int64_t kDay = 1'782'172'800'000;  // 2026-06-23, ms
  return TimeNs{(kDay + pick(random, 0, 86'399'999)) * 1'000'000};
}

std::string metric_text(std::mt19937_64& random) {
  const std::string tenths = std::to_string(pick(random, 0, 9));
  return std::to_string(pick(random, 0, 130)) + (pick(random, 0, 1) == 0 ? "" : "." + tenths);
}

Decimal metric(std::mt19937_64& random) {
  return Decimal::parse(metric_text(random)).value();
}

void BM_HashKey(benchmark::State& state) {
  run(state, make_inputs(vehicle_key), [](const std::string& key) { benchmark::DoNotOptimize(hash_key(key)); });
}
BENCHMARK(BM_HashKey);

void BM_ParseTime(benchmark::State& state) {
  const auto inputs =
      make_inputs([](auto& random) { return format_time(time_of_day(random), TimePrecision::kMillis); });
  run(state, inputs, [](const std::string& text) { benchmark::DoNotOptimize(parse_time(text)); });
}
BENCHMARK(BM_ParseTime);

void BM_ParseTimeWithOffset(benchmark::State& state) {
  const auto inputs = make_inputs([](auto& random) {
    std::string text = format_time(time_of_day(random), TimePrecision::kSeconds);
    return text.replace(text.size() - 1, 1, "+01:00");
  });
  run(state, inputs, [](const std::string& text) { benchmark::DoNotOptimize(parse_time(text)); });
}
BENCHMARK(BM_ParseTimeWithOffset);

void BM_IsCanonicalTime(benchmark::State& state) {
  const auto precision = static_cast<TimePrecision>(state.range(0));
  const auto inputs = make_inputs([&](auto& random) { return format_time(time_of_day(random), precision); });
  run(state, inputs, [&](const std::string& text) { benchmark::DoNotOptimize(is_canonical_time(text, precision)); });
}
BENCHMARK(BM_IsCanonicalTime)->ArgName("digits")->Arg(0)->Arg(3)->Arg(9);

void BM_FormatTime(benchmark::State& state) {
  run(state, make_inputs(time_of_day), [](TimeNs time) {
    char text[kCanonicalTimeSizeBytesMax];
    benchmark::DoNotOptimize(format_time(text, time, TimePrecision::kMillis));
    benchmark::DoNotOptimize(text);
  });
}
BENCHMARK(BM_FormatTime);

void BM_TimeOfNumber(benchmark::State& state) {
  const auto inputs = make_inputs([](auto& random) { return time_of_day(random).value / 1'000'000; });
  run(state, inputs, [](std::int64_t ms) { benchmark::DoNotOptimize(time_of_number(ms, 0, TimeUnit::kMillis)); });
}
BENCHMARK(BM_TimeOfNumber);

void BM_ParseDecimal(benchmark::State& state) {
  run(state, make_inputs(metric_text), [](const std::string& text) { benchmark::DoNotOptimize(Decimal::parse(text)); });
}
BENCHMARK(BM_ParseDecimal);

void BM_ParseDecimalOfAllDigits(benchmark::State& state) {
  const auto inputs = make_inputs([](auto& random) {
    std::string text = "-1.";
    while (text.size() < 2 + kNumberDigitsMax) text.push_back(static_cast<char>('0' + pick(random, 0, 9)));
    return text;
  });
  run(state, inputs, [](const std::string& text) { benchmark::DoNotOptimize(Decimal::parse(text)); });
}
BENCHMARK(BM_ParseDecimalOfAllDigits);

void BM_DecimalText(benchmark::State& state) {
  std::string out;
  run(state, make_inputs(metric), [&out](const Decimal& number) {
    out.clear();
    number.append_text(out);
    benchmark::DoNotOptimize(out.data());
  });
}
BENCHMARK(BM_DecimalText);

void BM_DecimalAdd(benchmark::State& state) {
  const auto inputs = make_inputs([](auto& random) { return std::pair(metric(random), metric(random)); });
  run(state, inputs, [](const auto& pair) { benchmark::DoNotOptimize(Decimal::add(pair.first, pair.second)); });
}
BENCHMARK(BM_DecimalAdd);

void BM_DecimalOrdered(benchmark::State& state) {
  Bytes out;
  run(state, make_inputs(metric), [&out](const Decimal& number) {
    out.clear();
    number.append_ordered(out);
    benchmark::DoNotOptimize(out.data());
  });
}
BENCHMARK(BM_DecimalOrdered);

void BM_PutNumberValue(benchmark::State& state) {
  const auto inputs = make_inputs([](auto& random) { return pick(random, 0, 1300); });
  run(state, inputs, [](std::int64_t tenths) {
    char out[kNumberValueSizeBytesMax];
    benchmark::DoNotOptimize(put_number_value(out, tenths, -1));
    benchmark::DoNotOptimize(out);
  });
}
BENCHMARK(BM_PutNumberValue);

/// The encoded attributes of a reading with three metrics, in the order of the producer's fields.
Bytes reading(std::mt19937_64& random, AttributeNames& names) {
  Bytes out;
  for (const char* name : {"speedKph", "coolantC", "fuelPct"}) {
    append_name(out, name, names);
    append_number_value(out, metric(random));
  }
  return out;
}

void BM_NumberOfValue(benchmark::State& state) {
  const auto inputs = make_inputs([](auto& random) {
    Bytes out;
    append_number_value(out, metric(random));
    return out;
  });
  run(state, inputs, [](const Bytes& value) { benchmark::DoNotOptimize(ValueView(value).number()); });
}
BENCHMARK(BM_NumberOfValue);

void BM_ReadAttributes(benchmark::State& state) {
  AttributeNames names;
  run(state, make_inputs([&](auto& random) { return reading(random, names); }), [&](const Bytes& bytes) {
    std::size_t size = 0;
    for (AttributeReader reader(bytes, names); reader.next();) size += reader.attribute().value.encoded().size();
    benchmark::DoNotOptimize(size);
  });
}
BENCHMARK(BM_ReadAttributes);

void BM_ContainsExactRepeat(benchmark::State& state) {
  AttributeNames names;
  run(state, make_inputs([&](auto& random) { return reading(random, names); }),
      [&](const Bytes& bytes) { benchmark::DoNotOptimize(contains_attributes(bytes, bytes, names)); });
}
BENCHMARK(BM_ContainsExactRepeat);

void BM_ContainsRepeatBehindAStamp(benchmark::State& state) {
  AttributeNames names;
  Bytes stamp;
  append_name(stamp, "depotCode", names);
  append_string_value(stamp, "DEP-LON-3");
  const auto inputs = make_inputs([&](auto& random) {
    const Bytes part = reading(random, names);
    return std::pair(stamp + part, part);
  });
  run(state, inputs,
      [&](const auto& pair) { benchmark::DoNotOptimize(contains_attributes(pair.first, pair.second, names)); });
}
BENCHMARK(BM_ContainsRepeatBehindAStamp);

}  // namespace
}  // namespace drover::model
