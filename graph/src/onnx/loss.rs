//! Losses: cross-entropy and negative log likelihood.

use super::node::{Cx, Results};
use crate::front::{Operand, Stop};

/// The composite of a loss with its reduction.
fn composite(cx: &mut Cx, of: [&'static str; 3], outputs: usize) -> Results {
    let op = match cx.text_or("reduction", "mean")?.as_str() {
        "none" => of[0],
        "sum" => of[1],
        "mean" => of[2],
        other => return Err(Stop::Wrong(format!("reduction={other:?}; it is \"none\", \"sum\" or \"mean\""))),
    };
    let params: Vec<(&str, f64)> = cx.int("ignore_index")?.map(|label| ("ignore", label as f64)).into_iter().collect();
    let inputs = [Some(cx.input(0)?), Some(cx.input(1)?), cx.optional(2)];
    let inputs: Vec<&Operand> = inputs.iter().flatten().collect();
    let names: Vec<&str> = (0..outputs).map(|output| cx.name(output)).collect();
    cx.lower.composite(&names, op, &params, &[], &inputs)
}

pub(super) fn nll(cx: &mut Cx) -> Results {
    composite(cx, ["nll_loss", "nll_loss_sum", "nll_loss_mean"], 1)
}

pub(super) fn cross_entropy(cx: &mut Cx) -> Results {
    let outputs = if cx.has_output(1) { 2 } else { 1 };
    composite(cx, ["cross_entropy", "cross_entropy_sum", "cross_entropy_mean"], outputs)
}
