#include "columns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drover/model/check.h"
#include "drover/model/digits.h"
#include "drover/model/key.h"
#include "drover/model/time.h"
#include "drover/model/value_view.h"
#include "integers.h"

namespace drover::store {
namespace {

using model::append_varint;
using model::Bytes;
using model::TimeNs;
using model::TimePrecision;
using model::unzigzag;
using model::ValueTag;
using model::zigzag;

using Integers = std::vector<std::uint64_t, model::UninitializedAllocator<std::uint64_t>>;

constexpr std::size_t kHeadSizeBytes = 1 + sizeof(std::uint64_t);  // version, checksum
constexpr std::size_t kColumnsMax = 1024;
constexpr std::size_t kShapesMax = 256;
/// Attribute values of a block that stand in columns: what a decoder unpacks before it writes rows.
constexpr std::size_t kValuesMax = std::size_t{1} << 22;
/// Rows of a new shape before it gets columns, unless it comes again at once.
constexpr std::uint32_t kShapeRowsMin = 4;
/// A number with a smaller exponent than all but this share of its column does not change the column's exponent.
constexpr std::size_t kExponentShare = 32;

enum class ColumnKind : std::uint8_t {
  kRaw = 0,     ///< All attributes of a row as they are.
  kValue = 1,   ///< One attribute's value as it is encoded.
  kNumber = 2,  ///< One attribute's number, if it is a kNumber.
};

// A sort key is head, time, tail; one without a time in it is all head.

constexpr std::size_t kTimeSizeBytesMin = 20;  // 2026-06-23T09:00:01Z
constexpr std::array<TimePrecision, 4> kPrecisions{TimePrecision::kSeconds, TimePrecision::kMillis,
                                                   TimePrecision::kMicros, TimePrecision::kNanos};
constexpr std::uint8_t kNoTime = 4;  ///< In place of an index into kPrecisions.
constexpr std::array<std::int64_t, 4> kUnitNs{1'000'000'000, 1'000'000, 1'000, 1};

// The times that a canonical text can have: the years 1678 to 2261.
constexpr std::int64_t kTimeSecondsMin = -9'214'560'000;
constexpr std::int64_t kTimeSecondsEnd = 9'214'646'400;
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

struct KeyTime {
  std::uint8_t precision = kNoTime;  ///< Index into kPrecisions.
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int64_t value = 0;  ///< Since 1970, in units of the precision.
};

std::size_t time_size(std::uint8_t precision) {
  return kTimeSizeBytesMin + (precision == 0 ? 0 : 1 + 3 * std::size_t{precision});
}

/// The precision of the canonical time at `begin`, if there is one.
std::uint8_t precision_at(std::string_view key, std::size_t begin) {
  for (std::uint8_t precision = 0; precision < kNoTime; ++precision) {
    if (begin + time_size(precision) > key.size() || key[begin + time_size(precision) - 1] != 'Z') continue;
    const std::string_view text = key.substr(begin, time_size(precision));
    if (model::is_canonical_time(text, kPrecisions[precision])) return precision;
  }
  return kNoTime;
}

std::optional<KeyTime> time_at(std::string_view key, std::size_t begin) {
  KeyTime time;
  time.precision = precision_at(key, begin);
  if (time.precision == kNoTime) return std::nullopt;
  time.begin = begin;
  time.end = begin + time_size(time.precision);
  const std::optional<TimeNs> ns = model::parse_time(key.substr(begin, time.end - begin));
  if (!ns) return std::nullopt;
  const std::int64_t unit = kUnitNs[time.precision];
  time.value = ns->value / unit;  // exact: the text has no more digits
  return time;
}

KeyTime search_time(std::string_view key) {
  constexpr std::size_t kSeparator = 10;  // the T of a time
  for (std::size_t at = kSeparator; at < key.size(); ++at) {
    at = key.find('T', at);
    if (at == std::string_view::npos) break;
    if (const auto time = time_at(key, at - kSeparator)) return *time;
  }
  return {kNoTime, key.size(), key.size(), 0};
}

template <typename Word>
Word load(const char* at) {
  Word word{};
  std::memcpy(&word, at, sizeof word);
  return word;
}

template <typename Word>
bool same_words(const char* a, const char* b) {
  return load<Word>(a) == load<Word>(b);
}

/// Finds the times in keys. One where the key in front had its own, and of the same day, is read without a search, and
/// one of the same minute by its last bytes alone.
class TimeFinder {
 public:
  const KeyTime& find(std::string_view key) {
    if (last_.precision == kNoTime || key.size() < last_.end) {
      search(key);
    } else if (!read_in_minute(key.data())) {
      if (!read_in_day(key.data())) search(key);
    }
    return last_;
  }

 private:
  static constexpr std::size_t kDaySizeBytes = 11;     // 2026-06-23T
  static constexpr std::size_t kMinuteSizeBytes = 16;  // 2026-06-23T09:00
  static constexpr std::size_t kClockSizeBytes = 8;
  static constexpr std::int64_t kUnknown = -1;

  void search(std::string_view key) {
    last_ = search_time(key);
    if (last_.precision == kNoTime) return;
    std::memcpy(minute_.data(), key.data() + last_.begin, minute_.size());
    const std::int64_t in_day = this->in_day(key.data());
    day_begin_ = last_.value - in_day;
    minute_begin_ = last_.value - in_day % (60 * (kUnitNs[0] / kUnitNs[last_.precision]));
  }

