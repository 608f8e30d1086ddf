#include "dynamodb/api.h"

#include <algorithm>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <random>
#include <utility>

#include "drover/model/clock.h"
#include "dynamodb/errors.h"
#include "dynamodb/operations.h"
#include "dynamodb/params.h"

namespace drover::server {
namespace {

/// An item nests 32 levels deep, each of which is two in JSON; around it stand a few more.
constexpr std::size_t kJsonDepthMax = 96;
/// Of a request's JSON in memory that is not allocated: enough for an ordinary Query.
constexpr std::size_t kRequestArenaSizeBytes = 4096;

constexpr std::string_view kContentType = "application/x-amz-json-1.0";

struct Operation {
  std::string_view name;
  /// One of both: an operation whose answer is there at once, or one whose answer comes later.
  std::string (*now)(store::Store&, const json::object&);
  void (*later)(store::Store&, const json::object&, Reply);
};
constexpr auto kOperations = std::to_array<Operation>({
    {"Query", query, nullptr},
    {"GetItem", get_item, nullptr},
    {"PutItem", nullptr, put_item},
    {"UpdateItem", nullptr, update_item},
    {"DeleteItem", nullptr, delete_item},
    {"BatchGetItem", batch_get_item, nullptr},
    {"BatchWriteItem", nullptr, batch_write_item},
    {"Scan", scan, nullptr},
    {"CreateTable", create_table, nullptr},
    {"UpdateTable", update_table, nullptr},
    {"DeleteTable", delete_table, nullptr},
    {"DescribeTable", describe_table, nullptr},
    {"ListTables", list_tables, nullptr},
    {"UpdateTimeToLive", update_time_to_live, nullptr},
    {"DescribeTimeToLive", describe_time_to_live, nullptr},
});

/// What one operation has done. Relaxed throughout: the numbers stand for themselves, nothing follows from them.
struct Counters {
  std::atomic<std::uint64_t> ok{0};
  std::atomic<std::uint64_t> client_errors{0};
  std::atomic<std::uint64_t> throttled{0};
  std::array<std::atomic<std::uint64_t>, metrics::kQueryDurationBounds.size() + 1> by_duration{};
  std::atomic<std::uint64_t> duration_ns_sum{0};

  void count_ok() { ok.fetch_add(1, std::memory_order_relaxed); }
  void count_error(const ApiError& error) {
    (error.type == kThrottlingType ? throttled : client_errors).fetch_add(1, std::memory_order_relaxed);
  }
  void count_duration(std::int64_t duration_ns) {
    const double seconds = static_cast<double>(duration_ns) * 1e-9;
    const auto& bounds = metrics::kQueryDurationBounds;
    const auto place = std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin();
    by_duration[static_cast<std::size_t>(place)].fetch_add(1, std::memory_order_relaxed);
    duration_ns_sum.fetch_add(static_cast<std::uint64_t>(duration_ns), std::memory_order_relaxed);
  }
};

/// 52 upper-case letters and digits. Not a secret: it only tells answers apart.
void append_request_id(std::string& out) {
  static constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345";
  static constexpr std::size_t kSize = 52;
  static constexpr std::size_t kLettersPerNumber = 12;  // of 5 bits
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    if (i % kLettersPerNumber == 0) bits = random();
    out += kLetters[bits & 31];
    bits >>= 5;
  }
}

HttpResponse answer(std::string&& body, unsigned status) {
  HttpResponse response;
  response.status = status;
  response.content_type = kContentType;
  response.body = std::move(body);
  response.extra_headers = "x-amzn-RequestId: ";
  append_request_id(response.extra_headers);
  response.extra_headers += "\r\n";
  return response;
}

bool is_json(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return type == kContentType || type == "application/x-amz-json-1.1" || type == "application/json";
}

const Operation* find_operation(std::string_view target) {
  const std::size_t dot = target.find('.');
  if (dot == std::string_view::npos || target.substr(0, dot) != "DynamoDB_20120810") return nullptr;
  const auto* found =
      std::find_if(kOperations.begin(), kOperations.end(),
                   [name = target.substr(dot + 1)](const Operation& each) { return each.name == name; });
  return found == kOperations.end() ? nullptr : found;
}

class DynamoDbApiImpl final : public DynamoDbApi {
 public:
  explicit DynamoDbApiImpl(store::Store& store) : store_(store) {}

