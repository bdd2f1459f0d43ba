//! oneDNN's reduction primitive: its published problems, blocked variants of them, values from NumPy, what it
//! refuses, and what `any` stands for.

mod any;
mod blocked;
#[path = "../properties/data.rs"]
#[allow(dead_code, reason = "the property tests use the rest")]
mod data;
mod post_ops;
mod problem;
mod published;
mod refused;
mod run;
mod values;