  [[gnu::always_inline]] bool read_in_minute(const char* key) {
    constexpr std::uint64_t kZeros = 0x5a3030302e30303a;  // :00.000Z
    constexpr std::uint64_t kDigits = 0x000f0f0f000f0f00;
    constexpr std::uint64_t kBeyondNine = 0x0006060600060600;
    const char* const text = key + last_.begin;
    if (kPrecisions[last_.precision] != TimePrecision::kMillis || !same_words<std::uint64_t>(text, minute_.data()) ||
        !same_words<std::uint64_t>(text + 8, minute_.data() + 8)) {
      return false;
    }
    const std::uint64_t digits = load<std::uint64_t>(text + kMinuteSizeBytes) ^ kZeros;
    if (((digits | (digits + kBeyondNine)) & ~kDigits) != 0) return false;
    const std::uint64_t pairs = digits * 10 + (digits >> 8);  // in bytes 1 and 4
    const std::uint64_t seconds = pairs >> 8 & 0xff;
    if (seconds > 59) return false;
    last_.value =
        minute_begin_ + static_cast<std::int64_t>(seconds * 1'000 + (pairs >> 32 & 0xff) * 10 + (digits >> 48));
    return true;
  }

  bool read_in_day(const char* key) {
    const char* const text = key + last_.begin;
    if (std::memcmp(text, minute_.data(), kDaySizeBytes) != 0) return false;
    const std::int64_t in_day = this->in_day(key);
    if (in_day == kUnknown) return false;
    last_.value = day_begin_ + in_day;
    std::memcpy(minute_.data(), text, minute_.size());
    minute_begin_ = last_.value - in_day % (60 * (kUnitNs[0] / kUnitNs[last_.precision]));
    return true;
  }

  /// Of the time at last_; kUnknown if what is behind its day is not canonical. All digits of the clock are looked at
  /// together.
  std::int64_t in_day(const char* key) const {
    constexpr std::uint64_t kZeros = 0x30303a30303a3030;  // 00:00:00
    constexpr std::uint64_t kDigits = 0x0f0f000f0f000f0f;
    constexpr std::uint64_t kBeyondNine = 0x0606000606000606;
    const char* const clock = key + last_.begin + kDaySizeBytes;
    const std::uint64_t digits = load<std::uint64_t>(clock) ^ kZeros;
    if (((digits | (digits + kBeyondNine)) & ~kDigits) != 0) return kUnknown;
    const std::uint64_t pairs = digits * 10 + (digits >> 8);  // in bytes 0, 3 and 6
    const std::uint64_t hours = pairs & 0xff;
    const std::uint64_t minutes = pairs >> 24 & 0xff;
    const std::uint64_t seconds = pairs >> 48 & 0xff;
    if (hours > 23 || minutes > 59 || seconds > 59 || key[last_.end - 1] != 'Z') return kUnknown;
    auto value = static_cast<std::int64_t>((hours * 60 + minutes) * 60 + seconds);
    if (last_.precision == 0) return value;
    if (clock[kClockSizeBytes] != '.') return kUnknown;
    for (const char* at = clock + kClockSizeBytes + 1; at != key + last_.end - 1; ++at) {
      const auto digit = static_cast<unsigned char>(*at - '0');
      if (digit > 9) return kUnknown;
      value = value * 10 + digit;
    }
    return value;
  }

  KeyTime last_;
  std::array<char, kMinuteSizeBytes> minute_{};  ///< Of the last time, as it stands in its key.
  std::int64_t minute_begin_ = 0;
  std::int64_t day_begin_ = 0;
};

/// Whether `at` begins with `bytes`. Most are short, and a call of memcmp costs more.
[[gnu::always_inline]] inline bool begins_with(const char* at, std::string_view bytes) {
  const char* const with = bytes.data();
  const std::size_t size = bytes.size();
  if (size == 1) return *at == *with;
  if (size > 16) return std::memcmp(at, with, size) == 0;
  if (size >= 8) {
    return same_words<std::uint64_t>(at, with) && same_words<std::uint64_t>(at + size - 8, with + size - 8);
  }
  if (size >= 4) {
    return same_words<std::uint32_t>(at, with) && same_words<std::uint32_t>(at + size - 4, with + size - 4);
  }
  return size == 0 || (same_words<std::uint16_t>(at, with) && at[size - 1] == with[size - 1]);
}

/// What the column of key times of a precision may follow: the log times of their rows, in their unit. `count`: of such
/// rows; `precision_of`: that of a row's key. What has to be made for that stands in `space`.
template <typename PrecisionOf>
std::span<const std::uint64_t> reference_of(const Integers& log_times_ms, std::uint8_t precision, std::size_t count,
                                            PrecisionOf&& precision_of, Integers& space) {
  if (count == 0) return {};
  if (count == log_times_ms.size() && kPrecisions[precision] == TimePrecision::kMillis) return log_times_ms;
  space.resize(count + 1);
  std::size_t at = 0;
  for (std::size_t i = 0; i < log_times_ms.size(); ++i) {
    const std::uint64_t ms = log_times_ms[i];
    space[at] = precision == 0 ? ms / 1'000 : ms * static_cast<std::uint64_t>(kUnitNs[1] / kUnitNs[precision]);
    at += precision_of(i) == precision ? 1 : 0;
  }
  return {space.data(), count};
}

/// XXH3-64, as keys are hashed, of what stands behind version and checksum.
std::uint64_t checksum_of(std::string_view encoded) {
  return model::hash_key(encoded.substr(kHeadSizeBytes));
}

// Encoding

/// Numbers different byte strings in the order in which they come, from 0. They stay where they are.
class Dictionary {
 public:
  void clear() {
    entries_.clear();
    slots_.clear();
  }
  const std::vector<std::string_view>& entries() const { return entries_; }

  std::uint32_t number_of(std::string_view bytes) {
    if (slots_.empty()) {
      const auto at = std::find(entries_.begin(), entries_.end(), bytes);
      if (at != entries_.end()) return static_cast<std::uint32_t>(at - entries_.begin());
      if (entries_.size() < kSearchedMax) return add(bytes);
    }
    if (entries_.size() * 2 >= slots_.size()) {
      slots_.assign(entries_.size() * 8, kFree);
      for (std::uint32_t i = 0; i < entries_.size(); ++i) slot_of(entries_[i]) = i;
    }
    std::uint32_t& slot = slot_of(bytes);
    if (slot == kFree) slot = add(bytes);
    return slot;
  }

 private:
  static constexpr std::size_t kSearchedMax = 8;  ///< So few are compared one by one.
  static constexpr std::uint32_t kFree = 0xffffffff;

  std::uint32_t add(std::string_view bytes) {
    entries_.push_back(bytes);
    return static_cast<std::uint32_t>(entries_.size() - 1);
  }
  /// Where it is, or may be put.
  std::uint32_t& slot_of(std::string_view bytes) {
    std::size_t at = model::hash_key(bytes) % slots_.size();
    while (slots_[at] != kFree && entries_[slots_[at]] != bytes) at = at + 1 == slots_.size() ? 0 : at + 1;
    return slots_[at];
  }

  std::vector<std::string_view> entries_;
  std::vector<std::uint32_t> slots_;  ///< None while entries are few.
};

/// What an encoder needs for a moment, in one place for all of its columns.
struct Workspace {
  Dictionary dictionary;
  Integers numbers;
  Integers sizes;
};

/// A column of byte strings: each different one once, and which one is where.
class StringColumn {
 public:
  void clear() {
    runs_.clear();
    last_ = {};
    size_ = 0;
  }

  [[gnu::always_inline]] void add(std::string_view bytes) {
    if (size_ == 0 || last_.size() != bytes.size() || !begins_with(bytes.data(), last_)) begin_run(bytes);
    ++size_;
  }
  /// The last one once more. Requires: there is one.
  void repeat() { ++size_; }
  void drop_last() {
    --size_;
    if (runs_.back().begin != size_) return;
    runs_.pop_back();
    last_ = runs_.empty() ? std::string_view() : runs_.back().bytes;
  }
  /// Of the last run.
  std::string_view last() const { return last_; }

  void append_to(Bytes& out, Workspace& space) const {
    if (size_ == 0) return;
    if (runs_.size() == 1) {
      append_varint(out, 1);
      append_varint(out, last_.size());
      out.append(last_);
      return;
    }
    space.dictionary.clear();
    space.numbers.resize(size_);
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const std::size_t end = i + 1 < runs_.size() ? runs_[i + 1].begin : size_;
      const std::uint32_t number = space.dictionary.number_of(runs_[i].bytes);
      for (std::size_t at = runs_[i].begin; at < end; ++at) space.numbers[at] = number;
    }
    const std::vector<std::string_view>& entries = space.dictionary.entries();
    append_varint(out, entries.size());
    const auto [prefix, suffix] = shared_ends(entries);
    append_varint(out, prefix.size());
    append_varint(out, suffix.size());
    out.append(prefix).append(suffix);
    space.sizes.clear();
    for (const std::string_view entry : entries) space.sizes.push_back(entry.size() - prefix.size() - suffix.size());
    append_integers(space.sizes, {}, out);
    for (std::size_t i = 0; i < entries.size(); ++i) out.append(entries[i].substr(prefix.size(), space.sizes[i]));
    append_integers(space.numbers, {}, out);
  }

 private:
  struct Run {
    std::string_view bytes;
    std::uint32_t begin;
  };

  [[gnu::noinline]] void begin_run(std::string_view bytes) {
    runs_.push_back({bytes, size_});
    last_ = bytes;
  }

  /// What all entries begin with and, behind that, end with.
  static std::pair<std::string_view, std::string_view> shared_ends(const std::vector<std::string_view>& entries) {
    std::string_view prefix = entries[0];
    std::string_view suffix = entries[0];
    std::size_t shortest = entries[0].size();
    for (const std::string_view entry : entries) {
      const auto front = std::mismatch(prefix.begin(), prefix.end(), entry.begin(), entry.end());
      prefix = prefix.substr(0, static_cast<std::size_t>(front.first - prefix.begin()));
      const auto back = std::mismatch(suffix.rbegin(), suffix.rend(), entry.rbegin(), entry.rend());
      suffix = suffix.substr(suffix.size() - static_cast<std::size_t>(back.first - suffix.rbegin()));
      shortest = std::min(shortest, entry.size());
    }
    const std::size_t overlap = std::max(prefix.size() + suffix.size(), shortest) - shortest;
    return {prefix, suffix.substr(overlap)};
  }

