// Goal: the program behaves as its help says: exit codes, one clear line per trouble, orderly stops, readable answers.
// Method: the real `drover` is run as a process of its own; a serving one takes any free port and prints it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/client.h"
#include "cli/table.h"

namespace drover::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace json = boost::json;

/// A running `drover`. Its standard output and error go to files.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), DROVER_PROGRAM);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    EXPECT_EQ(posix_spawn(&pid_, DROVER_PROGRAM, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait();
    }
    std::filesystem::remove(out_);
    std::filesystem::remove(err_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send(int signal) const { kill(pid_, signal); }

  /// The exit code, or minus the signal that ended it.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string out() const { return read(out_); }
  std::string err() const { return read(err_); }

  /// Waits until standard error has `text`; what is there by then.
  std::string wait_for(const std::string& text) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (err().find(text) == std::string::npos && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_THAT(err(), HasSubstr(text));
    return err();
  }

 private:
  static std::string unique_name(const char* kind) {
    static int count = 0;
    return testing::TempDir() + "drover-cli-" + std::to_string(getpid()) + "-" + std::to_string(++count) + "." + kind;
  }
  static std::string read(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::string out_ = unique_name("out");
  const std::string err_ = unique_name("err");
  pid_t pid_ = 0;
};

struct Ended {
  int exit_code = 0;
  std::string out;
  std::string err;
};

Ended run(std::vector<std::string> arguments) {
  Program program(std::move(arguments));
  const int exit_code = program.wait();
  return {exit_code, program.out(), program.err()};
}

/// A config file that lives as long as its test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& yaml) { std::ofstream(path_) << yaml; }
  ~ConfigFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ = testing::TempDir() + "drover-cli-" + std::to_string(getpid()) + ".yaml";
};

constexpr const char* kFreePorts = "api: {port: 0}\nadmin: {port: 0}\n";

constexpr const char* kTable =
    "tables:\n"
    "  - name: telemetry\n"
    "    keys: {partition_key: {name: vehicleId}, sort_key: {name: recordedAt}}\n"
    "    inherit: [depotCode]\n"
    "    indexes: [{name: depot, partition_key: {name: depotCode}, sort_key: {name: recordedAt}}]\n";

constexpr const char* kTopic =
    "    time_sort_key: {prefix: \"TS#\"}\n"
    "topics:\n"
    "  - {name: fleet, table: telemetry, vehicle_id: vehicleId, time: recordedAt, partition_key: \"VEH#{vehicleId}\",\n"
    "     sort_key: \"TS#{recordedAt}\"}\n";

/// A `drover serve` that answers.
class Serving {
 public:
  explicit Serving(const std::string& yaml) : config_(yaml), program_({"serve", "--config", config_.path()}) {
    const std::string log = program_.wait_for("(metrics, heat, health)");
    endpoint_ = url_after(log, "answers at ");
    admin_ = url_after(log, "(DynamoDB) and ");
  }
  Program& program() { return program_; }
  const std::string& endpoint() const { return endpoint_; }
  const std::string& admin() const { return admin_; }

 private:
  static std::string url_after(const std::string& log, const std::string& words) {
    const std::size_t begin = log.find(words) + words.size();
    return log.substr(begin, log.find(' ', begin) - begin);
  }

  ConfigFile config_;
  Program program_;
  std::string endpoint_;
  std::string admin_;
};

TEST(Cli, VersionIsPrinted) {
  const Ended ended = run({"--version"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.out, testing::MatchesRegex("drover [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Cli, HelpOfTheProgramAndOfEachCommandHasExamples) {
  EXPECT_THAT(run({"--help"}).out,
              AllOf(HasSubstr("serve"), HasSubstr("check"), HasSubstr("query"), HasSubstr("Examples:")));
  for (const char* command : {"serve", "check", "query"}) {
    const Ended ended = run({command, "--help"});
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_THAT(ended.out, AllOf(HasSubstr("Example"), HasSubstr(std::string("  drover ") + command))) << command;
  }
}

TEST(Cli, AWrongCommandLineExits64AndPointsToTheHelp) {
  for (const std::vector<std::string>& arguments :
       std::initializer_list<std::vector<std::string>>{{}, {"serv"}, {"serve"}, {"check", "--confg", "x"}, {"query"}}) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, 64);
    EXPECT_THAT(ended.err, HasSubstr("--help"));
  }
}

TEST(Cli, AnUnknownCommandIsNamed) {
  const Ended ended = run({"version"});
  EXPECT_EQ(ended.exit_code, 64);
  EXPECT_THAT(ended.err, HasSubstr("there is no command \"version\""));
}

TEST(Cli, ACountThatIsNoneSaysWhatIsAccepted) {
  EXPECT_THAT(run({"query", "VEH#1", "--newest", "0"}).err, HasSubstr("Value 0 not in range 1 to 1000000000"));
}

TEST(CliCheck, ADirectoryIsNoConfig) {
  const Ended ended = run({"check", "--config", testing::TempDir()});
  EXPECT_EQ(ended.exit_code, 78);
  EXPECT_THAT(ended.err, HasSubstr("the file can't be read"));
}

TEST(CliCheck, AGoodConfigExits0AndSaysWhatIsInIt) {
  const ConfigFile config(std::string("kafka: {brokers: k:1}\n") + kTable + kTopic);
  const Ended ended = run({"check", "--config", config.path()});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out, config.path() + " is good: 1 topic, 1 table, 2 warnings\n");
  EXPECT_THAT(ended.err, StartsWith("warning: " + config.path() + ":3: tables[0]: "));
}

