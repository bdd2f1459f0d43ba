//! Layout tags as text.

use super::{LayoutBlock, LayoutError, MAX_LAYOUT_BLOCK};
use std::fmt;

/// The axes of tensors in logical order, by the letters of familiar names.
const NAMES: [&str; 13] =
    ["x", "nc", "ncw", "nchw", "ncdhw", "oi", "oiw", "oihw", "oidhw", "goiw", "goihw", "goidhw", "tnc"];

/// Parses a tag into the axes from the outermost to the innermost, and the blocks.
pub(super) fn parse(tag: &str) -> Result<(Vec<u8>, Vec<LayoutBlock>), LayoutError> {
    let bad = || LayoutError::BadTag { tag: shown(tag) };
    let letters = &tag[..tag.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tag.len())];
    let known = logical(letters).ok_or_else(bad)?;
    let axis = |letter: u8| known.iter().position(|&k| k == letter.to_ascii_lowercase()).map(|axis| axis as u8);
    let axes: Vec<u8> = letters.bytes().map(axis).collect::<Option<_>>().ok_or_else(bad)?;
    let blocks = blocks(&tag[letters.len()..], axis)?.ok_or_else(bad)?;
    for (letter, &axis) in letters.chars().zip(&axes) {
        let (tag, blocked) = (shown(tag), blocks.iter().any(|b| b.axis == axis));
        match (letter.is_ascii_uppercase(), blocked) {
            (true, false) => return Err(LayoutError::CapitalPlain { tag, axis: letter }),
            (false, true) => return Err(LayoutError::BlockedSmall { tag, axis: letter }),
            _ => {}
        }
    }
    Ok((axes, blocks))
}

/// Parses the blocks at the end of a tag over `rank` axes.
pub(super) fn parse_blocks(text: &str, rank: usize) -> Result<Vec<LayoutBlock>, LayoutError> {
    let parsed = blocks(text, |letter| letter.checked_sub(b'a'))?;
    let parsed = parsed.ok_or_else(|| LayoutError::BadBlocks { blocks: shown(text) })?;
    match parsed.iter().find(|b| usize::from(b.axis) >= rank) {
        Some(b) => Err(LayoutError::BlockAxis { block: format!("{}{}", b.size, char::from(b'a' + b.axis)), rank }),
        None => Ok(parsed),
    }
}

/// The letters in lower case, by axis; `None` if they are no tag's.
fn logical(letters: &str) -> Option<Vec<u8>> {
    let mut given = letters.to_ascii_lowercase().into_bytes();
    given.sort_unstable();
    if given.is_empty() || given.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    if given.iter().zip(b'a'..).all(|(&letter, from_a)| letter == from_a) {
        return Some(given);
    }
    let is_permuted = |name: &&str| name.len() == given.len() && name.bytes().all(|letter| given.contains(&letter));
    NAMES.into_iter().find(is_permuted).map(|name| name.bytes().collect())
}

/// The familiar name of activations in this order, such as `nChw16c`.
pub(super) fn familiar(axes: &[u8], blocks: &[LayoutBlock]) -> Option<String> {
    let name = NAMES.into_iter().find(|name| name.len() == axes.len() && name.starts_with("nc"))?.as_bytes();
    let letter = |axis: u8| char::from(name[usize::from(axis)]);
    let is_blocked = |axis: u8| blocks.iter().any(|b| b.axis == axis);
    let outer =
        axes.iter().map(|&axis| if is_blocked(axis) { letter(axis).to_ascii_uppercase() } else { letter(axis) });
    Some(
        outer.collect::<String>() + &blocks.iter().map(|b| format!("{}{}", b.size, letter(b.axis))).collect::<String>(),
    )
}