  std::vector<Run> runs_;
  std::string_view last_;
  std::uint32_t size_ = 0;
};

constexpr auto kPowersOfTen = [] {
  std::array<std::int64_t, 19> powers{1};
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}();

/// A column of numbers. Canonical ones lose their trailing zeros to the exponent, so that 61.5 and 61 have different
/// ones; here all that can have the column's exponent get it, and shed the zeros again when they are decoded.
class NumberColumn {
 public:
  /// `size_max`: how many there can be.
  void begin(std::size_t size_max) {
    size_ = 0;
    all_short_ = true;
    if (short_numbers_.size() < size_max + kNumbersAtOnce) short_numbers_.resize(size_max + kNumbersAtOnce);
  }

  /// Adds a number that stands at the front of `word`, if its coefficient is short, and says how many bytes it has;
  /// else 0. Requires: none that is not short was added, and an exponent of one byte.
  [[gnu::always_inline]] unsigned add_short(std::uint64_t word) {
    const std::uint64_t ends = ~word & 0x80808000;  // bytes that the coefficient may end in
    if (ends == 0) [[unlikely]]
      return 0;
    short_numbers_[size_++] = static_cast<std::uint32_t>(word & (ends ^ (ends - 1)));
    return static_cast<unsigned>(std::countr_zero(ends)) / 8 + 1;
  }
  /// Both as they stand in rows: zigzag.
  void add(std::uint64_t coefficient, std::uint64_t exponent) {
    if (all_short_) lengthen();
    numbers_.push_back({coefficient, exponent});
    ++size_;
  }
  void drop_last() {
    --size_;
    if (!all_short_) numbers_.pop_back();
  }

  void append_to(Bytes& out, Workspace& space) {
    if (size_ == 0) return;
    space.numbers.resize(size_);
    if (all_short_ && append_short(out, space)) return;
    if (all_short_) lengthen();
    append_any(out, space);
  }

 private:
  struct Number {  ///< As it stands in a row: zigzag.
    std::uint64_t coefficient;
    std::uint64_t exponent;
  };
  /// One of up to four bytes as they stand in a row: those of the exponent and of the coefficient's varint. It has no
  /// bit behind them, and the highest one of each byte says nothing any more.
  using ShortNumber = std::uint32_t;
  static constexpr std::size_t kNumbersAtOnce = 32;

  [[gnu::always_inline]] static Number lengthened(ShortNumber number) {
    return {(number >> 8 & 0x7f) | (number >> 9 & 0x3f80) | (number >> 10 & 0x1fc000), number & 0x7f};
  }
  /// Four at a time.
  static void put_coefficients(const ShortNumber* numbers, std::array<std::int32_t, kNumbersAtOnce>& out) {
    using Four = std::uint32_t __attribute__((vector_size(16)));
    for (std::size_t i = 0; i < kNumbersAtOnce; i += 4) {
      Four four;
      std::memcpy(&four, numbers + i, sizeof four);
      const Four zigzagged = (four >> 8 & 0x7f) | (four >> 9 & 0x3f80) | (four >> 10 & 0x1fc000);
      const Four coefficients = (zigzagged >> 1) ^ -(zigzagged & 1);
      std::memcpy(out.data() + i, &coefficients, sizeof coefficients);
    }
  }
  void lengthen() {
    numbers_.clear();
    for (std::size_t i = 0; i < size_; ++i) numbers_.push_back(lengthened(short_numbers_[i]));
    all_short_ = false;
  }

  /// False, and nothing is appended: not all can have the least of some exponents.
  bool append_short(Bytes& out, Workspace& space) const {
    constexpr std::size_t kSample = 32;
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    std::int64_t common = kNone;
    for (std::size_t i = 0; i < std::min(size_, kSample); ++i) {
      const Number number = lengthened(short_numbers_[i]);
      if (number.coefficient != 0) common = std::min(common, unzigzag(number.exponent));
    }
    if (common == kNone) common = 0;
    std::array<std::int32_t, 128> powers{};  // by exponent; of no more zeros, so that nothing overflows
    constexpr std::int64_t kZerosMax = 3;
    for (std::int64_t zeros = 0; zeros <= kZerosMax && common + zeros < 64; ++zeros) {
      powers[zigzag(common + zeros)] = static_cast<std::int32_t>(kPowersOfTen[static_cast<std::size_t>(zeros)]);
    }
    bool all = true;
    for (std::size_t begin = 0; begin < size_; begin += kNumbersAtOnce) {
      std::array<std::int32_t, kNumbersAtOnce> coefficients;
      put_coefficients(short_numbers_.data() + begin, coefficients);
      for (std::size_t i = 0; i < std::min(size_ - begin, kNumbersAtOnce); ++i) {
        const std::int32_t power = powers[short_numbers_[begin + i] & 0x7f];
        if (power == 0 || coefficients[i] % 10 == 0) [[unlikely]]
          all &= short_numbers_[begin + i] == 0;
        space.numbers[begin + i] = static_cast<std::uint64_t>(std::int64_t{coefficients[i]} * power);
      }
    }
    if (!all) return false;
    append_varint(out, zigzag(common));
    append_integers(kZero, {}, out);
    append_integers(space.numbers, {}, out);
    return true;
  }

  /// 0 in the column of exponents: the column's, and zeros are shed. Else zigzag(exponent) + 1, and nothing is shed.
  void append_any(Bytes& out, Workspace& space) const {
    const std::int64_t common = common_exponent(space.sizes);
    space.sizes.resize(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      std::int64_t coefficient = unzigzag(numbers_[i].coefficient);
      const bool scales = scale_to(common, unzigzag(numbers_[i].exponent), coefficient);
      space.sizes[i] = scales ? 0 : numbers_[i].exponent + 1;
      space.numbers[i] = static_cast<std::uint64_t>(coefficient);
    }
    append_varint(out, zigzag(common));
    append_integers(space.sizes, {}, out);
    append_integers(space.numbers, {}, out);
  }

  /// The least one, unless it is that of a few: those would make all others longer.
  std::int64_t common_exponent(Integers& space) const {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    std::int64_t least = kNone;
    std::size_t count = 0;
    for (const Number& number : numbers_) {
      const std::int64_t exponent = number.coefficient != 0 ? unzigzag(number.exponent) : kNone;
      if (exponent < least) count = 0;
      least = std::min(least, exponent);
      count += exponent == least ? 1 : 0;
    }
    if (least == kNone) return 0;
    if (count * kExponentShare > size_) return least;
    space.clear();
    for (const Number& number : numbers_) space.push_back(number.exponent);
    const auto at = space.begin() + static_cast<std::ptrdiff_t>(size_ / kExponentShare);
    std::nth_element(space.begin(), at, space.end(),
                     [](std::uint64_t a, std::uint64_t b) { return unzigzag(a) < unzigzag(b); });
    return unzigzag(*at);
  }

  /// False, and nothing is changed: it can't have that exponent, or would not come back.
  static bool scale_to(std::int64_t common, std::int64_t exponent, std::int64_t& coefficient) {
    if (coefficient == 0) return exponent == 0;
    if (coefficient % 10 == 0 || exponent < common ||
        exponent - common >= static_cast<std::int64_t>(kPowersOfTen.size()))
      return false;
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(coefficient, kPowersOfTen[static_cast<std::size_t>(exponent - common)], &scaled)) {
      return false;
    }
    coefficient = scaled;
    return true;
  }

