//! The text form of graphs: printer, lexer, parser.

mod lexer;
mod parse;
mod print;

pub use parse::MAX_TEXT;
