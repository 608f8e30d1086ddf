#include "disk.h"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <cstdarg>
#include <filesystem>
#include <utility>
#include <vector>

#include "drover/model/sync.h"

namespace drover::store {
namespace {

constexpr std::array<const char*, kFamilies> kFamilyNames{"meta", "blocks", "tails", "log"};
constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kRoomToOpenBytes = 64 * kMiB;

rocksdb::Slice slice(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}
std::string_view view(const rocksdb::Slice& bytes) {
  return {bytes.data(), bytes.size()};
}

model::Status to_status(const rocksdb::Status& status) {
  if (status.ok()) return {};
  const model::StatusCode code = status.IsCorruption() ? model::StatusCode::kInvalid
                                 : status.IsNotFound() ? model::StatusCode::kNotFound
                                                       : model::StatusCode::kUnavailable;
  return {code, status.ToString()};
}

/// RocksDB's own log file would be one more that can't be written on a full device, where Debian's build asserts that
/// it can.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::DBOptions database_options(rocksdb::Env* env) {
  rocksdb::DBOptions options;
  if (env != nullptr) options.env = env;
  options.info_log = std::make_shared<NoLog>();
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.max_background_jobs = 2;
  options.max_total_wal_size = 256 * kMiB;
  options.bytes_per_sync = 1 * kMiB;  // no burst of writes when a file is closed
  options.wal_bytes_per_sync = 1 * kMiB;
  // A write that was not finished when the process died is left out; damage in front of the end is an error.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  return options;
}

model::Status not_open() {
  return {model::StatusCode::kUnavailable, "the database could not be opened anew after an error"};
}

rocksdb::ColumnFamilyOptions family_options(Family family) {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = nullptr;
  table.no_block_cache = true;  // cold blocks lie in blob files, which the system caches
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kNoCompression;  // the columns are dense
  options.write_buffer_size = 32 * kMiB;
  if (family == Family::kBlocks) {
    options.enable_blob_files = true;  // a block is written once and never moved by a compaction
    options.min_blob_size = 256;
    options.blob_file_size = 256 * kMiB;
    options.enable_blob_garbage_collection = true;
  }
  return options;
}

}  // namespace

struct Disk::Database {
  std::unique_ptr<rocksdb::DB> db;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilies> families{};

  ~Database() {
    for (rocksdb::ColumnFamilyHandle* family : families) {
      if (family != nullptr) db->DestroyColumnFamilyHandle(family);
    }
  }
  rocksdb::ColumnFamilyHandle* of(Family family) const { return families[static_cast<std::size_t>(family)]; }

  enum class For : std::uint8_t { kAll, kReading };
  static rocksdb::Status open(const std::string& directory, rocksdb::Env* env, For use,
                              std::unique_ptr<Database>& out) {
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors{{rocksdb::kDefaultColumnFamilyName, {}}};
    for (std::size_t i = 0; i < kFamilies; ++i) {
      descriptors.emplace_back(kFamilyNames[i], family_options(static_cast<Family>(i)));
    }
    rocksdb::DB* opened = nullptr;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    const rocksdb::DBOptions options = database_options(env);
    rocksdb::Status status = use == For::kAll
                                 ? rocksdb::DB::Open(options, directory, descriptors, &handles, &opened)
                                 : rocksdb::DB::OpenForReadOnly(options, directory, descriptors, &handles, &opened);
    if (!status.ok()) return status;
    out = std::make_unique<Database>();
    out->db.reset(opened);
    opened->DestroyColumnFamilyHandle(handles[0]);
    std::copy(handles.begin() + 1, handles.end(), out->families.begin());
    return status;
  }
};

Disk::Disk(std::string directory, rocksdb::Env* env, std::unique_ptr<Database> database)
    : directory_(std::move(directory)), env_(env), database_(std::move(database)) {}
Disk::~Disk() = default;

model::Result<std::unique_ptr<Disk>> Disk::open(const std::string& directory, rocksdb::Env* env) {
  const auto unavailable = [&](const std::string& why) {
    return model::Status{model::StatusCode::kUnavailable, "store.directory " + directory + ": " + why};
  };
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return unavailable(error.message() + "; create it, or let this user write there");
  std::unique_ptr<Database> database;
  if (const rocksdb::Status status = Database::open(directory, env, Database::For::kAll, database); !status.ok()) {
    const bool locked = status.ToString().find("lock") != std::string::npos;
    return unavailable(locked ? "another Drover has it open: stop it, or give this one a directory of its own (" +
                                    status.ToString() + ")"
                              : status.ToString());
  }
  return std::unique_ptr<Disk>(new Disk(directory, env, std::move(database)));
}