  std::vector<ShortNumber, model::UninitializedAllocator<ShortNumber>>
      short_numbers_;  ///< Room for more than size_max.
  std::size_t size_ = 0;
  bool all_short_ = true;
  std::vector<Number> numbers_;  ///< All of them, from the first one on that is not short.
  static constexpr std::uint64_t kZero[1] = {0};
};

/// The bytes [at, end) as a word, as many as fit, zeros behind them. Requires: eight readable bytes in front of `end`.
std::uint64_t load_word(const char* at, const char* end) {
  const auto size = static_cast<std::size_t>(end - at);
  if (size >= sizeof(std::uint64_t)) return load<std::uint64_t>(at);
  return size == 0 ? 0 : load<std::uint64_t>(end - sizeof(std::uint64_t)) >> (64 - 8 * size);
}

/// A column while it is filled, row by row.
class Column {
 public:
  /// `rows`: how many values there can be.
  void begin(std::uint32_t number, ColumnKind kind, std::string_view name, std::size_t rows) {
    number_ = number;
    kind_ = kind;
    name_ = name;
    if (kind != ColumnKind::kNumber) return strings_.clear();
    numbers_.begin(rows);
    no_lead();
    if (name.size() >= kLeadSizeMax) return;
    lead_ = 0;
    name.copy(reinterpret_cast<char*>(&lead_), name.size());
    lead_ |= static_cast<std::uint64_t>(ValueTag::kNumber) << 8 * name.size();
    lead_size_ = static_cast<unsigned>(name.size()) + 1;
    lead_bits_ = 8 * lead_size_;
    lead_mask_ = (std::uint64_t{1} << lead_bits_) - 1;
    lead_mask_ |= std::uint64_t{0x80} << lead_bits_;
  }

  ColumnKind kind() const { return kind_; }
  std::string_view name() const { return name_; }
  std::uint32_t number() const { return number_; }

  /// Takes the attribute at `at` and returns the position behind it; null: it is none for this column. Requires: eight
  /// readable bytes in front of `end`.
  [[gnu::always_inline]] const char* take(const char* at, const char* end) {
    if (kind_ != ColumnKind::kNumber) return take_value(at, end);
    // Mostly name, tag, exponent and coefficient are eight bytes at most.
    const std::uint64_t word = load_word(at, end);
    if ((word & lead_mask_) != lead_) [[unlikely]]
      return take_number(at, end);
    const unsigned size = numbers_.add_short(word >> lead_bits_);
    if (size == 0) [[unlikely]]
      return take_number(at, end);
    return at + lead_size_ + size;
  }
  void add_raw(std::string_view attributes) { strings_.add(attributes); }
  void drop_last() {
    if (kind_ == ColumnKind::kNumber) {
      numbers_.drop_last();
    } else {
      strings_.drop_last();
    }
  }

  void append_to(Bytes& out, Workspace& space) {
    if (kind_ == ColumnKind::kNumber) {
      numbers_.append_to(out, space);
    } else {
      strings_.append_to(out, space);
    }
  }

 private:
  static constexpr std::size_t kLeadSizeMax = 4;  ///< With a short number, no more than a word.

  /// The position behind the column's name, if it stands at `at`.
  const char* take_name(const char* at, const char* end) const {
    if (static_cast<std::size_t>(end - at) <= name_.size() || !begins_with(at, name_)) return nullptr;
    return at + name_.size();
  }

  [[gnu::noinline]] const char* take_number(const char* at, const char* end) {
    at = take_name(at, end);
    if (at == nullptr || static_cast<ValueTag>(*at) != ValueTag::kNumber) return nullptr;
    std::uint64_t exponent = 0;
    std::uint64_t coefficient = 0;
    at = model::get_varint(model::get_varint(at + 1, exponent), coefficient);
    numbers_.add(coefficient, exponent);
    no_lead();
    return at;
  }

  /// No word begins with it: numbers are taken one by one.
  void no_lead() {
    lead_mask_ = 0;
    lead_ = 1;
  }

  const char* take_value(const char* at, const char* end) {
    if (kind_ == ColumnKind::kRaw) return nullptr;
    // The last one's name stands in front of it. An attribute's bytes say where it ends: it is equal if it begins so.
    if (const std::string_view last = strings_.last(); !last.empty()) {
      const std::string_view attribute(last.data() - name_.size(), name_.size() + last.size());
      if (static_cast<std::size_t>(end - at) >= attribute.size() && begins_with(at, attribute)) {
        strings_.repeat();
        return at + attribute.size();
      }
    }
    const char* const value = take_name(at, end);
    if (value == nullptr || static_cast<ValueTag>(*value) == ValueTag::kNumber) return nullptr;
    const char* const value_end = model::skip_value(value);
    strings_.add({value, static_cast<std::size_t>(value_end - value)});
    return value_end;
  }

  ColumnKind kind_ = ColumnKind::kRaw;
  std::string_view name_;  ///< As it stands in a row; empty for kRaw.
  std::uint32_t number_ = 0;
  unsigned lead_size_ = 0;
  unsigned lead_bits_ = 0;
  std::uint64_t lead_ = 0;  ///< Name and tag of a number, and that its exponent is one byte.
  std::uint64_t lead_mask_ = 0;
  StringColumn strings_;  ///< kRaw, kValue.
  NumberColumn numbers_;  ///< kNumber.
};

struct Attribute {
  std::string_view name;  ///< As it stands in the row.
  std::string_view value;

  ColumnKind kind() const {
    return static_cast<ValueTag>(value.front()) == ValueTag::kNumber ? ColumnKind::kNumber : ColumnKind::kValue;
  }
};

Attribute take_attribute(const char*& at) {
  const char* const name = at;
  model::take_raw_name(at);
  const char* const value = at;
  at = model::skip_value(at);
  return {{name, static_cast<std::size_t>(value - name)}, {value, static_cast<std::size_t>(at - value)}};
}

/// An encoder with more than that of either does not stay; one that stays takes a few MiB then, for each thread that
/// encodes.
constexpr std::size_t kEncoderRowsMax = 4'096;
constexpr std::size_t kEncoderColumnsMax = 64;

/// Encodes block after block: what it got for one serves the next, since a block of few rows takes less time than to
/// get memory for its columns.
class Encoder {
 public:
  void encode(std::span<const model::RowView> rows, Bytes& out) {
    begin(rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const model::RowView& row = rows[i];
      row_bytes_ += row.bytes().size();
      const model::Version version = row.version();
      log_times_[i] = version.time_and_source >> 16;
      sources_[i] = version.source().value;
      offsets_[i] = version.offset;
      flags_[i] = row.flags();
      const KeyTime& time = time_finder_.find(row.sort_key());
      add_key(row.sort_key(), time);
      add_attributes(i, time.precision);
    }
    DROVER_CHECK(row_bytes_ <= kColumnsRowBytesMax, "a block's rows are bounded");
    append_to(out);
  }

  std::size_t columns() const { return columns_.size(); }

 private:
  struct Shape {
    std::uint8_t precision = kNoTime;
    std::vector<Column*> columns;
  };
  struct Look {
    std::uint32_t rows = 0;
    std::optional<std::uint32_t> shape;
  };

  void begin(std::span<const model::RowView> rows) {
    rows_ = rows;
    row_bytes_ = 0;
    values_ = 0;
    columns_used_ = 0;
    shapes_.clear();
    shape_ = 0;
    for (Names& names : names_) {
      names.numbers.clear();
      names.columns.clear();
    }
    looks_.clear();
    look_numbers_.clear();
    look_texts_.clear();
    raw_shapes_ = {};
    head_size_ = std::string_view::npos;
    key_heads_.clear();
    key_tails_.clear();
    time_finder_ = {};
    for (Integers& times : times_) times.clear();
    for (Integers* column : {&log_times_, &sources_, &offsets_, &flags_, &shape_numbers_}) column->resize(rows.size());
  }

