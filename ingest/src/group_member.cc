#include "group_member.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "drover/model/check.h"
#include "drover/model/clock.h"
#include "drover/model/key.h"

namespace drover::ingest {
namespace {

using model::LockGuard;

constexpr int kIdleWaitMs = 10;
constexpr int kBlockedWaitMs = 1;  ///< A full inbox drains within about this.
constexpr int kMainQueueMessagesMax = 100;
constexpr std::size_t kErrorTextSizeBytes = 512;
constexpr std::string_view kDefaultClientId = "drover";
/// Between giving a partition back to librdkafka and fetching it directly again; doubled each time.
constexpr std::int64_t kDirectPauseNsMin = 1'000'000'000;
constexpr std::int64_t kDirectPauseNsMax = 60 * kDirectPauseNsMin;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
/// What a user may set for librdkafka while records are fetched directly: it concerns the group, the cluster's
/// metadata, or the queues, which then only carry what librdkafka fetches itself. Any other property (a rack, a codec's
/// check, a socket's buffer) is one that the direct way wouldn't honour.
constexpr std::array<std::string_view, 21> kPropertiesBesideDirect{"client.id",
                                                                   "group.instance.id",
                                                                   "partition.assignment.strategy",
                                                                   "session.timeout.ms",
                                                                   "heartbeat.interval.ms",
                                                                   "max.poll.interval.ms",
                                                                   "coordinator.query.interval.ms",
                                                                   "auto.offset.reset",
                                                                   "allow.auto.create.topics",
                                                                   "topic.metadata.refresh.interval.ms",
                                                                   "topic.metadata.refresh.fast.interval.ms",
                                                                   "topic.metadata.refresh.sparse",
                                                                   "topic.metadata.propagation.max.ms",
                                                                   "metadata.max.age.ms",
                                                                   "reconnect.backoff.ms",
                                                                   "reconnect.backoff.max.ms",
                                                                   "queued.min.messages",
                                                                   "queued.max.messages.kbytes",
                                                                   "statistics.interval.ms",
                                                                   "log_level",
                                                                   "debug"};

/// Drover's choices; a property of the same name in ConsumerOptions::librdkafka wins. The fetch settings were measured:
/// fewer queued messages starve the poll thread, larger fetches are slower. queued.max.messages.kbytes bounds what
/// waits for each Kafka partition.
std::map<std::string, std::string> properties(std::uint32_t index, const ConsumerOptions& options) {
  std::map<std::string, std::string> properties = {
      {"bootstrap.servers", options.brokers},
      {"group.id", options.group},
      {"client.id", std::string(kDefaultClientId)},
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      {"auto.offset.reset", "earliest"},
      {"enable.partition.eof", "true"},  // tells that the end is reached, past control records and gaps
      {"allow.auto.create.topics", "false"},
      {"queued.min.messages", "500000"},
      {"queued.max.messages.kbytes", "65536"},
      {"fetch.message.max.bytes", "1048576"},
      {"topic.metadata.refresh.interval.ms", "10000"},  // new topics and partitions
      {"reconnect.backoff.max.ms", "2000"},
      {"session.timeout.ms", "10000"},     // a member that was killed keeps its partitions from others so long
      {"statistics.interval.ms", "1000"},  // whether a broker is up
      {"log_level", "0"},                  // errors come through Health
  };
  for (const auto& [name, value] : options.librdkafka) properties[name] = value;
  // One group.instance.id names one member: a second one of the same name would be fenced.
  if (const auto id = properties.find("group.instance.id"); id != properties.end() && options.handles > 1) {
    id->second += "-" + std::to_string(index);
  }
  return properties;
}

/// Whether records may be fetched by Drover itself, as far as settings go.
bool may_fetch_directly(const ConsumerOptions& options) {
  const auto stands_beside = [](const auto& property) {
    const auto& [name, value] = property;
    if (name == "security.protocol") return value == "plaintext" || value == "PLAINTEXT";
    return std::find(kPropertiesBesideDirect.begin(), kPropertiesBesideDirect.end(), name) !=
           kPropertiesBesideDirect.end();
  };
  return options.fetch == Fetch::kDirect &&
         std::all_of(options.librdkafka.begin(), options.librdkafka.end(), stands_beside);
}

std::string client_id(const ConsumerOptions& options) {
  const auto id = options.librdkafka.find("client.id");
  return id != options.librdkafka.end() ? id->second : std::string(kDefaultClientId);
}

PartitionList list_of(const Source& source) {
  PartitionList list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), source.topic_name.c_str(), source.partition);
  return list;
}

