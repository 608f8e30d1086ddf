#include "integers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

namespace drover::store {
namespace {

using model::append_varint;
using model::Bytes;
using model::unzigzag;
using model::zigzag;

std::uint64_t zigzagged(std::uint64_t value) {
  return zigzag(static_cast<std::int64_t>(value));
}
void append_signed(Bytes& out, std::uint64_t value) {
  append_varint(out, zigzagged(value));
}

using Numbers = std::vector<std::uint64_t, model::UninitializedAllocator<std::uint64_t>>;

/// How the residuals are packed. With what was predicted, the first byte of a column.
enum class Packing : std::uint8_t {
  kConstant = 0,  ///< All are the same.
  kFixed = 1,     ///< Each in the same number of bits.
  kCoded = 2,     ///< Each as the Huffman code of its size class, and bits that choose within the class.
  kRuns = 3,      ///< Two further columns: the values of runs, and their lengths.
};

/// What a column goes along with: its values are as they came, or how far they are from that.
enum class Along : std::uint8_t {
  kNothing = 0,
  kPlace = 1,      ///< A line: how many values stand in front.
  kReference = 2,  ///< The other column, counted from its first value.
};

struct Prediction {
  bool by_last = false;  ///< Each value is predicted to be the one in front.
  Along along = Along::kNothing;
  std::uint64_t rate = 0;   ///< How fast the values go when what they are along goes by 1, in 1 / 2^kRateShift.
  std::uint64_t first = 0;  ///< by_last: what stands in front of the first value.
};

constexpr unsigned kRateShift = 20;

/// How far a rate leads in `run`.
std::uint64_t scaled(std::uint64_t run, std::uint64_t rate) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(run * rate) >> kRateShift);
}

/// Writes bits, the first one lowest.
class BitWriter {
 public:
  /// `out` needs room for all bits, and for eight bytes more.
  explicit BitWriter(char* out) : out_(out) {}
  /// Requires: count <= 56, and no bit of `bits` beyond it.
  void put(std::uint64_t bits, unsigned count) {
    held_ |= bits << held_count_;
    held_count_ += count;
    std::memcpy(out_, &held_, sizeof held_);
    out_ += held_count_ / 8;
    held_ >>= held_count_ / 8 * 8;
    held_count_ %= 8;
  }
  void put_wide(std::uint64_t bits, unsigned count) {
    if (count > 32) {
      put(bits & 0xffffffff, 32);
      bits >>= 32;
      count -= 32;
    }
    put(bits, count);
  }
  char* finish() { return out_ + (held_count_ > 0 ? 1 : 0); }

 private:
  char* out_;
  std::uint64_t held_ = 0;
  unsigned held_count_ = 0;
};

std::uint64_t low_bits(std::uint64_t bits, unsigned count) {
  return count < 64 ? bits & ((std::uint64_t{1} << count) - 1) : bits;
}

/// Reads what a BitWriter wrote. What it reads beyond the end is of no meaning, and overrun() tells.
class BitReader {
 public:
  /// Requires: kInputPaddingBytes readable bytes behind.
  explicit BitReader(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), bits_left_(static_cast<std::int64_t>(bytes.size()) * 8) {}

  /// Has at least 56 bits held from here on.
  void refill() {
    std::uint64_t word = 0;
    std::memcpy(&word, at_, sizeof word);
    held_ |= word << held_count_;
    at_ = std::min(at_ + ((63 - held_count_) >> 3), end_);
    held_count_ |= 56;
  }
  std::uint64_t held() const { return held_; }
  void drop(unsigned count) {
    held_ >>= count;
    held_count_ -= count;
    bits_left_ -= count;
  }
  std::uint64_t take(unsigned count) {
    const std::uint64_t bits = low_bits(held_, count);
    drop(count);
    return bits;
  }
  std::uint64_t take_wide(unsigned count) {
    refill();
    if (count <= 32) return take(count);
    const std::uint64_t low = take(32);
    refill();
    return low | take(count - 32) << 32;
  }
  bool overrun() const { return bits_left_ < 0; }

 private:
  const char* at_;
  const char* end_;
  std::uint64_t held_ = 0;
  unsigned held_count_ = 0;
  std::int64_t bits_left_;
};

// Size classes. A number below 8 is a class of its own; from there on each power of two is parted into four classes.
// Before that, as many low bits are cut off as say nothing about how likely a value is.

constexpr unsigned kClassBits = 2;
constexpr std::uint64_t kSingleClasses = 2u << kClassBits;
constexpr std::size_t kClassesMax = (64 - kClassBits - 1) * (1u << kClassBits) + kSingleClasses;

static_assert(kClassesMax <= 256, "a class number is a byte");

