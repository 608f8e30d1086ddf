#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client.h"
#include "commands.h"
#include "drover/server/config.h"
#include "drover/store/store.h"
#include "progress.h"
#include "store_command.h"
#include "table.h"

namespace drover::cli {
namespace {

constexpr int kExitDamaged = 1;

constexpr std::int64_t kRestTimeoutMs = 60'000;

model::Status no_store(const std::string& directory) {
  return {model::StatusCode::kUnavailable, directory + " holds no store: give store.directory's path"};
}

model::Result<std::unique_ptr<store::Store>> open_any(const std::string& directory) {
  Progress progress("reading");
  return store::Store::open(directory, {}, [&progress](std::string_view doing, std::uint64_t rows) {
    progress.set(std::string(doing), rows);
  });
}

}  // namespace

model::Result<std::unique_ptr<store::Store>> open_store(const std::string& directory) {
  if (std::filesystem::exists(directory + "/CURRENT")) return open_any(directory);
  return no_store(directory);
}

model::Result<std::unique_ptr<store::Store>> open_or_make_store(const std::string& directory) {
  return open_any(directory);
}

model::Result<std::shared_ptr<store::Table>> choose_table(const store::Store& store, const std::string& name) {
  const std::vector<std::string> names = store.table_names();
  auto table = store.find_table(name.empty() && names.size() == 1 ? names.front() : name);
  if (table != nullptr) return table;
  std::string known;
  for (const std::string& each : names) known.append(" ").append(each);
  return model::Status{model::StatusCode::kUnavailable, names.empty() ? "there is no table: give --config FILE with one"
                                                                      : "choose a table with --table:" + known};
}

model::Status settle(store::Store& store) {
  const Progress progress("writing");
  auto cut = store.cut(kRestTimeoutMs);
  return cut.ok() ? (*cut)->write({}) : cut.status();
}

int fail(const model::Status& status) {
  std::cerr << "drover store: " << status.message() << '\n';
  return status.code() == model::StatusCode::kInvalid ? kExitDamaged : server::kExitUnavailable;
}

int tell_of_damage(const store::Recovery& recovery, std::ostream& out) {
  for (const std::string& damage : recovery.damaged) out << "damaged: " << damage << '\n';
  return recovery.damaged.empty() ? 0 : kExitDamaged;
}

namespace {

int info(const StoreCommandOptions& options) {
  auto opened = open_store(options.directory);
  if (!opened.ok()) return fail(opened.status());
  const store::Recovery& recovery = (*opened)->recovery();
  std::cout << "cut " << recovery.cut << ", " << recovery.writes << " API writes behind it, read in "
            << recovery.took_ms << " ms\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const store::SpaceStats& space : (*opened)->stats().spaces) {
    std::uint64_t collections = 0;
    std::uint64_t items = 0;
    std::uint64_t bytes = 0;
    for (const store::ShardStats& shard : space.shards) {
      collections += shard.collections;
      items += shard.items;
      bytes += shard.bytes;
    }
    rows.push_back({space.table, space.index, std::to_string(collections), std::to_string(items), std::to_string(bytes),
                    std::to_string(space.largest_collection_items), space.largest_collection_key});
  }
  std::cout << format_table({"table", "index", "collections", "items", "bytes of rows", "largest, items", "its key"},
                            rows, 0)
            << '\n';
  rows.clear();
  for (const model::SourcePosition& position : recovery.positions) {
    rows.push_back({position.topic, std::to_string(position.partition), std::to_string(position.next_offset)});
  }
  std::cout << format_table({"topic", "partition", "read up to"}, rows, 0);
  return tell_of_damage(recovery);
}

int verify(const StoreCommandOptions& options) {
  auto opened = open_store(options.directory);
  if (!opened.ok()) return fail(opened.status());
  const store::Recovery& recovery = (*opened)->recovery();
  std::uint64_t items = 0;
  Progress progress("verifying");
  for (const std::string& name : (*opened)->table_names()) {
    const auto table = (*opened)->find_table(name);
    std::vector<std::string> spaces{""};
    for (const model::IndexSchema& index : table->schema().indexes) {
      if (!index.local && !table->is_filling(index.name)) spaces.push_back(index.name);
    }
    for (const std::string& space : spaces) {
      const model::Status status = table->scan(space, 0, model::kSegments, std::nullopt, [&](const store::StoredItem&) {
        progress.add(1);
        return ++items != 0;
      });
      if (!status.ok())
        return fail({model::StatusCode::kInvalid, fmt::format("{} {}: {}", name, space, status.message())});
    }
  }
  const int exit_code = tell_of_damage(recovery);
  std::cout << items << " items read, checksums and all: " << (exit_code == 0 ? "good" : "damaged") << '\n';
  return exit_code;
}

int compact(const StoreCommandOptions& options) {
  const auto opened = open_store(options.directory);
  if (!opened.ok()) return fail(opened.status());
  const Progress progress("compacting");
  const model::Status status = (*opened)->compact();
  return status.ok() ? tell_of_damage((*opened)->recovery()) : fail(status);
}

/// Has the Drover that has the directory open make the copy.
int back_up_live(const StoreCommandOptions& options) {
  auto client = Client::connect(options.admin);
  if (!client.ok()) return fail(client.status());
  const Progress progress("copying");
  const auto answer = client->post("/backup", {{"to", std::filesystem::absolute(options.to).string()}});
  return answer.ok() ? 0 : fail(answer.status());
}

int back_up(const StoreCommandOptions& options) {
  if (!options.admin.empty()) return back_up_live(options);
  const auto opened = open_store(options.directory);
  if (!opened.ok()) {
    return fail(
        {opened.status().code(), opened.status().message() + "; a running Drover copies it itself: --admin URL"});
  }
  const Progress progress("copying");
  const model::Status status = (*opened)->back_up(options.to);
  return status.ok() ? tell_of_damage((*opened)->recovery()) : fail(status);
}

void wait_for_indexes(const store::Store& store) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  Progress progress("filling indexes");
  for (const std::string& name : store.table_names()) {
    const auto table = store.find_table(name);
    for (const model::IndexSchema& index : table->schema().indexes) {
      while (table->is_filling(index.name)) {
        progress.set("filling index " + index.name + " of " + name, table->size(index.name).items);
        std::this_thread::sleep_for(kPause);
      }
    }
  }
}