std::int64_t offset_of(const std::string& auto_offset_reset) {
  const bool latest = auto_offset_reset == "latest" || auto_offset_reset == "largest" || auto_offset_reset == "end";
  return latest ? RD_KAFKA_OFFSET_END : RD_KAFKA_OFFSET_BEGINNING;
}

model::RecordMark mark_of(const model::RecordView& record) {
  model::Bytes bytes;
  model::append_varint(bytes, model::zigzag(record.timestamp_ms));
  for (const std::optional<std::string_view>& part : {record.key, record.value}) {
    model::append_varint(bytes, part ? part->size() + 1 : 0);
    bytes.append(part.value_or(""));
  }
  return {record.offset, model::hash_key(bytes)};
}

model::RecordView view(const rd_kafka_message_t& message) {
  const auto bytes = [](const void* data, std::size_t size) -> std::optional<std::string_view> {
    if (data == nullptr) return std::nullopt;
    return std::string_view(static_cast<const char*>(data), size);
  };
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  model::RecordView view;
  view.key = bytes(message.key, message.key_len);
  view.value = bytes(message.payload, message.len);
  view.timestamp_ms = rd_kafka_message_timestamp(&message, &type);
  view.offset = model::Offset{message.offset};
  return view;
}

}  // namespace

Wakeup::Wakeup() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  DROVER_CHECK(fd_ >= 0, "out of file descriptors");
}

Wakeup::~Wakeup() {
  close(fd_);
}

void Wakeup::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the thread is woken anyhow.
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
}

void Wakeup::wait(int timeout_ms, std::vector<pollfd>& others) {
  others.push_back({fd_, POLLIN, 0});
  if (poll(others.data(), others.size(), timeout_ms) <= 0 || others.back().revents == 0) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = read(fd_, &count, sizeof count);
}

void Health::broker_failed(std::string error) {
  const LockGuard lock(mutex_);
  broker_error_ = std::move(error);
}

void Health::brokers_up(bool up) {
  const LockGuard lock(mutex_);
  up_ = up;
  if (up) broker_error_.clear();
}

void Health::topic_failed(const std::string& topic, std::string error) {
  const LockGuard lock(mutex_);
  topic_errors_[topic] = std::move(error);
}

void Health::topic_assigned(const std::string& topic) {
  const LockGuard lock(mutex_);
  topic_errors_.erase(topic);
}

void Health::failed(std::string error) {
  const LockGuard lock(mutex_);
  error_ = std::move(error);
}

bool Health::connected() const {
  const LockGuard lock(mutex_);
  return up_;
}

std::string Health::last_error() const {
  const LockGuard lock(mutex_);
  if (!error_.empty()) return error_;
  if (!broker_error_.empty()) return broker_error_;
  return topic_errors_.empty() ? std::string() : topic_errors_.begin()->second;
}

GroupMember::GroupMember(std::uint32_t index, const Shared& shared)
    : index_(index),
      shared_(shared),
      may_fetch_directly_(may_fetch_directly(shared.options)),
      fetcher_(client_id(shared.options)),
      messages_(shared.options.batch_records_max) {
  for (const Topic& topic : shared.topics) {
    decoders_.push_back(make_json_decoder(topic.mapping, topic.table, shared.names));
  }
  views_.reserve(shared.options.batch_records_max);
  on_reject_ = [this](const Reject& reject) { ++batch_rejects_[static_cast<std::size_t>(reject.reason)]; };
}

GroupMember::~GroupMember() = default;

model::Result<std::shared_ptr<GroupMember>> GroupMember::open(std::uint32_t index, const Shared& shared) {
  auto member = std::make_shared<GroupMember>(index, shared);
  if (model::Status status = member->make_handle(); !status.ok()) return status;
  return member;
}

