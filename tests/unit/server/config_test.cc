#include "drover/server/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace drover::server {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* kTable =
    "tables:\n"
    "  - name: telemetry\n"
    "    keys:\n"
    "      partition_key: {name: vehicleId, type: S}\n"
    "      sort_key: {name: recordedAt, type: S}\n"
    "    time_sort_key: {prefix: \"TS#\", precision: seconds}\n";

constexpr const char* kTopic =
    "topics:\n"
    "  - name: fleet\n"
    "    table: telemetry\n"
    "    vehicle_id: vehicleId\n"
    "    time: recordedAt\n"
    "    partition_key: \"VEH#{vehicleId}\"\n"
    "    sort_key: \"TS#{recordedAt}\"\n";

constexpr const char* kKafka = "kafka: {brokers: kafka-1:9092}\n";

/// A config file that lives as long as its test.
class ConfigTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder_);
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }

  LoadedConfig load(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
    return load_config(write("drover.yaml", yaml), overrides);
  }

  /// The errors as they are printed, the file as "F".
  std::vector<std::string> errors(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
    return texts(load(yaml, overrides).errors);
  }
  std::vector<std::string> warnings(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
    const LoadedConfig loaded = load(yaml, overrides);
    EXPECT_THAT(texts(loaded.errors), IsEmpty());
    return texts(loaded.warnings);
  }

 private:
  std::vector<std::string> texts(const std::vector<ConfigProblem>& problems) const {
    std::vector<std::string> all;
    for (ConfigProblem problem : problems) {
      if (problem.file == folder_ / "drover.yaml") problem.file = "F";
      all.push_back(problem.text());
    }
    return all;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      ("drover-config-" + std::to_string(getpid()) + testing::UnitTest::GetInstance()->current_test_info()->name());
};

using ConfigFile = ConfigTest;

TEST_F(ConfigFile, TheShippedExampleIsGood) {
  const LoadedConfig loaded = load_config(DROVER_SOURCE_DIR "/deploy/drover.yaml", {});
  for (const ConfigProblem& problem : loaded.errors) ADD_FAILURE() << problem.text();
  EXPECT_EQ(loaded.config.tables.size(), 1u);
  EXPECT_EQ(loaded.config.topics.size(), 1u);
}

