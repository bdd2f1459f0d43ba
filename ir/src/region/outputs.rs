//! The reading of a region's outputs: one list, each with a layout or without.

use super::read::{MAX_OUTPUTS, Reader, Result};
use crate::expression::Expression;
use crate::expression::error::Fault;
use crate::expression::lexer::Token;
use std::ops::Range;

impl Reader<'_> {
    /// Reads the outputs: expressions, places and layouts.
    #[allow(clippy::type_complexity, reason = "the parts of a body that is read")]
    pub(super) fn outputs(&mut self) -> Result<(Vec<Expression>, Vec<usize>, Vec<Option<Range<usize>>>)> {
        let (mut outputs, mut places, mut layouts) = (vec![], vec![], vec![]);
        loop {
            let at = self.parser.at;
            if outputs.len() == MAX_OUTPUTS {
                return Err(Fault::new(at, format!("the region has more than {MAX_OUTPUTS} outputs")));
            }
            let root = self.value(None)?.expect("a value without names");
            outputs.push(self.expression(root));
            places.push(at);
            layouts.push(self.layout()?);
            if self.parser.token != Token::Mark(",") {
                break;
            }
            self.parser.bump()?;
            self.skip_lines()?;
        }
        if !self.is_separator() && !self.at_end() {
            return Err(self.parser.expected("an operator, `,`, `@` or the end of the outputs"));
        }
        self.skip_separators()?;
        match self.parser.token {
            Token::End | Token::Mark("}") => Ok((outputs, places, layouts)),
            _ if self.is_definition()? => {
                Err(Fault::new(self.parser.at, "a definition stands before the outputs, which end the region"))
            }
            _ => Err(Fault::new(self.parser.at, "the outputs stand in one list, separated by `,`")),
        }
    }

    /// Takes `@` and the bytes of a layout, if they come next.
    fn layout(&mut self) -> Result<Option<Range<usize>>> {
        if self.parser.token != Token::Mark("@") {
            return Ok(None);
        }
        let start = self.parser.at + 1;
        let mut open = 0;
        let inside = |c: char| {
            match c {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            open > 0 || !(c.is_whitespace() || matches!(c, ',' | ';' | '}' | '#'))
        };
        let rest = &self.text[start..];
        let end = start + rest.find(not(inside)).unwrap_or(rest.len());
        self.parser.lexer.pos = end;
        self.parser.bump()?;
        Ok(Some(start..end))
    }
}

/// The opposite of a test of characters.
fn not(mut test: impl FnMut(char) -> bool) -> impl FnMut(char) -> bool {
    move |c| !test(c)
}