struct SizeClass {
  std::uint64_t first = 0;  ///< Its smallest member.
  unsigned bits = 0;        ///< That choose a member.
};

constexpr std::size_t class_of(std::uint64_t value) {
  if (value < kSingleClasses) return value;
  const unsigned bits = static_cast<unsigned>(std::bit_width(value)) - 1 - kClassBits;
  return (std::size_t{bits} << kClassBits) + (value >> bits);
}
constexpr auto kNearClasses = [] {
  std::array<std::uint8_t, 64> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint8_t>(class_of(i));
  return numbers;
}();

SizeClass size_class(std::size_t number) {
  if (number < kSingleClasses) return {number, 0};
  const auto bits = static_cast<unsigned>((number >> kClassBits) - 1);
  return {((number & ((1u << kClassBits) - 1)) + (1u << kClassBits)) << bits, bits};
}

// Huffman codes of the classes, written as their lengths alone.

constexpr unsigned kCodeBitsMax = 11;
constexpr unsigned kMoreBitsMax = 63;  ///< Behind a code.

using CodeLengths = std::array<std::uint8_t, kClassesMax>;

/// Gives each class that occurs a length; the codes are complete unless one class occurs only.
void make_code_lengths(std::span<std::uint32_t> counts, CodeLengths& lengths) {
  struct Leaf {
    std::uint32_t count;
    std::uint16_t number;
  };
  std::array<Leaf, kClassesMax> leaves;
  std::size_t n = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    lengths[i] = 0;
    if (counts[i] > 0) leaves[n++] = {counts[i], static_cast<std::uint16_t>(i)};
  }
  if (n == 1) lengths[leaves[0].number] = 1;
  if (n <= 1) return;
  std::sort(leaves.begin(), leaves.begin() + n,
            [](const Leaf& a, const Leaf& b) { return a.count != b.count ? a.count < b.count : a.number < b.number; });
  // Two queues, both ascending: leaves, and the nodes made of the two smallest so far.
  std::array<std::uint32_t, kClassesMax> node_count;
  std::array<std::uint16_t, 2 * kClassesMax> parent;
  for (;;) {
    std::size_t leaf = 0;
    std::size_t node = 0;
    for (std::size_t made = 0; made + 1 < n; ++made) {
      node_count[made] = 0;
      for (int child = 0; child < 2; ++child) {
        const bool take_leaf = leaf < n && (node == made || leaves[leaf].count <= node_count[node]);
        node_count[made] += take_leaf ? leaves[leaf].count : node_count[node];
        parent[take_leaf ? leaf++ : n + node++] = static_cast<std::uint16_t>(n + made);
      }
    }
    std::array<std::uint8_t, 2 * kClassesMax> depth;
    depth[2 * n - 2] = 0;
    std::uint8_t deepest = 0;
    for (std::size_t i = 2 * n - 2; i-- > 0;) {
      depth[i] = static_cast<std::uint8_t>(depth[parent[i]] + 1);
      deepest = std::max(deepest, depth[i]);
    }
    if (deepest <= kCodeBitsMax) {
      for (std::size_t i = 0; i < n; ++i) lengths[leaves[i].number] = depth[i];
      return;
    }
    for (std::size_t i = 0; i < n; ++i) leaves[i].count = leaves[i].count / 2 + 1;  // flatter, in the same order
  }
}

std::uint32_t reversed(std::uint32_t code, unsigned length) {
  std::uint32_t result = 0;
  for (; length > 0; --length, code >>= 1) result = result << 1 | (code & 1);
  return result;
}

/// Calls `use(class, length, code)` in the order of canonical codes; a code's first bit is its lowest. False: the
/// lengths are not those of a code.
template <typename Use>
bool for_each_code(std::span<const std::uint8_t> lengths, Use&& use) {
  std::array<std::uint32_t, 16> next{};
  for (const std::uint8_t length : lengths) ++next[length];
  next[0] = 0;
  std::uint32_t code = 0;
  for (unsigned length = 1; length <= kCodeBitsMax; ++length) {
    const std::uint32_t count = next[length];
    next[length] = code;
    code += count;
    if (code > 1u << length) return false;
    code <<= 1;
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > 0) use(i, lengths[i], reversed(next[lengths[i]]++, lengths[i]));
  }
  return true;
}

/// A length a nibble; behind a 0, how many further ones follow.
void append_code_lengths(std::span<const std::uint8_t> lengths, Bytes& out) {
  append_varint(out, lengths.size());
  unsigned held = 0;
  bool half = false;
  const auto put = [&](std::size_t nibble) {
    if (half) {
      out.push_back(static_cast<char>(held | nibble << 4));
    } else {
      held = static_cast<unsigned>(nibble);
    }
    half = !half;
  };
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    put(lengths[i]);
    if (lengths[i] > 0) continue;
    std::size_t more = 0;
    while (more < 15 && i + 1 < lengths.size() && lengths[i + 1] == 0) ++more, ++i;
    put(more);
  }
  if (half) put(0);
}