  [[gnu::always_inline]] void add_key(std::string_view key, const KeyTime& time) {
    if (time.precision == kNoTime) {
      head_size_ = std::string_view::npos;
      return key_heads_.add(key);
    }
    if (time.begin == head_size_ && ((load<std::uint64_t>(key.data()) ^ head_word_) & head_mask_) == 0) {
      key_heads_.repeat();
    } else {
      add_head(key, time.begin);
    }
    key_tails_.add(key.substr(time.end));
    times_[time.precision].push_back(static_cast<std::uint64_t>(time.value));
  }

  /// Requires: a time follows. A head of a word at most is known again by that.
  [[gnu::noinline]] void add_head(std::string_view key, std::size_t size) {
    key_heads_.add(key.substr(0, size));
    constexpr std::size_t kWord = sizeof head_word_;
    head_size_ = size <= kWord ? size : std::string_view::npos;
    head_word_ = load<std::uint64_t>(key.data());
    head_mask_ = size < kWord ? (std::uint64_t{1} << 8 * size) - 1 : ~std::uint64_t{0};
  }

  [[gnu::always_inline]] void add_attributes(std::size_t row, std::uint8_t precision) {
    if (!take(shape_, rows_[row].body(), precision)) [[unlikely]]
      add_of_other_shape(row, precision);
    shape_numbers_[row] = shape_;
    values_ += shapes_[shape_].columns.size();
  }

  [[gnu::noinline]] void add_of_other_shape(std::size_t row, std::uint8_t precision) {
    shape_ = shape_of(row, precision);
    if (!take(shape_, rows_[row].body(), precision)) {  // then it is the shape of raw rows
      shapes_[shape_].columns[0]->add_raw(rows_[row].body());
    }
  }

  /// Whether the attributes are those of a shape with a column each. They are then in the columns.
  [[gnu::always_inline]] bool take(std::uint32_t number, std::string_view attributes, std::uint8_t precision) {
    if (number >= shapes_.size() || values_ > kValuesMax || shapes_[number].precision != precision) return false;
    const std::vector<Column*>& columns = shapes_[number].columns;
    const char* at = attributes.data();
    const char* const end = at + attributes.size();
    auto column = columns.begin();
    while (column != columns.end()) {
      const char* const behind = (*column)->take(at, end);
      if (behind == nullptr) break;
      at = behind;
      ++column;
    }
    if (column == columns.end() && at == end) return true;
    while (column != columns.begin()) (*--column)->drop_last();
    return false;
  }

  /// The shape to put a row into. A look that has come up rarely so far, and does not in the next two rows, gets no
  /// columns: the row goes into the raw one.
  std::uint32_t shape_of(std::size_t row, std::uint8_t precision) {
    look_texts_.emplace_back();
    put_look(row, precision, look_texts_.back());
    const std::uint32_t number = look_numbers_.number_of(look_texts_.back());
    if (number == looks_.size()) {
      looks_.emplace_back();
    } else {
      look_texts_.pop_back();
    }
    Look& look = looks_[number];
    if (look.shape && values_ <= kValuesMax) return *look.shape;
    ++look.rows;
    bool repeats = look.rows >= kShapeRowsMin || rows_[row].body().empty();
    for (std::size_t next = row + 1; !repeats && next < std::min(row + 3, rows_.size()); ++next) {
      put_look(next, precision, next_look_);
      repeats = next_look_ == look_numbers_.entries()[number];
    }
    if (repeats && values_ <= kValuesMax && shapes_.size() + kNoTime + 1 < kShapesMax) {
      if (auto shape = shape_with_columns(rows_[row].body(), precision)) {
        look.shape = add_shape(std::move(*shape));
        return *look.shape;
      }
    }
    std::optional<std::uint32_t>& raw = raw_shapes_[precision];
    if (!raw) raw = add_shape({precision, {column_of(ColumnKind::kRaw, {})}});
    return *raw;
  }

  void put_look(std::size_t row, std::uint8_t precision, Bytes& look) const {
    look.assign(1, static_cast<char>(precision));
    const std::string_view attributes = rows_[row].body();
    const char* at = attributes.data();
    while (at != attributes.data() + attributes.size()) {
      const Attribute attribute = take_attribute(at);
      look.append(attribute.name).push_back(static_cast<char>(attribute.kind()));
    }
  }

  /// Nothing: there would be too many columns, or one twice.
  std::optional<Shape> shape_with_columns(std::string_view attributes, std::uint8_t precision) {
    Shape shape{precision, {}};
    const char* at = attributes.data();
    while (at != attributes.data() + attributes.size()) {
      if (columns_used_ >= kColumnsMax - 1) return std::nullopt;  // one is kept for raw rows
      const Attribute attribute = take_attribute(at);
      Column* const column = column_of(attribute.kind(), attribute.name);
      if (std::find(shape.columns.begin(), shape.columns.end(), column) != shape.columns.end()) return std::nullopt;
      shape.columns.push_back(column);
    }
    return shape;
  }

  Column* column_of(ColumnKind kind, std::string_view name) {
    Names& names = names_[static_cast<std::size_t>(kind)];
    const std::uint32_t number = names.numbers.number_of(name);
    if (number == names.columns.size()) {
      if (columns_used_ == columns_.size()) columns_.emplace_back();
      names.columns.push_back(&columns_[columns_used_]);
      names.columns.back()->begin(columns_used_++, kind, name, rows_.size());
    }
    return names.columns[number];
  }

  std::uint32_t add_shape(Shape shape) {
    shapes_.push_back(std::move(shape));
    return static_cast<std::uint32_t>(shapes_.size() - 1);
  }

  void append_to(Bytes& out) {
    const std::size_t begin = out.size();
    out.push_back(static_cast<char>(kColumnsVersion));
    out.append(sizeof(std::uint64_t), '\0');
    append_varint(out, rows_.size());
    append_varint(out, row_bytes_);
    append_varint(out, columns_used_);
    for (std::size_t i = 0; i < columns_used_; ++i) {
      out.push_back(static_cast<char>(columns_[i].kind()));
      append_varint(out, columns_[i].name().size());
      out.append(columns_[i].name());
    }
    append_varint(out, shapes_.size());
    for (const Shape& shape : shapes_) {
      out.push_back(static_cast<char>(shape.precision));
      append_varint(out, shape.columns.size());
      for (const Column* column : shape.columns) append_varint(out, column->number());
    }
    append_integers(shape_numbers_, {}, out);
    append_integers(log_times_, {}, out);
    append_integers(sources_, {}, out);
    append_integers(offsets_, log_times_, out);
    append_integers(flags_, {}, out);
    key_heads_.append_to(out, space_);
    key_tails_.append_to(out, space_);
    for (std::uint8_t precision = 0; precision < kNoTime; ++precision) {
      const Integers& times = times_[precision];
      const auto precision_of = [this](std::size_t row) { return shapes_[shape_numbers_[row]].precision; };
      append_integers(times, reference_of(log_times_, precision, times.size(), precision_of, space_.numbers), out);
    }
    for (std::size_t i = 0; i < columns_used_; ++i) columns_[i].append_to(out, space_);
    const std::uint64_t checksum = checksum_of(std::string_view(out).substr(begin));
    std::memcpy(out.data() + begin + 1, &checksum, sizeof checksum);
  }

  /// Of columns of one kind.
  struct Names {
    Dictionary numbers;
    std::vector<Column*> columns;
  };

