//! The layout of the house: the directions in which modules and crates may depend on one another.
//!
//! Dependencies are read from the sources: paths that begin with `crate::`, comments and unit tests left out.

use cranefold::ir::Over;
use cranefold::passes::{PASSES, ROLES, Role};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each module of `src/`, with the modules that it may name. Every module stands after those it names, so there is no cycle.
const ALLOWED: [(&str, &[&str]); 23] = [
    ("docs", &[]),
    ("results", &[]),
    ("vectors", &[]),
    ("forms", &["vectors"]),
    ("transposes", &["vectors"]),
    ("problem", &["layout", "spec"]),
    ("schedule", &["problem", "vectors"]),
    ("lower", &["problem", "schedule"]),
    ("passes", &["forms", "schedule", "transposes", "vectors"]),
    ("error", &["layout", "schedule", "spec", "vectors"]),
    ("process", &[]),
    ("executor", &["process"]),
    ("target", &["error", "vectors"]),
    ("pipeline", &["error", "lower", "passes", "problem", "schedule", "vectors"]),
    ("codegen", &["schedule", "transposes", "vectors"]),
    ("link", &["codegen", "error", "process", "vectors"]),
    ("keyed", &["problem", "results", "schedule", "spec"]),
    ("schedules", &["keyed", "results", "schedule"]),
    (
        "kernel",
        &[
            "error", "executor", "keyed", "link", "lower", "pipeline", "problem", "schedule", "spec", "target",
            "vectors",
        ],
    ),
    (
        "inspect",
        &[
            "codegen", "error", "kernel", "link", "lower", "passes", "pipeline", "problem", "results", "schedule",
            "spec", "vectors",
        ],
    ),
    (
        "compiler",
        &[
            "codegen",
            "error",
            "executor",
            "inspect",
            "kernel",
            "keyed",
            "link",
            "lower",
            "pipeline",
            "problem",
            "process",
            "results",
            "schedule",
            "schedules",
            "spec",
            "target",
            "vectors",
        ],
    ),
    (
        "aot",
        &[
            "codegen", "compiler", "error", "keyed", "layout", "link", "lower", "pipeline", "problem", "results",
            "schedule", "spec", "target",
        ],
    ),
    (
        "partial",
        &["compiler", "error", "kernel", "keyed", "lower", "pipeline", "problem", "results", "schedule", "spec"],
    ),
];

/// The places that alone may name a crate.
const ONLY: [(&str, &[&str]); 3] = [
    ("cranelift", &["src/codegen/clif/", "src/link/", "src/aot/", "src/inspect/", "src/target.rs"]),
    ("iced_x86", &["src/codegen/x86/machine/", "src/inspect/disassembly.rs"]),
    ("rayon", &["src/executor", "src/lib.rs"]),
];

/// The crates of this workspace that each crate may name in its sources, its own name among them.
const CRATES: [(&str, &[&str]); 7] = [
    ("ir/src", &["cranefold_ir"]),
    ("spec/src", &["cranefold_ir", "cranefold_spec"]),
    ("reference/src", &["cranefold_ir", "cranefold_reference", "cranefold_spec"]),
    ("src", &["cranefold", "cranefold_ir", "cranefold_spec"]),
    ("graph/src", &["cranefold", "cranefold_graph", "cranefold_ir", "cranefold_spec"]),
    ("capi/src", &["cranefold"]),
    ("python/src", &["cranefold"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust source under a folder, from the workspace's root.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").map(|e| e.expect("an entry").path()) {
            match entry.is_dir() {
                true => folders.push(entry),
                false if entry.extension().is_some_and(|e| e == "rs") => found.push(entry),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// The code of a source: lines of comments and the unit tests at its end are left out.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source");
    let text = text.split("#[cfg(test)]\nmod tests {").next().expect("the start").to_string();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

/// The path from the workspace's root, with `/`.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).expect("a source of the workspace").to_string_lossy().replace('\\', "/")
}

/// Whether a file holds unit tests alone.
fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs")
}

/// The words that follow `crate::`, also those of a list in braces.
fn named_modules(code: &str) -> Vec<String> {
    let mut found = vec![];
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => found.push(word(rest)),
            Some(list) => {
                let list = list.split('}').next().expect("the start");
                found.extend(list.split(',').map(|item| word(item.trim())));
            }
        }
    }
    found
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn modules_depend_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    for (place, (module, uses)) in ALLOWED.iter().enumerate() {
        let before = |name: &&str| ALLOWED[..place].iter().any(|(m, _)| m == name) || ["spec", "layout"].contains(name);
        let late: Vec<&&str> = uses.iter().filter(|name| !before(name)).collect();
        assert!(late.is_empty(), "{module} may name {late:?}, which stand after it in the list");
    }
    let mut wrong = vec![];
    for path in sources("src").into_iter().filter(|path| !is_test(path)) {
        let name = shown(&path);
        let module = name["src/".len()..].split(['/', '.']).next().expect("a first part").to_string();
        if module == "lib" {
            continue;
        }
        let uses = allowed.get(module.as_str()).unwrap_or_else(|| panic!("{module} is not in the list of modules"));
        let others = named_modules(&code(&path)).into_iter().filter(|used| *used != module);
        wrong.extend(others.filter(|used| !uses.contains(&used.as_str())).map(|used| format!("{name} names {used}")));
    }
    assert!(wrong.is_empty(), "not in the list of allowed directions:\n{}", wrong.join("\n"));
}

#[test]
fn foreign_crates_stay_in_their_places() {
    for (crate_name, places) in ONLY {
        for path in sources("src") {
            let name = shown(&path);
            let is_named = code(&path).contains(crate_name);
            let may = places.iter().any(|place| name.starts_with(place)) || is_test(&path);
            assert!(may || !is_named, "{name} names {crate_name}, which only {places:?} may");
        }
    }
}