model::Status GroupMember::make_handle() {
  char error[kErrorTextSizeBytes];
  Conf conf(rd_kafka_conf_new());
  for (const auto& [name, value] : properties(index_, shared_.options)) {
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), error, sizeof error) != RD_KAFKA_CONF_OK) {
      return model::invalid("librdkafka property \"" + name + "\": " + error);
    }
    if (name == "auto.offset.reset") initial_offset_ = offset_of(value);
  }
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_rebalance_cb(conf.get(), on_rebalance);
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  rd_kafka_conf_set_stats_cb(conf.get(), on_stats);
  handle_.reset(rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), error, sizeof error));
  if (!handle_) return model::invalid(std::string("librdkafka properties: ") + error);
  static_cast<void>(conf.release());  // the handle has taken it
  rd_kafka_poll_set_consumer(handle_.get());
  main_queue_ = Queue(rd_kafka_queue_get_consumer(handle_.get()), wakeup_.fd());
  return {};
}

void GroupMember::start() {
  const PartitionList topics(rd_kafka_topic_partition_list_new(static_cast<int>(shared_.topics.size())));
  for (const Topic& topic : shared_.topics) {
    rd_kafka_topic_partition_list_add(topics.get(), topic.mapping.topic.c_str(), RD_KAFKA_PARTITION_UA);
  }
  if (const rd_kafka_resp_err_t error = rd_kafka_subscribe(handle_.get(), topics.get()); error != 0) {
    health_.failed(std::string("subscribing failed: ") + rd_kafka_err2str(error));
    return;
  }
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), ("ingest-" + std::to_string(index_)).c_str());
    run();
  });
}

void GroupMember::request_stop(std::int64_t deadline_ns) {
  stop_deadline_ns_ = deadline_ns;
  stopping_.store(true, std::memory_order_release);  // pairs with run(): the deadline is seen
  wakeup_.wake();
}

void GroupMember::join() {
  if (thread_.joinable()) thread_.join();
  const LockGuard lock(lanes_mutex_);
  lanes_.clear();
}

void GroupMember::leave() {
  leaving_.store(true,
                 std::memory_order_release);  // pairs with the callbacks, which may run on another thread from now on
  main_queue_ = {};
  rd_kafka_consumer_close(handle_.get());
  handle_.reset();
}

void GroupMember::run() {
  while (!stopping_.load(std::memory_order_acquire)) {
    bool made_progress = serve_main_queue();
    bool blocked = false;
    sort_lanes();
    for (Lane& lane : lanes_) {
      const Progress progress = advance_through_gate(lane);
      made_progress |= progress == Progress::kMade;
      blocked |= progress == Progress::kBlocked;
    }
    remove_done_lanes();
    made_progress |= fetcher_.serve();
    if (!made_progress) wait(blocked ? kBlockedWaitMs : kIdleWaitMs);
  }
  hand_over_the_rest();
}

void GroupMember::wait(int timeout_ms) {
  descriptors_.clear();
  fetcher_.append_descriptors(descriptors_);
  wakeup_.wait(timeout_ms, descriptors_);
}

/// Who is behind in log time goes first, so that of partitions that wait for the same full inbox none always finds the
/// one free place taken.
void GroupMember::sort_lanes() {
  const auto behind = [](const Lane& a, const Lane& b) { return a.log_time_ms < b.log_time_ms; };
  if (std::is_sorted(lanes_.begin(), lanes_.end(), behind)) return;
  const LockGuard lock(lanes_mutex_);
  lanes_.sort(behind);
}

/// Serves rebalances, errors and statistics, and shows the group that this member is alive.
bool GroupMember::serve_main_queue() {
  for (int served = 0; served < kMainQueueMessagesMax; ++served) {
    const Message message(rd_kafka_consumer_poll(handle_.get(), 0));
    if (!message) return served > 0;
    DROVER_CHECK(message->err != RD_KAFKA_RESP_ERR_NO_ERROR, "records come through their partition's queue only");
    note_message_error(*message);
  }
  return true;
}

GroupMember::Progress GroupMember::advance_through_gate(Lane& lane) {
  if (!shared_.sources.gate.try_enter()) return Progress::kBlocked;
  const Progress progress = advance(lane);
  if (lane.holds_source && !lane.pending) lane.source->note_done();
  shared_.sources.gate.leave();
  return progress;
}

