//! The kernels of a plan, compiled ahead of time into one object.

use super::distinct::Distinct;
use super::load::{load, planned, wrong};
use super::refuse_opaque;
use crate::args::Emit;
use crate::failure::Failure;
use cranefold::aot::{self, Library, Member};
use cranefold::{Options, Target};
use cranefold_graph::PlanKernel;
use std::path::Path;

/// The most names of nodes in a comment of the header.
const MOST_NAMES: usize = 12;

/// The name of which the header's guard is made, unless one is given.
const NAME: &str = "cranefold_model";

/// The functions of a model's distinct kernels. A name that is given becomes `NAME_0` and so on, by the kernels' numbers.
///
/// # Errors
/// If the model cannot be read, has no kernels or opaque nodes that are not to be left out, or a kernel is not compiled.
pub fn library(path: &Path, args: &Emit, target: &Target, options: &Options) -> Result<Library, Failure> {
    let plan = planned(&load(path, &args.bind)?.graph, path)?;
    if !args.kernels_only {
        refuse_opaque(&plan, path, "; --kernels-only leaves them out")?;
    }
    let kernels = Distinct::of(&plan);
    if kernels.is_empty() {
        return Err(wrong(path, "its plan has no kernels"));
    }
    let symbol = |kernel: &Distinct| args.symbol.as_ref().map(|name| format!("{name}_{}", kernel.first()));
    let named: Vec<(Option<String>, String)> = kernels.iter().map(|kernel| (symbol(kernel), about(kernel))).collect();
    let members = kernels.iter().zip(&named).map(|(kernel, (symbol, about))| Member {
        spec: kernel.spec(),
        symbol: symbol.as_deref(),
        about,
    });
    let members: Vec<Member> = members.collect();
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let (all, opaque) = (plan.kernels().count(), plan.opaque().count());
    let left = if opaque > 0 { format!(" Opaque nodes that are left out: {opaque}.") } else { String::new() };
    let distinct = kernels.len();
    let text = format!("Kernels of the model {file}: {all}. Functions, one for each distinct spec: {distinct}.{left}");
    aot::emit_all(target, args.symbol.as_deref().unwrap_or(NAME), &text, &members, options).map_err(Failure::Compile)
}

/// The kernels of the plan that have a spec, with the nodes that they compute.
fn about(distinct: &Distinct) -> String {
    let each = |(number, kernel): &(usize, &PlanKernel)| {
        let names: Vec<&str> = kernel.nodes.iter().map(String::as_str).take(MOST_NAMES).collect();
        let more = if kernel.nodes.len() > names.len() { ", ..." } else { "" };
        format!("Kernel {number} of the plan: {}{more}.", names.join(", "))
    };
    let shown = distinct.kernels.iter().take(MOST_NAMES).map(each).collect::<Vec<_>>().join(" ");
    match distinct.count().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} And {more} more kernels."),
    }
}