  std::span<const model::RowView> rows_;
  std::uint64_t row_bytes_ = 0;
  std::size_t values_ = 0;
  std::deque<Column> columns_;  ///< Those in use, and then those of blocks before.
  std::uint32_t columns_used_ = 0;
  std::vector<Shape> shapes_;
  std::uint32_t shape_ = 0;  ///< Of the last row.
  std::array<Names, 3> names_;
  std::deque<Bytes> look_texts_;
  Dictionary look_numbers_;
  std::vector<Look> looks_;
  Bytes next_look_;
  std::array<std::optional<std::uint32_t>, kNoTime + 1> raw_shapes_;
  TimeFinder time_finder_;
  Integers shape_numbers_;
  Integers log_times_;
  Integers sources_;
  Integers offsets_;
  Integers flags_;
  std::size_t head_size_ = 0;  ///< Of the last key, and what else it is known by.
  std::uint64_t head_word_ = 0;
  std::uint64_t head_mask_ = 0;
  StringColumn key_heads_;
  StringColumn key_tails_;
  std::array<Integers, kNoTime> times_;
  Workspace space_;
};

// Decoding

/// Bytes that put_bytes() may write behind what it is given, and read behind what it copies.
constexpr std::size_t kCopySlackBytes = 16;
static_assert(kCopySlackBytes <= kInputPaddingBytes);

/// Copies 16 bytes at a time: most of what a row is put together from is shorter, and a call of memcpy costs more.
char* put_bytes(char* out, std::string_view bytes) {
  std::memcpy(out, bytes.data(), kCopySlackBytes);
  for (std::size_t at = kCopySlackBytes; at < bytes.size(); at += kCopySlackBytes) {
    std::memcpy(out + at, bytes.data() + at, kCopySlackBytes);
  }
  return out + bytes.size();
}

char* put_three_digits(char* out, std::uint32_t value) {
  *out = static_cast<char>('0' + value / 100);
  return model::put_two_digits(out + 1, value % 100);
}

/// Writes canonical times of one precision. Those of one hour share their first characters.
template <unsigned precision>
class TimeWriter {
  static constexpr std::size_t kHourSizeBytes = 14;  // 2026-06-23T09:

 public:
  /// Room: kCanonicalTimeSizeBytesMax and two more.
  char* put(char* out, std::int64_t value) {
    std::uint64_t since_hour = static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(hour_);
    if (since_hour >= 3'600 * kPerSecond) {
      since_hour = static_cast<std::uint64_t>((value % kPerHour + kPerHour) % kPerHour);
      hour_ = value - static_cast<std::int64_t>(since_hour);
      model::format_time(text_.data(), TimeNs{hour_ * kUnitNs[precision]}, TimePrecision::kSeconds);
    }
    const auto seconds = static_cast<std::uint32_t>(since_hour / kPerSecond);
    std::memcpy(out, text_.data(), 16);
    out = model::put_two_digits(out + kHourSizeBytes, seconds / 60);
    *out++ = ':';
    out = model::put_two_digits(out, seconds % 60);
    if constexpr (precision > 0) {
      const auto fraction = static_cast<std::uint32_t>(since_hour % kPerSecond);
      *out++ = '.';
      if constexpr (precision > 2) out = put_three_digits(out, fraction / 1'000'000);
      if constexpr (precision > 1) out = put_three_digits(out, fraction / 1'000 % 1'000);
      out = put_three_digits(out, fraction % 1'000);
    }
    *out++ = 'Z';
    return out;
  }

 private:
  static constexpr std::uint64_t kPerSecond = 1'000'000'000 / kUnitNs[precision];
  static constexpr std::int64_t kPerHour = 3'600 * kPerSecond;

  std::int64_t hour_ = std::numeric_limits<std::int64_t>::min() / 2;
  std::array<char, model::kCanonicalTimeSizeBytesMax> text_{};
};

/// A decoded column of integers; one that is the same everywhere is held once.
class IntegerReader {
 public:
  bool read(Input& in, std::size_t count, std::span<const std::uint64_t> reference = {}) {
    if (count == 0) return true;
    std::uint64_t constant = 0;
    if (take_constant(in, constant)) {
      values_.assign(1, constant);
      return true;
    }
    mask_ = ~std::size_t{0};
    values_.resize(count);
    return take_integers(in, values_, reference);
  }

  bool constant() const { return mask_ == 0; }
  std::uint64_t operator[](std::size_t i) const { return values_[i & mask_]; }
  /// Requires: at least one value.
  std::uint64_t max() const { return *std::max_element(values_.begin(), values_.end()); }

 private:
  Integers values_;
  std::size_t mask_ = 0;
};

/// A column of byte strings, taken one after the other.
class StringReader {
 public:
  /// `text_left`: what the block's strings may be together; it falls. (Each string stands in some row.)
  bool read(Input& in, std::size_t count, std::uint64_t& text_left) {
    if (count == 0) return true;
    std::uint64_t entries = 0;
    if (!in.take_varint(entries) || entries == 0 || entries > count) return false;
    entries_.resize(entries);
    if (entries == 1) {
      std::uint64_t size = 0;
      if (!in.take_varint(size) || !in.take_bytes(size, entries_[0])) return false;
      longest_ = size;
      return true;
    }
    return read_entries(in, text_left) && index_.read(in, count) && index_.max() < entries;
  }

  bool constant() const { return entries_.size() <= 1; }
  std::string_view constant_value() const { return entries_.empty() ? std::string_view() : entries_[0]; }
  std::string_view next() { return constant() ? constant_value() : entries_[index_[at_++]]; }
  std::size_t longest() const { return longest_; }

 private:
  bool read_entries(Input& in, std::uint64_t& text_left) {
    std::uint64_t prefix_size = 0;
    std::uint64_t suffix_size = 0;
    std::string_view prefix;
    std::string_view suffix;
    IntegerReader sizes;
    if (!in.take_varint(prefix_size) || !in.take_varint(suffix_size) || !in.take_bytes(prefix_size, prefix) ||
        !in.take_bytes(suffix_size, suffix) || !sizes.read(in, entries_.size())) {
      return false;
    }
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!in.take_bytes(sizes[i], entries_[i])) return false;
      size += prefix.size() + entries_[i].size() + suffix.size();
      if (size > text_left) return false;
    }
    text_left -= size;
    text_.resize(size + kCopySlackBytes);
    char* to = text_.data();
    for (std::string_view& entry : entries_) {
      const std::string_view middle = entry;
      entry = {to, prefix.size() + middle.size() + suffix.size()};
      to += prefix.copy(to, prefix.size());
      to += middle.copy(to, middle.size());
      to += suffix.copy(to, suffix.size());
      longest_ = std::max(longest_, entry.size());
    }
    std::memset(to, 0, kCopySlackBytes);
    return true;
  }

  std::vector<std::string_view> entries_;
  model::ByteBuffer text_;  ///< Of the entries; one alone stays where it was read.
  std::size_t longest_ = 0;
  IntegerReader index_;
  std::size_t at_ = 0;
};

/// A column of numbers, taken one after the other.
class NumberReader {
 public:
  bool read(Input& in, std::size_t count) {
    if (count == 0) return true;
    std::uint64_t common = 0;
    if (!in.take_signed(common)) return false;
    common_ = static_cast<std::int64_t>(common);
    return exponents_.read(in, count) && coefficients_.read(in, count);
  }

  /// Whether all numbers have the column's exponent, but for the zeros that they shed.
  bool has_common_exponent() const { return exponents_.constant() && exponents_[0] == 0; }
  std::int64_t common_exponent() const { return common_; }

  /// Writes the next number's exponent and coefficient; room: 2 * kVarintSizeBytesMax.
  char* put_next(char* out) {
    const auto coefficient = static_cast<std::int64_t>(coefficients_[at_]);
    const std::uint64_t given = exponents_[at_];
    ++at_;
    if (given == 0) return put_shed(out, coefficient);
    return model::put_varint(model::put_varint(out, given - 1), zigzag(coefficient));
  }

