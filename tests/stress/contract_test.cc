#include <gtest/gtest.h>

#include <atomic>
#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "drover/model/clock.h"
#include "drover/store/store.h"
#include "dynamodb/api.h"
#include "tests/support/rows.h"
#include "tests/support/tables.h"

// What ARCHITECTURE.md promises under "Consistency", as clients of the API see it.
//
// Goal of each: a read, a page or a write that sees half of another's work, or forgets what was acknowledged.
// Method: clients read and write at full rate, each waiting for its answers, while a feeder streams rows into the same
// collections and index partitions through inboxes of two batches; once in memory, once durable, with a small budget
// of memory and one checkpoint after another.
namespace drover::server {
namespace {

namespace json = boost::json;
using test::number;
using test::text;

constexpr std::int64_t kTimeoutMs = 60'000;
constexpr int kWrites = 200;   // of each writing client
constexpr int kStreamed = 60;  // keys that the feeder writes again and again

std::string quoted(std::string_view body) {
  std::string out(body);
  for (char& c : out) {
    if (c == '\'') c = '"';
  }
  return out;
}

std::string string_member(std::string_view name, const std::string& value) {
  return "'" + std::string(name) + "':{'S':'" + value + "'}";
}
std::string number_member(std::string_view name, std::int64_t value) {
  return "'" + std::string(name) + "':{'N':'" + std::to_string(value) + "'}";
}
std::string key_of(const std::string& pk, const std::string& sk) {
  return string_member("pk", pk) + ',' + string_member("sk", sk);
}

std::string text_of(const json::value& item, std::string_view name) {
  return std::string(item.at(name).at("S").as_string());
}
std::int64_t number_of(const json::value& item, std::string_view name) {
  return std::stoll(std::string(item.at(name).at("N").as_string()));
}

/// What a read names: a direction of one collection, or a Scan.
struct Read {
  std::string operation = "Query";
  std::string index;
  std::string partition_key;  ///< Of a Query.
  bool ascending = true;
  std::string more;  ///< Further members.

  std::string body() const {
    std::string out = "{'TableName':'readings'" + more;
    if (!index.empty()) out += ",'IndexName':'" + index + "'";
    if (operation == "Scan") return out;
    out += ",'KeyConditionExpression':'#p = :p','ExpressionAttributeNames':{'#p':'" +
           std::string(index == "by-depot" ? "depot" : "pk") + "'},'ExpressionAttributeValues':{" +
           string_member(":p", partition_key) + "}";
    return out + ",'ScanIndexForward':" + (ascending ? "true" : "false");
  }
};

std::vector<Read> both_ways(const std::string& index, const std::string& partition_key) {
  return {{"Query", index, partition_key, true, {}}, {"Query", index, partition_key, false, {}}};
}

class Contract : public testing::TestWithParam<bool> {
 protected:
  Contract() {
    store::StoreOptions options{.workers = 2, .shards_per_table = 2, .inbox_batches = 2};
    if (GetParam()) {
      EXPECT_NE(mkdtemp(directory_.data()), nullptr);
      options.memory_budget_bytes = 50'000;
      store_ = store::Store::open(directory_ + "/store", options).value();
    } else {
      store_ = store::Store::open(options);
    }
    api_ = DynamoDbApi::make(*store_);
    ok("CreateTable", R"({'TableName':'readings','BillingMode':'PAY_PER_REQUEST',
       'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},{'AttributeName':'sk','AttributeType':'S'},
                               {'AttributeName':'depot','AttributeType':'S'},{'AttributeName':'speed','AttributeType':'N'}],
       'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'sk','KeyType':'RANGE'}],
       'GlobalSecondaryIndexes':[
         {'IndexName':'by-depot','KeySchema':[{'AttributeName':'depot','KeyType':'HASH'},{'AttributeName':'speed','KeyType':'RANGE'}],
          'Projection':{'ProjectionType':'ALL'}}],
       'LocalSecondaryIndexes':[
         {'IndexName':'by-speed','KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'speed','KeyType':'RANGE'}],
          'Projection':{'ProjectionType':'ALL'}}]})");
    table_ = store_->find_table("readings");
  }
  ~Contract() override {
    table_.reset();
    api_.reset();
    store_.reset();
    if (GetParam()) std::filesystem::remove_all(directory_);
  }

