//! A photograph, reduced as `np.mean(img, axis, dtype=np.float64).astype(np.float32)` does: a sum that is
//! exact in `f64`, one division, one rounding to `f32`.

use crate::{bytes, folder, read_npy, works, write_npy};
use npyz::Order;
use std::path::Path;

const HEIGHT: usize = 271;
const WIDTH: usize = 403;

/// A picture `[HEIGHT, WIDTH, 3]`: gradients across, down and along the diagonal, with noise.
fn picture() -> Vec<u8> {
    let mut noise = 0x9e37_79b9u32;
    let mut pixels = vec![];
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            for level in [255 * x / WIDTH, 255 * y / HEIGHT, 255 * (x + y) / (WIDTH + HEIGHT)] {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                pixels.push((level as i32 + (noise >> 27) as i32 - 16).clamp(0, 255) as u8);
            }
        }
    }
    pixels
}

/// The mean of integers in `f64`, rounded once.
fn mean(values: impl ExactSizeIterator<Item = u8>) -> f32 {
    let count = values.len() as f64;
    (values.map(u64::from).sum::<u64>() as f64 / count) as f32
}

fn reduced(input: &Path, axes: &str) -> (Vec<u64>, Vec<u8>) {
    let output = input.with_file_name("mean.npy");
    let spec = format!("mean u8[{HEIGHT},{WIDTH},3] axes={axes} -> f32");
    works(&["run", &spec, "--input", input.to_str().unwrap(), "--output", output.to_str().unwrap()]);
    let (descr, shape, bytes) = read_npy(&output);
    assert_eq!(descr, "'<f4'");
    (shape, bytes)
}

#[test]
fn means_of_a_photograph_are_those_of_numpy() {
    let folder = folder("means_of_a_photograph_are_those_of_numpy");
    let pixels = picture();
    let grey: Vec<f32> = pixels.chunks(3).map(|pixel| mean(pixel.iter().copied())).collect();
    let colour: Vec<f32> = (0..3)
        .map(|channel| mean(pixels.iter().skip(channel).step_by(3).copied().collect::<Vec<u8>>().into_iter()))
        .collect();

    let path = folder.join("c.npy");
    write_npy(&path, "|u1", Order::C, &[HEIGHT as u64, WIDTH as u64, 3], &pixels);
    assert_eq!(reduced(&path, "[2]"), (vec![HEIGHT as u64, WIDTH as u64], bytes!(grey.clone())));
    assert_eq!(reduced(&path, "[0,1]"), (vec![3], bytes!(colour.clone())));

    let columns = (0..3).flat_map(|c| (0..WIDTH).flat_map(move |x| (0..HEIGHT).map(move |y| (y * WIDTH + x) * 3 + c)));
    let columns: Vec<u8> = columns.map(|index| pixels[index]).collect();
    let path = folder.join("fortran.npy");
    write_npy(&path, "|u1", Order::Fortran, &[HEIGHT as u64, WIDTH as u64, 3], &columns);
    assert_eq!(reduced(&path, "[2]").1, bytes!(grey));
    assert_eq!(reduced(&path, "[0,1]").1, bytes!(colour));
}
