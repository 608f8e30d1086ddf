#include "admin.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "drover/model/decimal.h"
#include "dynamodb/base64.h"
#include "dynamodb/errors.h"
#include "dynamodb/keys.h"

namespace drover::server {
namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";

constexpr std::string_view kIndex =
    "Drover\n"
    "\n"
    "/metrics  for Prometheus\n"
    "/heat     shards and hottest keys, as JSON\n"
    "/healthz  200 while the process is alive\n"
    "/readyz   200 when queries give current answers, else 503 and the reason\n"
    "/backup   POST {\"to\": NEW_DIRECTORY} as application/json: copies the store's directory, as `drover store "
    "backup`\n"
    "/erase    POST {\"table\": NAME, \"key\": PARTITION_KEY} as application/json: as `drover erase`\n";

HttpResponse message(unsigned status, const std::string& text) {
  return {.status = status,
          .body = boost::json::serialize(boost::json::object{{"message", text}}) + "\n",
          .extra_headers = {}};
}

/// A text in a JSON body; empty: it isn't there.
std::string member(const HttpRequest& request, std::string_view name) {
  boost::system::error_code error;
  const boost::json::value body = boost::json::parse(request.body, error);
  const boost::json::object* object = error ? nullptr : body.if_object();
  const boost::json::value* value = object != nullptr ? object->if_contains(name) : nullptr;
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

/// A partition key that is given as text.
model::Result<model::AttributeValue> key_value(const model::TableSchema& schema, std::string_view text) {
  switch (schema.key.partition_key.type) {
    case model::KeyType::kNumber: {
      auto number = model::Decimal::parse(text);
      return number.ok() ? model::Result<model::AttributeValue>(model::AttributeValue::of_number(*number))
                         : number.status();
    }
    case model::KeyType::kBinary: {
      auto bytes = decode_base64(text);
      return bytes.ok() ? model::Result<model::AttributeValue>(model::AttributeValue::binary(std::move(*bytes)))
                        : bytes.status();
    }
    case model::KeyType::kString:
      break;
  }
  return model::AttributeValue::string(std::string(text));
}

bool caught_up(const ingest::IngestStats& ingest) {
  return std::all_of(ingest.partitions.begin(), ingest.partitions.end(), [](const ingest::PartitionStats& partition) {
    // Of a partition just assigned nothing is known: neither how long it is nor how old what is read.
    if (partition.end_offset < 0) return false;
    return partition.lag_records <= kCaughtUpRecordsMax ||
           (partition.records > 0 && partition.lag_seconds <= kCaughtUpSecondsMax);
  });
}

}  // namespace

Admin::Admin(Sources sources)
    : sources_(std::move(sources)),
      collector_({.ingest = sources_.ingest,
                  .store = [this] { return sources_.store.stats(); },
                  .api = sources_.api,
                  .checkpoints = sources_.checkpoints,
                  .version = sources_.version}),
      heat_(sources_.store) {}

void Admin::handle(const HttpRequest& request, const Respond& respond) {
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  if (request.method == "POST" && (path == "/backup" || path == "/erase")) {
    // No web page can have a browser send this here unasked.
    if (!request.content_type.starts_with("application/json")) return respond(message(415, "send application/json"));
    return path == "/erase" ? erase(request, respond) : respond(back_up(request));
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return respond(
        {.status = 405, .content_type = kText, .body = "only GET\n", .extra_headers = "Allow: GET, HEAD\r\n"});
  }
  if (path == "/metrics")
    return respond({.content_type = kPrometheusText, .body = collector_.scrape(), .extra_headers = {}});
  if (path == "/heat") return respond({.body = heat_.json(), .extra_headers = {}});
  if (path == "/healthz") return respond({.content_type = kText, .body = "alive\n", .extra_headers = {}});
  if (path == "/readyz") return respond(ready());
  if (path == "/") return respond({.content_type = kText, .body = std::string(kIndex), .extra_headers = {}});
  respond({.status = 404, .content_type = kText, .body = "there is nothing here; see /\n", .extra_headers = {}});
}

/// The directory is on this machine, made by this process.
HttpResponse Admin::back_up(const HttpRequest& request) {
  const std::string to = member(request, "to");
  if (!to.starts_with('/')) return message(400, "send {\"to\": the absolute path of a new directory}");
  const model::Status status = sources_.store.back_up(to);
  if (status.ok()) return message(200, "copied to " + to);
  return message(status.code() == model::StatusCode::kInvalid ? 400 : 500, status.message());
}

/// Answers when the collection is gone, from its table and all indexes.
void Admin::erase(const HttpRequest& request, const Respond& respond) {
  std::string name = member(request, "table");
  const std::vector<std::string> names = sources_.store.table_names();
  if (name.empty() && names.size() == 1) name = names.front();
  const auto table = sources_.store.find_table(name);
  if (table == nullptr) return respond(message(404, "there is no table \"" + name + "\": name one with --table"));
  store::ItemWrite write;
  try {
    const auto value = key_value(table->schema(), member(request, "key"));
    if (!value.ok()) return respond(message(400, value.status().message()));
    write.partition_key = encode_partition_key({table->schema()}, *value);
  } catch (const ApiError& problem) {
    return respond(message(400, problem.message));
  }
  write.erases = true;
  write.done = [respond](const model::Status& status) {
    respond(status.ok() ? message(200, "erased") : message(500, status.message()));
  };
  const model::Status status = table->write(std::move(write));
  if (!status.ok()) respond(message(503, status.message()));
}

/// Ready once: a fleet that is for a moment ahead of Drover is no reason to take it out of service, but a start that
/// still reads the topic from its beginning is.
HttpResponse Admin::ready() {
  const ingest::IngestStats ingest = sources_.ingest();
  std::int64_t lag_records = 0;
  for (const ingest::PartitionStats& partition : ingest.partitions) lag_records += partition.lag_records;

  std::string reason;
  if (!sources_.reads_kafka) {
    reason = "no topics: the API alone";
    was_caught_up_ = true;
  } else if (!ingest.connected) {
    reason = ingest.last_error.empty() ? "waiting for Kafka to assign partitions" : ingest.last_error;
  } else {
    was_caught_up_ = was_caught_up_ || caught_up(ingest);
    reason = was_caught_up_ ? "reading" : "reading the topics from their beginning";
    if (!ingest.last_error.empty()) reason += "; " + ingest.last_error;
  }
  const store::CheckpointStats checkpoints = sources_.checkpoints();
  if (!checkpoints.error.empty()) reason = checkpoints.error;
  const bool ready = was_caught_up_ && (ingest.connected || !sources_.reads_kafka) && checkpoints.error.empty();
  const boost::json::object body{{"ready", ready},
                                 {"reason", reason},
                                 {"connected", ingest.connected},
                                 {"partitions", ingest.partitions.size()},
                                 {"lag_records", lag_records},
                                 {"durable", checkpoints.durable},
                                 {"room_is_low", checkpoints.room_is_low}};
  return {.status = ready ? 200u : 503u, .body = boost::json::serialize(body) + "\n", .extra_headers = {}};
}

}  // namespace drover::server
