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

/// Working memory of a call.
using Scratch = std::vector<std::uint64_t, model::UninitializedAllocator<std::uint64_t>>;

/// How the residuals are packed. With what was predicted, the first byte of a column.
enum class Packing : std::uint8_t {
  kConstant = 0,  ///< All are the same.
  kFixed = 1,     ///< Each in the same number of bits.
  kCoded = 2,     ///< Each as the Huffman code of its size class, and bits that choose within the class.
  kRuns = 3,      ///< Two further columns: the values of runs, and their lengths.
};

/// What a value is predicted to be. The values are as they came or, with a reference, how far they are from it.
enum class Predictor : std::uint8_t {
  kNone = 0,
  kLast = 1,  ///< The value in front.
  kStep = 2,  ///< The value in front, and as much further as that one was.
  kLine = 3,  ///< On a line from the first value, as steep as the column is.
};

struct Prediction {
  Predictor predictor = Predictor::kNone;
  bool from_reference = false;
  std::uint64_t first = 0;           ///< kLast: what stands in front of the first value. kStep, kLine: the first value.
  std::uint64_t reference_rate = 0;  ///< How fast the values go when the reference goes by 1, in 1 / 2^kRateShift.
  std::uint64_t step = 0;            ///< kStep: to the second value. kLine: per value, in 1 / 2^kRateShift.
};

constexpr unsigned kRateShift = 20;
constexpr std::size_t kRunLengthMin = 4;  ///< Runs are tried from this mean length on.
constexpr std::size_t kRunBits = 12;      ///< What a run mostly takes at most; a value of its own takes one at least.

/// How far a rate leads in `run`.
std::uint64_t scaled(std::uint64_t run, std::uint64_t rate) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(run * rate) >> kRateShift);
}
std::uint64_t on_line(const Prediction& prediction, std::size_t i) {
  return prediction.first + scaled(i, prediction.step);
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
  std::array<std::int64_t, 9> sample;
  for (std::size_t i = 0; i < 9; ++i) sample[i] = static_cast<std::int64_t>(values[i * (values.size() - 1) / 8]);
  return static_cast<std::uint64_t>(median_of(sample));
}

/// Writes residuals [begin, begin + out.size()) of values that are as they came or differences from the reference.
void predict(const Prediction& prediction, std::span<const std::uint64_t> values, std::size_t begin,
             std::span<std::uint64_t> out) {
  const std::size_t end = begin + out.size();
  switch (prediction.predictor) {
    case Predictor::kNone:
      std::copy_n(values.begin() + begin, out.size(), out.begin());
      break;
    case Predictor::kLast:
      if (begin == 0) out[0] = values[0] - prediction.first;
      for (std::size_t i = std::max<std::size_t>(begin, 1); i < end; ++i) out[i - begin] = values[i] - values[i - 1];
      break;
    case Predictor::kStep:
      if (begin == 0) out[0] = out[1] = 0;
      for (std::size_t i = std::max<std::size_t>(begin, 2); i < end; ++i) {
        out[i - begin] = values[i] - 2 * values[i - 1] + values[i - 2];
      }
      break;
    case Predictor::kLine:
      for (std::size_t i = begin; i < end; ++i) out[i - begin] = values[i] - on_line(prediction, i);
      break;
  }
}

/// What append_signed() takes.
std::size_t signed_bits(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(zigzagged(value) | 1)) + 6) / 7 * 8;
}

/// About how a prediction fits, from a few stretches of the column.
struct Fit {
  std::size_t bits = std::numeric_limits<std::size_t>::max();  ///< That the column would take.
  bool rises = false;                                          ///< The residuals lie on one side of 0.
};

