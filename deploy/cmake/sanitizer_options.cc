// What the sanitizers are told, in every program of a sanitizer build, so that it also holds when one is run by hand.
// A suppression names a library that Debian ships uninstrumented, never code of ours, and says why.

extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=1:strict_string_checks=1";
}

extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}

// With a short history the other stack of a race is often lost, and with it what a suppression could match.
extern "C" const char* __tsan_default_options() {
  return "halt_on_error=1:second_deadlock_stack=1:history_size=7";
}

// race_top: oneTBB hands a task to a worker through atomics inside libtbb, where ThreadSanitizer sees nothing, so the
// task object itself, written by Executor::enqueue() and read and freed by the worker, looks like a race. Only the
// innermost frame is excused, not what a task leads to: that is synchronised by the executor's own count.
//
// node, fold_tree: how parallel_for counts its parts, in memory of libtbb's too.
//
// micro_queue, concurrent_queue_rep: a concurrent queue lies in memory of libtbb's allocator, which reuses it unseen.
//
// called_from_lib: what these libraries do to their own memory (memcmp, free) is seen, what orders it is not.
//
// mtx_: librdkafka is alone in using C11's mutexes, which are in its own memory too (tests/support/c11_threads.cc).
//
// librocksdb: its threads run std::string's functions of our program, which are instrumented, on what its own locks
// guard. None of our code is called by its threads. Of what templates both instantiated the loader takes the copy of
// whichever library comes first: so RocksDB also frees what it shares in a function of libspdlog.
extern "C" const char* __tsan_default_suppressions() {
  return "race_top:store/src/executor.cc\n"
         "race_top:ingest/src/parallel_decoder.cc\n"
         "race_top:include/oneapi/tbb/\n"
         "race:tbb::detail::d1::node::node\n"
         "race:tbb::detail::d1::fold_tree\n"
         "race:tbb::detail::d2::micro_queue\n"
         "race:tbb::detail::d2::concurrent_queue_rep<*>::concurrent_queue_rep\n"
         "called_from_lib:libtbb.so\n"
         "called_from_lib:librdkafka.so\n"
         "race:^mtx_\n"
         "race:librocksdb.so\n"
         "called_from_lib:librocksdb.so\n"
         "race:libspdlog.so\n";
}