bool take_code_lengths(Input& in, CodeLengths& lengths, std::size_t& count) {
  std::uint64_t given = 0;
  if (!in.take_varint(given) || given == 0 || given > kClassesMax) return false;
  count = given;
  std::uint8_t byte = 0;
  bool half = false;
  const auto take = [&](std::uint8_t& nibble) {
    if (!half && !in.take_byte(byte)) return false;
    nibble = half ? byte >> 4 : byte & 15;
    half = !half;
    return true;
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (!take(lengths[i]) || lengths[i] > kCodeBitsMax) return false;
    if (lengths[i] > 0) continue;
    std::uint8_t more = 0;
    if (!take(more) || more > count - 1 - i) return false;
    std::fill_n(lengths.begin() + i, more + 1, std::uint8_t{0});
    i += more;
  }
  return true;
}

// Encoding. How a column is predicted and packed is chosen by a sample of it; then each value is looked at twice, once
// for its residual and once to be packed.

/// Columns of at least so many values are coded, smaller ones fixed: a code and its table take longer to make than a
/// few bytes are worth.
constexpr std::size_t kCodedMin = 256;
constexpr std::size_t kSampleMax = 32;

/// A few stretches of a column: each value's place is at least 1, so that there is one in front.
struct Sample {
  explicit Sample(std::size_t values) {
    constexpr std::size_t kStretch = 8;
    const std::size_t stretches = values >= kCodedMin ? kSampleMax / kStretch : 2;
    if (values - 1 <= kStretch * stretches) {
      for (; size < values - 1; ++size) places[size] = static_cast<std::uint32_t>(size + 1);
      return;
    }
    for (std::size_t i = 0; i < stretches; ++i) {
      const std::size_t begin = 1 + i * (values - 1 - kStretch) / (stretches - 1);
      for (std::size_t j = 0; j < kStretch; ++j) places[size++] = static_cast<std::uint32_t>(begin + j);
    }
  }

  std::size_t size = 0;
  std::array<std::uint32_t, kSampleMax> places;
};

using Residuals = std::array<std::uint64_t, kSampleMax>;

/// By the smallest network of exchanges (Paeth, "Median finding on a 3×3 grid"): no branch that could be foretold
/// badly.
std::int64_t median_of(std::array<std::int64_t, 9> v) {
  const auto order = [&v](std::size_t a, std::size_t b) {
    const std::int64_t low = std::min(v[a], v[b]);
    v[b] = std::max(v[a], v[b]);
    v[a] = low;
  };
  order(1, 2), order(4, 5), order(7, 8), order(0, 1), order(3, 4), order(6, 7), order(1, 2), order(4, 5), order(7, 8);
  order(0, 3), order(5, 8), order(4, 7), order(3, 6), order(1, 4), order(2, 5), order(4, 7), order(4, 2), order(6, 4);
  order(4, 2);
  return v[4];
}

/// A middle one of some of the values: good enough to begin with, whatever outliers there are.
std::uint64_t middle_of(std::span<const std::uint64_t> values) {
  std::array<std::int64_t, 9> some;
  for (std::size_t i = 0; i < 9; ++i) some[i] = static_cast<std::int64_t>(values[i * (values.size() - 1) / 8]);
  return static_cast<std::uint64_t>(median_of(some));
}

/// How far from `middle` (zigzag) half of some of the values are.
std::uint64_t middle_distance(std::span<const std::uint64_t> values, std::uint64_t middle) {
  std::array<std::int64_t, 9> distances;
  for (std::size_t i = 0; i < 9; ++i) {
    const std::uint64_t distance = zigzagged(values[(2 * i + 1) * (values.size() - 1) / 18] - middle);
    distances[i] = static_cast<std::int64_t>(distance >> 1);
  }
  return static_cast<std::uint64_t>(median_of(distances)) << 1;
}

/// What the values are on average, those beyond 4 * `distance` (zigzag) from `middle` left aside. Around the mean of
/// the many, values to both sides share their classes best.
std::uint64_t mean_near(std::span<const std::uint64_t> values, std::uint64_t middle, std::uint64_t distance) {
  const auto limit = static_cast<std::int64_t>(std::min(distance, std::uint64_t{1} << 40) * 2);
  std::int64_t sum = 0;
  std::int64_t count = 1;
  for (const std::uint64_t value : values) {
    const auto from_middle = static_cast<std::int64_t>(value - middle);
    const bool near = from_middle <= limit && from_middle >= -limit;
    sum += near ? from_middle : 0;
    count += near ? 1 : 0;
  }
  return middle + static_cast<std::uint64_t>(sum / count);
}