Fit fit_of(const Prediction& prediction, std::span<const std::uint64_t> values) {
  constexpr std::size_t kStretches = 4;
  constexpr std::size_t kStretch = 16;
  std::array<std::uint64_t, kStretches * kStretch> sample;
  const std::size_t n = std::min(values.size(), sample.size());
  if (values.size() <= sample.size()) {
    predict(prediction, values, 0, {sample.data(), n});
  } else {
    for (std::size_t stretch = 0; stretch < kStretches; ++stretch) {
      const std::size_t begin = stretch * (values.size() - kStretch) / (kStretches - 1);
      predict(prediction, values, begin, {sample.data() + stretch * kStretch, kStretch});
    }
  }
  const std::uint64_t middle = middle_of({sample.data(), n});
  std::size_t bits = 0;
  for (std::size_t i = 0; i < n; ++i) bits += std::bit_width(zigzagged(sample[i] - middle));
  const bool rises = static_cast<std::size_t>(std::bit_width(zigzagged(middle))) * n > bits;
  std::size_t head_bits = signed_bits(middle);
  if (prediction.predictor != Predictor::kNone) head_bits += signed_bits(prediction.first);
  if (prediction.predictor > Predictor::kLast) head_bits += signed_bits(prediction.step);
  return {bits * values.size() / n + head_bits, rises};
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

/// How far from `middle` the values are on average, those beyond 4 * `distance` (zigzag) left aside. Around the mean
/// of the many, values to both sides share their classes best.
std::uint64_t mean_distance(std::span<const std::uint64_t> values, std::uint64_t middle, std::uint64_t distance) {
  const auto limit = static_cast<std::int64_t>(std::min(distance, std::uint64_t{1} << 40) * 2);
  std::int64_t sum = 0;
  std::int64_t count = 1;
  for (const std::uint64_t value : values) {
    const auto from_middle = static_cast<std::int64_t>(value - middle);
    const bool near = from_middle <= limit && from_middle >= -limit;
    sum += near ? from_middle : 0;
    count += near ? 1 : 0;
  }
  return static_cast<std::uint64_t>(sum / count);
}

/// What the values are in the middle, outliers left aside.
std::uint64_t center_of(std::span<const std::uint64_t> values) {
  const std::uint64_t middle = middle_of(values);
  return middle + mean_distance(values, middle, middle_distance(values, middle));
}

/// How much further a value of the second half is than that of the first half at the same place.
std::int64_t rise_of(std::span<const std::uint64_t> values) {
  const std::size_t half = values.size() / 2;
  Scratch rises(half);
  for (std::size_t i = 0; i < half; ++i) rises[i] = values[values.size() - half + i] - values[i];
  return static_cast<std::int64_t>(center_of(rises));
}

/// In 1 / 2^kRateShift.
std::uint64_t rate_of(std::int64_t rise, std::int64_t run) {
  if (run == 0) return 0;
  constexpr __int128 kOne = 1 << kRateShift;
  const __int128 rate = rise * kOne / run;
  const bool nearly_one = rate > kOne - kOne / 1024 && rate < kOne + kOne / 1024;
  return static_cast<std::uint64_t>(nearly_one ? kOne : rate);
}

Prediction make_prediction(Predictor predictor, std::span<const std::uint64_t> values) {
  Prediction prediction{.predictor = predictor};
  if (predictor != Predictor::kNone) prediction.first = values[0];
  if (predictor == Predictor::kLast) prediction.first -= values[1] - values[0];  // else a first residual like no other
  if (predictor == Predictor::kStep) prediction.step = values[1] - values[0];
  if (predictor == Predictor::kLine)
    prediction.step = rate_of(rise_of(values), static_cast<std::int64_t>(values.size() - values.size() / 2));
  return prediction;
}

/// The best prediction without a look at the reference, and how it fits. Most columns rise or don't: a line is tried
/// for the first ones only.
std::pair<Prediction, Fit> best_prediction(std::span<const std::uint64_t> values) {
  Prediction best = make_prediction(Predictor::kNone, values);
  Fit best_fit = fit_of(best, values);
  const auto try_out = [&](Predictor predictor) {
    const Prediction prediction = make_prediction(predictor, values);
    const Fit fit = fit_of(prediction, values);
    if (fit.bits >= best_fit.bits) return false;
    best_fit = fit;
    best = prediction;
    return true;
  };
  if (!try_out(Predictor::kLast)) return {best, best_fit};
  const bool rises = best_fit.rises;
  try_out(Predictor::kStep);
  if (rises) try_out(Predictor::kLine);
  return {best, best_fit};
}

void append_head(Packing packing, const Prediction& prediction, Bytes& out) {
  out.push_back(static_cast<char>(static_cast<unsigned>(packing) | static_cast<unsigned>(prediction.predictor) << 2 |
                                  (prediction.from_reference ? 16 : 0)));
  if (prediction.from_reference) append_signed(out, prediction.reference_rate);
  if (prediction.predictor == Predictor::kNone) return;
  append_signed(out, prediction.first);
  if (prediction.predictor != Predictor::kLast) append_signed(out, prediction.step);
}

void append_fixed(std::span<const std::uint64_t> residuals, std::uint64_t least, unsigned width, Bytes& out) {
  append_signed(out, least);
  out.push_back(static_cast<char>(width));
  const std::size_t begin = out.size();
  out.resize(begin + residuals.size() * width / 8 + 1 + sizeof(std::uint64_t));
  BitWriter bits(out.data() + begin);
  for (const std::uint64_t value : residuals) bits.put_wide(value - least, width);
  out.resize(static_cast<std::size_t>(bits.finish() - out.data()));
}

/// A column whose residuals are packed by size classes.
struct Coded {
  std::uint64_t middle = 0;
  unsigned cut = 0;  ///< Low bits that are no part of the class.
  std::size_t classes = 0;
  CodeLengths lengths;
  model::ByteBuffer class_numbers;  ///< Of each residual, as a byte.
  std::size_t size_bytes = 0;       ///< About, of everything.
};

void plan_coded(std::span<const std::uint64_t> residuals, Coded& coded) {
  coded.middle = center_of(residuals);
  const auto width = static_cast<unsigned>(std::bit_width(middle_distance(residuals, coded.middle)));
  coded.cut = width > kClassBits + 1 ? width - kClassBits - 1 : 0;

  std::array<std::uint32_t, kClassesMax> counts{};
  coded.class_numbers.resize(residuals.size());
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const std::uint64_t size = zigzagged(residuals[i] - coded.middle) >> coded.cut;
    const std::size_t number = size < kNearClasses.size() ? kNearClasses[size] : class_of(size);
    coded.class_numbers[i] = static_cast<char>(number);
    ++counts[number];
  }
  coded.classes = kClassesMax;
  while (counts[coded.classes - 1] == 0) --coded.classes;
  make_code_lengths({counts.data(), coded.classes}, coded.lengths);
  std::size_t bits = 0;
  for (std::size_t i = 0; i < coded.classes; ++i) {
    bits += counts[i] * (std::size_t{coded.lengths[i]} + size_class(i).bits + coded.cut);
  }
  coded.size_bytes = bits / 8 + coded.classes / 2 + 6;
}

