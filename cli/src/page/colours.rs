//! The colours of the pages, held against what eyes tell apart: contrast by WCAG 2.1, and distances between colours as
//! protanopes, deuteranopes and tritanopes see them (Machado, Oliveira and Fernandes, 2009) in the space Oklab.

use super::html::{LINES, STYLE};

type Rgb = [f64; 3];
type Matrix = [[f64; 3]; 3];

/// Full colour sight, and its three lacks.
const SIGHTS: [(&str, Matrix); 4] = [
    ("all", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    ("no red", [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    ("no green", [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    ("no blue", [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
];

const OF_LMS: Matrix = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
];
const OF_LAB: Matrix = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
];

fn times(matrix: &Matrix, v: Rgb) -> Rgb {
    matrix.map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum())
}

/// The linear light of `#rrggbb`.
fn linear(hex: &str) -> Rgb {
    [1, 3, 5].map(|at| {
        let v = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits")) / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    })
}

/// From 1, no contrast, to 21.
fn contrast(a: &str, b: &str) -> f64 {
    let light = |hex: &str| linear(hex).iter().zip([0.2126, 0.7152, 0.0722]).map(|(v, w)| v * w).sum::<f64>() + 0.05;
    let (a, b) = (light(a), light(b));
    a.max(b) / a.min(b)
}

/// 1 from black to white.
fn distance(a: &str, b: &str, sight: &Matrix) -> f64 {
    let lab = |hex: &str| times(&OF_LAB, times(&OF_LMS, times(sight, linear(hex)).map(|v| v.max(0.0))).map(f64::cbrt));
    lab(a).iter().zip(lab(b)).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// The value of a colour in a part of the style.
fn colour<'a>(style: &'a str, name: &str) -> &'a str {
    let (_, rest) = style.split_once(&format!("--{name}: ")).unwrap_or_else(|| panic!("no colour {name}"));
    &rest[..7]
}

/// The styles of light and of dark screens. The dark one does not repeat what stands on any.
fn themes() -> [(&'static str, String); 2] {
    let (light, dark) = STYLE.split_once("@media screen and (prefers-color-scheme: dark)").expect("a dark style");
    [("light", light.to_string()), ("dark", format!("{dark}{light}"))]
}

/// 4.5 for text and 3 for lines, as WCAG asks for.
#[test]
fn text_and_lines_stand_out() {
    assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
    for (theme, style) in themes() {
        let of = |name: &str| colour(&style, name);
        let texts =
            [("ink", "paper"), ("mute", "paper"), ("blue", "paper"), ("ink", "hot"), ("mute", "hot"), ("mute", "soft")];
        for (text, under) in texts {
            let found = contrast(of(text), of(under));
            assert!(found >= 4.5, "{theme}: {text} on {under} is {found:.2}");
        }
        // The words of cells and badges are dark in both.
        for under in ["sky", "yellow", "pink", "green", "orange"] {
            let found = contrast("#10161c", of(under));
            assert!(found >= 4.5, "{theme}: words on {under} are {found:.2}");
        }
        for line in LINES {
            let found = contrast(of(line), of("paper"));
            assert!(found >= 3.0, "{theme}: a line in {line} is {found:.2}");
        }
    }
}

/// A tenth of the way from black to white lies between any two lines, for everyone.
#[test]
fn lines_are_told_apart_by_everyone() {
    for (theme, style) in themes() {
        for (sight, matrix) in &SIGHTS {
            for (number, a) in LINES.iter().enumerate() {
                for b in &LINES[..number] {
                    let found = distance(colour(&style, a), colour(&style, b), matrix);
                    assert!(found >= 0.1, "{theme}, sight {sight}: {a} and {b} are {found:.3} apart");
                }
            }
        }
    }
}
