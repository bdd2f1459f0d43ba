//! oneDNN's reduction primitive: its published problems, blocked variants of them, values from NumPy, what it
//! refuses, and what `any` stands for.

mod any;
mod blocked;
mod post_ops;
mod problem;
mod published;
mod refused;
mod run;
mod values;