/// What append_signed() takes.
std::size_t signed_bits(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(zigzagged(value) | 1)) + 6) / 7 * 8;
}

/// How much further a value is than that half a column in front of it. `value_at(i)`: the i-th of `size`.
template <typename ValueAt>
std::int64_t rise_of(std::size_t size, ValueAt&& value_at) {
  Residuals rises;
  const std::size_t half = size / 2;
  const std::size_t n = std::min(half, size >= kCodedMin ? kSampleMax : kSampleMax / 2);
  for (std::size_t i = 0; i < n; ++i) rises[i] = value_at(size - half + i * half / n) - value_at(i * half / n);
  const std::span<const std::uint64_t> some(rises.data(), n);
  const std::uint64_t middle = middle_of(some);
  return static_cast<std::int64_t>(mean_near(some, middle, middle_distance(some, middle)));
}

/// In 1 / 2^kRateShift. What comes with its time goes at that rate, however unevenly.
std::uint64_t rate_of(std::int64_t rise, std::int64_t run) {
  if (run == 0) return 0;
  constexpr __int128 kOne = 1 << kRateShift;
  const __int128 rate = rise * kOne / run;
  const bool nearly_one = rate > kOne - kOne / 32 && rate < kOne + kOne / 32;
  return static_cast<std::uint64_t>(nearly_one ? kOne : rate);
}

/// How a column is written.
struct Plan {
  Prediction prediction;
  bool in_runs = false;
  std::uint64_t middle = 0;    ///< Of the residuals; the mean of most if they are to be coded.
  std::uint64_t distance = 0;  ///< From there, of half of them (zigzag), if they are to be coded.
};

/// Chooses a plan by what a sample would take in each.
class Planner {
 public:
  Planner(std::span<const std::uint64_t> values, std::span<const std::uint64_t> reference)
      : values_(values), sample_(values.size()) {
    try_out({}, reference.empty(), [values](std::size_t i) { return values[i]; });
    const bool rises = rises_;
    if (!reference.empty()) {
      const auto run = rise_of(values.size(), [reference](std::size_t i) { return reference[i]; });
      const std::uint64_t rate = rate_of(rise(), run);
      try_out({.along = Along::kReference, .rate = rate}, true, [values, reference, rate](std::size_t i) {
        return values[i] - scaled(reference[i] - reference[0], rate);
      });
    } else if (rises && values.size() >= kCodedMin) {
      const std::uint64_t rate = rate_of(rise(), static_cast<std::int64_t>(values.size() - values.size() / 2));
      try_out({.along = Along::kPlace, .rate = rate}, true,
              [values, rate](std::size_t i) { return values[i] - scaled(i, rate); });
    }
  }

  Plan plan() {
    if (values_.size() >= kCodedMin) {
      const std::span<const std::uint64_t> residuals(best_->data(), sample_.size);
      plan_.distance = middle_distance(residuals, plan_.middle);
      plan_.middle = mean_near(residuals, plan_.middle, plan_.distance);
    }
    // What stands in front of the first value, so that its residual is no other than the rest.
    if (plan_.prediction.by_last) plan_.prediction.first = values_[0] - plan_.middle;
    return plan_;
  }

 private:
  std::int64_t rise() const {
    return rise_of(values_.size(), [this](std::size_t i) { return values_[i]; });
  }

  /// By the last value and, `as_is`, without it.
  template <typename ValueAt>
  void try_out(Prediction prediction, bool as_is, ValueAt&& value_at) {
    if (as_is) {
      for (std::size_t i = 0; i < sample_.size; ++i) (*next_)[i] = value_at(sample_.places[i]);
      rate_plan(prediction);
    }
    prediction.by_last = true;
    for (std::size_t i = 0; i < sample_.size; ++i) {
      (*next_)[i] = value_at(sample_.places[i]) - value_at(sample_.places[i] - 1);
    }
    rate_plan(prediction);
  }

