//! The text forms of graphs and plans: printers, lexer, parsers.

mod lexer;
mod parse;
mod plan;
mod print;

pub use parse::MAX_TEXT;
