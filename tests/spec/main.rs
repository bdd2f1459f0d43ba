//! The request: its text, what it refuses, the shapes it gives.

mod properties;
mod refused;
mod shapes;
mod text;