model::Status Disk::write(const DiskBatch& batch) {
  // One at a time, as RocksDB would have it too; there ThreadSanitizer can't see it.
  const model::LockGuard lock(write_mutex_);
  if (!write_failed_) {
    model::Status status = write_once(batch);
    if (status.ok()) return status;
    write_failed_ = true;
    if (room().free_bytes < kRoomToOpenBytes) return status;
  }
  // RocksDB takes nothing more after most errors, also when what was wrong is mended, and aborts where it is asked to
  // write on in a log that failed. On a full device it can't be opened anew.
  if (room().free_bytes < kRoomToOpenBytes) return {model::StatusCode::kUnavailable, "less than 64 MiB are free"};
  model::Status status = open_again();
  if (!status.ok()) return {model::StatusCode::kUnavailable, status.message()};
  status = write_once(batch);
  write_failed_ = !status.ok();
  return status;
}

/// Holds the database as it is; tries to have one.
std::shared_lock<std::shared_mutex> Disk::lock_database() const {
  std::shared_lock lock(mutex_);
  if (database_ != nullptr) return lock;
  lock.unlock();
  (void)open_again();
  lock.lock();
  return lock;
}

model::Status Disk::write_once(const DiskBatch& batch) {
  const std::shared_lock lock = lock_database();
  if (database_ == nullptr) return not_open();
  rocksdb::WriteBatch operations(batch.bytes_.size() + 32 * batch.operations_.size());
  std::string_view rest = batch.bytes_;
  const auto take = [&rest](std::size_t size) {
    const rocksdb::Slice taken(rest.data(), size);
    rest.remove_prefix(size);
    return taken;
  };
  rocksdb::Status status;
  for (const DiskBatch::Operation& operation : batch.operations_) {
    rocksdb::ColumnFamilyHandle* const family = database_->of(operation.family);
    const rocksdb::Slice key = take(operation.key_size);
    const rocksdb::Slice value = take(operation.value_size);
    if (operation.kind == DiskBatch::Kind::kPut) {
      status = operations.Put(family, key, value);
    } else if (operation.kind == DiskBatch::Kind::kRemove) {
      status = operations.Delete(family, key);
    } else {
      status = operations.DeleteRange(family, key, value);
    }
    if (!status.ok()) return to_status(status);
  }
  rocksdb::WriteOptions options;
  options.sync = true;
  return to_status(database_->db->Write(options, &operations));
}

model::Status Disk::open_again() const {
  const std::unique_lock lock(mutex_);
  database_.reset();  // which holds the directory
  const rocksdb::Status status = Database::open(directory_, env_, Database::For::kAll, database_);
  // Where nothing can be written reads go on, and the next write comes here again.
  if (!status.ok()) (void)Database::open(directory_, env_, Database::For::kReading, database_);
  return to_status(status);
}

model::Status Disk::visit(Family family, std::string_view begin, std::string_view end, const Use& use) const {
  const std::shared_lock lock = lock_database();
  if (database_ == nullptr) return not_open();
  rocksdb::ReadOptions options;
  const rocksdb::Slice bound = slice(end);
  if (!end.empty()) options.iterate_upper_bound = &bound;
  options.readahead_size = 2 * kMiB;
  const std::unique_ptr<rocksdb::Iterator> it(database_->db->NewIterator(options, database_->of(family)));
  for (it->Seek(slice(begin)); it->Valid(); it->Next()) {
    if (!use(view(it->key()), view(it->value()))) return {};
  }
  return to_status(it->status());
}

model::Status Disk::visit_backwards(Family family, std::string_view begin, std::string_view end, const Use& use) const {
  const std::shared_lock lock = lock_database();
  if (database_ == nullptr) return not_open();
  rocksdb::ReadOptions options;
  const rocksdb::Slice lower = slice(begin);
  const rocksdb::Slice upper = slice(end);
  options.iterate_lower_bound = &lower;
  options.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> it(database_->db->NewIterator(options, database_->of(family)));
  for (it->SeekToLast(); it->Valid(); it->Prev()) {
    if (!use(view(it->key()), view(it->value()))) return {};
  }
  return to_status(it->status());
}

model::Status Disk::read(Family family, std::string_view key, model::Bytes& value) const {
  const std::shared_lock lock = lock_database();
  if (database_ == nullptr) return not_open();
  return to_status(database_->db->Get({}, database_->of(family), slice(key), &value));
}

model::Status Disk::compact() {
  const std::shared_lock lock = lock_database();
  if (database_ == nullptr) return not_open();
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  options.blob_garbage_collection_policy = rocksdb::BlobGarbageCollectionPolicy::kForce;
  options.blob_garbage_collection_age_cutoff = 1;
  for (rocksdb::ColumnFamilyHandle* family : database_->families) {
    rocksdb::Status status = database_->db->Flush({}, family);
    if (status.ok()) status = database_->db->CompactRange(options, family, nullptr, nullptr);
    if (!status.ok()) return to_status(status);
  }
  return {};
}

model::Status Disk::copy_to(const std::string& directory) {
  const std::shared_lock lock = lock_database();
  if (database_ == nullptr) return not_open();
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(database_->db.get(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) status = checkpoint->CreateCheckpoint(directory);
  return to_status(status);
}

Disk::Room Disk::room() const {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory_, error);
  return error ? Room{} : Room{space.available, space.capacity};
}

}  // namespace drover::store
