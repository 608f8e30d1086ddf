#pragma once

#include <iostream>
#include <memory>
#include <string>

#include "config_option.h"
#include "drover/model/status.h"
#include "drover/store/store.h"

/// What the commands of `drover store` share.
namespace drover::cli {

struct StoreCommandOptions {
  std::string directory;
  std::string table;                ///< Of export, import and rebuild; empty: the only one, or all.
  std::string to;                   ///< Of backup.
  std::string admin;                ///< Of backup: the admin address of the Drover that has the directory open.
  std::string file;                 ///< Of import; empty: standard input.
  std::string format = "dynamodb";  ///< Of export and import: or "json".
  ConfigOption config;              ///< Of import and rebuild; no file: the tables that are there.
};

/// Opens a store that is there already: a misspelt directory must not become a new one.
model::Result<std::unique_ptr<store::Store>> open_store(const std::string& directory);
/// The same, and a directory without one becomes a new one.
model::Result<std::unique_ptr<store::Store>> open_or_make_store(const std::string& directory);

/// The table that was named, or the only one there is.
model::Result<std::shared_ptr<store::Table>> choose_table(const store::Store& store, const std::string& name);

/// Prints why a command has failed; its exit code.
int fail(const model::Status& status);

/// Prints what was damaged; the exit code.
int tell_of_damage(const store::Recovery& recovery, std::ostream& out = std::cout);

/// Makes everything written part of a cut, which empties the log of API writes.
model::Status settle(store::Store& store);

int export_items(const StoreCommandOptions& options);
int import_items(const StoreCommandOptions& options);

}  // namespace drover::cli
