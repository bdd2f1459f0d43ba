//! The transposes that vectors make of loads and stores: columns of a matrix in memory are vectors, with one row in each
//! lane.
//!
//! The pass that makes transposes asks here which cost less than loads element by element; generators ask of which
//! loads and shuffles a transpose consists.

use crate::vectors::{Set, Vectors};
use cranefold_ir::Transpose;

/// Bytes of a row that are loaded at once where rows lie far apart.
pub const PIECE_BYTES: u64 = 16;

/// The most columns of a transpose: as many as an accumulator has registers.
pub const MOST_COLUMNS: u64 = 24;

/// The largest distance of rows, in elements, at which all elements between them are loaded too.
const NEAR: u64 = 16;

/// The fewest lanes that are stored together.
const FEWEST_STORED: u64 = 4;

/// A way to transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Vectors load all elements from the first to the last, and elements `stride` apart are deinterleaved.
    Deinterleave {
        /// The number of vectors.
        vectors: u64,
        /// Elements of each vector.
        width: u64,
    },
    /// Pieces of 16 bytes are loaded from each row, and interleaved.
    Pieces,
    /// Vectors load all elements around those of the columns, and each vector of a column is picked from them.
    Runs,
}

/// Returns the way in which these vectors transpose elements of `bytes` bytes; `None` if each element is loaded by
/// itself.
pub fn way(vectors: Vectors, t: &Transpose, bytes: u64) -> Option<Way> {
    match vectors.set() {
        _ if t.runs > 1 => (loads_runs(vectors, bytes) && t.stride > 0 && t.run_stride > 0).then_some(Way::Runs),
        Set::Scalars => None,
        Set::Portable => portable(t, bytes),
        Set::Avx2 | Set::Avx512 => deinterleaved(vectors, t, bytes).or_else(|| pieces(vectors, t, bytes)),
    }
}

/// Returns true if these vectors pick elements of `bytes` bytes from any lanes of two vectors: so they load columns whose
/// lanes come in runs.
pub fn loads_runs(vectors: Vectors, bytes: u64) -> bool {
    match vectors.set() {
        Set::Scalars | Set::Portable => false,
        Set::Avx2 => bytes >= 4,
        Set::Avx512 => bytes > 1 || vectors.byte_permutes,
    }
}

/// The elements of each run, if these vectors store columns whose lanes come in runs: those of all columns follow one another.
pub fn stored_run(vectors: Vectors, t: &Transpose, bytes: u64) -> Option<u64> {
    let (stride, run_stride) = (u64::try_from(t.stride).ok()?, u64::try_from(t.run_stride).ok()?);
    let mut elements: Vec<u64> =
        t.columns.iter().flat_map(|column| (0..t.lanes).map(move |lane| column + stride * lane)).collect();
    elements.sort_unstable();
    let follow = (0..).zip(&elements).all(|(n, &element)| n == element);
    let count = elements.len() as u64;
    (loads_runs(vectors, bytes) && follow && count <= run_stride).then_some(count)
}

/// The elements of the vectors in which columns are interleaved and stored; `None` if each element is stored by itself.
/// Columns fill the rows of the matrix, so that nothing else lies in between.
pub fn store_width(vectors: Vectors, t: &Transpose, bytes: u64) -> Option<u64> {
    let stride = u64::try_from(t.stride).ok().filter(|stride| (2..=NEAR).contains(stride))?;
    if !t.columns.iter().copied().eq(0..stride) {
        return None;
    }
    let (width, fewest) = match vectors.set() {
        Set::Scalars => return None,
        Set::Portable if !stride.is_power_of_two() => return None,
        Set::Portable => (PIECE_BYTES / bytes, PIECE_BYTES / bytes),
        Set::Avx2 | Set::Avx512 => (width(vectors, bytes, stride, t.lanes), FEWEST_STORED),
    };
    (fewest..=width).contains(&t.lanes).then_some(width)
}