GroupMember::Progress GroupMember::advance(Lane& lane) {
  if (lane.pending && !hand_over(lane)) return Progress::kBlocked;
  if (!lane.queue) return Progress::kNothingToDo;
  if (!lane.holds_source) {
    // Another member of this process may still be handing over what it read of this partition.
    if (!lane.source->try_hold()) return Progress::kBlocked;
    lane.holds_source = true;
    lane.skip_below = lane.source->next_offset.load(std::memory_order_relaxed);
  }
  messages_.fetch(lane.queue);
  const Progress progress = lane.direct ? advance_direct(lane) : advance_queue(lane);
  messages_.clear();
  if (lane.pending) hand_over(lane);
  return progress;
}

/// What librdkafka has fetched. That there are records shows that the partition is well, so from then on it is fetched
/// directly.
GroupMember::Progress GroupMember::advance_queue(Lane& lane) {
  if (messages_.messages().empty()) return Progress::kNothingToDo;
  view_messages(lane);
  if (views_.empty()) return Progress::kMade;
  if (may_fetch_directly_ && model::steady_clock_ns() >= lane.direct_from_ns) fetch_direct(lane);
  take(lane);
  return Progress::kMade;
}

GroupMember::Progress GroupMember::advance_direct(Lane& lane) {
  note_queue_errors();
  const FetchStream::Outcome outcome = lane.direct->read(shared_.options.batch_records_max, views_);
  lane.source->next_offset.store(lane.direct->next_offset(), std::memory_order_relaxed);
  lane.source->end_offset.store(lane.direct->end_offset(), std::memory_order_relaxed);
  switch (outcome) {
    case FetchStream::Outcome::kNothing:
      return Progress::kNothingToDo;
    case FetchStream::Outcome::kRecords:
      lane.direct_pause_ns = 0;
      take(lane);
      return Progress::kMade;
    default:
      hand_back(lane, outcome);
      return Progress::kMade;
  }
}

/// From here on librdkafka has the partition but doesn't fetch it.
void GroupMember::fetch_direct(Lane& lane) {
  const Source& source = *lane.source;
  const std::int64_t now_ns = model::steady_clock_ns();
  const auto leader = leaders_.find(handle_.get(), source.topic_name, source.partition, now_ns);
  if (!leader) {
    lane.direct_from_ns = now_ns + kDirectPauseNsMin;
    return;
  }
  rd_kafka_pause_partitions(handle_.get(), list_of(source).get());
  lane.direct =
      fetcher_.open(*leader, source.topic_name, source.partition, source.next_offset.load(std::memory_order_relaxed));
}

/// librdkafka goes on where the direct way has ended, and does there what it does: it follows the leader, resets the
/// offset, filters aborted transactions, says what is wrong.
void GroupMember::hand_back(Lane& lane, FetchStream::Outcome outcome) {
  end_direct(lane);
  const Source& source = *lane.source;
  lane.assigned_offset = source.next_offset.load(std::memory_order_relaxed);
  const PartitionList partitions = list_of(source);
  partitions->elems[0].offset = lane.assigned_offset;
  const Error error(rd_kafka_seek_partitions(handle_.get(), partitions.get(), 0));
  rd_kafka_resume_partitions(handle_.get(), partitions.get());
  shared_.sources.hand_backs.fetch_add(1, std::memory_order_relaxed);
  lane.direct_pause_ns = std::clamp(2 * lane.direct_pause_ns, kDirectPauseNsMin, kDirectPauseNsMax);
  lane.direct_from_ns =
      outcome == FetchStream::Outcome::kUnusual ? kNever : model::steady_clock_ns() + lane.direct_pause_ns;
}

void GroupMember::end_direct(Lane& lane) {
  if (!lane.direct) return;
  lane.direct.reset();
  lane.source->end_offset.store(-1, std::memory_order_relaxed);
}

/// While a partition is fetched directly, its queue has at most what librdkafka fetched before, and errors.
void GroupMember::note_queue_errors() {
  for (const rd_kafka_message_t* message : messages_.messages()) {
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) note_message_error(*message);
  }
}

