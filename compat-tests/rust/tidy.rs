//! Keeps the design's promises that the compiler does not: layers, purity, sizes, the API table,
//! licences and duplicate versions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Modules by row, the top first. A module uses only rows below its own.
const ROWS: &[(u8, &[&str])] = &[
    (1, &["main"]),
    (2, &["server", "ping", "lib"]),
    (3, &["net", "http"]),
    (4, &["handlers"]),
    (5, &["broker"]),
    (6, &["machine", "log", "store", "peer", "tier"]),
    (7, &["records", "disk", "wire"]),
    (8, &["protocol"]),
    (9, &["config", "logging", "metrics", "limits"]),
    (10, &["clock"]),
    (11, &["types"]),
];

const LINES_MAX: usize = 1_000;
const COLUMNS_MAX: usize = 100;

/// Files of `handlers` that are no API.
const NO_APIS: &[&str] = &["mod", "table", "respond", "group", "configs", "operations"];

/// What the pure machines must not name, and why.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::io",
    "std::thread",
    "std::sync::Mutex",
    "RwLock",
    "tokio",
    "async ",
    ".await;",
    ".await?",
    "SystemTime",
    "std::time::Instant",
    "crate::clock",
    "bytes::",
    "Bytes>",
    "rand::",
];

const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
    "0BSD",
    "CC0-1.0",
    "BSL-1.0",
    "MPL-2.0",
];

/// Crates that stand in the lock file twice, and who brings the older one.
const DUPLICATES: &[(&str, &str)] = &[
    ("getrandom", "metrics-util asks for an older rand than proptest (tests)"),
    ("hashbrown", "metrics-util is one version behind"),
    ("r-efi", "by getrandom, not built here"),
    ("rand", "metrics-util asks for an older one than proptest (tests)"),
    ("rand_core", "by rand"),
    ("syn", "derive macros move to 3 one by one; nothing of it is in the binary"),
    ("windows-link", "not built here"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("directory") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The part of a source file that is not tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("source");
    let cut = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    text[..cut].to_owned()
}

fn is_test(path: &Path) -> bool {
    let name = path.file_stem().expect("name").to_string_lossy().into_owned();
    name == "tests"
        || name.ends_with("_tests")
        || path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "sim")
}

fn module_of(path: &Path) -> String {
    let relative = path.strip_prefix(root().join("src")).expect("below src");
    let first = relative.components().next().expect("a name").as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

fn row(module: &str) -> Option<u8> {
    ROWS.iter().find(|(_, modules)| modules.contains(&module)).map(|(row, _)| *row)
}

fn fail_on(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn modules_use_only_rows_below_their_own() {
    let mut faults = Vec::new();
    for path in rust_files(&root().join("src")).iter().filter(|path| !is_test(path)) {
        let module = module_of(path);
        let Some(own) = row(&module) else {
            faults.push(format!("{}: module {module} has no row", path.display()));
            continue;
        };
        for (number, line) in code(path).lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for used in line.split("crate::").skip(1) {
                let names = used.strip_prefix('{').unwrap_or(used);
                let used: String =
                    names.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let Some(below) = row(&used) else { continue };
                if used != module && below <= own {
                    let at = path.display();
                    faults.push(format!("{at}:{}: {module} uses {used}", number + 1));
                }
            }
        }
    }
    fail_on(&faults);
}

#[test]
fn machines_are_pure() {
    let mut faults = Vec::new();
    for path in rust_files(&root().join("src/machine")).iter().filter(|path| !is_test(path)) {
        for (number, line) in code(path).lines().enumerate() {
            let impure = IMPURE.iter().find(|word| line.contains(**word));
            if let Some(word) = impure.filter(|_| !line.trim_start().starts_with("//")) {
                faults.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    fail_on(&faults);
}

#[test]
fn only_the_shell_spawns_tasks_and_only_the_store_names_its_paths() {
    let spawners = ["net", "http", "store", "peer", "broker"];
    let mut faults = Vec::new();
    for path in rust_files(&root().join("src")).iter().filter(|path| !is_test(path)) {
        let module = module_of(path);
        let text = code(path);
        if text.contains("tokio::spawn(") && !spawners.contains(&module.as_str()) {
            faults.push(format!("{}: spawns a task", path.display()));
        }
        let paths = ["\"/topics", "\"/state/", "\"/config/", "\"/cluster/"];
        let names_paths = paths.iter().any(|path| text.contains(path));
        if names_paths && !path.ends_with("store/paths.rs") {
            faults.push(format!("{}: names a path of the store", path.display()));
        }
        let touches = ["std::fs", "tokio::net", "std::net::Tcp"].iter().any(|p| text.contains(p));
        if module == "handlers" && touches {
            faults.push(format!("{}: touches a socket or file", path.display()));
        }
    }
    fail_on(&faults);
}

#[test]
fn files_and_lines_are_short() {
    let mut faults = Vec::new();
    for directory in ["src", "compat-tests/rust"] {
        for path in rust_files(&root().join(directory)) {
            let text = fs::read_to_string(&path).expect("source");
            let lines = text.lines().count();
            if lines > LINES_MAX {
                faults.push(format!("{}: {lines} lines", path.display()));
            }
            for (number, line) in text.lines().enumerate() {
                if line.chars().count() > COLUMNS_MAX {
                    faults.push(format!("{}:{}: too wide", path.display(), number + 1));
                }
            }
        }
    }
    let architecture = fs::read_to_string(root().join("src/ARCHITECTURE.md")).expect("page");
    if architecture.lines().count() > 250 {
        faults.push("src/ARCHITECTURE.md: more than 250 lines".to_owned());
    }
    fail_on(&faults);
}

#[test]
fn every_api_has_its_file_and_its_row_in_the_table() {
    let table = fs::read_to_string(root().join("src/handlers/table.rs")).expect("table");
    let offered: BTreeSet<String> = table
        .split("ApiKey::")
        .skip(1)
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric()).collect::<String>())
        .map(|name| snake(&name))
        .collect();
    let files: BTreeSet<String> = rust_files(&root().join("src/handlers"))
        .iter()
        .map(|path| path.file_stem().expect("name").to_string_lossy().into_owned())
        .filter(|name| !NO_APIS.contains(&name.as_str()))
        .collect();
    assert_eq!(files, offered, "files of handlers (left) and APIs in the table (right)");
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

#[test]
fn licences_are_known_and_no_crate_stands_twice_unexplained() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .expect("cargo metadata");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut faults = Vec::new();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("name").to_owned();
        let licence = package["license"].as_str().unwrap_or("none");
        let free = licence
            .split([' ', '/', '(', ')'])
            .filter(|word| !word.is_empty() && !["OR", "AND", "WITH"].contains(word))
            .any(|word| LICENCES.iter().any(|known| known.split(' ').any(|part| part == word)));
        if !free {
            faults.push(format!("{name}: licence {licence}"));
        }
        let version = package["version"].as_str().expect("version").to_owned();
        versions.entry(name).or_default().insert(version);
    }
    let twice: BTreeSet<&str> = versions
        .iter()
        .filter(|(_, versions)| versions.len() > 1)
        .map(|(name, _)| name.as_str())
        .collect();
    let explained: BTreeSet<&str> = DUPLICATES.iter().map(|(name, _)| *name).collect();
    for name in twice.symmetric_difference(&explained) {
        faults.push(format!("{name}: stands twice or is no longer: {:?}", versions.get(*name)));
    }
    fail_on(&faults);
}