/// The most pieces, of 16 bytes in each row, that fit registers beside other values.
pub fn most_pieces(vectors: Vectors, bytes: u64) -> u64 {
    (vectors.registers() / 2 / (PIECE_BYTES / bytes)).max(1)
}

/// The distances of a row's pieces from the first element. The last piece of a run of columns may overlap the piece
/// before it.
pub fn piece_starts(columns: &[u64], bytes: u64) -> Vec<u64> {
    let in_piece = (PIECE_BYTES / bytes) as usize;
    let runs = columns.chunk_by(|a, b| a + 1 == *b);
    let of_run = |run: &[u64]| {
        let starts = (0..run.len().div_ceil(in_piece)).map(|n| (n * in_piece).min(run.len().saturating_sub(in_piece)));
        starts.map(|n| run[n]).collect::<Vec<_>>()
    };
    runs.flat_map(of_run).collect()
}

/// The elements of a vector in a deinterleaving transpose over so many lanes. Only odd strides need to permute further than
/// within 16 bytes: AVX2 so permutes groups of four bytes alone, and AVX-512 without VBMI bytes in several steps.
fn width(vectors: Vectors, bytes: u64, stride: u64, lanes: u64) -> u64 {
    let permutes = match vectors.has_masks() {
        true => bytes > 1 || vectors.byte_permutes || lanes > PIECE_BYTES,
        false => bytes >= 4,
    };
    let is_whole = permutes || stride.is_power_of_two();
    if is_whole { u64::from(vectors.bits / 8) / bytes } else { PIECE_BYTES / bytes }
}

fn deinterleaved(vectors: Vectors, t: &Transpose, bytes: u64) -> Option<Way> {
    let stride = u64::try_from(t.stride).ok().filter(|stride| (2..=NEAR).contains(stride))?;
    let last = *t.columns.last()?;
    let width = width(vectors, bytes, stride, t.lanes);
    if last >= stride || t.lanes > width {
        return None;
    }
    let span = stride * (t.lanes - 1) + last + 1;
    let whole = span.div_ceil(width);
    let count = t.columns.len() as u64;
    let stages = u64::from(stride.next_power_of_two().ilog2());
    let each = if vectors.has_masks() && (bytes > 1 || vectors.byte_permutes) { 1 } else { 2 };
    let cost = whole + each * (whole * stages).min(count * (whole - 1));
    let rest = (span - (whole - 1) * width) * bytes;
    let ends_whole = t.within >= whole * width || rest.is_power_of_two();
    let leaves_out = vectors.has_masks() || bytes >= 4;
    let is_worth_it = cost <= 2 * t.lanes * count && (ends_whole || leaves_out);
    is_worth_it.then_some(Way::Deinterleave { vectors: whole, width })
}

fn pieces(vectors: Vectors, t: &Transpose, bytes: u64) -> Option<Way> {
    let in_piece = (PIECE_BYTES / bytes) as usize;
    let fits = !matches!(t.stride, 0 | 1) && t.lanes > 1 && t.lanes * bytes <= u64::from(vectors.bits / 8);
    let are_whole = bytes < PIECE_BYTES && t.columns.chunk_by(|a, b| a + 1 == *b).all(|run| run.len() >= in_piece);
    let starts = piece_starts(&t.columns, bytes).len() as u64;
    (fits && are_whole && starts <= most_pieces(vectors, bytes)).then_some(Way::Pieces)
}

/// The way of vectors of 128 bits, which hold whole rows of a matrix without holes between its columns.
fn portable(t: &Transpose, bytes: u64) -> Option<Way> {
    let (stride, columns) = (u64::try_from(t.stride).ok()?, t.columns.len() as u64);
    let is_run = t.columns.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    if t.lanes * bytes != PIECE_BYTES || !is_run || !(2..=stride).contains(&columns) {
        return None;
    }
    Some(match columns == stride && stride < t.lanes && stride.is_power_of_two() {
        true => Way::Deinterleave { vectors: stride, width: t.lanes },
        false => Way::Pieces,
    })
}