  /// The same behind `exponent_size` bytes that are the common exponent's. Requires: has_common_exponent().
  char* put_next_coefficient(char* out, std::size_t exponent_size) {
    const auto coefficient = static_cast<std::int64_t>(coefficients_[at_++]);
    if (coefficient % 10 == 0) return put_shed(out - exponent_size, coefficient);
    const std::uint64_t value = zigzag(coefficient);
    if (value >= 0x4000) return model::put_varint(out, value);
    out[0] = static_cast<char>(value >= 0x80 ? value | 0x80 : value);
    out[1] = static_cast<char>(value >> 7);
    return out + (value >= 0x80 ? 2 : 1);
  }

 private:
  char* put_shed(char* out, std::int64_t coefficient) const {
    std::int64_t exponent = coefficient == 0 ? 0 : common_;
    for (; coefficient % 10 == 0 && coefficient != 0; coefficient /= 10) ++exponent;
    return model::put_varint(model::put_varint(out, zigzag(exponent)), zigzag(coefficient));
  }

  std::int64_t common_ = 0;
  IntegerReader coefficients_;
  IntegerReader exponents_;
  std::size_t at_ = 0;
};

/// The key times of all precisions, each taken one after the other.
class TimeReader {
 public:
  Integers& values(std::uint8_t precision) { return values_[precision]; }

  char* put_next(char* out, std::uint8_t precision) {
    const auto value = static_cast<std::int64_t>(values_[precision][at_[precision]++]);
    switch (precision) {
      case 0:
        return seconds_.put(out, value);
      case 1:
        return millis_.put(out, value);
      case 2:
        return micros_.put(out, value);
      default:
        return nanos_.put(out, value);
    }
  }

 private:
  std::array<Integers, kNoTime> values_;
  std::array<std::size_t, kNoTime> at_{};
  TimeWriter<0> seconds_;
  TimeWriter<1> millis_;
  TimeWriter<2> micros_;
  TimeWriter<3> nanos_;
};

struct ColumnReader {
  ColumnKind kind = ColumnKind::kRaw;
  std::string_view name;
  std::size_t values = 0;
  StringReader strings;
  NumberReader numbers;

  std::size_t size_bytes_max() const {
    return name.size() + (kind == ColumnKind::kNumber ? model::kNumberValueSizeBytesMax : strings.longest());
  }
};

/// Rows of one shape are written piece by piece: bytes that all of them share, and what is each one's own.
struct Piece {
  enum class Own : std::uint8_t { kNothing, kKey, kTime, kNumber, kCoefficient, kString };

  const char* shared = nullptr;  ///< With kCopySlackBytes behind them.
  std::uint32_t shared_size = 0;
  Own own = Own::kNothing;
  std::uint8_t exponent_size = 0;  ///< kCoefficient: of what the shared bytes end in.
  ColumnReader* column = nullptr;
};

/// A longer string is not copied into pieces, of which there may be many.
constexpr std::size_t kSharedSizeBytesMax = 256;

struct ShapeReader {
  std::uint8_t precision = kNoTime;
  std::vector<std::uint32_t> columns;
  std::size_t rows = 0;
  std::vector<Piece> pieces;
};

class Decoder {
 public:
  explicit Decoder(Input in, const ColumnsInfo& info) : in_(in), info_(info) {}

  bool read() {
    if (!read_columns() || !read_shapes() || !read_row_heads() || !read_times() || !read_values()) return false;
    for (ShapeReader& shape : shapes_) make_pieces(shape);
    return in_.size() == 0;
  }

  /// False: the rows are not of the size that the block says.
  bool write_rows(const std::function<void(std::string_view)>& use) {
    std::uint64_t left = info_.row_bytes;
    model::ByteBuffer row(row_size_bytes_max());
    for (std::size_t i = 0; i < info_.rows; ++i) {
      const auto size = static_cast<std::size_t>(put_row(row.data(), i) - row.data());
      if (size > left) return false;
      left -= size;
      use({row.data(), size});
    }
    return left == 0;
  }

 private:
  bool read_columns() {
    std::uint64_t count = 0;
    if (!in_.take_varint(count) || count > kColumnsMax) return false;
    columns_.resize(count);
    for (ColumnReader& column : columns_) {
      std::uint8_t kind = 0;
      std::uint64_t size = 0;
      if (!in_.take_byte(kind) || kind > static_cast<std::uint8_t>(ColumnKind::kNumber)) return false;
      if (!in_.take_varint(size) || !in_.take_bytes(size, column.name)) return false;
      column.kind = static_cast<ColumnKind>(kind);
    }
    return true;
  }

  bool read_shapes() {
    std::uint64_t count = 0;
    if (!in_.take_varint(count) || count == 0 || count > kShapesMax) return false;
    shapes_.resize(count);
    std::vector<std::uint64_t> stands_in(columns_.size(), count);
    for (std::size_t number = 0; number < count; ++number) {
      ShapeReader& shape = shapes_[number];
      std::uint64_t columns = 0;
      if (!in_.take_byte(shape.precision) || shape.precision > kNoTime) return false;
      if (!in_.take_varint(columns) || columns > columns_.size()) return false;
      for (; columns > 0; --columns) {
        std::uint64_t column = 0;
        if (!in_.take_varint(column) || column >= columns_.size() || stands_in[column] == number) return false;
        stands_in[column] = number;
        shape.columns.push_back(static_cast<std::uint32_t>(column));
      }
    }
    return shape_numbers_.read(in_, info_.rows) && shape_numbers_.max() < count && count_values();
  }

  bool count_values() {
    for (std::size_t i = 0; i < info_.rows; ++i) ++shapes_[shape_numbers_[i]].rows;
    std::size_t values = 0;
    for (const ShapeReader& shape : shapes_) {
      if (shape.precision != kNoTime) timed_rows_ += shape.rows;
      values += shape.columns.size() * shape.rows;
      for (const std::uint32_t column : shape.columns) columns_[column].values += shape.rows;
    }
    return values <= kValuesMax + kColumnsMax + kColumnsRowsMax;  // raw rows go on
  }

  bool read_row_heads() {
    log_times_.resize(info_.rows);
    return take_integers(in_, log_times_, {}) && sources_.read(in_, info_.rows) &&
           offsets_.read(in_, info_.rows, log_times_) && flags_.read(in_, info_.rows) &&
           key_heads_.read(in_, info_.rows, text_left_) && key_tails_.read(in_, timed_rows_, text_left_);
  }

  bool read_times() {
    for (std::uint8_t precision = 0; precision < kNoTime; ++precision) {
      Integers& times = times_.values(precision);
      for (const ShapeReader& shape : shapes_)
        times.resize(times.size() + (shape.precision == precision ? shape.rows : 0));
      const auto precision_of = [this](std::size_t row) { return shapes_[shape_numbers_[row]].precision; };
      Integers space;
      if (!take_integers(in_, times, reference_of(log_times_, precision, times.size(), precision_of, space))) {
        return false;
      }
      const std::int64_t min = kTimeSecondsMin * (kNanosPerSecond / kUnitNs[precision]);
      const std::int64_t end = kTimeSecondsEnd * (kNanosPerSecond / kUnitNs[precision]);
      for (const std::uint64_t time : times) {
        if (static_cast<std::int64_t>(time) < min || static_cast<std::int64_t>(time) >= end) return false;
      }
    }
    return true;
  }

  bool read_values() {
    for (ColumnReader& column : columns_) {
      const bool right = column.kind == ColumnKind::kNumber ? column.numbers.read(in_, column.values)
                                                            : column.strings.read(in_, column.values, text_left_);
      if (!right) return false;
    }
    return true;
  }

