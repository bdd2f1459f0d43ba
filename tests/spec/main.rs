//! The spec: its text, what it refuses, the shapes and types it gives.

mod expressions;
mod properties;
mod refused;
mod shapes;
mod text;
mod types;
