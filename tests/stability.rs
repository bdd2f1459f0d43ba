//! The promises of the front page: which modules are stable, and the minimum Rust version.

use std::fs;

fn read(path: &str) -> String {
    fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The names between backquotes in a part of the front page.
fn names(text: &str) -> Vec<String> {
    let names = text.split("[`").skip(1).map(|rest| rest.split('`').next().expect("a name").to_string());
    names.collect()
}

#[test]
fn every_public_module_is_stable_or_marked_inner() {
    let page = read("src/lib.rs");
    let section =
        page.split("//! # Stability").nth(1).expect("the section").split("//! Dependencies").next().expect("it");
    let (stable, rest) = section.split_once("Inner are").expect("the inner ones");
    let (stable, inner) = (names(stable), names(rest.split("they are public").next().expect("their list")));
    let mut marked = false;
    let mut seen = vec![];
    for line in page.lines() {
        let module = line.strip_prefix("pub mod ").and_then(|rest| rest.strip_suffix(';'));
        let module = module.or_else(|| (line == "pub use cranefold_ir as ir;").then_some("ir"));
        if let Some(module) = module.filter(|module| *module != "docs") {
            assert_eq!(inner.iter().any(|name| name == module), marked, "{module} is marked as inner, or is not");
            assert!(marked || stable.iter().any(|name| name == module), "{module} is neither stable nor inner");
            seen.push(module.to_string());
        }
        marked = line.starts_with("/// Inner: ") || (marked && line == "///");
    }
    let of_other_crates = ["layout", "op", "spec"];
    for name in stable.iter().chain(&inner).filter(|name| !of_other_crates.contains(&name.as_str())) {
        assert!(seen.contains(name), "{name} is no public module");
    }
}

#[test]
fn one_minimum_rust_version_is_said_everywhere() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")).expect("the version");
    let version = version.trim_end_matches('"');
    for (path, said) in [
        ("README.md", format!("The minimum Rust version is {version}.")),
        ("src/lib.rs", format!("The minimum Rust version is {version};")),
    ] {
        assert!(read(path).contains(&said), "{path} does not say: {said}");
    }
    let members = manifest.split("members = [").nth(1).expect("the members").split(']').next().expect("their end");
    for member in members.split(',').map(|name| name.trim().trim_matches('"')) {
        let own = read(&format!("{member}/Cargo.toml"));
        assert!(own.contains("rust-version.workspace = true"), "{member} has a version of its own");
        assert!(own.contains("version.workspace = true"), "{member} has a version of its own");
    }
    let built = env!("CARGO_PKG_RUST_VERSION");
    assert_eq!(built, version);
}