  std::pair<unsigned, json::value> call(std::string_view operation, std::string_view body) {
    const std::string target = "DynamoDB_20120810." + std::string(operation);
    const std::string sent = quoted(body);
    HttpRequest request;
    request.method = "POST";
    request.target = "/";
    request.body = sent;
    request.content_type = "application/x-amz-json-1.0";
    request.amz_target = target;
    std::promise<HttpResponse> promise;
    api_->handle(request, [&](HttpResponse&& response) { promise.set_value(std::move(response)); });
    const HttpResponse response = promise.get_future().get();
    return {response.status, json::parse(response.body)};
  }
  json::value ok(std::string_view operation, std::string_view body) {
    auto [status, answer] = call(operation, body);
    EXPECT_EQ(status, 200u) << operation << ' ' << body << '\n' << json::serialize(answer);
    return answer;
  }

  void put(const std::string& pk, const std::string& sk, const std::string& more) {
    ok("PutItem", "{'TableName':'readings','Item':{" + key_of(pk, sk) + ',' + more + "}}");
  }
  unsigned update(const std::string& pk, const std::string& sk, const std::string& expression,
                  const std::string& values, const std::string& more = "") {
    return call("UpdateItem", "{'TableName':'readings','Key':{" + key_of(pk, sk) + "},'UpdateExpression':'" +
                                  expression + "','ExpressionAttributeValues':{" + values + "}" + more + "}")
        .first;
  }
  /// Nothing, or the item.
  json::value get(const std::string& pk, const std::string& sk, bool consistent) {
    const json::value answer = ok("GetItem", "{'TableName':'readings','Key':{" + key_of(pk, sk) +
                                                 "},'ConsistentRead':" + (consistent ? "true" : "false") + "}");
    const json::value* item = answer.as_object().if_contains("Item");
    return item != nullptr ? *item : json::value();
  }
  json::array one_page(const Read& read) { return ok(read.operation, read.body() + "}").at("Items").as_array(); }
  /// All pages, one after another.
  json::array all_pages(const Read& read, int limit) {
    json::array items;
    std::string start;
    do {
      const json::value page = ok(read.operation, read.body() + ",'Limit':" + std::to_string(limit) + start + "}");
      for (const json::value& item : page.at("Items").as_array()) items.push_back(item);
      const json::value* last = page.as_object().if_contains("LastEvaluatedKey");
      start = last != nullptr ? ",'ExclusiveStartKey':" + json::serialize(*last) : "";
    } while (!start.empty());
    return items;
  }

  /// Adds the n-th row of the stream to a batch; its log time is the clock's or later, and rises with n.
  using MakeRow = std::function<void(test::BatchBuilder&, int n, model::Version)>;

