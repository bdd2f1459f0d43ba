//! Between buffers without a type and loops over slices of one: what a baseline takes and gives.

use super::Baseline;
use crate::data::{Bits, Data};
use half::{bf16, f16};
use std::hint::black_box;

/// An element type of the list.
pub trait Typed: Copy + Into<Bits> + 'static {
    /// The elements, if they are of this type.
    fn of(data: &Data) -> Option<&[Self]>;
}

macro_rules! typed {
    ($($rust:ty: $variant:ident,)*) => {$(
        impl Typed for $rust {
            fn of(data: &Data) -> Option<&[$rust]> {
                if let Data::$variant(elements) = data { Some(elements) } else { None }
            }
        }
    )*};
}

typed! { bool: Bool, i8: I8, u8: U8, i32: I32, i64: I64, f16: F16, bf16: Bf16, f32: F32, f64: F64, }

/// What a baseline makes: one output, or two.
pub trait Made {
    /// The bits of the elements of each output.
    fn bits(self) -> Vec<Vec<u64>>;
}

impl<U: Typed> Made for Vec<U> {
    fn bits(self) -> Vec<Vec<u64>> {
        vec![self.into_iter().map(|x| x.into().0).collect()]
    }
}

impl<U: Typed, V: Typed> Made for (Vec<U>, Vec<V>) {
    fn bits(self) -> Vec<Vec<u64>> {
        [self.0.bits(), self.1.bits()].concat()
    }
}

/// A baseline of one input.
pub fn given<'a, T: Typed, M: Made>(make: impl Fn(&[T]) -> M + 'a) -> Option<Baseline<'a>> {
    given_all(move |[x]: [&[T]; 1]| make(x))
}

/// A baseline of several inputs of one type, with an output at each position of the first: it has memory of its
/// own for that, for what a large output is allocated with would cost more than the loops.
pub fn filled<'a, T: Typed, const N: usize>(fill: impl Fn([&[T]; N], &mut [T]) + 'a) -> Option<Baseline<'a>> {
    let mut output: Vec<T> = vec![];
    Some(Box::new(move |data, wanted| {
        let inputs = typed(data);
        if output.is_empty() {
            output = inputs[0].to_vec();
        }
        fill(inputs, black_box(&mut output));
        if wanted { output.clone().bits() } else { vec![] }
    }))
}

/// A baseline of several inputs of one type.
pub fn given_all<'a, T: Typed, M: Made, const N: usize>(make: impl Fn([&[T]; N]) -> M + 'a) -> Option<Baseline<'a>> {
    Some(Box::new(move |data, wanted| {
        let made = black_box(make(typed(data)));
        if wanted { made.bits() } else { vec![] }
    }))
}

fn typed<T: Typed, const N: usize>(data: &[Data]) -> [&[T]; N] {
    std::array::from_fn(|i| T::of(&data[i]).expect("data of the spec's type"))
}
