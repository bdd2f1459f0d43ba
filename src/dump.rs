//! Every stage of a kernel as text.

use crate::compiled::Compiled;
use crate::error::Error;
use crate::jit;
use crate::passes::PASSES;
use crate::pipeline;
use crate::spec::Reduction;
use crate::wide::Plan;
use std::fmt::Write;

/// The stages in order: `spec problem schedule nest`, the passes, `clif asm`.
pub fn stage_names() -> impl Iterator<Item = &'static str> {
    let passes = PASSES.iter().map(|p| p.name);
    ["spec", "problem", "schedule", "nest"].into_iter().chain(passes).chain(["clif", "asm"])
}

/// The text of a stage; of `all`, each under a heading, unchanged nests as one line.
pub(crate) fn dump(spec: &Reduction, compiled: &Compiled, stage: &str) -> Result<String, Error> {
    if stage == "all" {
        return all(spec, compiled);
    }
    let Some(stage) = stage_names().find(|&name| name == stage) else {
        let stages = stage_names().chain(["all"]).collect::<Vec<_>>().join(" ");
        return Err(Error::Stage { name: stage.chars().take(40).collect(), stages });
    };
    one(spec, compiled, stage)
}

fn one(spec: &Reduction, compiled: &Compiled, stage: &'static str) -> Result<String, Error> {
    let isa = compiled.target.isa();
    let vectors = compiled.vectors.at_most(compiled.schedule.width);
    let plan = Plan { vectors, prefetch_bytes: compiled.schedule.prefetch };
    Ok(match stage {
        "spec" => spec.to_string(),
        "problem" => compiled.signature.problem.to_string(),
        "schedule" => compiled.schedule.to_string(),
        "clif" => jit::clif_text(&legal(compiled)?, plan, isa)?,
        "asm" => jit::assembly(&compiled.code, &legal(compiled)?, plan, isa)?,
        pass => {
            let stages = pipeline::stages(&compiled.signature.problem, &compiled.schedule, compiled.vectors)?;
            let nest = stages.into_iter().find(|(name, _)| *name == pass);
            nest.expect("a stage of the pipeline").1.to_string()
        }
    })
}

fn legal(compiled: &Compiled) -> Result<cranefold_ir::Nest, Error> {
    pipeline::legal_nest(&compiled.signature.problem, &compiled.schedule, compiled.vectors)
}

fn all(spec: &Reduction, compiled: &Compiled) -> Result<String, Error> {
    let mut text = String::new();
    let mut before: Option<cranefold_ir::Nest> = None;
    let stages = pipeline::stages(&compiled.signature.problem, &compiled.schedule, compiled.vectors)?;
    let mut section = |name: &str, body: &str| {
        let done = match body {
            "" => writeln!(text, "== {name} == (no change)"),
            body => writeln!(text, "== {name} ==\n{}", body.trim_end()),
        };
        done.expect("a string takes all text");
    };
    for name in ["spec", "problem", "schedule"] {
        section(name, &one(spec, compiled, name)?);
    }
    for (name, nest) in stages {
        let changed = before.as_ref() != Some(&nest);
        section(name, &if changed { nest.to_string() } else { String::new() });
        before = Some(nest);
    }
    for name in ["clif", "asm"] {
        section(name, &one(spec, compiled, name)?);
    }
    Ok(text)
}
