//! Input data of a workload, as typed slices.

use cranefold::spec::Operand;
use cranefold::{DType, Element, Input, Scalar, Spec};
use half::{bf16, f16};

/// The elements of an input.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the variants are the element types of the list")]
pub enum Data {
    Bool(Vec<bool>),
    I8(Vec<i8>),
    U8(Vec<u8>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F16(Vec<f16>),
    Bf16(Vec<bf16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Evaluates an expression with the typed vector of a [`Data`].
macro_rules! with_elements {
    ($data:expr, $elements:ident => $result:expr) => {
        match $data {
            Data::Bool($elements) => $result,
            Data::I8($elements) => $result,
            Data::U8($elements) => $result,
            Data::I32($elements) => $result,
            Data::I64($elements) => $result,
            Data::F16($elements) => $result,
            Data::Bf16($elements) => $result,
            Data::F32($elements) => $result,
            Data::F64($elements) => $result,
        }
    };
}

impl Data {
    /// The data of a spec's inputs: the same in every run.
    ///
    /// # Panics
    /// If the list has no such element type.
    pub fn all(spec: &Spec) -> Vec<Data> {
        let op = spec.reducers()[0].to_string();
        (1..).zip(spec.inputs()).map(|(number, input)| Data::of(input, &op, number)).collect()
    }

    /// The data of one input, no other's if its number is another.
    ///
    /// Floats lie around 0, so that a loop that adds them in order is not far off; the factors of a
    /// product are near 1, and its result then is an ordinary number. Truth values are those over which
    /// a loop cannot stop early, but for the last.
    fn of(input: &Operand, op: &str, number: u64) -> Data {
        let len = input.span_elems() as usize;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number);
        let mut bits = move || {
            // A linear congruential generator, of which the high bits are good.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 32
        };
        let mut float = || {
            let centred = bits() as f64 / 2f64.powi(32) - 0.5;
            if op == "prod" { 1.0 + centred / 64.0 } else { centred * 8.0 }
        };
        match input.dtype() {
            DType::F16 => Data::F16((0..len).map(|_| f16::from_f64(float())).collect()),
            DType::Bf16 => Data::Bf16((0..len).map(|_| bf16::from_f64(float())).collect()),
            DType::F32 => Data::F32((0..len).map(|_| float() as f32).collect()),
            DType::F64 => Data::F64((0..len).map(|_| float()).collect()),
            DType::I8 => Data::I8((0..len).map(|_| bits() as i8).collect()),
            DType::U8 => Data::U8((0..len).map(|_| bits() as u8).collect()),
            DType::I32 => Data::I32((0..len).map(|_| bits() as i32).collect()),
            DType::I64 => Data::I64((0..len).map(|_| (bits() << 32 | bits()) as i64).collect()),
            DType::Bool => Data::Bool((0..len).map(|n| (op == "all") == (n + 1 < len)).collect()),
            dtype => panic!("the list has no workload of {dtype}"),
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        with_elements!(self, elements => elements.len())
    }

    /// The data as an input of a call.
    pub fn input(&self) -> Input<'_> {
        with_elements!(self, elements => Input::from(elements.as_slice()))
    }

    /// The bytes of chosen elements, one after the other in the machine's order.
    pub fn bytes(&self, indices: impl Iterator<Item = usize>) -> Vec<u8> {
        fn gather<T: Element + Into<Bits>>(elements: &[T], indices: impl Iterator<Item = usize>) -> Vec<u8> {
            let size = T::DTYPE.bytes() as usize;
            let mut bytes = vec![];
            for (place, index) in indices.enumerate() {
                bytes.resize((place + 1) * size, 0);
                Scalar::from_bits(T::DTYPE, elements[index].into().0).write(&mut bytes, place);
            }
            bytes
        }
        with_elements!(self, elements => gather(elements, indices))
    }
}

/// The bits of an element.
#[derive(Clone, Copy, Debug)]
pub struct Bits(pub u64);

macro_rules! bits {
    ($($rust:ty: $x:ident => $bits:expr,)*) => {$(
        impl From<$rust> for Bits {
            fn from($x: $rust) -> Bits {
                Bits($bits)
            }
        }
    )*};
}

bits! {
    bool: x => x.into(), i8: x => (x as u8).into(), u8: x => x.into(), i32: x => (x as u32).into(), i64: x => x as u64,
    f16: x => x.to_bits().into(), bf16: x => x.to_bits().into(), f32: x => x.to_bits().into(), f64: x => x.to_bits(),
}
