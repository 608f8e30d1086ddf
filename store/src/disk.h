#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/bytes.h"
#include "drover/model/status.h"
#include "drover/model/sync.h"

namespace rocksdb {
class Env;
}

namespace drover::store {

/// What is kept apart on disk. What the keys and values are stands in disk_format.h.
enum class Family : std::uint8_t {
  kMeta,    ///< The format, the cut, tables, attribute names, sources.
  kBlocks,  ///< Blocks of histories, written once.
  kTails,   ///< The tails of one segment's collections, written anew with each cut that finds one of them changed.
  kLog,     ///< API writes since the cut.
};
inline constexpr std::size_t kFamilies = 4;

/// Changes that take effect together or not at all, in their order.
class DiskBatch {
 public:
  void put(Family family, std::string_view key, std::string_view value) { add({Kind::kPut, family}, key, value); }
  void remove(Family family, std::string_view key) { add({Kind::kRemove, family}, key, {}); }
  /// Keys of [begin, end).
  void remove_range(Family family, std::string_view begin, std::string_view end) {
    add({Kind::kRemoveRange, family}, begin, end);
  }
  std::size_t size_bytes() const { return bytes_.size(); }

 private:
  friend class Disk;
  enum class Kind : std::uint8_t { kPut, kRemove, kRemoveRange };
  struct Operation {
    Kind kind;
    Family family;
    std::uint32_t key_size = 0;
    std::size_t value_size = 0;  ///< Or of the end of a range.
  };
  void add(Operation operation, std::string_view key, std::string_view value) {
    operation.key_size = static_cast<std::uint32_t>(key.size());
    operation.value_size = value.size();
    operations_.push_back(operation);
    bytes_.append(key).append(value);
  }

  std::vector<Operation> operations_;
  model::Bytes bytes_;  ///< Keys and values, behind one another.
};

/// The durable tier: RocksDB in one directory, which one process has open at a time.
///
/// Threads: all members from any thread.
class Disk {
 public:
  /// Makes the directory if it is missing. kUnavailable: another process has it open, or it can't be read or written;
  /// the message says what to do. `env`: what RocksDB takes for the system, its own if null; outlives the disk.
  static model::Result<std::unique_ptr<Disk>> open(const std::string& directory, rocksdb::Env* env = nullptr);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  /// Returns when the batch is on the device. After a failure it may be there or not, but not in part; the next call
  /// tries again whatever it is that failed, if need be on a database that is opened anew.
  model::Status write(const DiskBatch& batch);

  /// Calls `use(key, value)` for the keys of [begin, end) in order until it returns false; an empty `end` is none.
  /// Damage that RocksDB's checksums find ends it with kInvalid.
  using Use = std::function<bool(std::string_view key, std::string_view value)>;
  model::Status visit(Family family, std::string_view begin, std::string_view end, const Use& use) const;
  /// The same from the end on. Requires: `begin` and `end` are not empty.
  model::Status visit_backwards(Family family, std::string_view begin, std::string_view end, const Use& use) const;

  /// Reads one value. kNotFound: there is none; kInvalid: it is damaged.
  model::Status read(Family family, std::string_view key, model::Bytes& value) const;

  /// Brings everything into as few bytes as it can take. May take long.
  model::Status compact();

  /// A consistent copy in a new directory on the same file system, by hard links where that is possible.
  model::Status copy_to(const std::string& directory);

  /// What is left on the device, in bytes, and its size.
  struct Room {
    std::uint64_t free_bytes = 0;
    std::uint64_t total_bytes = 0;
  };
  Room room() const;
  const std::string& directory() const { return directory_; }

 private:
  struct Database;
  Disk(std::string directory, rocksdb::Env* env, std::unique_ptr<Database> database);
  model::Status write_once(const DiskBatch& batch);
  model::Status open_again() const;
  std::shared_lock<std::shared_mutex> lock_database() const;

  const std::string directory_;
  rocksdb::Env* const env_;
  model::Mutex write_mutex_;
  bool write_failed_ GUARDED_BY(write_mutex_) = false;  ///< The last one: RocksDB is opened anew for the next.
  mutable std::shared_mutex mutex_;  ///< Held together while the database is used, alone while it is opened anew.
  mutable std::unique_ptr<Database> database_;  // under mutex_; null: it could not be opened anew
};

}  // namespace drover::store