int rebuild(const StoreCommandOptions& options) {
  if (!std::filesystem::exists(options.directory + "/CURRENT")) return fail(no_store(options.directory));
  std::vector<model::TableSchema> schemas;
  if (!options.config.file.empty()) {
    server::LoadedConfig loaded = options.config.load();
    if (!loaded.errors.empty()) return server::kExitConfig;
    schemas = std::move(loaded.config.tables);
  }
  if (const model::Status status = store::Store::rebuild(options.directory, schemas); !status.ok()) return fail(status);
  const auto opened = open_store(options.directory);
  if (!opened.ok()) return fail(opened.status());
  wait_for_indexes(**opened);
  if (const model::Status status = settle(**opened); !status.ok()) return fail(status);
  for (const std::string& name : (*opened)->table_names()) {
    const auto table = (*opened)->find_table(name);
    for (const model::IndexSchema& index : table->schema().indexes) {
      if (index.local) continue;
      std::cout << name << ", index " << index.name << ": " << table->size(index.name).items << " of "
                << table->size("").items << " items\n";
    }
  }
  return tell_of_damage((*opened)->recovery());
}

}  // namespace

void add_store(CLI::App& app, Command& command) {
  CLI::App* store_command = app.add_subcommand("store", "Looks at the directory of a stopped Drover");
  store_command->require_subcommand(1);
  auto options = std::make_shared<StoreCommandOptions>();  // owned by the callbacks
  const auto add = [&](const char* name, const char* text, int (*run)(const StoreCommandOptions&)) {
    CLI::App* sub = store_command->add_subcommand(name, text);
    sub->add_option("directory", options->directory, "What store.directory says")->required()->type_name("DIR");
    sub->callback([options, run, &command] { command = [options, run] { return run(*options); }; });
    return sub;
  };
  add("info", "Tables, indexes and their sizes, and how far Kafka was read", &info);
  add("verify", "Reads everything and checks it; exits 1 if something is damaged, and names it", &verify);
  add("compact", "Brings it into as few bytes as it can take", &compact);
  CLI::App* backup = add("backup", "Makes a copy, by hard links on the same file system", &back_up);
  backup->add_option("to", options->to, "A new directory; restoring is using it, or a copy, as store.directory")
      ->required()
      ->type_name("NEW_DIR");
  backup
      ->add_option(
          "-a,--admin", options->admin,
          "The admin address of a Drover that runs on DIR, on this machine: it makes the copy itself and goes on")
      ->type_name("URL");
  const auto add_table = [&](CLI::App* sub) {
    sub->add_option("-t,--table", options->table, "The table; not needed if there is only one")->type_name("NAME");
  };
  const auto add_format = [&](CLI::App* sub) {
    sub->add_option(
           "-f,--format", options->format,
           "dynamodb: {\"Item\":{\"name\":{\"S\":\"text\"}}} a line, as DynamoDB's exports to S3; json: plain "
           "{\"name\":\"text\"}, with {\"SS\":[…]}, {\"B\":\"…\"} and the like for sets and binary. dynamodb if not "
           "given")
        ->check(CLI::IsMember({"dynamodb", "json"}))
        ->type_name("FORMAT");
  };
  CLI::App* exporting = add("export", "Prints a table's items, one a line", &export_items);
  add_table(exporting);
  add_format(exporting);
  CLI::App* importing = add(
      "import", "Puts items into a table, one a line as export prints them; those there are replaced", &import_items);
  importing->add_option("file", options->file, "Standard input if not given")->type_name("FILE");
  add_table(importing);
  add_format(importing);
  options->config.add_to(*importing);
  importing->get_option("--config")
      ->required(false)
      ->description("Its tables are made where they are missing, and so is the directory");
  importing->footer(
      "Ends at the first line that is wrong and names it; the items in front of it are there then. To import the same\n"
      "again does no harm. Items stand as they are in the file: nothing is inherited from META.");
  CLI::App* rebuilding = add(
      "rebuild", "Makes all indexes anew from the tables' items, by other definitions if a config is given", &rebuild);
  options->config.add_to(*rebuilding);
  rebuilding->get_option("--config")
      ->required(false)
      ->description("Tables that are there get its indexes and inherited attributes; what is stored stays as it is");
  rebuilding->footer(
      "Killed meanwhile it leaves nothing half done: the next `drover store rebuild` or `drover serve` fills them.");
  store_command->footer(
      "Drover must not run meanwhile: one process has a directory open at a time. backup alone can ask a running one.\n"
      "\n"
      "Examples:\n"
      "  drover store info /var/lib/drover\n"
      "  drover store verify /var/lib/drover\n"
      "  drover store backup /var/lib/drover /var/lib/drover-backup --admin http://127.0.0.1:9464\n"
      "  drover store rebuild /var/lib/drover --config drover.yaml\n"
      "  drover store export /var/lib/drover --table telemetry | gzip > telemetry.json.gz\n"
      "  zcat telemetry.json.gz | drover store import /var/lib/drover-2 --config drover.yaml --table telemetry");
}

}  // namespace drover::cli
