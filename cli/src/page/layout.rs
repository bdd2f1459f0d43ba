//! The picture of an operand's layout: the first elements of its buffer, in the order of memory.

use super::html::Svg;
use cranefold::layout::Placement;
use cranefold::spec::Operand;

/// The lines that are drawn of the start of the buffer.
const LINES: u64 = 4;

/// Places in a line of the picture.
const IN_LINE: usize = 16;

/// The colours of blocks that follow one another.
const COLOURS: [&str; 4] = ["sky", "yellow", "pink", "green"];

/// The picture, and the words for it; `None` of an operand in row-major order, or with strides that go backwards.
pub fn picture(operand: &Operand) -> Option<(Svg, String)> {
    let placement = operand.placement();
    let backwards = placement.strides.iter().chain(placement.blocks.iter().map(|b| &b.stride)).any(|&s| s < 0);
    if operand.layout().is_row_major() || backwards || operand.elems() == 0 {
        return None;
    }
    let block: u64 = placement.blocks.iter().map(|block| block.size).product();
    let (span, in_line) = (operand.span_elems(), IN_LINE as u64);
    let mut lines: Vec<u64> = (0..span.div_ceil(in_line).min(LINES)).collect();
    // Padding that lies beyond is drawn as well.
    lines.extend(padding(placement, operand.shape()).map(|place| place / in_line).filter(|line| *line >= LINES));
    let (cell, high) = (if operand.shape().len() > 3 { 62.0 } else { 46.0 }, 34.0);
    let gap = if lines.last() > Some(&LINES) { 20.0 } else { 0.0 };
    let mut svg = Svg::new(60.0 + cell * IN_LINE as f64, 30.0 + gap + (high + 8.0) * lines.len() as f64);
    svg.words((8.0, 16.0), "start", "mute", "place in the buffer, and the indices of the element that lies there");
    let walk = Walk::of(placement);
    for (row, &line) in lines.iter().enumerate() {
        let mut top = 26.0 + row as f64 * (high + 8.0);
        if line > LINES {
            svg.words((46.0, top + 8.0), "end", "mute", "…");
            top += gap;
        }
        svg.words((46.0, top + 20.0), "end", "small mute", &(line * in_line).to_string());
        for place in line * in_line..span.min((line + 1) * in_line) {
            let left = 52.0 + (place % in_line) as f64 * cell;
            let (fill, words) = match walk.held(place, operand.shape()) {
                Held::Element(indices) => {
                    let of_block = if block > 1 { place / block } else { indices.first().copied().unwrap_or(0) };
                    let colour = COLOURS[(of_block % COLOURS.len() as u64) as usize];
                    (colour, indices.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
                }
                Held::Padding => ("soft", "pad".into()),
                Held::Gap => ("soft", "gap".into()),
            };
            svg.rect((left, top), (cell - 3.0, high), fill);
            let class = if fill == "soft" { "small mute" } else { "small on" };
            svg.words((left + (cell - 3.0) / 2.0, top + 21.0), "middle", class, &words);
        }
    }
    let colour = match block {
        1 => "A colour is an index of axis 0.".to_string(),
        block => format!("A colour is a block of {block} places."),
    };
    let padded = placement.padded.iter().product::<u64>() - operand.elems();
    let pad = if padded > 0 { format!(", {padded} of them padding (pad)") } else { String::new() };
    Some((svg, format!("{span} places{pad}. {colour}")))
}

/// A place of padding, if there is any: that of the least first index outside of the shape.
fn padding(placement: &Placement, shape: &[u64]) -> Option<u64> {
    let axes = (0..shape.len()).filter(|&axis| placement.padded[axis] > shape[axis]);
    let outside = axes.map(|axis| (0..shape.len()).map(|a| if a == axis { shape[a] } else { 0 }).collect::<Vec<u64>>());
    outside.map(|indices| placement.index(&indices)).min()
}

/// The contents of a place in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    Element(Vec<u64>),
    Padding,
    Gap,
}

/// The axes of a placement and their blocks, the longest stride first.
struct Walk {
    origin: u64,
    parts: Vec<Part>,
}

/// An axis, counted in blocks, or a level of its blocks.
struct Part {
    axis: usize,
    stride: u64,
    extent: u64,
    /// Indices of the axis from one position to the next.
    indices: u64,
}