  void rate_plan(const Prediction& prediction) {
    constexpr std::size_t kRunBits = 14;  // what a run mostly takes
    const std::size_t n = sample_.size;
    const Residuals& residuals = *next_;
    const std::uint64_t middle = middle_of({residuals.data(), n});
    const auto bits_of = [middle](std::uint64_t residual) {  // one at least
      return static_cast<std::size_t>(std::bit_width(zigzagged(residual - middle) | 1));
    };
    std::size_t bits = bits_of(residuals[0]);
    std::size_t runs = 0;  // behind the first one
    for (std::size_t i = 1; i < n; ++i) {
      bits += bits_of(residuals[i]);
      runs += residuals[i] != residuals[i - 1] && sample_.places[i] - sample_.places[i - 1] == 1 ? 1 : 0;
    }
    rises_ = static_cast<std::size_t>(std::bit_width(zigzagged(middle))) * n > bits;
    const std::size_t bits_in_runs = runs * kRunBits;
    const bool in_runs = bits_in_runs < bits;
    std::size_t size = (in_runs ? bits_in_runs : bits) * values_.size() / n + signed_bits(middle);
    if (prediction.by_last) size += signed_bits(values_[0]);
    if (prediction.along != Along::kNothing) size += signed_bits(prediction.rate);
    if (size >= best_bits_) return;
    best_bits_ = size;
    plan_ = {prediction, in_runs, middle, 0};
    std::swap(best_, next_);
  }

  const std::span<const std::uint64_t> values_;
  const Sample sample_;
  Residuals residuals_[2];
  Residuals* best_ = &residuals_[0];
  Residuals* next_ = &residuals_[1];
  std::size_t best_bits_ = std::numeric_limits<std::size_t>::max();
  bool rises_ = false;  ///< The residuals of the last one tried lie on one side of 0.
  Plan plan_;
};

/// Calls `use(i, residual)` of each value in order.
template <typename Use>
void for_each_residual(const Prediction& prediction, std::span<const std::uint64_t> values,
                       std::span<const std::uint64_t> reference, Use&& use) {
  const auto walk = [&](auto&& value_at) {
    if (prediction.by_last) {
      std::uint64_t last = prediction.first;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint64_t value = value_at(i);
        use(i, value - last);
        last = value;
      }
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) use(i, value_at(i));
    }
  };
  const std::uint64_t rate = prediction.rate;
  if (prediction.along == Along::kNothing) {
    walk([&](std::size_t i) { return values[i]; });
  } else if (prediction.along == Along::kPlace) {
    walk([&](std::size_t i) { return values[i] - scaled(i, rate); });
  } else {
    const std::uint64_t first = reference[0];
    walk([&](std::size_t i) { return values[i] - scaled(reference[i] - first, rate); });
  }
}

void append_head(Packing packing, const Prediction& prediction, Bytes& out) {
  out.push_back(static_cast<char>(static_cast<unsigned>(packing) | (prediction.by_last ? 4u : 0u) |
                                  static_cast<unsigned>(prediction.along) << 3));
  if (prediction.along != Along::kNothing) append_signed(out, prediction.rate);
  if (prediction.by_last) append_signed(out, prediction.first);
}

void append_constant(std::uint64_t value, const Prediction& prediction, Bytes& out) {
  append_head(Packing::kConstant, prediction, out);
  append_signed(out, value);
}

/// Working memory, kept from call to call: to get it anew would take as long as a small column does.
struct Workspace {
  Numbers residuals;
  Numbers heads;  ///< Of runs.
  Numbers lengths;
  model::ByteBuffer classes;  ///< Of each residual.
  std::array<model::ByteBuffer, 2> lanes;
};
/// No larger ones are kept.
constexpr std::size_t kWorkspaceValuesMax = 8'192;

void append_fixed(std::span<const std::uint64_t> values, std::span<const std::uint64_t> reference,
                  const Prediction& prediction, Workspace& space, Bytes& out) {
  space.residuals.resize(values.size());
  std::uint64_t* const residuals = space.residuals.data();
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for_each_residual(prediction, values, reference, [&](std::size_t i, std::uint64_t residual) {
    residuals[i] = residual;
    least = std::min(least, static_cast<std::int64_t>(residual));
    most = std::max(most, static_cast<std::int64_t>(residual));
  });
  const auto base = static_cast<std::uint64_t>(least);
  const auto width = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(most) - base));
  if (width == 0) return append_constant(base, prediction, out);
  append_head(Packing::kFixed, prediction, out);
  append_signed(out, base);
  out.push_back(static_cast<char>(width));
  const std::size_t begin = out.size();
  out.resize(begin + values.size() * width / 8 + 1 + sizeof(std::uint64_t));
  BitWriter bits(out.data() + begin);
  if (width <= 56) {
    for (std::size_t i = 0; i < values.size(); ++i) bits.put(residuals[i] - base, width);
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) bits.put_wide(residuals[i] - base, width);
  }
  out.resize(static_cast<std::size_t>(bits.finish() - out.data()));
}

