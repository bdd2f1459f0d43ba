//! Every stage of a kernel as text.

use super::assembly::{assembly, clif_text};
use crate::error::Error;
use crate::kernel::code::Compiled;
use crate::lower::program::Program;
use crate::passes::PASSES;
use crate::pipeline;
use crate::schedule::Source;
use crate::spec::Spec;
use cranefold_ir::Nest;
use std::fmt::Write;

/// The stages in order: `spec problem schedule nest`, the passes, `clif asm`.
pub fn stage_names() -> impl Iterator<Item = &'static str> {
    let passes = PASSES.iter().map(|p| p.name);
    ["spec", "problem", "schedule", "nest"].into_iter().chain(passes).chain(["clif", "asm"])
}

/// The text of a stage; of `all`, each under a heading, unchanged nests as one line.
pub(crate) fn dump(spec: Option<&Spec>, compiled: &Compiled, stage: &str) -> Result<String, Error> {
    if stage == "all" {
        return all(spec, compiled);
    }
    let source = &compiled.decided.source;
    let names = || stage_names().filter(|name| is_of(name, spec, source));
    let Some(stage) = names().find(|&name| name == stage) else {
        let stages = names().chain(["all"]).collect::<Vec<_>>().join(" ");
        return Err(Error::Stage { name: stage.chars().take(40).collect(), stages });
    };
    one(spec, compiled, stage)
}

/// Returns whether a kernel of this spec, or of this source alone, has the stage.
fn is_of(stage: &str, spec: Option<&Spec>, source: &Source) -> bool {
    match stage {
        "spec" => spec.is_some(),
        "problem" => source.problem().is_some(),
        pass => PASSES.iter().find(|p| p.name == pass).is_none_or(|p| pipeline::runs(p, source)),
    }
}

fn one(spec: Option<&Spec>, compiled: &Compiled, stage: &'static str) -> Result<String, Error> {
    let isa = compiled.target.isa();
    let decided = &compiled.decided;
    let vectors = decided.vectors;
    Ok(match stage {
        "spec" => spec.map_or(String::new(), Spec::to_string),
        "problem" => decided.source.problem().map_or(String::new(), |problem| problem.to_string()),
        "schedule" => match &decided.narrowed {
            Some(narrowed) => format!("{}\n; {narrowed}", decided.schedule),
            None => decided.schedule.to_string(),
        },
        "clif" => of_each(&pipeline::legal(decided)?, "; ", |_, nest| clif_text(nest, vectors, isa))?,
        "asm" => {
            of_each(&pipeline::legal(decided)?, "", |code, nest| assembly(&compiled.codes[code], nest, vectors, isa))?
        }
        pass => {
            let stage = pipeline::stages(decided)?.into_iter().find(|(name, _)| *name == pass);
            stage.expect("a stage of the pipeline").1.to_string()
        }
    })
}

/// The text of each nest; if there are several, after a line with the parts that run it.
fn of_each(
    program: &Program,
    mark: &str,
    mut text: impl FnMut(usize, &Nest) -> Result<String, Error>,
) -> Result<String, Error> {
    if program.parts.len() == 1 {
        return text(0, &program.nests[0]);
    }
    let mut all = String::new();
    for (number, nest) in program.all_nests().enumerate() {
        let parts = (0..).zip(&program.parts).filter(|(_, part)| part.nest == number);
        let parts: Vec<String> = parts.map(|(n, _): (u32, _)| n.to_string()).collect();
        let whose = match parts.as_slice() {
            [] => "finish".to_string(),
            [part] => format!("part {part}"),
            parts => format!("parts {}", parts.join(" ")),
        };
        let gap = if number == 0 { "" } else { "\n" };
        all += &format!("{gap}{mark}{whose}:\n{}\n", text(number, nest)?.trim_end());
    }
    Ok(all)
}

fn all(spec: Option<&Spec>, compiled: &Compiled) -> Result<String, Error> {
    let mut text = String::new();
    let mut before: Option<Program> = None;
    let stages = pipeline::stages(&compiled.decided)?;
    let mut section = |name: &str, body: &str| {
        let done = match body {
            "" => writeln!(text, "== {name} == (no change)"),
            body => writeln!(text, "== {name} ==\n{}", body.trim_end()),
        };
        done.expect("a string takes all text");
    };
    for name in ["spec", "problem", "schedule"].into_iter().filter(|name| is_of(name, spec, &compiled.decided.source)) {
        section(name, &one(spec, compiled, name)?);
    }
    for (name, program) in stages {
        let changed = before.as_ref() != Some(&program);
        section(name, &if changed { program.to_string() } else { String::new() });
        before = Some(program);
    }
    for name in ["clif", "asm"] {
        section(name, &one(spec, compiled, name)?);
    }
    Ok(text)
}
