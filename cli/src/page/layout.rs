//! The picture of an operand's layout: the first elements of its buffer, in the order of memory.

use super::html::Svg;
use cranefold::layout::Placement;
use cranefold::spec::Operand;

/// The places that are drawn.
const PLACES: usize = 64;

/// Places in a line of the picture.
const IN_LINE: usize = 16;

/// The colours of blocks that follow one another.
const COLOURS: [&str; 4] = ["sky", "yellow", "pink", "green"];

/// The picture; `None` of an operand in row-major order, or with strides that go backwards.
pub fn picture(operand: &Operand) -> Option<Svg> {
    let placement = operand.placement();
    let backwards = placement.strides.iter().chain(placement.blocks.iter().map(|b| &b.stride)).any(|&s| s < 0);
    if operand.layout().is_row_major() || backwards || operand.elems() == 0 {
        return None;
    }
    let block: u64 = placement.blocks.iter().map(|block| block.size).product();
    let span = (operand.span_elems() as usize).min(PLACES);
    let mut held: Vec<Option<Vec<u64>>> = vec![None; span];
    fill(placement, operand.shape(), &mut vec![0; operand.shape().len()], 0, &mut held);
    let padding: Vec<usize> = operand.padding().take_while(|&place| place < span).collect();
    let (cell, high) = (if operand.shape().len() > 3 { 62.0 } else { 46.0 }, 34.0);
    let mut svg = Svg::new(60.0 + cell * IN_LINE as f64, 30.0 + (high + 8.0) * span.div_ceil(IN_LINE) as f64);
    svg.words((8.0, 16.0), "start", "mute", "place in the buffer, and the indices of the element that lies there");
    for (place, indices) in held.iter().enumerate() {
        let (column, row) = (place % IN_LINE, place / IN_LINE);
        let at = (52.0 + column as f64 * cell, 26.0 + row as f64 * (high + 8.0));
        if column == 0 {
            svg.words((46.0, at.1 + 20.0), "end", "small mute", &place.to_string());
        }
        let colour = match indices {
            Some(_) if block > 1 => COLOURS[place / block as usize % COLOURS.len()],
            Some(indices) => COLOURS[indices.first().map_or(0, |&i| i as usize) % COLOURS.len()],
            None => "soft",
        };
        svg.rect(at, (cell - 3.0, high), colour);
        let words = match indices {
            Some(indices) => indices.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
            None if padding.contains(&place) => "pad".into(),
            None => "gap".into(),
        };
        let class = if indices.is_some() { "small on" } else { "small mute" };
        svg.words((at.0 + (cell - 3.0) / 2.0, at.1 + 21.0), "middle", class, &words);
    }
    Some(svg)
}

/// Notes the indices of each element among the first places. Strides are not negative, so an index that lies beyond them
/// ends its axis.
fn fill(placement: &Placement, shape: &[u64], at: &mut Vec<u64>, axis: usize, held: &mut [Option<Vec<u64>>]) {
    if axis == shape.len() {
        let place = placement.index(at) as usize;
        if place < held.len() {
            held[place] = Some(at.clone());
        }
        return;
    }
    // Blocks inside blocks may lie nearer than what stands before them, so a whole block is looked at.
    let block: u64 = placement.blocks.iter().filter(|b| b.axis == axis).map(|b| b.size).product();
    for index in 0..shape[axis] {
        at[axis] = index;
        let nearest = placement.index(at) as usize;
        if nearest >= held.len() && index % block == 0 || index > PLACES as u64 * block {
            break;
        }
        fill(placement, shape, at, axis + 1, held);
    }
    at[axis] = 0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranefold::Spec;

    fn held(spec: &str) -> Vec<Option<Vec<u64>>> {
        let spec: Spec = spec.parse().expect("a spec");
        let operand = &spec.inputs()[0];
        let mut held = vec![None; (operand.span_elems() as usize).min(PLACES)];
        fill(operand.placement(), operand.shape(), &mut vec![0; operand.shape().len()], 0, &mut held);
        held
    }

    /// Each place has the element that the operand's own walk puts there.
    #[test]
    fn places_hold_the_elements_of_the_layout() {
        for text in ["sum f32[2,3]@ba", "sum f32[8,20,7,7]@nChw16c", "sum f32[3,20,5]@aBc8b", "sum f32[4,10]@(20,2)"] {
            let spec: Spec = text.parse().expect("a spec");
            let (operand, held) = (&spec.inputs()[0], held(text));
            let mut expected: Vec<Option<Vec<u64>>> = vec![None; held.len()];
            for (number, place) in operand.places().enumerate().filter(|(_, place)| *place < held.len()) {
                let mut rest = number as u64;
                let mut indices: Vec<u64> =
                    operand.shape().iter().rev().map(|&extent| (rest % extent, rest /= extent).0).collect();
                indices.reverse();
                expected[place] = Some(indices);
            }
            assert_eq!(held, expected, "{text}");
        }
    }
}
