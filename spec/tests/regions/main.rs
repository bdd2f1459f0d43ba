//! Regions: their text, what they refuse, their canonical form.

mod texts;