impl Walk {
    fn of(placement: &Placement) -> Walk {
        let inside = |axis: usize, from: usize| -> u64 {
            placement.blocks[from..].iter().filter(|b| b.axis == axis).map(|b| b.size).product()
        };
        let axes = placement.strides.iter().enumerate().map(|(axis, &stride)| {
            let indices = inside(axis, 0);
            Part { axis, stride: stride.unsigned_abs(), extent: placement.padded[axis] / indices, indices }
        });
        let blocks = placement.blocks.iter().enumerate().map(|(level, b)| Part {
            axis: b.axis,
            stride: b.stride.unsigned_abs(),
            extent: b.size,
            indices: inside(b.axis, level + 1),
        });
        let mut parts: Vec<Part> = axes.chain(blocks).filter(|part| part.extent > 1 && part.stride > 0).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.stride));
        Walk { origin: placement.origin, parts }
    }

    /// The element that a place holds; of several in one place, the one with the greatest index along the longest stride.
    fn held(&self, place: u64, shape: &[u64]) -> Held {
        let Some(rest) = place.checked_sub(self.origin) else { return Held::Gap };
        let (mut at, mut is_padding) = (vec![0; shape.len()], false);
        match find(&self.parts, rest, shape, &mut at, &mut is_padding) {
            true => Held::Element(at),
            false if is_padding => Held::Padding,
            false => Held::Gap,
        }
    }
}

/// Finds indices whose element lies so many places on; `false` if there are none inside of the shape.
fn find(parts: &[Part], rest: u64, shape: &[u64], at: &mut [u64], is_padding: &mut bool) -> bool {
    let [part, others @ ..] = parts else {
        let is_inside = at.iter().zip(shape).all(|(index, extent)| index < extent);
        *is_padding |= rest == 0 && !is_inside;
        return rest == 0 && is_inside;
    };
    let common = parts.iter().fold(0, |a, part| gcd(a, part.stride));
    let reach: u64 = others.iter().map(|part| (part.extent - 1) * part.stride).sum();
    if !rest.is_multiple_of(common) {
        return false;
    }
    for position in (0..=(rest / part.stride).min(part.extent - 1)).rev() {
        let left = rest - position * part.stride;
        if left > reach {
            break;
        }
        at[part.axis] += position * part.indices;
        if find(others, left, shape, at, is_padding) {
            return true;
        }
        at[part.axis] -= position * part.indices;
    }
    false
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranefold::Spec;

    /// Each place has the element that the operand's own walk puts there, or its padding.
    #[test]
    fn places_hold_the_elements_of_the_layout() {
        for text in [
            "sum f32[2,3]@ba",
            "sum f32[8,20,7,7]@nChw16c",
            "sum f32[3,20,5]@aBc8b",
            "sum f32[3,20]@AB4b2a2b",
            "sum f32[4,10]@(20,2)",
            "sum f32[4,10]@(0,2)",
            "sum f32[2,2,5]@(6,10,15)",
        ] {
            let spec: Spec = text.parse().expect("a spec");
            let operand = &spec.inputs()[0];
            let mut expected = vec![Held::Gap; operand.span_elems() as usize];
            for (number, place) in operand.places().enumerate() {
                let mut rest = number as u64;
                let mut indices: Vec<u64> =
                    operand.shape().iter().rev().map(|&extent| (rest % extent, rest /= extent).0).collect();
                indices.reverse();
                // Of a broadcast axis, the first.
                if expected[place] == Held::Gap {
                    expected[place] = Held::Element(indices);
                }
            }
            let padding: Vec<usize> = operand.padding().collect();
            padding.iter().for_each(|&place| expected[place] = Held::Padding);
            let walk = Walk::of(operand.placement());
            let held: Vec<Held> = (0..operand.span_elems()).map(|place| walk.held(place, operand.shape())).collect();
            assert_eq!(held, expected, "{text}");
            let first = super::padding(operand.placement(), operand.shape());
            assert_eq!(first.is_some(), !padding.is_empty(), "{text}");
            assert!(first.is_none_or(|place| padding.contains(&(place as usize))), "{text}");
        }
    }

    /// The padding of a block far behind is drawn, and counted.
    #[test]
    fn padding_is_drawn() {
        let spec: Spec = "sum f32[8,20,7,7]@nChw16c".parse().expect("a spec");
        let (svg, words) = picture(&spec.inputs()[0]).expect("a picture");
        assert_eq!(words, "12544 places, 4704 of them padding (pad). A colour is a block of 16 places.");
        let text = svg.file("");
        assert_eq!((text.matches(">pad<").count(), text.matches(">0,16,0,0<").count()), (12, 1), "{text}");
    }
}
