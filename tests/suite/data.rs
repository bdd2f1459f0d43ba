//! Buffers from text and back.

use cranefold::{DType, Scalar};

/// The bytes of elements in the machine's order.
pub fn bytes(dtype: DType, values: impl IntoIterator<Item = Scalar>) -> Vec<u8> {
    let mut bytes = vec![];
    for value in values {
        assert_eq!(value.dtype(), dtype);
        let at = bytes.len();
        bytes.resize(at + dtype.bytes() as usize, 0);
        value.write(&mut bytes[at..], 0);
    }
    bytes
}

/// All elements of a buffer.
pub fn scalars(dtype: DType, bytes: &[u8]) -> Vec<Scalar> {
    (0..bytes.len() / dtype.bytes() as usize).map(|index| Scalar::read(dtype, bytes, index)).collect()
}

/// Elements from text: values with spaces between, `3*7` for three sevens.
pub fn parse(dtype: DType, text: &str) -> Vec<Scalar> {
    let mut values = vec![];
    for word in text.split_whitespace() {
        let (times, value) = word.split_once('*').unwrap_or(("1", word));
        let value = Scalar::parse(dtype, value).unwrap_or_else(|| panic!("`{value}` is no {dtype}"));
        values.extend(std::iter::repeat_n(value, times.parse().expect("a count")));
    }
    values
}