/// Values take turns in two strings of bits, so that a decoder can read both at a time.
void append_coded(std::span<const std::uint64_t> residuals, const Coded& coded, Bytes& out) {
  append_signed(out, coded.middle);
  out.push_back(static_cast<char>(coded.cut));
  append_code_lengths({coded.lengths.data(), coded.classes}, out);
  struct Code {
    std::uint32_t bits;
    std::uint8_t length;
    std::uint8_t more;
  };
  std::array<Code, kClassesMax> codes;
  for_each_code({coded.lengths.data(), coded.classes}, [&](std::size_t i, unsigned length, std::uint32_t bits) {
    codes[i] = {bits, static_cast<std::uint8_t>(length), static_cast<std::uint8_t>(size_class(i).bits + coded.cut)};
  });
  model::ByteBuffer lane(residuals.size() / 2 * 9 + 32);
  for (std::size_t turn = 0; turn < 2; ++turn) {
    BitWriter bits(lane.data());
    for (std::size_t i = turn; i < residuals.size(); i += 2) {
      const Code& code = codes[static_cast<std::uint8_t>(coded.class_numbers[i])];
      const std::uint64_t more = low_bits(zigzagged(residuals[i] - coded.middle), code.more);
      if (code.more + code.length <= 56) {
        bits.put(code.bits | more << code.length, code.length + code.more);
      } else {
        bits.put(code.bits, code.length);
        bits.put_wide(more, code.more);
      }
    }
    const auto size = static_cast<std::size_t>(bits.finish() - lane.data());
    append_varint(out, size);
    out.append(lane.data(), size);
  }
}

std::size_t runs_of(std::span<const std::uint64_t> values) {
  std::size_t runs = 1;
  for (std::size_t i = 1; i < values.size(); ++i) runs += values[i] != values[i - 1] ? 1 : 0;
  return runs;
}

void append_column(std::span<const std::uint64_t> values, std::span<const std::uint64_t> reference, bool in_runs,
                   Bytes& out);

void append_runs(std::span<const std::uint64_t> values, const Prediction& prediction, Bytes& out) {
  Scratch heads;
  Scratch lengths;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || values[i] != values[i - 1]) {
      heads.push_back(values[i]);
      lengths.push_back(0);
    }
    ++lengths.back();
  }
  append_head(Packing::kRuns, prediction, out);
  append_varint(out, heads.size());
  append_column(heads, {}, true, out);
  append_column(lengths, {}, true, out);
}

void append_constant(std::uint64_t value, const Prediction& prediction, Bytes& out) {
  append_head(Packing::kConstant, prediction, out);
  append_signed(out, value);
}

