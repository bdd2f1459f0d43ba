//! What `any` stands for, as the RFC has it: the source's layout, a reduced blocked axis being one block.

use cranefold::spec::Dims;
use cranefold::spec::onednn::Primitive;
use cranefold::{DType, Layout, Spec};

/// Source dims and layout, reduced axes, whether they are kept; the destination's tag, strides and padded dims.
type Row<'a> = (&'a [u64], &'a str, &'a [i64], bool, &'a str, &'a [i64], &'a [u64]);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // The RFC's cases.
    (&[8, 32, 7, 7], "nChw16c", &[0, 1, 2, 3], true, "aBcd16b", &[16, 16, 16, 16], &[1, 16, 1, 1]),
    (&[8, 32, 7, 7], "nChw16c", &[2, 3], true, "aBcd16b", &[32, 16, 16, 16], &[8, 32, 1, 1]),
    (&[8, 32, 7, 7], "nChw16c", &[0, 2, 3], true, "aBcd16b", &[32, 16, 16, 16], &[1, 32, 1, 1]),
    // Channels that are no multiple of the block.
    (&[8, 20, 7, 5], "nChw16c", &[2, 3], true, "aBcd16b", &[32, 16, 16, 16], &[8, 32, 1, 1]),
    (&[8, 20, 7, 5], "nChw8c", &[0], true, "aBcd8b", &[840, 280, 40, 8], &[1, 24, 7, 5]),
    (&[8, 20, 7, 5], "nChw16c", &[1], true, "aBcd16b", &[560, 560, 80, 16], &[8, 16, 7, 5]),
    (&[19, 20, 7, 5], "NChw16n16c", &[0], true, "ABcd16a16b", &[17920, 8960, 1280, 256], &[16, 32, 7, 5]),
    (&[19, 20, 7, 5], "ABcd32a32b", &[1, 2, 3], true, "ABcd32a32b", &[1024, 1024, 1024, 1024], &[32, 32, 1, 1]),
    (&[19, 40, 3, 5], "ABcd4b16a4b", &[2], true, "ABcd4b16a4b", &[3840, 1280, 1280, 256], &[32, 48, 1, 5]),
    (&[19, 40, 3, 5], "bAcd8a", &[0], true, "bAcd8a", &[120, 120, 40, 8], &[8, 40, 3, 5]),
    // Plain ones keep their order.
    (&[8, 20, 7, 5], "nhwc", &[2, 3], true, "acdb", &[20, 1, 20, 20], &[8, 20, 1, 1]),
    (&[8, 20, 7, 5], "nhwc", &[1], true, "acdb", &[35, 1, 5, 1], &[8, 1, 7, 5]),
    (&[8, 20, 7, 5], "nchw", &[1], true, "", &[35, 35, 5, 1], &[8, 1, 7, 5]),
    (&[8, 20], "ba", &[0], true, "ba", &[1, 1], &[1, 20]),
    (&[8, 20, 7], "(1,8,200)", &[1], true, "cba", &[1, 8, 8], &[8, 1, 7]),
    (&[8, 20, 7], "(-140,0,20)", &[2], true, "bac", &[1, 8, 1], &[8, 20, 1]),
    (&[8, 20], "(100,8)8b", &[0], true, "aB8b", &[24, 8], &[1, 24]),
    // Without the reduced axes: their letters and blocks leave, the others move up.
    (&[8, 20, 7, 5], "nChw16c", &[2, 3], false, "aB16b", &[32, 16], &[8, 32]),
    (&[8, 20, 7, 5], "nChw16c", &[0, 2], false, "Ab16a", &[80, 16], &[32, 5]),
    (&[8, 20, 7, 5], "nChw16c", &[1], false, "", &[35, 5, 1], &[8, 7, 5]),
    (&[8, 20, 7, 5], "nhwc", &[0, 2], false, "ba", &[1, 20], &[20, 5]),
    (&[8, 20, 7, 5], "nhwc", &[1], false, "", &[35, 5, 1], &[8, 7, 5]),
    (&[19, 40, 3, 5], "ABcd4b16a4b", &[0, 3], false, "Ab4a4a", &[48, 16], &[48, 3]),
    (&[19, 40, 3, 5], "ABcd4b16a4b", &[1, 3], false, "Ab16a", &[48, 16], &[32, 3]),
    (&[8, 20, 7, 5], "nChw16c", &[0, 1, 2, 3], false, "", &[], &[]),
];

fn text(numbers: &[impl ToString]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[test]
fn the_layout_of_the_source_stays() {
    for (dims, layout, axes, keep, tag, strides, padded) in ROWS {
        let keeps = if *keep { " keep_dims" } else { "" };
        let left = format!("sum f32[{}]@{layout} axes=[{}]{keeps}", text(dims), text(axes));
        let spec: Spec = format!("{left} -> @any").parse().unwrap_or_else(|e| panic!("{left}: {e}"));
        let output = &spec.output_desc()[0];
        assert_eq!(spec.outputs()[0].layout().to_string(), *tag, "{left}");
        assert_eq!((output.strides.as_slice(), output.padded_shape.as_slice()), (*strides, *padded), "{left}");
        assert_eq!(output.span_bytes, 4 * padded.iter().product::<u64>(), "{left}");
        assert_eq!(spec.to_string().parse(), Ok(spec));
        if *keep && !layout.starts_with('(') {
            let src: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
            let dst: Vec<i64> = (0..).zip(&src).map(|(axis, &d)| if axes.contains(&axis) { 1 } else { d }).collect();
            let source = Dims::new(DType::F32, &src).at(Layout::tag(layout).expect("a tag"));
            let primitive = Primitive::new("sum", source, Dims::new(DType::F32, &dst).at(Layout::any()));
            let desc = primitive.translate().expect("a spec").output_desc();
            assert_eq!((&desc[0].strides, &desc[0].padded_shape), (&output.strides, &output.padded_shape));
        }
    }
}