TEST_F(ConfigFile, AnEmptyOneIsTheApiAloneWithTheDefaults) {
  for (const char* yaml : {"", "# nothing\n", "kafka:\ntopics: []\n"}) {
    const LoadedConfig loaded = load(yaml);
    EXPECT_THAT(loaded.errors, IsEmpty()) << yaml;
    EXPECT_EQ(loaded.config.api.host, "127.0.0.1");
    EXPECT_EQ(loaded.config.api.port, 8000);
    EXPECT_EQ(loaded.config.admin.port, 9464);
    EXPECT_EQ(loaded.config.stop_timeout_ms, 10'000);
    EXPECT_EQ(loaded.config.kafka.group, "drover");
    EXPECT_EQ(loaded.config.kafka.fetch, ingest::Fetch::kDirect);
  }
}

TEST_F(ConfigFile, EverySettingArrivesWhereItBelongs) {
  const LoadedConfig loaded = load(
      "kafka:\n"
      "  brokers: [a:1, b:2]\n"
      "  group: g\n"
      "  handles: 3\n"
      "  batch_records: 100\n"
      "  fetch: librdkafka\n"
      "  librdkafka: {security.protocol: SSL, fetch.wait.max.ms: 10}\n"
      "tables:\n"
      "  - name: telemetry\n"
      "    keys:\n"
      "      partition_key: {name: vehicleId}\n"
      "      sort_key: {name: recordedAt, type: S}\n"
      "    time_sort_key: {prefix: \"T#\", precision: nanos}\n"
      "    inherit: [depotCode]\n"
      "    inherit_from: INFO\n"
      "    indexes:\n"
      "      - name: depot\n"
      "        partition_key: {name: depotCode, type: S}\n"
      "        sort_key: {name: odometerKm, type: N}\n"
      "        projection: INCLUDE\n"
      "        include: [speedKph]\n"
      "      - {name: own, partition_key: {name: vehicleId}, sort_key: {name: b, type: B}, local: true, projection: "
      "KEYS_ONLY}\n"
      "    ttl: expiresAt\n"
      "    retain: 30d\n"
      "topics:\n"
      "  - name: fleet\n"
      "    table: telemetry\n"
      "    vehicle_id: asset.id\n"
      "    time: at\n"
      "    time_unit: seconds\n"
      "    max_ahead: 12h\n"
      "    on_same_key: merge\n"
      "    partition_key: \"VEH#{vehicleId}\"\n"
      "    sort_key: \"T#{recordedAt}\"\n"
      "    attributes: [speedKph, {path: location.lat, name: lat}]\n"
      "    meta: {when: {path: kind, equals: meta}, sort_key: INFO, attributes: [plate, depotCode]}\n"
      "api: {host: localhost, port: 1, threads: 2}\n"
      "admin: {host: ::1, port: 2}\n"
      "store: {workers: 3, shards_per_table: 4, inbox_batches: 5}\n"
      "log: {level: debug}\n"
      "stop_timeout: 4s\n");
  for (const ConfigProblem& problem : loaded.errors) ADD_FAILURE() << problem.text();
  const Config& config = loaded.config;
  EXPECT_EQ(config.kafka.brokers, "a:1,b:2");
  EXPECT_EQ(config.kafka.group, "g");
  EXPECT_EQ(config.kafka.handles, 3u);
  EXPECT_EQ(config.kafka.batch_records_max, 100u);
  EXPECT_EQ(config.kafka.fetch, ingest::Fetch::kLibrdkafka);
  EXPECT_EQ(config.kafka.librdkafka.at("security.protocol"), "SSL");
  EXPECT_EQ(config.kafka.librdkafka.at("fetch.wait.max.ms"), "10");
  EXPECT_LT(config.kafka.stop_timeout_ms, 4'000);

  ASSERT_EQ(config.tables.size(), 1u);
  const model::TableSchema& table = config.tables[0];
  EXPECT_EQ(table.key.partition_key, (model::KeyAttribute{"vehicleId", model::KeyType::kString}));
  EXPECT_EQ(table.key.sort_key, (model::KeyAttribute{"recordedAt", model::KeyType::kString}));
  EXPECT_EQ(table.time_sort_key, (model::TimeSortKey{"T#", model::TimePrecision::kNanos}));
  EXPECT_THAT(table.inherit, ElementsAre("depotCode"));
  EXPECT_EQ(table.inherit_from, "INFO");
  ASSERT_EQ(table.indexes.size(), 2u);
  EXPECT_EQ(table.indexes[0].name, "depot");
  EXPECT_EQ(table.indexes[0].key.sort_key, (model::KeyAttribute{"odometerKm", model::KeyType::kNumber}));
  EXPECT_EQ(table.indexes[0].projection, model::ProjectionType::kInclude);
  EXPECT_THAT(table.indexes[0].included, ElementsAre("speedKph"));
  EXPECT_FALSE(table.indexes[0].local);
  EXPECT_EQ(table.indexes[1].key.sort_key, (model::KeyAttribute{"b", model::KeyType::kBinary}));
  EXPECT_EQ(table.indexes[1].projection, model::ProjectionType::kKeysOnly);
  EXPECT_TRUE(table.indexes[1].local);

  ASSERT_TRUE(config.retention.contains("telemetry"));
  EXPECT_EQ(config.retention.at("telemetry").ttl_attribute, "expiresAt");
  EXPECT_EQ(config.retention.at("telemetry").retain_ms, std::int64_t{30} * 24 * 3600 * 1000);

  ASSERT_EQ(config.topics.size(), 1u);
  const ingest::Mapping& topic = config.topics[0];
  EXPECT_EQ(topic.topic, "fleet");
  EXPECT_EQ(topic.table, "telemetry");
  EXPECT_EQ(topic.id_path.text(), "asset.id");
  EXPECT_EQ(topic.time_path.text(), "at");
  EXPECT_EQ(topic.time_unit, model::TimeUnit::kSeconds);
  EXPECT_EQ(topic.ahead_ms_max, 12 * 3600 * 1000);
  EXPECT_EQ(topic.on_same_key, ingest::SameKey::kMerge);
  EXPECT_EQ(topic.partition_key.prefix, "VEH#");
  EXPECT_EQ(topic.sort_key.field, "recordedAt");
  ASSERT_EQ(topic.attributes.size(), 2u);
  EXPECT_EQ(topic.attributes[0].name, "speedKph");
  EXPECT_EQ(topic.attributes[1].path.text(), "location.lat");
  EXPECT_EQ(topic.attributes[1].name, "lat");
  ASSERT_TRUE(topic.meta.has_value());
  EXPECT_EQ(topic.meta->path.text(), "kind");
  EXPECT_EQ(topic.meta->equals, "meta");
  EXPECT_EQ(topic.meta->sort_key, "INFO");
  EXPECT_EQ(topic.meta->attributes.size(), 2u);

  EXPECT_EQ(config.api.host, "localhost");
  EXPECT_EQ(config.api.port, 1);
  EXPECT_EQ(config.api_threads, 2u);
  EXPECT_EQ(config.admin.host, "::1");
  EXPECT_EQ(config.admin.port, 2);
  EXPECT_EQ(config.store.workers, 3u);
  EXPECT_EQ(config.store.shards_per_table, 4u);
  EXPECT_EQ(config.store.inbox_batches, 5u);
  EXPECT_EQ(config.log_level, "debug");
  EXPECT_EQ(config.stop_timeout_ms, 4'000);
}

TEST_F(ConfigFile, AnErrorNamesFileLineSettingWhatWasFoundAndWhatIsAccepted) {
  EXPECT_THAT(errors("kafka:\n  brokers: a:1\n  handles: many\n"),
              ElementsAre("F:3: kafka.handles: found \"many\", accepted: a whole number from 1 to 16"));
  EXPECT_THAT(errors("kafka:\n  fetch: fast\n"),
              ElementsAre("F:2: kafka.fetch: found \"fast\", accepted: direct or librdkafka"));
}

TEST_F(ConfigFile, AllProblemsAreToldAtOnce) {
  EXPECT_THAT(
      errors("api: {port: 70000, threads: 0}\nstop_timeout: 10\nlog: {level: loud}\n"),
      ElementsAre(
          "F:1: api.port: found \"70000\", accepted: a whole number from 0 to 65535",
          "F:1: api.threads: found \"0\", accepted: a whole number from 1 to 64",
          "F:3: log.level: found \"loud\", accepted: trace, debug, info, warn, error or off",
          "F:2: stop_timeout: found \"10\", accepted: a time from 1s to 10m, with its unit (ms, s, m, h or d)"));
}

TEST_F(ConfigFile, AMisspeltSettingIsAnErrorThatNamesTheLikelyOne) {
  EXPECT_THAT(
      errors("kafka:\n  handels: 4\n"),
      ElementsAre("F:2: kafka.handels: there is no such setting, did you mean \"handles\"?; accepted here: brokers, "
                  "group, handles, batch_records, fetch or librdkafka"));
  EXPECT_THAT(errors("tabels: []\n"),
              ElementsAre(HasSubstr("F:1: tabels: there is no such setting, did you mean \"tables\"?")));
  EXPECT_THAT(errors("x: 1\n"),
              ElementsAre(HasSubstr("F:1: x: there is no such setting; accepted here: kafka, tables,")));
}

TEST_F(ConfigFile, AWrongShapeIsAnErrorAndNeverACrash) {
  EXPECT_THAT(errors("kafka: [1]\n"), ElementsAre(StartsWith("F:1: kafka: found a list, accepted: a section")));
  EXPECT_THAT(errors("tables: 3\n"), ElementsAre("F:1: tables: found \"3\", accepted: a list of tables"));
  EXPECT_THAT(errors("tables: [3]\n"), ElementsAre(StartsWith("F:1: tables[0]: found \"3\", accepted: a section")));
  EXPECT_THAT(errors("api: {port: [1]}\n"),
              ElementsAre(StartsWith("F:1: api.port: found a list, accepted: a whole number")));
  EXPECT_THAT(errors("api: {port: -1}\n"), ElementsAre(HasSubstr("found \"-1\"")));
  EXPECT_THAT(errors("api: {port: 8000x}\n"), ElementsAre(HasSubstr("found \"8000x\"")));
  EXPECT_THAT(errors("api: {port: }\n"),
              ElementsAre("F:1: api.port: found nothing, accepted: a whole number from 0 to 65535"));
  EXPECT_THAT(errors("api: {host: {a: b, c: d}}\n"),
              ElementsAre("F:1: api.host: found a section, accepted: a text, {env: NAME} or {file: PATH}"));
  EXPECT_THAT(errors("- a\n- b\n"), ElementsAre(HasSubstr("a config is a section")));
  EXPECT_THAT(errors("just text"), ElementsAre(HasSubstr("a config is a section")));
  EXPECT_THAT(errors("{? [a, b] : c}\n"), ElementsAre(HasSubstr("there is no such setting")));
}

TEST_F(ConfigFile, WhatIsNotYamlIsAnErrorAtItsLine) {
  EXPECT_THAT(errors("kafka:\n  brokers: [a\n"),
              ElementsAre(testing::MatchesRegex("F:[23]: \\(syntax\\): not YAML: .*")));
  EXPECT_THAT(errors("a: b: c\n"), ElementsAre(StartsWith("F:1: (syntax): not YAML: ")));
}

TEST_F(ConfigFile, AFileThatIsNotThereIsOneError) {
  const LoadedConfig loaded = load_config("/no/such/file.yaml", {});
  ASSERT_EQ(loaded.errors.size(), 1u);
  EXPECT_EQ(loaded.errors[0].text(),
            "/no/such/file.yaml: --config: the file can't be read: check its name and its permissions");
}

TEST_F(ConfigFile, ASettingThatStandsTwiceIsAnErrorAtTheSecondPlace) {
  EXPECT_THAT(errors("api: {port: 1}\nlog: {level: info}\napi: {port: 2}\n"),
              ElementsAre("F:3: api: the setting stands here twice: take one out"));
}

TEST_F(ConfigFile, AMissingSettingIsAnErrorAtItsSection) {
  EXPECT_THAT(errors("tables:\n  - keys: {partition_key: {type: S}}\n"),
              ElementsAre("F:2: tables[0].name: found nothing, accepted: the table's name",
                          "F:2: tables[0].keys.partition_key.name: found nothing, accepted: the attribute's name"));
}

TEST_F(ConfigFile, PropertiesThatDroverSetsItselfAreRefusedUnderLibrdkafka) {
  EXPECT_THAT(
      errors("kafka: {librdkafka: {bootstrap.servers: x, group.id: y, enable.auto.commit: true, client.id: fine}}\n"),
      ElementsAre("F:1: kafka.librdkafka.bootstrap.servers: set kafka.brokers instead",
                  "F:1: kafka.librdkafka.group.id: set kafka.group instead",
                  HasSubstr("kafka.librdkafka.enable.auto.commit: Drover decides")));
}

TEST_F(ConfigFile, PropertiesThatLibrdkafkaDoesNotTakeAreErrorsAtTheirLine) {
  EXPECT_THAT(errors("kafka:\n  librdkafka:\n    fetch.wait.max.msec: 1\n    security.protocol: tls\n"),
              ElementsAre(StartsWith("F:3: kafka.librdkafka.fetch.wait.max.msec: No such configuration property"),
                          StartsWith("F:4: kafka.librdkafka.security.protocol: Invalid value \"tls\"")));
}

TEST_F(ConfigFile, ATopicsTableMustBeInTheFile) {
  const std::string topic = kTopic;
  EXPECT_THAT(errors(kKafka + topic),
              ElementsAre("F:4: topics[0].table: table \"telemetry\" is not in this file; there are no tables"));
  EXPECT_THAT(
      errors(std::string(kKafka) + kTable + kTopic, {"topics[0].table=telemetri"}),
      ElementsAre("--set: topics[0].table: table \"telemetri\" is not in this file, did you mean \"telemetry\"?; "
                  "there is telemetry"));
}

TEST_F(ConfigFile, ATemplateThatDoesNotFitItsTableIsAnErrorAtItsLine) {
  const std::string all = std::string(kTable) + kKafka + kTopic;
  EXPECT_THAT(errors(all, {"tables[0].time_sort_key.prefix=X#"}),
              ElementsAre(StartsWith("F:14: topics[0].sort_key: its text before {recordedAt} is \"TS#\"")));
  EXPECT_THAT(errors(all, {"topics[0].partition_key=VEH#{vin}"}),
              ElementsAre(StartsWith("--set: topics[0].partition_key: found \"VEH#{vin}\", accepted: ")));
}

TEST_F(ConfigFile, TopicsNeedBrokers) {
  EXPECT_THAT(errors(std::string(kTable) + kTopic), ElementsAre(HasSubstr("topics: there are topics but no brokers")));
}

TEST_F(ConfigFile, TwoTablesOrTopicsOfOneNameAreAnError) {
  EXPECT_THAT(errors("tables:\n"
                     "  - {name: ttt, keys: {partition_key: {name: a}}}\n"
                     "  - {name: ttt, keys: {partition_key: {name: b}}}\n"),
              ElementsAre("F:3: tables[1]: there is a table \"ttt\" above: name it otherwise"));
  const std::string second =
      "  - {name: fleet, table: telemetry, vehicle_id: v, time: t, partition_key: \"V#{vehicleId}\", "
      "sort_key: \"TS#{recordedAt}\"}\n";
  EXPECT_THAT(errors(std::string(kKafka) + kTable + kTopic + second),
              ElementsAre("F:15: topics[1]: topic \"fleet\" has a mapping above: one is all it can have"));
}

TEST_F(ConfigFile, InheritAndTimesNeedASortKey) {
  EXPECT_THAT(errors("tables:\n  - {name: ttt, keys: {partition_key: {name: a}}, inherit: [b]}\n"),
              ElementsAre(HasSubstr("F:2: tables[0].inherit: needs a sort key")));
  EXPECT_THAT(errors("tables:\n"
                     "  - name: ttt\n"
                     "    keys: {partition_key: {name: a}, sort_key: {name: b, type: N}}\n"
                     "    time_sort_key: {prefix: x}\n"),
              ElementsAre("F:4: tables[0].time_sort_key: needs a sort key of type S: times are kept as text"));
}

TEST_F(ConfigFile, OnSameKeyIsReplaceOrMerge) {
  const std::string topic =
      std::string(kKafka) +
      "tables: [{name: ttt, keys: {partition_key: {name: a}, sort_key: {name: b}}}]\n"
      "topics:\n"
      "  - {name: n, table: ttt, vehicle_id: v, partition_key: \"{vehicleId}\", sort_key: S, on_same_key: ";
  EXPECT_THAT(errors(topic + "unite}\n"),
              ElementsAre("F:4: topics[0].on_same_key: found \"unite\", accepted: replace or merge"));
  EXPECT_THAT(errors(topic + "replace}\n"), IsEmpty());
}

TEST_F(ConfigFile, RetainNeedsATimeSortKeyAndTtlAName) {
  EXPECT_THAT(errors("tables:\n"
                     "  - name: ttt\n"
                     "    keys: {partition_key: {name: a}, sort_key: {name: b}}\n"
                     "    retain: 30d\n"
                     "    ttl: \"\"\n"),
              ElementsAre(StartsWith("F:5: tables[0].ttl: needs the name of an attribute"),
                          StartsWith("F:4: tables[0].retain: needs a time_sort_key")));
  EXPECT_THAT(errors("tables:\n"
                     "  - name: ttt\n"
                     "    keys: {partition_key: {name: a}, sort_key: {name: b}}\n"
                     "    time_sort_key: {}\n"
                     "    retain: 30\n"),
              ElementsAre("F:5: tables[0].retain: found \"30\", accepted: a time from 1s to 36500d, with its unit (ms, "
                          "s, m, h or d)"));
}

TEST_F(ConfigFile, ATopicsReadingsMayBeADayAheadUnlessItSaysOtherwise) {
  const LoadedConfig loaded = load_config(DROVER_SOURCE_DIR "/deploy/drover.yaml", {});
  ASSERT_EQ(loaded.config.topics.size(), 1u);
  EXPECT_EQ(loaded.config.topics[0].ahead_ms_max, 24 * 3600 * 1000);
}

TEST_F(ConfigFile, WhatDynamoDbRefusesOfATableIsRefusedHere) {
  EXPECT_THAT(errors("tables:\n  - {name: \"a b\", keys: {partition_key: {name: a}}}\n"),
              ElementsAre(StartsWith("F:2: tables[0]: ")));
}

TEST_F(ConfigFile, BothAddressesCanNotBeOne) {
  EXPECT_THAT(errors("admin:\n  port: 8000\n"), ElementsAre("F:2: admin: api and admin can't share port 8000"));
  EXPECT_THAT(errors("api: {port: 0}\nadmin: {port: 0}\n"), IsEmpty());
}

using ConfigSet = ConfigTest;

TEST_F(ConfigSet, ReplacesWhatStandsInTheFileAndAddsWhatDoesNot) {
  const LoadedConfig loaded =
      load(std::string(kKafka) + kTable + kTopic,
           {"kafka.brokers=other:1", "api.port=1234", "tables[0].time_sort_key.precision=micros",
            "topics[0].attributes=[a, b]", "kafka.librdkafka.security.protocol=SSL", "store={workers: 2}"});
  for (const ConfigProblem& problem : loaded.errors) ADD_FAILURE() << problem.text();
  EXPECT_EQ(loaded.config.kafka.brokers, "other:1");
  EXPECT_EQ(loaded.config.api.port, 1234);
  EXPECT_EQ(loaded.config.tables.at(0).time_sort_key->precision, model::TimePrecision::kMicros);
  EXPECT_EQ(loaded.config.topics.at(0).attributes.size(), 2u);
  EXPECT_EQ(loaded.config.kafka.librdkafka.at("security.protocol"), "SSL");
  EXPECT_EQ(loaded.config.store.workers, 2u);
}

TEST_F(ConfigSet, BuildsAWholeConfigOnAnEmptyFile) {
  const LoadedConfig loaded = load("", {"tables[0].name=ttt", "tables[0].keys.partition_key.name=id",
                                        "tables[1].name=uuu", "tables[1].keys={partition_key: {name: id, type: N}}"});
  for (const ConfigProblem& problem : loaded.errors) ADD_FAILURE() << problem.text();
  ASSERT_EQ(loaded.config.tables.size(), 2u);
  EXPECT_EQ(loaded.config.tables[1].key.partition_key.type, model::KeyType::kNumber);
}

TEST_F(ConfigSet, TheLastOfTwoWins) {
  EXPECT_EQ(load("", {"api.port=1", "api.port=2"}).config.api.port, 2);
}

TEST_F(ConfigSet, AProblemInAnOverrideSaysSo) {
  EXPECT_THAT(errors("api: {port: 1}\n", {"api.port=many"}),
              ElementsAre("--set: api.port: found \"many\", accepted: a whole number from 0 to 65535"));
  EXPECT_THAT(errors("", {"api.prot=1"}),
              ElementsAre(HasSubstr("--set: api.prot: there is no such setting, did you mean \"port\"?")));
}

TEST_F(ConfigSet, WhatCanNotBeAppliedIsAnError) {
  EXPECT_THAT(errors("", {"api.port"}),
              ElementsAre(HasSubstr("--set: api.port: an override is written SETTING=VALUE")));
  EXPECT_THAT(errors("", {"tables[3].name=x"}),
              ElementsAre(HasSubstr("--set: tables[3].name=x: there is no such place")));
  EXPECT_THAT(errors("api: {port: 1}", {"api.port.x=1"}),
              ElementsAre(HasSubstr("--set: api.port.x=1: there is no such place")));
  EXPECT_THAT(errors("", {"api.port=[1"}), ElementsAre(HasSubstr("the value is not YAML")));
  for (const char* override_text :
       {"=1", ".a=1", "a..b=1", "a[x]=1", "a[1=1", "a[0]b=1", "a.=1", "a[99999999999999999999]=1"}) {
    EXPECT_THAT(errors("", {override_text}), ElementsAre(HasSubstr("a setting is written as in kafka.brokers")))
        << override_text;
  }
}

using ConfigSecret = ConfigTest;

TEST_F(ConfigSecret, ComesFromTheEnvironmentOrAFileWithoutItsLastLineBreak) {
  setenv("DROVER_TEST_SECRET", "from-env", 1);
  const std::string path = write("secret", "from-file\n");
  const LoadedConfig loaded =
      load("kafka: {brokers: {env: DROVER_TEST_SECRET}, librdkafka: {sasl.password: {file: " + path + "}}}\n");
  unsetenv("DROVER_TEST_SECRET");
  EXPECT_THAT(loaded.errors, IsEmpty());
  EXPECT_EQ(loaded.config.kafka.brokers, "from-env");
  EXPECT_EQ(loaded.config.kafka.librdkafka.at("sasl.password"), "from-file");
}

TEST_F(ConfigSecret, OneThatIsNotThereIsAnError) {
  EXPECT_THAT(errors("kafka:\n  group: {env: DROVER_NO_SUCH}\n"),
              ElementsAre("F:2: kafka.group: the environment has no variable DROVER_NO_SUCH"));
  EXPECT_THAT(errors("kafka:\n  group: {file: /no/such}\n"),
              ElementsAre("F:2: kafka.group: the file /no/such can't be read"));
}

TEST_F(ConfigSecret, ItsValueIsNeverPrinted) {
  setenv("DROVER_TEST_SECRET", "hunter2", 1);
  const std::vector<std::string> found = errors("api: {port: {env: DROVER_TEST_SECRET}}\n");
  unsetenv("DROVER_TEST_SECRET");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0], testing::Not(HasSubstr("hunter2")));
}

using ConfigAdvice = ConfigTest;

TEST_F(ConfigAdvice, AGoodDesignGetsNone) {
  EXPECT_THAT(warnings(std::string(kKafka) + kTable + kTopic), IsEmpty());
}

TEST_F(ConfigAdvice, AnEndlessStreamInATableWithALocalIndexIsWarnedOf) {
  const std::string index =
      "    indexes: [{name: by_speed, local: true, partition_key: {name: vehicleId}, sort_key: {name: speedKph, type: "
      "N}}]\n";
  EXPECT_THAT(warnings(std::string(kKafka) + kTable + index + kTopic),
              ElementsAre(HasSubstr("local index \"by_speed\" caps every collection at 10 GB")));
}

TEST_F(ConfigAdvice, AnIndexOnAnInheritedAttributeIsWarnedOfAsFewValuesShareIt) {
  const std::string index =
      "    inherit: [depotCode]\n"
      "    indexes: [{name: depot, partition_key: {name: depotCode}, sort_key: {name: recordedAt}}]\n";
  const std::string meta = "    meta: {when: {path: kind}, attributes: [plate, depotCode]}\n";
  EXPECT_THAT(
      warnings(std::string(kKafka) + kTable + index + kTopic + meta),
      ElementsAre(HasSubstr("F:3: tables[0]: index \"depot\" gathers the readings of many vehicles by depotCode")));
}

TEST_F(ConfigAdvice, InheritingWhatNoMetaWritesIsWarnedOf) {
  EXPECT_THAT(warnings(std::string(kKafka) + kTable + "    inherit: [depotCode]\n" + kTopic),
              ElementsAre(HasSubstr("inherits depotCode from the item \"META\", which this topic doesn't write")));
}

TEST_F(ConfigAdvice, AnIndexThatStaysEmptyIsWarnedOf) {
  const std::string index = "    indexes: [{name: driver, partition_key: {name: driverId}}]\n";
  EXPECT_THAT(warnings(std::string(kKafka) + kTable + index + kTopic, {"topics[0].attributes=[speedKph]"}),
              ElementsAre(HasSubstr(
                  "index \"driver\" takes items with the attribute driverId, which this topic's readings don't have")));
  EXPECT_THAT(warnings(std::string(kKafka) + kTable + index + kTopic, {"topics[0].attributes=[driverId]"}), IsEmpty());
}

TEST_F(ConfigAdvice, WarnsOfInheritingAcrossBucketsAndRefusesOtherParts) {
  const std::string all = std::string(kKafka) + kTable + "    inherit: [depotCode]\n" + kTopic;
  EXPECT_THAT(warnings(all, {"topics[0].partition_key=VEH#{vehicleId}#{recordedAt:%Y-%m}"}),
              ElementsAre(HasSubstr("which the bucket in partition_key keeps out")));
  EXPECT_THAT(errors(all, {"topics[0].partition_key=VEH#{vehicleId}#{recordedAt:%Y-%j}"}),
              ElementsAre(HasSubstr("%j is not known in a bucket: %Y, %m, %d and %H are")));
}

TEST_F(ConfigAdvice, AnAddressThatOthersReachIsWarnedOf) {
  EXPECT_THAT(warnings("api: {host: 0.0.0.0}\n"),
              ElementsAre(HasSubstr("F:1: api: api listens on 0.0.0.0, and there is no authentication yet")));
  EXPECT_THAT(warnings("api: {host: 127.0.0.2}\nadmin: {host: localhost}\n"), IsEmpty());
}

TEST_F(ConfigTest, ALocalIndexMayHaveALimitOfItsOwn) {
  const std::string index =
      "    indexes:\n      - {name: iii, partition_key: {name: vehicleId}, sort_key: {name: b}, local: true}\n";
  const std::string limit = "    item_collection_limit: 64KiB\n";
  const LoadedConfig loaded = load(kTable + index + limit + "store: {item_collection_limit: 1GiB}\n");
  EXPECT_THAT(loaded.errors, IsEmpty());
  EXPECT_EQ(loaded.config.store.item_collection_limits.at("telemetry"), 64u << 10);
  EXPECT_EQ(loaded.config.store.item_collection_limit_bytes, 1u << 30);
  EXPECT_THAT(errors(kTable + limit),
              ElementsAre(HasSubstr("tables[0].item_collection_limit: goes with a local index: without one")));
}

}  // namespace
}  // namespace drover::server
