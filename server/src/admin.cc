#include "admin.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

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
    "backup`\n";

HttpResponse message(unsigned status, const std::string& text) {
  return {.status = status,
          .body = boost::json::serialize(boost::json::object{{"message", text}}) + "\n",
          .extra_headers = {}};
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
  if (path == "/backup" && request.method == "POST") return respond(back_up(request));
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

/// The directory is on this machine, made by this process. JSON alone is taken: no web page can have a browser send it
/// here unasked.
HttpResponse Admin::back_up(const HttpRequest& request) {
  if (!request.content_type.starts_with("application/json")) return message(415, "send application/json");
  boost::system::error_code error;
  const boost::json::value body = boost::json::parse(request.body, error);
  const boost::json::object* object = error ? nullptr : body.if_object();
  const boost::json::value* to = object != nullptr ? object->if_contains("to") : nullptr;
  if (to == nullptr || !to->is_string() || !to->as_string().starts_with('/')) {
    return message(400, "send {\"to\": the absolute path of a new directory}");
  }
  const model::Status status = sources_.store.back_up(std::string(to->as_string()));
  if (status.ok()) return message(200, "copied to " + std::string(to->as_string()));
  return message(status.code() == model::StatusCode::kInvalid ? 400 : 500, status.message());
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