  /// Runs the writers to their end, and meanwhile the feeder, the readers again and again, and checkpoints.
  void run(const std::vector<std::function<void()>>& writers, const std::vector<std::function<void()>>& readers,
           const MakeRow& make_row = &make_neighbour) {
    std::atomic<bool> done{false};
    std::mutex held;  // a cut waits for the rows in hand, and lets none through
    std::vector<std::thread> writing;
    std::vector<std::thread> others;
    for (const auto& writer : writers) writing.emplace_back(writer);
    for (const auto& reader : readers) {
      others.emplace_back([&] {
        do reader();
        while (!done);
      });
    }
    others.emplace_back([&] {
      const std::int64_t begin_ms = model::system_clock_ms() + 1'000'000;
      for (int n = 0; !done;) {
        test::BatchBuilder batch(store_->names());
        for (int i = 0; i < 20; ++i, ++n) {
          make_row(batch, n,
                   model::Version::of(begin_ms + std::int64_t{1'000} * n, model::SourceId{1},
                                      static_cast<std::uint64_t>(n)));
        }
        const std::lock_guard lock(held);
        EXPECT_TRUE(test::feed(*table_, batch.take()));
      }
    });
    if (GetParam()) {
      others.emplace_back([&] {
        while (!done) {
          auto cut = [&] {
            const std::lock_guard lock(held);
            return store_->cut(kTimeoutMs);
          }();
          ASSERT_TRUE(cut.ok()) << cut.status().message();
          ASSERT_TRUE((*cut)->write({}).ok());
        }
      });
    }
    for (std::thread& thread : writing) thread.join();
    done = true;
    for (std::thread& thread : others) thread.join();
    EXPECT_TRUE(store_->drain(kTimeoutMs));
  }

  /// Rows between and behind the items of the tests: in their collection, and beside them in their index partition.
  static void make_neighbour(test::BatchBuilder& batch, int n, model::Version version) {
    batch.add(n % 2 == 0 ? "a" : "b", "k" + std::to_string(100 + n % kStreamed) + "-streamed",
              {{"depot", text("D")}, {"speed", number(n / kStreamed % 3)}, {"n", number(n)}}, version);
  }

  std::string directory_ = (std::filesystem::temp_directory_path() / "drover-contract-XXXXXX").string();
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<DynamoDbApi> api_;
  std::shared_ptr<store::Table> table_;
};

TEST_P(Contract, EveryReadSeesAnAcknowledgedWrite) {
  const auto writer = [this](const std::string& pk) {
    return [this, pk] {
      const auto depot = [](int n) { return n % 2 == 0 ? std::string("D") : "E" + std::to_string(n % 5); };
      const auto numbers = [&](const json::array& items) {
        std::vector<std::int64_t> found;
        for (const json::value& item : items) {
          if (text_of(item, "pk") == pk && text_of(item, "sk") == "mine") found.push_back(number_of(item, "n"));
        }
        return found;
      };
      for (int n = 0; n < kWrites; ++n) {
        std::vector<std::int64_t> expected;
        if (n % 5 == 4) {
          ok("DeleteItem", "{'TableName':'readings','Key':{" + key_of(pk, "mine") + "}}");
        } else {
          put(pk, "mine",
              string_member("depot", depot(n)) + ',' + number_member("speed", 1) + ',' + number_member("n", n));
          expected.push_back(n);
        }
        for (const bool consistent : {false, true}) {
          const std::string more = std::string(",'ConsistentRead':") + (consistent ? "true" : "false");
          const json::value item = get(pk, "mine", consistent);
          ASSERT_EQ(item.is_object(), !expected.empty());
          if (item.is_object()) {
            ASSERT_EQ(number_of(item, "n"), n);
          }
          ASSERT_EQ(numbers(one_page({"Query", "", pk, true, more})), expected);
          ASSERT_EQ(numbers(one_page({"Query", "by-speed", pk, true, more})), expected);
        }
        ASSERT_EQ(numbers(one_page({"Query", "by-depot", depot(n), true, {}})), expected);
        if (n % 8 == 0) {
          const json::value batch =
              ok("BatchGetItem", "{'RequestItems':{'readings':{'Keys':[{" + key_of(pk, "mine") + "}]}}}");
          ASSERT_EQ(numbers(batch.at("Responses").at("readings").as_array()), expected);
          ASSERT_EQ(numbers(one_page({"Scan", "", "", true, {}})), expected);
          ASSERT_EQ(numbers(one_page({"Scan", "by-depot", "", true, {}})), expected);
        }
        if (n > 0) {
          ASSERT_TRUE(numbers(one_page({"Query", "by-depot", depot(n - 1), true, {}})).empty());
        }
      }
    };
  };
  run({writer("a"), writer("b")}, {});
}

TEST_P(Contract, PagesMissAndRepeatNothingThatStays) {
  constexpr int kKeys = 60;  // every second one stays
  const auto sk = [](int n) { return "k" + std::to_string(100 + n); };
  const auto members = [](int n) { return string_member("depot", "D") + ',' + number_member("speed", n % 3); };
  for (int n = 0; n < kKeys; n += 2) put("a", sk(n), members(n) + ",'stays':{'BOOL':true}");
  const auto comes_and_goes = [&] {
    for (int n = 0; n < kWrites; ++n) {
      put("a", sk((2 * n + 1) % kKeys), members(n));  // between two that stay, among ties of the index
      ok("DeleteItem", "{'TableName':'readings','Key':{" + key_of("a", sk((2 * n + 21) % kKeys)) + "}}");
    }
  };
  const auto is_changed = [&] {
    for (int n = 0; n < kWrites; ++n) {
      EXPECT_EQ(update("a", sk(2 * n % kKeys), "SET note = :n", number_member(":n", n)), 200u);
    }
  };
  const auto reader = [&](std::vector<Read> reads, std::uint32_t seed) {
    return [this, reads = std::move(reads), random = std::mt19937(seed)]() mutable {
      for (const Read& read : reads) {
        const json::array items = all_pages(read, std::uniform_int_distribution<int>(1, 9)(random));
        std::multiset<std::string> stayed;
        std::tuple<std::int64_t, std::string, std::string> last;
        for (const json::value& item : items) {
          if (item.as_object().contains("stays")) stayed.insert(text_of(item, "sk"));
          std::tuple at(read.index.empty() ? 0 : number_of(item, "speed"), text_of(item, "pk"), text_of(item, "sk"));
          if (read.operation == "Query" && &item != items.begin()) {
            EXPECT_TRUE(read.ascending ? last < at : at < last) << read.body() << '\n' << json::serialize(item);
          }
          last = std::move(at);
        }
        EXPECT_EQ(stayed.size(), kKeys / 2u) << read.body();
        EXPECT_EQ(std::set<std::string>(stayed.begin(), stayed.end()).size(), kKeys / 2u) << read.body();
      }
    };
  };
  std::vector<Read> of_table = both_ways("", "a");
  of_table.push_back({"Scan", "", "", true, {}});
  std::vector<Read> of_indexes = both_ways("by-depot", "D");
  of_indexes.push_back({"Scan", "by-depot", "", true, {}});
  for (const Read& read : both_ways("by-speed", "a")) of_indexes.push_back(read);
  run({comes_and_goes, is_changed}, {reader(of_table, 1), reader(of_indexes, 2)});
}

// Two items at the ends of a collection are counted up by turns: one moment's numbers are the same, or the first's is
// one ahead.
TEST_P(Contract, APageIsOneStateOfItsCollection) {
  const auto count = [this](const std::string& sk, int n) {
    put("a", sk,
        string_member("depot", "D") + ',' + number_member("speed", sk == "first" ? -1 : 9) + ',' +
            number_member("n", n));
  };
  count("first", 0);
  count("zlast", 0);
  const auto writer = [&] {
    for (int n = 1; n <= kWrites; ++n) {
      count("first", n);
      count("zlast", n);
    }
  };
  const auto reader = [this](const std::vector<Read>& reads) {
    return [this, reads] {
      for (const Read& read : reads) {
        const json::array items = one_page(read);
        const json::value& first = read.ascending ? items.front() : items.back();
        const json::value& last = read.ascending ? items.back() : items.front();
        ASSERT_EQ(text_of(first, "sk") + text_of(last, "sk"), "firstzlast");
        const std::int64_t ahead = number_of(first, "n") - number_of(last, "n");
        EXPECT_TRUE(ahead == 0 || ahead == 1) << read.body() << ' ' << ahead;
      }
    };
  };
  std::vector<Read> of_table = both_ways("", "a");
  for (const Read& read : both_ways("by-speed", "a")) of_table.push_back(read);
  run({writer}, {reader(of_table), reader(both_ways("by-depot", "D"))});
}

// What one client has seen, the next one's read does not fall behind; ConsistentRead or not.
TEST_P(Contract, NoReadFallsBehindAnEarlierOne) {
  put("a", "k", string_member("depot", "D") + ',' + number_member("speed", -1) + ',' + number_member("n", 0));
  const auto writer = [this] {
    for (int n = 1; n <= kWrites; ++n) EXPECT_EQ(update("a", "k", "ADD n :one", number_member(":one", 1)), 200u);
  };
  std::atomic<std::int64_t> seen_in_table{0};
  std::atomic<std::int64_t> seen_in_index{0};
  const auto see = [](std::atomic<std::int64_t>& seen, const std::function<std::int64_t()>& read) {
    std::int64_t before = seen.load();
    const std::int64_t n = read();
    EXPECT_GE(n, before);
    while (before < n && !seen.compare_exchange_weak(before, n)) {
    }
  };
  const auto reader = [&] {
    for (const bool consistent : {true, false}) {
      see(seen_in_table, [&] { return number_of(get("a", "k", consistent), "n"); });
    }
    see(seen_in_index, [&] { return number_of(one_page({"Query", "by-depot", "D", true, {}}).at(0), "n"); });
  };
  run({writer, writer}, {reader, reader});
  EXPECT_EQ(number_of(get("a", "k", false), "n"), 2 * kWrites);
}

// Clients count by conditional PutItem and by UpdateItem: each success is in the sum once.
TEST_P(Contract, NoUpdateIsLost) {
  const auto members = [](std::int64_t n) {
    return string_member("depot", "E") + ',' + number_member("speed", 1) + ',' + number_member("n", n);
  };
  std::atomic<int> created{0};
  std::atomic<int> counted{0};
  const auto puts_if_unchanged = [&] {
    const auto [status, answer] =
        call("PutItem", "{'TableName':'readings','Item':{" + key_of("a", "k") + ',' + members(0) +
                            "},'ConditionExpression':'attribute_not_exists(pk)'}");
    created += status == 200;
    for (int i = 0; i < kWrites; ++i) {
      const std::int64_t n = number_of(get("a", "k", false), "n");
      counted += call("PutItem", "{'TableName':'readings','Item':{" + key_of("a", "k") + ',' + members(n + 1) +
                                     "},'ConditionExpression':'n = :n','ExpressionAttributeValues':{" +
                                     number_member(":n", n) + "}}")
                     .first == 200;
    }
  };
  const auto adds = [&] {
    for (int i = 0; i < kWrites; ++i) {
      counted += update("a", "k", "ADD n :one", number_member(":one", 1),
                        ",'ConditionExpression':'attribute_exists(pk)'") == 200;
    }
  };
  run({puts_if_unchanged, puts_if_unchanged, adds}, {});
  EXPECT_EQ(created, 1);
  EXPECT_GT(counted, 0);
  EXPECT_EQ(number_of(get("a", "k", true), "n"), counted);
  const json::array entries = one_page({"Query", "by-depot", "E", true, {}});
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(number_of(entries.at(0), "n"), counted);
}

// Stream rows replace an item, clients copy one of its numbers to a second one: both are of one row, or there is no
// copy yet.
TEST_P(Contract, AnUpdateIsOneStepAmongTheRowsOfTheStream) {
  std::atomic<int> last{-1};
  const auto make_row = [&](test::BatchBuilder& batch, int n, model::Version version) {
    batch.add("a", "k", {{"depot", text("D")}, {"speed", number(n % 3)}, {"n", number(n)}}, version);
    last = n;
  };
  const auto copies = [this] {
    for (int i = 0; i < kWrites;) {
      const unsigned status =
          update("a", "k", "SET #c = n, was = :i", number_member(":i", i),
                 ",'ExpressionAttributeNames':{'#c':'copy'},'ConditionExpression':'attribute_exists(n)'");
      i += status == 200;
    }
  };
  const auto check = [](const json::value& item) {
    if (item.as_object().contains("copy")) {
      EXPECT_EQ(number_of(item, "copy"), number_of(item, "n"));
    }
    EXPECT_EQ(number_of(item, "speed"), number_of(item, "n") % 3);
  };
  const auto reader = [&] {
    for (const Read& read : {Read{"Query", "", "a", true, {}}, Read{"Query", "by-depot", "D", true, {}}}) {
      const json::array items = one_page(read);
      EXPECT_LE(items.size(), 1u);
      for (const json::value& item : items) check(item);
    }
  };
  run({copies, copies}, {reader}, make_row);
  EXPECT_EQ(number_of(get("a", "k", true), "n"), last);
}

TEST_P(Contract, AnItemThatMovesWithinAnIndexPartitionIsSeenOnce) {
  put("a", "moves", string_member("depot", "D") + ',' + number_member("speed", 0));
  const auto writer = [this] {
    for (int n = 1; n <= kWrites; ++n) {
      EXPECT_EQ(update("a", "moves", "SET speed = :s", number_member(":s", n % 2 == 0 ? -n : n)), 200u);
    }
  };
  const auto reader = [this] {
    for (const std::vector<Read>& reads : {both_ways("by-depot", "D"), both_ways("by-speed", "a")}) {
      for (const Read& read : reads) {
        int found = 0;
        for (const json::value& item : one_page(read)) found += text_of(item, "sk") == "moves";
        EXPECT_EQ(found, 1) << read.body();
      }
    }
  };
  run({writer}, {reader, reader});
}

INSTANTIATE_TEST_SUITE_P(Stores, Contract, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Durable" : "InMemory"; });

}  // namespace
}  // namespace drover::server