/// Residuals in the smaller of the two packings that say each one.
void append_each(std::span<const std::uint64_t> residuals, const Prediction& prediction, Bytes& out) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (const std::uint64_t value : residuals) {
    least = std::min(least, static_cast<std::int64_t>(value));
    most = std::max(most, static_cast<std::int64_t>(value));
  }
  const auto base = static_cast<std::uint64_t>(least);
  const auto width = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(most) - base));
  Coded coded;
  plan_coded(residuals, coded);
  if (coded.size_bytes < residuals.size() * width / 8 + 4) {
    append_head(Packing::kCoded, prediction, out);
    append_coded(residuals, coded, out);
  } else {
    append_head(Packing::kFixed, prediction, out);
    append_fixed(residuals, base, width, out);
  }
}

void append_column(std::span<const std::uint64_t> values, std::span<const std::uint64_t> reference, bool in_runs,
                   Bytes& out) {
  if (values.empty()) return;
  if (std::memcmp(values.data(), values.data() + 1, (values.size() - 1) * sizeof values[0]) == 0) {
    return append_constant(values[0], {}, out);
  }
  auto [prediction, fit] = best_prediction(values);
  Scratch differences;
  if (!reference.empty()) {
    differences.resize(values.size());
    const std::uint64_t rate = rate_of(rise_of(values), rise_of(reference));
    for (std::size_t i = 0; i < values.size(); ++i)
      differences[i] = values[i] - scaled(reference[i] - reference[0], rate);
    if (auto [other, other_fit] = best_prediction(differences); other_fit.bits + signed_bits(rate) < fit.bits) {
      prediction = other;
      prediction.from_reference = true;
      prediction.reference_rate = rate;
    }
  }
  Scratch residuals(values.size());
  predict(prediction, prediction.from_reference ? differences : values, 0, residuals);
  const std::size_t runs = runs_of(residuals);
  if (runs == 1) return append_constant(residuals[0], prediction, out);

  const std::size_t value_runs = runs_of(values);
  const std::size_t fewest_runs = std::min(value_runs, runs);
  const bool try_runs = !in_runs && fewest_runs * kRunLengthMin <= values.size();
  const bool only_runs = try_runs && fewest_runs * kRunBits <= values.size();
  const std::size_t begin = out.size();
  if (!only_runs) append_each(residuals, prediction, out);
  if (!try_runs) return;
  Bytes as_runs;
  if (runs < value_runs) {
    append_runs(residuals, prediction, as_runs);
  } else {
    append_runs(values, {}, as_runs);
  }
  if (only_runs || as_runs.size() < out.size() - begin) {
    out.resize(begin);
    out.append(as_runs);
  }
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
  Scratch columns(2 * runs);
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

void restore(const Prediction& prediction, std::span<std::uint64_t> values) {
  if (prediction.predictor == Predictor::kLast) {
    std::uint64_t last = prediction.first;
    for (std::uint64_t& value : values) value = last += value;
  } else if (prediction.predictor == Predictor::kStep) {
    std::uint64_t step = prediction.step;
    std::uint64_t last = prediction.first - step;
    for (std::uint64_t& value : values) {
      step += value;
      value = last += step;
    }
  } else if (prediction.predictor == Predictor::kLine) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += on_line(prediction, i);
  }
}

bool take_column(Input& in, std::span<std::uint64_t> values, std::span<const std::uint64_t> reference, bool in_runs) {
  if (values.empty()) return true;
  std::uint8_t head = 0;
  if (!in.take_byte(head) || head > 31) return false;
  const auto packing = static_cast<Packing>(head & 3);
  Prediction prediction{.predictor = static_cast<Predictor>(head >> 2 & 3), .from_reference = (head & 16) != 0};
  if (prediction.from_reference && (reference.empty() || !in.take_signed(prediction.reference_rate))) return false;
  if (prediction.predictor != Predictor::kNone && !in.take_signed(prediction.first)) return false;
  if (prediction.predictor > Predictor::kLast && !in.take_signed(prediction.step)) return false;
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
  if (!right) return false;
  restore(prediction, values);
  if (prediction.from_reference) {
    const std::uint64_t first = reference[0];
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] += scaled(reference[i] - first, prediction.reference_rate);
  }
  return true;
}

}  // namespace

void append_integers(std::span<const std::uint64_t> values, std::span<const std::uint64_t> reference, Bytes& out) {
  append_column(values, reference, false, out);
}

bool take_constant(Input& in, std::uint64_t& value) {
  std::uint8_t head = 0;
  return in.begins_with(0) && in.take_byte(head) && in.take_signed(value);
}

bool take_integers(Input& in, std::span<std::uint64_t> values, std::span<const std::uint64_t> reference) {
  return take_column(in, values, reference, false);
}

}  // namespace drover::store
