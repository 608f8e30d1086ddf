#include "fetch_protocol.h"

#include <concepts>
#include <cstddef>
#include <cstring>

#include "big_endian.h"

namespace drover::ingest {
namespace {

constexpr std::int16_t kFetchKey = 1;
constexpr std::int16_t kVersion = 10;
constexpr std::int32_t kConsumerReplica = -1;
constexpr std::int32_t kSizeBytesMin = 1;
constexpr std::int8_t kReadCommitted = 1;
constexpr std::int32_t kNoSession = 0;
constexpr std::int32_t kNoSessionEpoch = -1;
constexpr std::int32_t kUnknownLeaderEpoch = -1;
constexpr std::int64_t kUnknownLogStart = -1;
constexpr std::size_t kAbortedTransactionSizeBytes = 16;

template <std::integral T>
void append(std::string& out, T value) {
  const T swapped = byte_swapped(value);
  out.append(reinterpret_cast<const char*>(&swapped), sizeof swapped);
}

void append_text(std::string& out, std::string_view text) {
  append(out, static_cast<std::int16_t>(text.size()));
  out += text;
}

/// Reads an answer's fields; one that would pass the end reads as nothing, and failed() says so from then on.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  template <std::integral T>
  T number() {
    const std::string_view bytes = take(sizeof(T));
    return failed_ ? T{} : big_endian<T>(bytes.data());
  }
  std::string_view take(std::int64_t size) {
    if (failed_ || size < 0 || static_cast<std::uint64_t>(size) > bytes_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, static_cast<std::size_t>(size));
    bytes_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

FetchAnswer::Partition parse_partition(Cursor& cursor, std::string_view topic) {
  FetchAnswer::Partition partition;
  partition.topic = topic;
  partition.partition = cursor.number<std::int32_t>();
  partition.error = cursor.number<std::int16_t>();
  partition.high_watermark = cursor.number<std::int64_t>();
  cursor.number<std::int64_t>();  // the last stable offset
  cursor.number<std::int64_t>();  // where the log begins
  const std::int64_t aborted = cursor.number<std::int32_t>();
  partition.has_aborted_transactions = aborted > 0;
  if (aborted > 0) cursor.take(aborted * static_cast<std::int64_t>(kAbortedTransactionSizeBytes));
  const auto size = cursor.number<std::int32_t>();
  if (size > 0) partition.records = cursor.take(size);
  return partition;
}

}  // namespace

std::string encode(const FetchRequest& request, const std::vector<FetchRequest::Partition>& partitions) {
  std::string out(sizeof(std::int32_t), '\0');  // the size, known at the end
  append(out, kFetchKey);
  append(out, kVersion);
  append(out, request.correlation_id);
  append_text(out, request.client_id);
  append(out, kConsumerReplica);
  append(out, request.wait_ms_max);
  append(out, kSizeBytesMin);
  append(out, request.answer_size_bytes_max);
  append(out, kReadCommitted);
  append(out, kNoSession);
  append(out, kNoSessionEpoch);
  append(out, static_cast<std::int32_t>(partitions.size()));
  for (const FetchRequest::Partition& partition : partitions) {  // a topic of its own each, which the protocol allows
    append_text(out, partition.topic);
    append(out, std::int32_t{1});
    append(out, partition.partition);
    append(out, kUnknownLeaderEpoch);
    append(out, partition.offset);
    append(out, kUnknownLogStart);
    append(out, request.partition_size_bytes_max);
  }
  append(out, std::int32_t{0});  // nothing is taken out of a session
  const auto size = byte_swapped(static_cast<std::int32_t>(out.size() - sizeof(std::int32_t)));
  std::memcpy(out.data(), &size, sizeof size);
  return out;
}

std::optional<FetchAnswer> parse_fetch_answer(std::string_view bytes) {
  Cursor cursor(bytes);
  FetchAnswer answer;
  answer.correlation_id = cursor.number<std::int32_t>();
  answer.throttle_ms = cursor.number<std::int32_t>();
  answer.error = cursor.number<std::int16_t>();
  cursor.number<std::int32_t>();  // the session
  for (auto topics = cursor.number<std::int32_t>(); topics > 0 && !cursor.failed(); --topics) {
    const std::string_view topic = cursor.take(cursor.number<std::int16_t>());
    for (auto partitions = cursor.number<std::int32_t>(); partitions > 0 && !cursor.failed(); --partitions) {
      answer.partitions.push_back(parse_partition(cursor, topic));
    }
  }
  if (cursor.failed()) return std::nullopt;
  return answer;
}

}  // namespace drover::ingest