/// Values take turns in two strings of bits, so that a decoder can read both at a time.
void append_coded(std::span<const std::uint64_t> values, std::span<const std::uint64_t> reference, const Plan& plan,
                  Workspace& space, Bytes& out) {
  const auto width = static_cast<unsigned>(std::bit_width(plan.distance));
  const unsigned cut = width > kClassBits + 1 ? width - kClassBits - 1 : 0;
  space.residuals.resize(values.size());
  space.classes.resize(values.size());
  std::uint64_t* const sizes = space.residuals.data();
  char* const classes = space.classes.data();
  std::array<std::uint32_t, kClassesMax> counts{};
  const std::uint64_t middle = plan.middle;
  for_each_residual(plan.prediction, values, reference, [=, &counts](std::size_t i, std::uint64_t residual) {
    const std::uint64_t size = zigzagged(residual - middle);
    const std::uint64_t near = size >> cut;
    const std::size_t number = near < kNearClasses.size() ? kNearClasses[near] : class_of(near);
    sizes[i] = size;
    classes[i] = static_cast<char>(number);
    ++counts[number];
  });
  std::size_t used = kClassesMax;
  while (counts[used - 1] == 0) --used;
  CodeLengths lengths;
  make_code_lengths({counts.data(), used}, lengths);

  append_head(Packing::kCoded, plan.prediction, out);
  append_signed(out, middle);
  out.push_back(static_cast<char>(cut));
  append_code_lengths({lengths.data(), used}, out);
  struct Code {
    std::uint64_t mask;  ///< Of the bits behind the code.
    std::uint32_t bits;
    std::uint8_t length;
    std::uint8_t size_bits;  ///< Of both.
  };
  std::array<Code, kClassesMax> codes;
  unsigned size_bits_max = 0;
  for_each_code({lengths.data(), used}, [&](std::size_t i, unsigned length, std::uint32_t bits) {
    const unsigned more = size_class(i).bits + cut;
    codes[i] = {(std::uint64_t{1} << more) - 1, bits, static_cast<std::uint8_t>(length),
                static_cast<std::uint8_t>(length + more)};
    size_bits_max = std::max(size_bits_max, length + more);
  });
  const auto code_at = [&](std::size_t i) __attribute__((always_inline)) {
    return codes[static_cast<std::uint8_t>(classes[i])];
  };
  const auto bits_at = [&](std::size_t i, const Code& code) __attribute__((always_inline)) {
    return code.bits | (sizes[i] & code.mask) << code.length;
  };
  const auto put = [&](BitWriter& bits, std::size_t i) {
    const Code code = code_at(i);
    if (code.size_bits <= 56) return bits.put(bits_at(i, code), code.size_bits);
    bits.put(code.bits, code.length);
    bits.put_wide(sizes[i] & code.mask, code.size_bits - code.length);
  };
  const auto put_two = [&](BitWriter & bits, std::size_t i, std::size_t j) __attribute__((always_inline)) {
    const Code first = code_at(i);
    const Code second = code_at(j);
    bits.put(bits_at(i, first) | bits_at(j, second) << first.size_bits, first.size_bits + second.size_bits);
  };
  for (model::ByteBuffer& lane : space.lanes) lane.resize(values.size() / 2 * 10 + 32);
  BitWriter even(space.lanes[0].data());
  BitWriter odd(space.lanes[1].data());
  std::size_t at = 0;
  if (size_bits_max <= 28) {
    for (; at + 3 < values.size(); at += 4) {
      put_two(even, at, at + 2);
      put_two(odd, at + 1, at + 3);
    }
  }
  for (; at < values.size(); ++at) put(at % 2 == 0 ? even : odd, at);
  const char* const ends[] = {even.finish(), odd.finish()};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto size = static_cast<std::size_t>(ends[i] - space.lanes[i].data());
    append_varint(out, size);
    out.append(space.lanes[i].data(), size);
  }
}

void append_each(std::span<const std::uint64_t> values, std::span<const std::uint64_t> reference, const Plan& plan,
                 Workspace& space, Bytes& out) {
  if (values.size() >= kCodedMin) {
    append_coded(values, reference, plan, space, out);
  } else {
    append_fixed(values, reference, plan.prediction, space, out);
  }
}

/// Of runs, which have none in them.
void append_part(std::span<const std::uint64_t> values, Workspace& space, Bytes& out) {
  if (values.size() == 1) return append_constant(values[0], {}, out);
  append_each(values, {}, Planner(values, {}).plan(), space, out);
}