/// Whether nothing is pending any more.
bool GroupMember::hand_over(Lane& lane) {
  const model::Status status = lane.pending->offer();
  const bool full = status.code() == model::StatusCode::kFull;
  lane.source->paused.store(full, std::memory_order_relaxed);
  if (full) return false;
  if (!status.ok()) shared_.sources.rows_dropped.fetch_add(lane.pending_rows, std::memory_order_relaxed);
  lane.pending.reset();
  return true;
}

/// Makes rows of views_, of which there is at least one.
void GroupMember::take(Lane& lane) {
  Source& source = *lane.source;
  std::size_t bytes = 0;
  for (const model::RecordView& record : views_) bytes += record.value ? record.value->size() : 0;
  const std::int64_t now_ms = model::system_clock_ms();
  auto rows = std::make_shared<model::RowBatch>();
  decoders_[source.topic]->decode({source.state.source, views_}, source.state, now_ms, *rows, on_reject_);
  shared_.sources.count_rejects(source.topic, std::exchange(batch_rejects_, {}));

  source.records.store(source.records.load(std::memory_order_relaxed) + views_.size(), std::memory_order_relaxed);
  source.bytes.store(source.bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  source.last = mark_of(views_.back());
  source.last_timestamp_ms.store(views_.back().timestamp_ms, std::memory_order_relaxed);
  source.last_advance_ms.store(now_ms, std::memory_order_relaxed);
  lane.log_time_ms = source.state.log_time_ms;
  lane.pending_rows = rows->rows.size();
  if (lane.pending_rows == 0) return;
  lane.pending = shared_.sink.route(shared_.topics[source.topic].mapping.table, std::move(rows));
}

/// Fills views_ and moves the source's next offset on.
void GroupMember::view_messages(Lane& lane) {
  views_.clear();
  std::int64_t next_offset = lane.source->next_offset.load(std::memory_order_relaxed);
  for (const rd_kafka_message_t* message : messages_.messages()) {
    if (lane.source->unproven_offset.load(std::memory_order_relaxed) >= 0 && !is_proven(lane, *message)) {
      return begin_anew(lane);
    }
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      next_offset = std::max(next_offset, message->offset);
      continue;
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      note_message_error(*message);
      continue;
    }
    if (message->offset >= lane.assigned_offset && message->offset < lane.skip_below) continue;
    lane.skip_below = -1;
    next_offset = message->offset + 1;
    views_.push_back(view(*message));
  }
  lane.source->next_offset.store(next_offset, std::memory_order_relaxed);
}

/// Of the first that comes of a log that an earlier process has read: whether it is still the same log. That the record
/// read last is not there any more says nothing but that there may be a gap; that it is another, or beyond the end,
/// says that the topic was made anew.
bool GroupMember::is_proven(Lane& lane, const rd_kafka_message_t& message) {
  Source& source = *lane.source;
  const bool end = message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
  if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR && !end) return true;  // tells nothing
  const std::int64_t wanted = source.last.offset.value;
  if (message.offset < wanted || (end && message.offset == wanted)) return false;
  if (!end && message.offset == wanted && mark_of(view(message)) != source.last) return false;
  source.unproven_offset.store(-1, std::memory_order_relaxed);
  const std::int64_t missed = message.offset - source.next_offset.load(std::memory_order_relaxed);
  if (message.offset > wanted && missed > 0) {
    shared_.sources.records_missed.fetch_add(static_cast<std::uint64_t>(missed), std::memory_order_relaxed);
  }
  return true;
}

/// Reads the log of a topic that was made anew, from its beginning.
void GroupMember::begin_anew(Lane& lane) {
  if (!shared_.sources.renew(*lane.source)) {
    return health_.failed("65535 partitions were read, counting those of topics made anew: begin with a new directory");
  }
  lane.assigned_offset = lane.skip_below = -1;
  const PartitionList partitions = list_of(*lane.source);
  partitions->elems[0].offset = RD_KAFKA_OFFSET_BEGINNING;
  const Error error(rd_kafka_seek_partitions(handle_.get(), partitions.get(), 0));
}