/// Parses sizes with an axis after each; `None` for any other text.
fn blocks(mut text: &str, axis: impl Fn(u8) -> Option<u8>) -> Result<Option<Vec<LayoutBlock>>, LayoutError> {
    let mut blocks = vec![];
    while !text.is_empty() {
        let digits = &text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())];
        let letter = text.as_bytes().get(digits.len()).filter(|l| l.is_ascii_lowercase() && !digits.is_empty());
        let Some(axis) = letter.and_then(|&letter| axis(letter)) else { return Ok(None) };
        let size = digits.parse().ok().filter(|size| (2..=MAX_LAYOUT_BLOCK).contains(size));
        let size = size.ok_or_else(|| LayoutError::BlockSize { size: shown(digits), limit: MAX_LAYOUT_BLOCK })?;
        blocks.push(LayoutBlock { axis, size });
        text = &text[digits.len() + 1..];
    }
    Ok(Some(blocks))
}

/// Writes the letters of the axes, capitals for blocked ones.
pub(super) fn write_axes(f: &mut fmt::Formatter<'_>, axes: &[u8], blocks: &[LayoutBlock]) -> fmt::Result {
    axes.iter().try_for_each(|&axis| {
        let first = if blocks.iter().any(|b| b.axis == axis) { b'A' } else { b'a' };
        write!(f, "{}", char::from(first + axis))
    })
}

pub(super) fn write_blocks(f: &mut fmt::Formatter<'_>, blocks: &[LayoutBlock]) -> fmt::Result {
    blocks.iter().try_for_each(|b| write!(f, "{}{}", b.size, char::from(b'a' + b.axis)))
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use crate::layout::Layout;

    #[test]
    fn familiar_names_are_letters() {
        for (name, letters) in [
            ("nchw", "abcd"),
            ("nhwc", "acdb"),
            ("chwn", "bcda"),
            ("nChw16c", "aBcd16b"),
            ("NChw16n16c", "ABcd16a16b"),
            ("nCdhw8c", "aBcde8b"),
            ("ndhwc", "acdeb"),
            ("ncw", "abc"),
            ("nwc", "acb"),
            ("nc", "ab"),
            ("cn", "ba"),
            ("oihw", "abcd"),
            ("hwio", "cdba"),
            ("OIhw16i16o", "ABcd16b16a"),
            ("goihw", "abcde"),
            ("x", "a"),
            ("tnc", "abc"),
            ("ntc", "bac"),
            ("ABcd4b16a4b", "ABcd4b16a4b"),
        ] {
            assert_eq!(Layout::tag(name).unwrap().to_string(), letters, "{name}");
        }
    }

    #[test]
    fn tags_are_checked() {
        let error = |tag: &str| Layout::tag(tag).unwrap_err().to_string();
        for tag in [
            "nchx", "aab", "", "bc", "nch w", "nch", "ncd", "xa", "goi", "aBcd16", "aBcd16B", "aBcd16e", "aBcd-2b",
            "16b", "ncx16c",
        ] {
            let expected = "is neither one of each of the letters from `a` on nor a name such as `nchw`";
            assert_eq!(error(tag), format!("layout tag `{tag}` {expected}"));
        }
        assert_eq!(error("abcd16b"), "layout tag `abcd16b` blocks axis `b`, whose letter must be a capital");
        assert_eq!(error("ABcd16b"), "layout tag `ABcd16b` has the capital `A` but no block of that axis");
        for size in ["0", "1", "65537", "99999999999999999999"] {
            let message = format!("a block of {size} elements: blocks have from 2 to 65536");
            assert_eq!(error(&format!("aBcd{size}b")), message);
        }
        let long = Layout::tag("zyxwvutsrqponmlkjihgfedcba").unwrap();
        assert_eq!(
            long.resolve(&[1; 25], 1).unwrap_err().to_string(),
            format!("layout tag `{long}` names 26 axes for rank 25")
        );
        let rank = |tag: &str| Layout::tag(tag).unwrap().resolve(&[1, 1], 4).unwrap_err().to_string();
        assert_eq!(rank("nhwc"), "layout tag `acdb` (`nhwc`) names 4 axes for rank 2");
        assert_eq!(rank("aBcd16b"), "layout tag `aBcd16b` (`nChw16c`) names 4 axes for rank 2");
        let blocks = |text: &str| Layout::blocked_strides([4, 1], text).unwrap_err().to_string();
        assert_eq!(blocks("2b4c"), "block `4c` is of an axis that is out of range for rank 2");
        assert_eq!(blocks("4"), "blocks `4` are not sizes with a small letter after each, such as `16b`");
    }
}
