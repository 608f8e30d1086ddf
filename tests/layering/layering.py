"""Who may include whom, and what a header may hold: the rules of the folders, checked over the sources' text."""

import pathlib
import re

# What a folder's own code may include of ours. None: any public header.
MAY_INCLUDE = {
    "model": set(),
    "ingest": {"model"},
    "partitioner": {"model"},
    "store": {"model", "partitioner"},
    "metrics": {"model", "ingest", "partitioner", "store"},
    "server": {"model", "ingest", "partitioner", "store", "metrics"},
}
# Of the stages, metrics sees what states their statistics, and no way to act on them.
METRICS_SEES = {"drover/ingest/stats.h", "drover/partitioner/stats.h", "drover/store/stats.h"}

# Third-party headers, by the beginning of their name, that a folder's src/ may include.
THIRD_PARTY = {
    "model": ("xxhash",),
    "ingest": ("librdkafka/", "simdjson", "google/protobuf/", "oneapi/tbb", "tbb/", "lz4frame", "zstd", "snappy", "zlib"),
    "partitioner": (),
    "store": ("oneapi/tbb", "tbb/", "rocksdb/", "urcu", "ck_", "zstd"),
    "metrics": ("prometheus/",),
    "server": ("boost/", "yaml-cpp/", "CLI/", "spdlog/", "fmt/", "openssl/", "prometheus/", "zlib", "simdjson"),
}
# The operating system's own headers are nobody's dependency.
SYSTEM = re.compile(r"(sys|netinet|arpa|linux)/\w+\.h|(pthread|unistd|fcntl|signal|sched|errno|time|poll|dirent|malloc"
                    r"|netdb|immintrin|x86intrin|emmintrin|arm_neon)\.h")
STANDARD = re.compile(r"[a-z_]+")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
LINKED = re.compile(r"\bdrover(?:::|_)(\w+)")


def problems(root):
    """All violations below `root`, each as 'file: what is wrong'."""
    root = pathlib.Path(root)
    found = []
    for folder in MAY_INCLUDE:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".h", ".cc"):
                found += [f"{file.relative_to(root)}: {what}" for what in file_problems(root, folder, file)]
        found += [f"{folder}/CMakeLists.txt: {what}" for what in link_problems(root, folder)]
    for top in ("tests", "loadtest"):
        for file in sorted((root / top).rglob("*.h")):
            if not begins_with_pragma_once(file.read_text(encoding="utf-8")):
                found.append(f"{file.relative_to(root)}: a header begins with #pragma once")
    return found


def file_problems(root, folder, file):
    text = file.read_text(encoding="utf-8")
    is_public = (root / folder / "include") in file.parents
    if file.suffix == ".h" and not begins_with_pragma_once(text):
        yield "a header begins with #pragma once"
    for bracket, name in INCLUDE.findall(text):
        if ".." in name.split("/"):
            yield f"includes {name}: no way up"
        elif bracket == '"':
            yield from our_include_problems(root, folder, file, name, is_public)
        elif not STANDARD.fullmatch(name):
            if is_public:
                yield f"includes <{name}>: a public header includes only ours and the standard library's"
            elif not SYSTEM.fullmatch(name) and not name.startswith(THIRD_PARTY[folder]):
                yield f"includes <{name}>: not among {folder}'s third parties"


def our_include_problems(root, folder, file, name, is_public):
    parts = name.split("/")
    if parts[0] == "drover":
        owner = parts[1]
        if owner != folder and owner not in MAY_INCLUDE[folder]:
            yield f"includes {name}: {folder} may not see {owner}"
        elif folder == "metrics" and owner in ("ingest", "partitioner", "store") and name not in METRICS_SEES:
            yield f"includes {name}: metrics sees statistics only"
        elif not (root / owner / "include" / name).exists():
            yield f"includes {name}: {owner} promises no such header"
    elif is_public:
        yield f"includes {name}: a public header includes no private one"
    elif not (root / folder / "src" / name).exists() and not (file.parent / name).exists():
        yield f"includes {name}: not a header of {folder}"


def link_problems(root, folder):
    """What the CMake file links says the same as what the sources include."""
    file = root / folder / "CMakeLists.txt"
    if not file.exists():
        return
    for owner in LINKED.findall(file.read_text(encoding="utf-8")):
        if owner in ("tests", "loadtest", "deploy") or (owner in MAY_INCLUDE and owner != folder
                                                        and owner not in MAY_INCLUDE[folder]):
            yield f"links drover::{owner}: {folder} may not see it"


def begins_with_pragma_once(text):
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("//"):
            return line == "#pragma once"
    return False
