#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "drover/server/config.h"
#include "drover/store/item.h"
#include "drover/store/store.h"
#include "dynamodb/json_writer.h"
#include "table.h"

namespace drover::cli {
namespace {

constexpr int kExitDamaged = 1;
constexpr std::size_t kOutputBufferBytes = std::size_t{1} << 20;

struct StoreCommandOptions {
  std::string directory;
  std::string table;  ///< Of export; empty: the only one.
  std::string to;     ///< Of backup.
};

int fail(const model::Status& status) {
  std::cerr << "drover store: " << status.message() << '\n';
  return status.code() == model::StatusCode::kInvalid ? kExitDamaged : server::kExitUnavailable;
}

/// Opens a store that is there already: a misspelt directory must not become a new one.
model::Result<std::unique_ptr<store::Store>> open(const std::string& directory) {
  if (!std::filesystem::exists(directory + "/CURRENT")) {
    return model::Status{model::StatusCode::kUnavailable, directory + " holds no store: give store.directory's path"};
  }
  return store::Store::open(directory, {}, [](std::string_view doing, std::uint64_t rows) {
    std::cerr << doing << ": " << rows / 1'000'000 << " million rows\n";
  });
}

int tell_of_damage(const store::Recovery& recovery) {
  for (const std::string& damage : recovery.damaged) std::cout << "damaged: " << damage << '\n';
  return recovery.damaged.empty() ? 0 : kExitDamaged;
}

int info(const StoreCommandOptions& options) {
  auto opened = open(options.directory);
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
  auto opened = open(options.directory);
  if (!opened.ok()) return fail(opened.status());
  const store::Recovery& recovery = (*opened)->recovery();
  std::uint64_t items = 0;
  for (const std::string& name : (*opened)->table_names()) {
    const auto table = (*opened)->find_table(name);
    std::vector<std::string> spaces{""};
    for (const model::IndexSchema& index : table->schema().indexes) {
      if (!index.local) spaces.push_back(index.name);
    }
    for (const std::string& space : spaces) {
      const model::Status status =
          table->scan(space, 0, model::kSegments, std::nullopt, [&items](const store::StoredItem&) { return ++items; });
      if (!status.ok())
        return fail({model::StatusCode::kInvalid, fmt::format("{} {}: {}", name, space, status.message())});
    }
  }
  const int exit_code = tell_of_damage(recovery);
  std::cout << items << " items read, checksums and all: " << (exit_code == 0 ? "good" : "damaged") << '\n';
  return exit_code;
}

int compact(const StoreCommandOptions& options) {
  const auto opened = open(options.directory);
  if (!opened.ok()) return fail(opened.status());
  const model::Status status = (*opened)->compact();
  return status.ok() ? tell_of_damage((*opened)->recovery()) : fail(status);
}

int back_up(const StoreCommandOptions& options) {
  const auto opened = open(options.directory);
  if (!opened.ok()) return fail(opened.status());
  const model::Status status = (*opened)->back_up(options.to);
  return status.ok() ? tell_of_damage((*opened)->recovery()) : fail(status);
}

int export_items(const StoreCommandOptions& options) {
  auto opened = open(options.directory);
  if (!opened.ok()) return fail(opened.status());
  store::Store& store = **opened;
  const std::vector<std::string> names = store.table_names();
  const std::string name = options.table.empty() && names.size() == 1 ? names.front() : options.table;
  const auto table = store.find_table(name);
  if (table == nullptr) {
    std::string known;
    for (const std::string& each : names) known.append(" ").append(each);
    return fail({model::StatusCode::kUnavailable, "choose a table with --table:" + known});
  }
  store::ItemReader reader(table->schema(), nullptr, store.names());
  std::string out;
  const model::Status status = table->scan("", 0, model::kSegments, std::nullopt, [&](const store::StoredItem& item) {
    out += "{\"Item\":{";
    bool first = true;
    reader.for_each(item, [&](std::string_view attribute, model::ValueView value) {
      if (!std::exchange(first, false)) out += ',';
      server::append_json_string(out, attribute);
      out += ':';
      server::append_json_value(out, value, store.names());
    });
    out += "}}\n";
    if (out.size() >= kOutputBufferBytes) {
      std::fwrite(out.data(), 1, out.size(), stdout);
      out.clear();
    }
    return true;
  });
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (!status.ok()) return fail({model::StatusCode::kInvalid, status.message()});
  return std::fflush(stdout) == 0 ? 0 : fail({model::StatusCode::kUnavailable, "standard output can't be written"});
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
  add("backup", "Makes a copy, by hard links on the same file system", &back_up)
      ->add_option("to", options->to, "A new directory; restoring is using it, or a copy, as store.directory")
      ->required()
      ->type_name("NEW_DIR");
  CLI::App* exporting =
      add("export", "Prints a table's items, one a line, as DynamoDB's exports to S3 do", &export_items);
  exporting->add_option("-t,--table", options->table, "The table; not needed if there is only one")->type_name("NAME");
  store_command->footer(
      "Drover must not run meanwhile: one process has a directory open at a time.\n"
      "\n"
      "Examples:\n"
      "  drover store info /var/lib/drover\n"
      "  drover store verify /var/lib/drover\n"
      "  drover store export /var/lib/drover --table telemetry | gzip > telemetry.json.gz");
}

}  // namespace drover::cli