TEST(CliCheck, ABadOneExits78WithALinePerProblem) {
  const ConfigFile config("api: {port: x}\nkafka: {handels: 1}\n");
  const Ended ended = run({"check", "--config", config.path(), "--set", "log.level=loud"});
  EXPECT_EQ(ended.exit_code, 78);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 3) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr(config.path() + ":1: api.port: "),
                               HasSubstr(config.path() + ":2: kafka.handels: "), HasSubstr("--set: log.level: ")));
}

TEST(CliServe, AWrongConfigExits78AndStartsNothing) {
  const ConfigFile config("api: {port: x}\n");
  const Ended ended = run({"serve", "--config", config.path()});
  EXPECT_EQ(ended.exit_code, 78);
  EXPECT_THAT(ended.err, Not(HasSubstr("answers at")));
}

TEST(CliServe, ATakenPortExits69WithOneLine) {
  const Serving first(kFreePorts);
  const std::string port = first.endpoint().substr(first.endpoint().rfind(':') + 1);
  const ConfigFile config("api: {port: " + port + "}\nadmin: {port: 0}\n");
  const Ended ended = run({"serve", "--config", config.path()});
  EXPECT_EQ(ended.exit_code, 69);
  EXPECT_THAT(ended.err,
              HasSubstr("port " + port + " on 127.0.0.1 is in use: choose another one with --set api.port=N\n"));
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
}

TEST(CliServe, SigtermAndSigintStopItWithExitCode0) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Serving serving(kFreePorts);
    serving.program().send(signal);
    EXPECT_EQ(serving.program().wait(), 0);
    EXPECT_THAT(serving.program().err(), HasSubstr("stopped\n"));
  }
}