  void handle(const HttpRequest& request, Respond respond) override {
    if (request.method == "GET") return respond(health(request));
    const Operation* operation = find_operation(request.amz_target);
    if (request.method != "POST" || !is_json(request.content_type) || operation == nullptr) {
      return respond(answer(unknown_operation().body(), 400));
    }
    const auto place = static_cast<std::size_t>(operation - kOperations.data());
    run(*operation, request.body, Call{(*counters_)[place], counters_, model::steady_clock_ns(), std::move(respond)});
  }

  metrics::ApiStats stats() const override {
    metrics::ApiStats out;
    for (std::size_t i = 0; i < kOperations.size(); ++i) {
      const Counters& from = (*counters_)[i];
      metrics::OperationStats to;
      to.operation = kOperations[i].name;
      to.ok = from.ok.load(std::memory_order_relaxed);
      to.client_errors = from.client_errors.load(std::memory_order_relaxed);
      to.throttled = from.throttled.load(std::memory_order_relaxed);
      for (std::size_t j = 0; j < to.by_duration.size(); ++j) {
        to.by_duration[j] = from.by_duration[j].load(std::memory_order_relaxed);
      }
      to.duration_seconds_sum = static_cast<double>(from.duration_ns_sum.load(std::memory_order_relaxed)) * 1e-9;
      out.operations.push_back(std::move(to));
    }
    return out;
  }

 private:
  using AllCounters = std::array<Counters, kOperations.size()>;

  /// One call under way.
  struct Call {
    Counters& counters;
    std::shared_ptr<AllCounters> owner;  // shared with the API, which a late answer may outlive
    std::int64_t begin_ns;
    Respond respond;

    void ok(std::string&& body) const {
      counters.count_ok();
      counters.count_duration(model::steady_clock_ns() - begin_ns);
      respond(answer(std::move(body), 200));
    }
    void fail(const ApiError& error) const {
      counters.count_error(error);
      counters.count_duration(model::steady_clock_ns() - begin_ns);
      respond(answer(error.body(), error.status));
    }
  };

  static HttpResponse health(const HttpRequest& request) {
    HttpResponse response = answer("healthy: " + std::string(request.host), 200);
    response.content_type = "text/plain";
    return response;
  }

  void run(const Operation& operation, std::string_view body, Call&& call) {
    const Call* open = &call;  // where an answer to a refusal goes
    std::shared_ptr<const Call> shared;
    try {
      std::array<unsigned char, kRequestArenaSizeBytes> arena;
      json::monotonic_resource memory(arena.data(), arena.size());
      const json::value request = parse(body, &memory);
      if (!request.is_object()) throw serialization_error({});
      if (operation.now != nullptr) return call.ok(operation.now(store_, request.get_object()));
      shared = std::make_shared<const Call>(std::move(call));
      open = shared.get();
      operation.later(store_, request.get_object(),
                      {[shared](std::string&& out) { shared->ok(std::move(out)); },
                       [shared](const ApiError& error) { shared->fail(error); }});
    } catch (const ApiError& error) {
      open->fail(error);
    } catch (const std::exception&) {  // out of memory
      open->fail(internal_error());
    }
  }

  static json::value parse(std::string_view body, json::monotonic_resource* memory) {
    json::parse_options options;
    options.max_depth = kJsonDepthMax;
    json::error_code error;
    json::value value = json::parse(body, error, memory, options);
    if (error) throw serialization_error({});
    return value;
  }

  store::Store& store_;
  const std::shared_ptr<AllCounters> counters_ = std::make_shared<AllCounters>();
};

}  // namespace

std::unique_ptr<DynamoDbApi> DynamoDbApi::make(store::Store& store) {
  return std::make_unique<DynamoDbApiImpl>(store);
}

}  // namespace drover::server
