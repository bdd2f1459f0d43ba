//! The report of `run`: lines for people, or one JSON object.

use crate::args::{Check, Run};
use crate::arrays::{Arrays, moved_bytes};
use crate::check::{self, Found, Worst};
use crate::execute::Executor;
use crate::failure::Failure;
use crate::figures;
use crate::notes;
use crate::output_files::STDOUT;
use crate::style::Style;
use crate::timing::Samples;
use cranefold::spec::Operand;
use cranefold::{Scalar, Spec};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;

/// The time that a check may take.
pub fn budget_ns(check: Check) -> f64 {
    match check {
        Check::None => -1.0,
        Check::Sample => check::BUDGET_NS,
        Check::All => f64::INFINITY,
    }
}

/// The reason why nothing was checked.
pub fn unchecked(by: &str, needed_ns: f64, budget_ns: f64) -> String {
    if budget_ns < 0.0 {
        return "not checked: --check none".into();
    }
    let (needed, limit) = (figures::time(needed_ns), figures::time(budget_ns));
    format!("not checked: the {by} would take about {needed}, the limit is {limit}; --check all waits for it")
}

/// Prints lines with a name each; on the standard error, if an output goes to the standard output.
///
/// # Errors
/// [`Failure::Stdout`].
pub fn print_lines(lines: &[(String, String)], outputs: &[PathBuf], out: &mut dyn Write) -> Result<(), Failure> {
    let is_taken = outputs.iter().any(|path| path.as_os_str() == STDOUT);
    let style = if is_taken { Style::of_stderr() } else { Style::of_stdout() };
    let text: String = lines.iter().map(|(name, text)| format!("{} {text}\n", style.name(name, 8))).collect();
    print(&text, is_taken, out)
}

fn print(text: &str, is_taken: bool, out: &mut dyn Write) -> Result<(), Failure> {
    match is_taken {
        true => io::stderr().write_all(text.as_bytes()),
        false => out.write_all(text.as_bytes()),
    }
    .map_err(Failure::Stdout)
}

/// The findings of the check, or why there are none.
pub type Checked = Result<Vec<Found>, NotChecked>;

/// The reason why results were not checked.
#[derive(Debug)]
pub enum NotChecked {
    /// They are the reference's own.
    IsReference,
    /// It would take so long, and may not.
    TooLong { needed_ns: f64 },
    /// It is not wanted.
    NotWanted,
}

/// Prints one JSON object; docs/shell.md has its schema.
///
/// # Errors
/// [`Failure::Stdout`].
pub fn print_json(
    (args, spec): (&Run, &Spec),
    arrays: &Arrays,
    executor: &Executor,
    times: &Samples,
    checked: &Checked,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let operand = |operand: &Operand| json!({ "dtype": operand.dtype().name(), "shape": operand.shape(), "layout": operand.layout().to_string() });
    let seed = if args.input.is_empty() { json!(args.random.unwrap_or(0)) } else { Value::Null };
    let outputs = spec.outputs().iter().enumerate().map(|(n, output)| {
        let bytes = arrays.outputs[n].bytes();
        let first = output.places().take(crate::run::SHOWN).map(|at| number(Scalar::read(output.dtype(), bytes, at)));
        let mut of = operand(output);
        of["first"] = Value::Array(first.collect());
        of["check"] = checked.as_ref().map_or(Value::Null, |found| found_of(&found[n]));
        of
    });
    let kernel = match executor {
        Executor::Native(kernel, _) => {
            let facts = kernel.facts();
            json!({
                "schedule": kernel.schedule().to_string(), "parts": facts.parts, "code_bytes": facts.code_bytes,
                "wide_functions": facts.wide_functions.count, "compile_ns": facts.compile_ns,
            })
        }
        Executor::Interpreter(..) | Executor::Reference => Value::Null,
    };
    let bytes = moved_bytes(spec);
    let check = match checked {
        Ok(_) => json!({ "state": "right" }),
        Err(NotChecked::IsReference) => json!({ "state": "reference" }),
        Err(NotChecked::NotWanted) => json!({ "state": "none" }),
        Err(NotChecked::TooLong { needed_ns }) => json!({ "state": "too_long", "needed_ns": needed_ns }),
    };
    let object = json!({
        "version": 1,
        "spec": spec.to_string(),
        "seed": seed,
        "inputs": spec.inputs().iter().map(operand).collect::<Vec<_>>(),
        "outputs": outputs.collect::<Vec<_>>(),
        "kernel": kernel,
        "run": {
            "median_ns": times.median_ns(), "min_ns": times.min_ns(), "samples": times.len(), "bytes": bytes,
            "gb_per_s": bytes as f64 / times.median_ns(),
        },
        "check": check,
        "notes": notes::of(spec),
    });
    let is_taken = args.output.iter().any(|path| path.as_os_str() == STDOUT);
    print(&format!("{object}\n"), is_taken, out)
}

/// A number, or where JSON has none of it, its text.
fn number(value: Scalar) -> Value {
    match value.dtype() {
        cranefold::DType::Bool => json!(value.bits() != 0),
        dtype if dtype.is_int() => value.to_string().parse::<serde_json::Number>().map_or(Value::Null, Value::Number),
        _ if value.as_f64().is_finite() => json!(value.as_f64()),
        _ => json!(value.to_string()),
    }
}

fn found_of(found: &Found) -> Value {
    let Found { checked, elements, worst, unbounded } = *found;
    let (error, bound) = match worst {
        Some(Worst { error, bound }) => (json!(error), json!(bound)),
        None => (Value::Null, Value::Null),
    };
    json!({ "checked": checked, "elements": elements, "error": error, "bound": bound, "unbounded": unbounded })
}