TEST(CliServe, WithTheBrokerAwayItAnswersSaysSoOnceAndStopsInTime) {
  Serving serving(std::string(kFreePorts) + "stop_timeout: 3s\nkafka: {brokers: \"127.0.0.1:1\"}\n" + kTable + kTopic);
  serving.program().wait_for("Kafka: ");
  auto client = Client::connect(serving.endpoint());
  ASSERT_TRUE(client.ok()) << client.status().message();
  EXPECT_TRUE(client->call("ListTables", {}).ok());

  const auto begin = std::chrono::steady_clock::now();
  serving.program().send(SIGTERM);
  EXPECT_EQ(serving.program().wait(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  const std::string log = serving.program().err();
  EXPECT_EQ(log.find("Kafka: "), log.rfind("Kafka: ")) << log;
}

/// A vehicle, three of its readings, and another vehicle, put in through the API.
class CliQuery : public testing::Test {
 protected:
  void SetUp() override {
    auto client = Client::connect(serving_.endpoint());
    ASSERT_TRUE(client.ok()) << client.status().message();
    const auto put = [&](const char* item) {
      const auto answer = client->call("PutItem", {{"TableName", "telemetry"}, {"Item", json::parse(item)}});
      ASSERT_TRUE(answer.ok()) << answer.status().message();
    };
    put(R"({"vehicleId": {"S": "VEH#1"}, "recordedAt": {"S": "META"}, "plate": {"S": "LN-12"}, "tags": {"SS": ["a", "b"]}})");
    put(R"({"vehicleId": {"S": "VEH#1"}, "recordedAt": {"S": "TS#1"}, "speedKph": {"N": "50.5"}, "depotCode": {"S": "DEP"}})");
    put(R"({"vehicleId": {"S": "VEH#1"}, "recordedAt": {"S": "TS#2"}, "speedKph": {"N": "60"}, "depotCode": {"S": "DEP"}})");
    put(R"({"vehicleId": {"S": "VEH#1"}, "recordedAt": {"S": "TS#3"}, "speedKph": {"N": "70"}})");
    put(R"({"vehicleId": {"S": "VEH#2"}, "recordedAt": {"S": "META"}})");
  }

  Ended query(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "query");
    arguments.insert(arguments.end(), {"--endpoint", serving_.endpoint()});
    return run(std::move(arguments));
  }

  Serving serving_{std::string(kFreePorts) + kTable};
};

TEST_F(CliQuery, PrintsAWholeCollectionAsATableWithWhatItRead) {
  const Ended ended = query({"VEH#1"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, StartsWith("vehicleId  recordedAt  "));
  EXPECT_THAT(ended.out, AllOf(HasSubstr("LN-12"), HasSubstr("[\"a\",\"b\"]"), HasSubstr("50.5")));
  EXPECT_LT(ended.out.find("META"), ended.out.find("TS#1"));
  EXPECT_LT(ended.out.find("TS#1"), ended.out.find("TS#3"));
  EXPECT_THAT(ended.out, testing::EndsWith("\n\n4 items, 4 read\n"));
}

/// A vehicle with a collection for each month, and months between them without one.
class CliBuckets : public CliQuery {
 protected:
  void SetUp() override {
    auto client = Client::connect(serving_.endpoint());
    ASSERT_TRUE(client.ok()) << client.status().message();
    for (const std::string at : {"2025-11-03T08:00:00Z", "2026-02-01T00:00:00Z", "2026-02-28T23:59:59Z",
                                 "2026-05-01T10:00:00Z", "2026-05-01T10:00:01Z", "2026-05-02T10:00:00Z"}) {
      const json::object item{{"vehicleId", {{"S", "VEH#1#" + at.substr(0, 7)}}}, {"recordedAt", {{"S", "TS#" + at}}}};
      ASSERT_TRUE(client->call("PutItem", {{"TableName", "telemetry"}, {"Item", item}}).ok());
    }
  }
};

TEST_F(CliBuckets, AreReadTheNewestFirstUntilThereAreEnoughItems) {
  const Ended ended = query({"VEH#1#{%Y-%m}", "--newest", "4", "--until", "2026-12"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, testing::ContainsRegex("2026-05-02T10.*\n.*2026-05-01T10:00:01.*\n.*2026-05-01T10:00:00.*\n"
                                                ".*2026-02-28"));
  EXPECT_THAT(ended.out, AllOf(Not(HasSubstr("2026-02-01")), HasSubstr("4 items, 4 read")));
}

TEST_F(CliBuckets, SinceAndUntilNameTheFirstAndTheLastOne) {
  const Ended ended = query({"VEH#1#{%Y-%m}", "--since", "2025-11", "--until", "2026-02"});
  EXPECT_THAT(ended.out, AllOf(HasSubstr("2025-11-03"), HasSubstr("2026-02-28"), Not(HasSubstr("2026-05"))));
  EXPECT_THAT(ended.out, testing::EndsWith("\n3 items, 3 read\n"));
}

TEST_F(CliBuckets, BetweenPicksThemByItsTimes) {
  const Ended ended = query({"VEH#1#{%Y-%m}", "--between", "TS#2026-02-10T00:00:00Z", "TS#2026-05-01T10:00:00Z"});
  EXPECT_THAT(ended.out, AllOf(HasSubstr("2026-02-28"), HasSubstr("2026-05-01T10:00:00Z"),
                               testing::EndsWith("\n2 items, 2 read\n")));
}

TEST_F(CliBuckets, WithoutSinceAWalkGivesUpAndSaysWhere) {
  const Ended ended = query({"VEH#1#{%Y-%m-%d}", "--newest", "1", "--until", "2026-12-31"});
  EXPECT_EQ(ended.out, "0 items, 0 read; the 400 buckets back to VEH#1#2025-11-27 are empty (--since goes on)\n");
}

TEST_F(CliBuckets, WhatIsNoBucketOrNoTimeIsSaid) {
  EXPECT_THAT(query({"VEH#1#{%Y-%W}"}).err, HasSubstr("%W is not known in a bucket"));
  EXPECT_THAT(query({"VEH#1#{%Y}", "--since", "May"}).err, HasSubstr("--since is no time: \"May\""));
  EXPECT_THAT(query({"VEH#1#{%Y}", "--between", "A", "B"}).err, HasSubstr("give --since"));
  EXPECT_THAT(query({"VEH#1", "--since", "2026"}).err, HasSubstr("KEY needs one"));
}

TEST_F(CliQuery, BetweenReadsTheSliceAndNothingElse) {
  const Ended ended = query({"VEH#1", "--between", "TS#1", "TS#2", "--descending"});
  EXPECT_THAT(ended.out, testing::EndsWith("\n2 items, 2 read\n"));
  EXPECT_LT(ended.out.find("TS#2"), ended.out.find("TS#1"));
  EXPECT_THAT(ended.out, Not(HasSubstr("META")));
}

TEST_F(CliQuery, NewestReadsTheLastItemsBackwards) {
  const Ended ended = query({"VEH#1", "--newest", "2"});
  EXPECT_THAT(ended.out, HasSubstr("2 items, 2 read"));
  EXPECT_LT(ended.out.find("TS#3"), ended.out.find("TS#2"));
  EXPECT_THAT(ended.out, Not(HasSubstr("TS#1")));
}

TEST_F(CliQuery, EqualsAndBeginsWithSelectBySortKey) {
  EXPECT_THAT(query({"VEH#1", "--equals", "META"}).out, AllOf(HasSubstr("LN-12"), HasSubstr("1 item, 1 read")));
  EXPECT_THAT(query({"VEH#1", "--begins-with", "TS#"}).out, HasSubstr("3 items, 3 read"));
}

TEST_F(CliQuery, LimitStopsAndSaysThatThereMayBeMore) {
  EXPECT_THAT(query({"VEH#1", "--limit", "3"}).out, HasSubstr("3 items, 3 read; there may be more (--limit N)\n"));
}

TEST_F(CliQuery, AnIndexIsAskedByItsOwnKey) {
  const Ended ended = query({"DEP", "--index", "depot", "--newest", "5"});
  EXPECT_THAT(ended.out, StartsWith("depotCode  recordedAt  "));
  EXPECT_THAT(ended.out, HasSubstr("2 items, 2 read"));
}

TEST_F(CliQuery, JsonIsDynamoDbs) {
  const Ended ended = query({"VEH#1", "--equals", "META", "--json"});
  const json::value answer = json::parse(ended.out);
  EXPECT_EQ(answer.at("Count"), json::value(1));
  EXPECT_EQ(answer.at("ScannedCount"), json::value(1));
  EXPECT_EQ(answer.at("Items").at(0).at("plate").at("S").as_string(), "LN-12");
}

TEST_F(CliQuery, AnAbsentCollectionIsEmptyAndNoError) {
  const Ended ended = query({"VEH#9"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.out, "0 items, 0 read\n");
}

TEST_F(CliQuery, WhatIsNotThereIsOneLineThatSaysWhatIs) {
  const Ended no_table = query({"VEH#1", "--table", "nope"});
  EXPECT_EQ(no_table.exit_code, 1);
  EXPECT_THAT(no_table.err, StartsWith("drover query: ResourceNotFoundException: "));
  const Ended no_index = query({"VEH#1", "--index", "nope"});
  EXPECT_EQ(no_index.err, "drover query: table telemetry has no index nope; it has depot\n");
}

TEST_F(CliQuery, WithSeveralTablesOneMustBeNamed) {
  auto client = Client::connect(serving_.endpoint());
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE(client
                  ->call("CreateTable", json::parse(R"({"TableName": "other", "BillingMode": "PAY_PER_REQUEST",
                      "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "N"}],
                      "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]})")
                                            .as_object())
                  .ok());
  EXPECT_EQ(query({"VEH#1"}).err, "drover query: there are several tables, name one with --table: other, telemetry\n");
  EXPECT_EQ(query({"7", "--table", "other"}).out, "0 items, 0 read\n") << "the key is sent as a number";
  EXPECT_EQ(query({"7", "--table", "other", "--equals", "x"}).err,
            "drover query: there is no sort key here to put a condition on\n");
}

TEST_F(CliQuery, NothingOrSomethingElseAtTheEndpointExits69) {
  const Ended nothing = run({"query", "x", "--endpoint", "http://127.0.0.1:1"});
  EXPECT_EQ(nothing.exit_code, 69);
  EXPECT_THAT(
      nothing.err,
      StartsWith("drover query: nothing answers at http://127.0.0.1:1 (Connection refused): is `drover serve`"));
  const Ended other = run({"query", "x", "--endpoint", serving_.admin()});
  EXPECT_EQ(other.exit_code, 69);
  EXPECT_THAT(other.err, HasSubstr("is not DynamoDB's protocol"));
  EXPECT_THAT(run({"query", "x", "--endpoint", "localhost:8000"}).err,
              HasSubstr("an endpoint is written http://HOST:PORT"));
}

TEST(FormatTable, AlignsColumnsByCharactersNotBytes) {
  EXPECT_EQ(format_table({"key", "v"}, {{"é", "1"}, {"abcd", "22"}}, 0),
            "key   v\n"
            "----  --\n"
            "é     1\n"
            "abcd  22\n");
}

TEST(FormatTable, CutsTheWidestColumnsToTheTerminalsWidth) {
  EXPECT_EQ(format_table({"id", "text"}, {{"1", "a long text that does not fit"}}, 20),
            "id  text\n"
            "--  ----------------\n"
            "1   a long text tha…\n");
}

TEST(FormatTable, LeavesMissingCellsEmptyAndNoBlanksAtTheEnd) {
  EXPECT_EQ(format_table({"a", "b", "c"}, {{"1"}, {"", "2", ""}}, 0), "a  b  c\n-  -  -\n1\n   2\n");
}

}  // namespace
}  // namespace drover::cli