  std::size_t row_size_bytes_max() const {
    std::size_t attributes = 0;
    for (const ShapeReader& shape : shapes_) {
      std::size_t size = 0;
      for (const std::uint32_t column : shape.columns) size += columns_[column].size_bytes_max();
      attributes = std::max(attributes, size);
    }
    return model::kRowHeaderSizeBytes + model::kVarintSizeBytesMax + key_heads_.longest() +
           model::kCanonicalTimeSizeBytesMax + key_tails_.longest() + attributes + kCopySlackBytes;
  }

  std::size_t key_size(const ShapeReader& shape, std::string_view head, std::string_view tail) const {
    return head.size() + (shape.precision == kNoTime ? 0 : time_size(shape.precision)) + tail.size();
  }

  void make_pieces(ShapeReader& shape) {
    if (shape.rows == 0) return;
    Bytes shared;
    const auto end_piece = [&](Piece::Own own, ColumnReader* column) -> Piece& {
      const auto size = static_cast<std::uint32_t>(shared.size());
      shared.append(kCopySlackBytes, '\0');
      shared_.push_back(std::exchange(shared, {}));
      return shape.pieces.emplace_back(Piece{shared_.back().data(), size, own, 0, column});
    };
    const bool timed = shape.precision != kNoTime;
    if (key_heads_.constant() && key_tails_.constant() &&
        key_heads_.longest() + key_tails_.longest() <= kSharedSizeBytesMax) {
      const std::string_view head = key_heads_.constant_value();
      const std::string_view tail = timed ? key_tails_.constant_value() : std::string_view();
      append_varint(shared, key_size(shape, head, tail));
      shared.append(head);
      if (timed) end_piece(Piece::Own::kTime, nullptr);
      shared.append(tail);
    } else {
      end_piece(Piece::Own::kKey, nullptr);
    }
    for (const std::uint32_t number : shape.columns) {
      ColumnReader& column = columns_[number];
      shared.append(column.name);
      if (column.kind != ColumnKind::kNumber) {
        if (column.strings.constant() && column.strings.longest() <= kSharedSizeBytesMax) {
          shared.append(column.strings.constant_value());
        } else {
          end_piece(Piece::Own::kString, &column);
        }
        continue;
      }
      shared.push_back(static_cast<char>(ValueTag::kNumber));
      if (column.numbers.has_common_exponent()) {
        const std::size_t before = shared.size();
        append_varint(shared, zigzag(column.numbers.common_exponent()));
        const std::size_t size = shared.size() - before;
        end_piece(Piece::Own::kCoefficient, &column).exponent_size = static_cast<std::uint8_t>(size);
      } else {
        end_piece(Piece::Own::kNumber, &column);
      }
    }
    if (!shared.empty()) end_piece(Piece::Own::kNothing, nullptr);
  }

  char* put_key(char* out, const ShapeReader& shape) {
    const bool timed = shape.precision != kNoTime;
    const std::string_view head = key_heads_.next();
    const std::string_view tail = timed ? key_tails_.next() : std::string_view();
    out = put_bytes(model::put_varint(out, key_size(shape, head, tail)), head);
    return timed ? put_bytes(times_.put_next(out, shape.precision), tail) : out;
  }

  char* put_row(char* out, std::size_t i) {
    const model::Version version{log_times_[i] << 16 | (sources_[i] & 0xffff), offsets_[i]};
    out = model::put_row_header(out, version, static_cast<std::uint8_t>(flags_[i]));
    const ShapeReader& shape = shapes_[shape_numbers_[i]];
    for (const Piece& piece : shape.pieces) {
      out = put_bytes(out, {piece.shared, piece.shared_size});
      switch (piece.own) {
        case Piece::Own::kKey:
          out = put_key(out, shape);
          break;
        case Piece::Own::kTime:
          out = times_.put_next(out, shape.precision);
          break;
        case Piece::Own::kNumber:
          out = piece.column->numbers.put_next(out);
          break;
        case Piece::Own::kCoefficient:
          out = piece.column->numbers.put_next_coefficient(out, piece.exponent_size);
          break;
        case Piece::Own::kString:
          out = put_bytes(out, piece.column->strings.next());
          break;
        case Piece::Own::kNothing:
          break;
      }
    }
    return out;
  }

  Input in_;
  const ColumnsInfo info_;
  std::uint64_t text_left_ = info_.row_bytes;
  std::vector<ColumnReader> columns_;
  std::vector<ShapeReader> shapes_;
  std::size_t timed_rows_ = 0;
  IntegerReader shape_numbers_;
  Integers log_times_;
  IntegerReader sources_;
  IntegerReader offsets_;
  IntegerReader flags_;
  StringReader key_heads_;
  StringReader key_tails_;
  TimeReader times_;
  std::deque<Bytes> shared_;  ///< Of all pieces.
};

/// Takes what stands in front of the columns, behind version and checksum.
bool take_info(Input& in, ColumnsInfo& info) {
  std::uint64_t rows = 0;
  if (!in.take_varint(rows) || rows == 0 || rows > kColumnsRowsMax) return false;
  info.rows = static_cast<std::uint32_t>(rows);
  return in.take_varint(info.row_bytes) && info.row_bytes <= kColumnsRowBytesMax;
}

model::Status check_version(std::string_view encoded) {
  if (encoded.size() < kHeadSizeBytes) return model::invalid("a block on disk is cut off in its first bytes");
  const auto version = static_cast<std::uint8_t>(encoded[0]);
  if (version == 0 || version > kColumnsVersion) {
    return model::invalid("block format " + std::to_string(version) + ", this Drover reads up to " +
                          std::to_string(kColumnsVersion));
  }
  return {};
}

model::Status not_a_block() {
  return model::invalid("a block on disk has a right checksum and impossible content");
}

}  // namespace

void encode_columns(std::span<const model::RowView> rows, Bytes& out) {
  DROVER_CHECK(!rows.empty() && rows.size() <= kColumnsRowsMax, "a block's rows are bounded");
  // Kept by the thread for its next block: a small one takes less time than to get an encoder's memory does.
  thread_local std::unique_ptr<Encoder> encoder;
  if (encoder == nullptr) encoder = std::make_unique<Encoder>();
  encoder->encode(rows, out);
  if (rows.size() > kEncoderRowsMax || encoder->columns() > kEncoderColumnsMax) encoder.reset();
}

model::Result<ColumnsInfo> columns_info(std::string_view encoded) {
  if (model::Status status = check_version(encoded); !status.ok()) return status;
  Input in(encoded.substr(kHeadSizeBytes));
  ColumnsInfo info;
  if (!take_info(in, info)) return not_a_block();
  return info;
}

model::Status decode_columns(std::string_view encoded, const std::function<void(std::string_view)>& use) {
  if (model::Status status = check_version(encoded); !status.ok()) return status;
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, encoded.data() + 1, sizeof checksum);
  if (checksum != checksum_of(encoded)) return model::invalid("a block on disk has a wrong checksum");

  model::ByteBuffer padded(encoded.size() - kHeadSizeBytes + kInputPaddingBytes);
  encoded.copy(padded.data(), encoded.size() - kHeadSizeBytes, kHeadSizeBytes);
  std::memset(padded.data() + padded.size() - kInputPaddingBytes, 0, kInputPaddingBytes);
  Input in({padded.data(), padded.size() - kInputPaddingBytes});
  ColumnsInfo info;
  if (!take_info(in, info)) return not_a_block();
  Decoder decoder(in, info);
  if (!decoder.read() || !decoder.write_rows(use)) return not_a_block();
  return {};
}

void set_columns_checksum(Bytes& encoded) {
  if (encoded.size() < kHeadSizeBytes) return;
  const std::uint64_t checksum = checksum_of(encoded);
  std::memcpy(encoded.data() + 1, &checksum, sizeof checksum);
}

}  // namespace drover::store