/// False, and nothing is done: they are too many.
bool append_runs(std::span<const std::uint64_t> values, std::span<const std::uint64_t> reference,
                 const Prediction& prediction, Workspace& space, Bytes& out) {
  space.heads.resize(values.size());
  space.lengths.resize(values.size());
  std::size_t runs = 0;
  std::size_t begin = 0;
  std::uint64_t head = 0;
  for_each_residual(prediction, values, reference, [&](std::size_t i, std::uint64_t residual) {
    if (i > 0 && residual == head) return;
    if (i > 0) space.lengths[runs++] = i - begin;
    space.heads[runs] = head = residual;
    begin = i;
  });
  space.lengths[runs++] = values.size() - begin;
  if (runs == 1) return append_constant(head, prediction, out), true;
  if (runs * 2 > values.size()) return false;
  append_head(Packing::kRuns, prediction, out);
  append_varint(out, runs);
  append_part({space.heads.data(), runs}, space, out);
  const std::span<const std::uint64_t> lengths(space.lengths.data(), runs);
  if (runs < kCodedMin) {
    append_fixed(lengths, {}, {}, space, out);  // nothing foretells them
  } else {
    append_part(lengths, space, out);
  }
  return true;
}

// Decoding: a packing gives the residuals, and a second pass makes values of them in place.

bool take_fixed(Input& in, std::span<std::uint64_t> values) {
  std::uint64_t least = 0;
  std::uint8_t width = 0;
  std::string_view bytes;
  if (!in.take_signed(least) || !in.take_byte(width) || width > 64) return false;
  if (!in.take_bytes((values.size() * width + 7) / 8, bytes)) return false;
  if (width > 56) {
    BitReader bits(bytes);
    for (std::uint64_t& value : values) value = least + bits.take_wide(width);
    return true;
  }
  const std::uint64_t mask = low_bits(~std::uint64_t{0}, width);
  for (std::size_t i = 0, at = 0; i < values.size(); ++i, at += width) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at / 8, sizeof word);
    values[i] = least + (word >> at % 8 & mask);
  }
  return true;
}

/// What a code that begins with some bits says. Bits that begin no code (there is one class only, or these bytes are
/// made up) say class 0.
struct CodeTable {
  struct Entry {
    std::uint8_t number;  ///< Of the class.
    std::uint8_t length;
    std::uint8_t more;       ///< Bits behind the code.
    std::uint8_t size_bits;  ///< Of both.
  };
  unsigned code_bits = 0;  ///< Of the longest code.
  unsigned size_bits_max = 0;
  std::array<Entry, 1u << kCodeBitsMax> entries;
  std::array<std::uint64_t, kClassesMax> first;
};
bool make_table(std::span<const std::uint8_t> lengths, unsigned cut, CodeTable& table) {
  table.code_bits = *std::max_element(lengths.begin(), lengths.end());
  const std::size_t size = std::size_t{1} << table.code_bits;
  std::fill_n(table.entries.begin(), size, CodeTable::Entry{0, 1, 0, 1});
  table.first[0] = 0;
  unsigned most = 0;
  const bool right = for_each_code(lengths, [&](std::size_t number, unsigned length, std::uint32_t code) {
    const SizeClass members = size_class(number);
    const unsigned more = members.bits + cut;
    most = std::max(most, more);
    table.first[number] = members.first << cut;
    table.size_bits_max = std::max(table.size_bits_max, length + more);
    const CodeTable::Entry entry{static_cast<std::uint8_t>(number), static_cast<std::uint8_t>(length),
                                 static_cast<std::uint8_t>(more), static_cast<std::uint8_t>(length + more)};
    for (std::size_t i = code; i < size; i += std::size_t{1} << length) table.entries[i] = entry;
  });
  return right && most <= kMoreBitsMax;
}

constexpr auto kLowBits = [] {
  std::array<std::uint64_t, 64> masks{};
  for (unsigned i = 0; i < masks.size(); ++i) masks[i] = (std::uint64_t{1} << i) - 1;
  return masks;
}();

/// `wide`: a code with the bits behind it may be more than 56.
template <bool wide>
bool take_lanes(std::span<const std::string_view, 2> lanes, const CodeTable& table, std::uint64_t middle,
                std::span<std::uint64_t> values) {
  BitReader even(lanes[0]);
  BitReader odd(lanes[1]);
  const std::uint64_t mask = kLowBits[table.code_bits];
  const auto next = [&table, mask, middle ](BitReader & bits) __attribute__((always_inline)) {
    bits.refill();
    const CodeTable::Entry entry = table.entries[bits.held() & mask];
    std::uint64_t more = 0;
    if (!wide || entry.size_bits <= 56) {
      more = bits.held() >> entry.length & kLowBits[entry.more];
      bits.drop(entry.size_bits);
    } else {
      bits.drop(entry.length);
      more = bits.take_wide(entry.more);
    }
    return middle + static_cast<std::uint64_t>(unzigzag(table.first[entry.number] + more));
  };
  const std::size_t pairs = values.size() / 2;
  std::uint64_t* to = values.data();
  for (std::size_t i = 0; i < pairs; ++i, to += 2) {
    to[0] = next(even);
    to[1] = next(odd);
  }
  if (values.size() % 2 != 0) *to = next(even);
  return !even.overrun() && !odd.overrun();
}