void GroupMember::hand_over_the_rest() {
  const auto pending = [](const Lane& lane) { return lane.pending != nullptr; };
  while (std::any_of(lanes_.begin(), lanes_.end(), pending) && model::steady_clock_ns() < stop_deadline_ns_) {
    bool blocked = false;
    for (Lane& lane : lanes_) {
      if (!lane.pending) continue;
      const bool entered = shared_.sources.gate.try_enter();
      blocked |= !entered || !hand_over(lane);
      if (!entered) continue;
      if (!lane.pending) lane.source->note_done();
      shared_.sources.gate.leave();
    }
    if (blocked) wait(kBlockedWaitMs);
  }
  for (const Lane& lane : lanes_) {
    if (lane.pending) shared_.sources.rows_dropped.fetch_add(lane.pending_rows, std::memory_order_relaxed);
  }
}

/// Revoked lanes whose rows have all been handed over.
void GroupMember::remove_done_lanes() {
  const auto done = [](const Lane& lane) { return !lane.queue && !lane.pending; };
  if (std::none_of(lanes_.begin(), lanes_.end(), done)) return;
  const LockGuard lock(lanes_mutex_);
  lanes_.remove_if(done);
}

void GroupMember::on_rebalance(rd_kafka_t* handle, rd_kafka_resp_err_t event,
                               rd_kafka_topic_partition_list_t* partitions, void* self) {
  auto& member = *static_cast<GroupMember*>(self);
  const bool leaving = member.leaving_.load(std::memory_order_acquire);
  const bool cooperative = std::string_view(rd_kafka_rebalance_protocol(handle)) == "COOPERATIVE";
  if (event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && !leaving) {
    member.assign(partitions);
    if (cooperative) {
      const Error error(rd_kafka_incremental_assign(handle, partitions));
    } else {
      rd_kafka_assign(handle, partitions);
    }
    rd_kafka_resume_partitions(handle, partitions);  // one that was fetched directly before is still paused
    return;
  }
  if (!leaving) member.revoke(partitions);
  if (cooperative) {
    const Error error(rd_kafka_incremental_unassign(handle, partitions));
  } else {
    rd_kafka_assign(handle, nullptr);
  }
}

/// Opens a lane for each partition, and writes into `partitions` where it goes on.
void GroupMember::assign(rd_kafka_topic_partition_list_t* partitions) {
  shared_.sources.rebalances.fetch_add(1, std::memory_order_relaxed);
  for (int i = 0; i < partitions->cnt; ++i) {
    rd_kafka_topic_partition_t& partition = partitions->elems[i];
    Source* const source = shared_.sources.find(handle_.get(), partition.topic, partition.partition);
    if (source == nullptr) {
      health_.failed("more than 65535 partitions are assigned; give some topics to another process");
      rd_kafka_topic_partition_list_del_by_idx(partitions, i--);
      continue;
    }
    const std::int64_t begin = source->begin_offset();
    partition.offset = begin >= 0 ? begin : initial_offset_;
    rd_kafka_queue_t* const queue = rd_kafka_queue_get_partition(handle_.get(), partition.topic, partition.partition);
    DROVER_CHECK(queue != nullptr, "a consumer has a queue for each partition");
    rd_kafka_queue_forward(queue, nullptr);  // before the assignment, so that nothing reaches the main queue
    health_.topic_assigned(partition.topic);
    const LockGuard lock(lanes_mutex_);
    Lane& lane = lanes_.emplace_back();
    lane.source = source;
    lane.queue = Queue(queue, wakeup_.fd());
    lane.assigned_offset = partition.offset;
  }
}

/// Closes the lanes of the partitions; what they have decoded is still handed over.
void GroupMember::revoke(rd_kafka_topic_partition_list_t* partitions) {
  const LockGuard lock(lanes_mutex_);
  for (Lane& lane : lanes_) {
    if (rd_kafka_topic_partition_list_find(partitions, lane.source->topic_name.c_str(), lane.source->partition) !=
        nullptr) {
      lane.queue = {};
      end_direct(lane);
    }
  }
}

