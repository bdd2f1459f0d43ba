//! The list of workloads, `benches/workloads.txt`.

use cranefold::Spec;

/// A line of the list.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The comment above it, up to its colon.
    pub group: &'static str,
    /// The line.
    pub spec: Spec,
}

/// The regions of `benches/regions.txt`, each in its least shape; the group is their name.
///
/// # Panics
/// If a line does not parse.
#[allow(dead_code, reason = "not every bench takes them")]
pub fn regions() -> Vec<Workload> {
    let mut workloads: Vec<Workload> = vec![];
    for line in include_str!("../regions.txt").lines().filter(|line| line.starts_with("region")) {
        let (text, group) = line.split_once("  # ").unwrap_or_else(|| panic!("benches/regions.txt: `{line}`"));
        if workloads.iter().all(|workload| workload.group != group) {
            let spec = text.parse().unwrap_or_else(|error| panic!("benches/regions.txt: `{line}`: {error}"));
            workloads.push(Workload { group, spec });
        }
    }
    workloads
}

/// All lines of `benches/workloads.txt`, in order.
///
/// # Panics
/// If a line does not parse.
pub fn list() -> Vec<Workload> {
    let mut group = "";
    let mut workloads = vec![];
    for line in include_str!("../workloads.txt").lines() {
        if let Some(comment) = line.strip_prefix('#') {
            group = comment.split(':').next().unwrap_or_default().trim();
        } else if !line.trim().is_empty() {
            let spec = line.parse().unwrap_or_else(|error| panic!("benches/workloads.txt: `{line}`: {error}"));
            workloads.push(Workload { group, spec });
        }
    }
    workloads
}