bool take_coded(Input& in, std::span<std::uint64_t> values) {
  std::uint64_t middle = 0;
  std::uint8_t cut = 0;
  CodeLengths lengths;
  std::size_t classes = 0;
  if (!in.take_signed(middle) || !in.take_byte(cut) || cut > kMoreBitsMax || !take_code_lengths(in, lengths, classes)) {
    return false;
  }
  CodeTable table;
  if (!make_table({lengths.data(), classes}, cut, table)) return false;
  std::string_view lanes[2];
  for (std::string_view& lane : lanes) {
    std::uint64_t size = 0;
    if (!in.take_varint(size) || !in.take_bytes(size, lane)) return false;
  }
  return table.size_bits_max <= 56 ? take_lanes<false>(lanes, table, middle, values)
                                   : take_lanes<true>(lanes, table, middle, values);
}

bool take_column(Input& in, std::span<std::uint64_t> values, std::span<const std::uint64_t> reference, bool in_runs);

bool take_runs(Input& in, std::span<std::uint64_t> values) {
  std::uint64_t runs = 0;
  if (!in.take_varint(runs) || runs > values.size()) return false;
  Numbers columns(2 * runs);
  const std::span<std::uint64_t> heads(columns.data(), runs);
  const std::span<std::uint64_t> lengths(columns.data() + runs, runs);
  if (!take_column(in, heads, {}, true) || !take_column(in, lengths, {}, true)) return false;
  std::size_t at = 0;
  for (std::size_t i = 0; i < runs; ++i) {
    if (lengths[i] > values.size() - at) return false;
    std::fill_n(values.begin() + at, lengths[i], heads[i]);
    at += lengths[i];
  }
  return at == values.size();
}

void restore(const Prediction& prediction, std::span<std::uint64_t> values, std::span<const std::uint64_t> reference) {
  if (prediction.by_last) {
    std::uint64_t last = prediction.first;
    for (std::uint64_t& value : values) value = last += value;
  }
  if (prediction.along == Along::kPlace) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += scaled(i, prediction.rate);
  } else if (prediction.along == Along::kReference) {
    const std::uint64_t first = reference[0];
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += scaled(reference[i] - first, prediction.rate);
  }
}

bool take_column(Input& in, std::span<std::uint64_t> values, std::span<const std::uint64_t> reference, bool in_runs) {
  if (values.empty()) return true;
  std::uint8_t head = 0;
  if (!in.take_byte(head) || head >> 3 > static_cast<std::uint8_t>(Along::kReference)) return false;
  const auto packing = static_cast<Packing>(head & 3);
  Prediction prediction{.by_last = (head & 4) != 0, .along = static_cast<Along>(head >> 3)};
  if (prediction.along == Along::kReference && reference.empty()) return false;
  if (prediction.along != Along::kNothing && !in.take_signed(prediction.rate)) return false;
  if (prediction.by_last && !in.take_signed(prediction.first)) return false;
  bool right = false;
  switch (packing) {
    case Packing::kConstant: {
      std::uint64_t value = 0;
      right = in.take_signed(value);
      std::fill(values.begin(), values.end(), value);
      break;
    }
    case Packing::kFixed:
      right = take_fixed(in, values);
      break;
    case Packing::kCoded:
      right = take_coded(in, values);
      break;
    case Packing::kRuns:
      right = !in_runs && take_runs(in, values);
      break;
  }
  if (right) restore(prediction, values, reference);
  return right;
}

}  // namespace

void append_integers(std::span<const std::uint64_t> values, std::span<const std::uint64_t> reference, Bytes& out) {
  if (values.empty()) return;
  if (std::memcmp(values.data(), values.data() + 1, (values.size() - 1) * sizeof values[0]) == 0) {
    return append_constant(values[0], {}, out);
  }
  // Kept by the thread: columns are written one after the other, and many are small.
  thread_local Workspace space;
  const Plan plan = Planner(values, reference).plan();
  if (!plan.in_runs || !append_runs(values, reference, plan.prediction, space, out)) {
    append_each(values, reference, plan, space, out);
  }
  if (values.size() > kWorkspaceValuesMax) space = {};
}

bool take_constant(Input& in, std::uint64_t& value) {
  std::uint8_t head = 0;
  return in.begins_with(0) && in.take_byte(head) && in.take_signed(value);
}

bool take_integers(Input& in, std::span<std::uint64_t> values, std::span<const std::uint64_t> reference) {
  return take_column(in, values, reference, false);
}

}  // namespace drover::store