void GroupMember::on_error(rd_kafka_t* handle, int code, const char* reason, void* self) {
  auto& member = *static_cast<GroupMember*>(self);
  if (member.leaving_.load(std::memory_order_acquire)) return;
  switch (static_cast<rd_kafka_resp_err_t>(code)) {
    case RD_KAFKA_RESP_ERR__FATAL: {
      char text[kErrorTextSizeBytes];
      rd_kafka_fatal_error(handle, text, sizeof text);
      return member.health_.failed(std::string("consuming has ended: ") + text);
    }
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
      return member.health_.broker_failed(std::string("broker unreachable: ") + reason + "; check that Kafka runs at " +
                                          member.shared_.options.brokers);
    default:
      return member.health_.broker_failed(rd_kafka_err2str(static_cast<rd_kafka_resp_err_t>(code)) + std::string(": ") +
                                          reason);
  }
}

int GroupMember::on_stats(rd_kafka_t* /*handle*/, char* json, std::size_t size, void* self) {
  auto& member = *static_cast<GroupMember*>(self);
  if (member.leaving_.load(std::memory_order_acquire)) return 0;
  member.health_.brokers_up(std::string_view(json, size).find(R"("state":"UP")") != std::string_view::npos);
  return 0;  // librdkafka frees the text
}

void GroupMember::note_message_error(const rd_kafka_message_t& message) {
  const std::string topic = message.rkt != nullptr ? rd_kafka_topic_name(message.rkt) : "";
  switch (message.err) {
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      return;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
      return health_.topic_failed(topic, "topic \"" + topic + "\" does not exist on " + shared_.options.brokers +
                                             "; create it, or correct its name in the configuration");
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return health_.topic_failed(topic, "topic \"" + topic + "\" may not be read; allow it to this user");
    default:
      return health_.broker_failed(rd_kafka_message_errstr(&message));
  }
}

void GroupMember::commit(const std::vector<model::SourcePosition>& positions) {
  const PartitionList offsets(rd_kafka_topic_partition_list_new(static_cast<int>(positions.size())));
  const LockGuard lock(lanes_mutex_);  // also of the call: join() clears the lanes under it, ahead of leave()
  for (const model::SourcePosition& position : positions) {
    const auto reads = [&](const Lane& lane) {
      return lane.queue && lane.source->topic_name == position.topic && lane.source->partition == position.partition;
    };
    if (std::none_of(lanes_.begin(), lanes_.end(), reads)) continue;
    rd_kafka_topic_partition_list_add(offsets.get(), position.topic.c_str(), position.partition)->offset =
        position.next_offset;
  }
  if (offsets->cnt > 0) rd_kafka_commit(handle_.get(), offsets.get(), 1);  // a hint to others: may fail
}

void GroupMember::add_partitions(std::vector<PartitionStats>& partitions, std::int64_t now_ms) const {
  const LockGuard lock(lanes_mutex_);
  for (const Lane& lane : lanes_) {
    if (!lane.queue) continue;
    const Source& source = *lane.source;
    PartitionStats& stats = partitions.emplace_back();
    stats.topic = source.topic_name;
    stats.partition = source.partition;
    stats.records = source.records.load(std::memory_order_relaxed);
    stats.bytes = source.bytes.load(std::memory_order_relaxed);
    stats.next_offset = source.next_offset.load(std::memory_order_relaxed);
    stats.last_advance_ms = source.last_advance_ms.load(std::memory_order_relaxed);
    stats.paused = source.paused.load(std::memory_order_relaxed);
    std::int64_t begin = -1;
    std::int64_t end = source.end_offset.load(std::memory_order_relaxed);
    stats.direct = end >= 0;
    if (!stats.direct) {
      rd_kafka_get_watermark_offsets(handle_.get(), source.topic_name.c_str(), source.partition, &begin, &end);
    }
    if (end < 0) continue;
    stats.end_offset = end;
    stats.lag_records = std::max<std::int64_t>(0, end - std::max({stats.next_offset, begin, std::int64_t{0}}));
    const std::int64_t timestamp_ms = source.last_timestamp_ms.load(std::memory_order_relaxed);
    if (stats.lag_records > 0 && timestamp_ms >= 0) {
      stats.lag_seconds = static_cast<double>(std::max<std::int64_t>(0, now_ms - timestamp_ms)) / 1000;
    }
  }
}

bool GroupMember::has_partitions() const {
  const LockGuard lock(lanes_mutex_);
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return static_cast<bool>(lane.queue); });
}

}  // namespace drover::ingest