/// The files that may hold unsafe code: the one that enters machine code, the one that takes raw buffers, the one that maps
/// memory for code, and the functions of the host that it calls; the one that lends a call's parts to threads, and those that
/// ask the system for cores and forks; and the one that reads Python's arrays.
const UNSAFE: [&str; 9] = [
    "python/src/door.rs",
    "src/kernel/buffers.rs",
    "src/kernel/enter.rs",
    "src/link/memory.rs",
    "src/link/host.rs",
    "src/link/libcalls.rs",
    "src/executor/turns.rs",
    "src/executor/cores.rs",
    "src/process.rs",
];

#[test]
fn unsafe_code_stands_in_its_files() {
    for folder in ["ir/src", "python/src", "spec/src", "reference/src", "src", "graph/src"] {
        for path in sources(folder).into_iter().filter(|path| !is_test(path)) {
            let (name, code) = (shown(&path), code(&path));
            let is_named =
                code.contains("unsafe {") || code.contains("unsafe impl") || code.contains("allow(unsafe_code");
            assert_eq!(is_named, UNSAFE.contains(&name.as_str()), "unsafe code in {name}");
        }
    }
}

/// C callers give pointers, so the whole crate of the C API may read them; code is entered through the library alone.
#[test]
fn the_c_api_has_the_contract_of_its_header() {
    for path in sources("capi/src").into_iter().filter(|path| !path.ends_with("header.rs")) {
        let (name, code) = (shown(&path), code(&path));
        let exported = code.matches("#[unsafe(no_mangle)]").count();
        let functions = code.matches("extern \"C\" fn cranefold_").count();
        assert_eq!(exported, functions, "{name}: every function of C has its own name");
    }
}

#[test]
fn crates_know_only_those_before_them() {
    let all = ["cranefold_ir", "cranefold_spec", "cranefold_reference", "cranefold", "cranefold_graph"];
    for (folder, may) in CRATES {
        for path in sources(folder).into_iter().filter(|path| !is_test(path)) {
            let code = code(&path);
            for other in all.iter().filter(|other| !may.contains(other)) {
                let is_named = code
                    .match_indices(&format!("{other}::"))
                    .any(|(at, _)| !code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_'));
                assert!(!is_named, "{} names {other}", shown(&path));
            }
        }
    }
}

/// The code of a pass, or of a module that passes share.
fn pass_code(name: &str) -> String {
    code(&root().join(format!("src/passes/{name}.rs")))
}

/// The roles of loops that the sources of a folder, or one file, name: the words after `Over::`.
fn named_roles(code: &str) -> BTreeSet<String> {
    code.match_indices("Over::").map(|(at, start)| word(&code[at + start.len()..])).collect()
}

#[test]
fn no_pass_names_another() {
    for pass in PASSES {
        let code = pass_code(pass.name);
        for other in PASSES.iter().filter(|other| other.name != pass.name) {
            let path = format!("{}::", other.name);
            let is_named = ["super::", "crate::passes::"].iter().any(|start| code.contains(&format!("{start}{path}")));
            assert!(!is_named, "the pass {} names the pass {}", pass.name, other.name);
        }
        assert!(!code.contains("super::{"), "{}: one path a line, which the test reads", pass.name);
    }
}

#[test]
fn every_pass_says_why_it_stands_where_it_stands() {
    for pass in PASSES {
        for text in [pass.summary, pass.because, pass.relies_on] {
            assert!(text.len() > 12 && !text.ends_with('.'), "{}: {text:?}", pass.name);
        }
    }
}

#[test]
fn passes_do_not_compare_numbers_of_variables() {
    for path in sources("src/passes") {
        assert!(!code(&path).contains("var.id"), "{} reads the number of a loop's variable", shown(&path));
    }
}

#[test]
fn the_table_of_roles_is_what_the_sources_say() {
    let in_table: Vec<Over> = ROLES.iter().map(|role| role.over).collect();
    assert_eq!(in_table, Over::LETTERS.map(|(over, _)| over), "a row for each role, in order");
    let roles = |is_in: &dyn Fn(&Role) -> bool| -> BTreeSet<String> {
        ROLES.iter().filter(|role| is_in(role)).map(|role| format!("{:?}", role.over)).collect()
    };
    for pass in PASSES {
        let told = roles(&|role| role.made_by.contains(&pass.name) || role.asked_by.contains(&pass.name));
        assert_eq!(told, named_roles(&pass_code(pass.name)), "the roles of {}", pass.name);
    }
    let in_folder = |folder| {
        let of_code = sources(folder).into_iter().filter(|path| !is_test(path));
        named_roles(&of_code.map(|path| code(&path)).collect::<String>())
    };
    assert_eq!(roles(&|role| role.made_by.contains(&"lower")), in_folder("src/lower"), "the roles of lower");
    assert_eq!(roles(&|role| role.asked_by.contains(&"codegen")), in_folder("src/codegen"), "the roles of codegen");
    let known: Vec<&str> = PASSES.iter().map(|pass| pass.name).chain(["lower", "codegen"]).collect();
    let told = ROLES.iter().flat_map(|role| role.made_by.iter().chain(role.asked_by));
    assert!(told.clone().all(|name| known.contains(name)), "{:?}", told.collect::<Vec<_>>());
}

#[test]
fn the_reader_of_paths_sees_all_forms() {
    assert_eq!(named_modules("use crate::a::B;\nuse crate::{c, d::E};\nlet x = crate::f();"), ["a", "c", "d", "f"]);
    assert_eq!(named_modules("$crate::a; mycrate::b"), [""; 0]);
}
