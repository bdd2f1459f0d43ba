//! The wire format of protocol buffers: a message as a sequence of numbered fields, borrowed from its bytes.
//!
//! A reader walks one message and never looks into a field, so that it needs no memory and no recursion. A length is
//! compared with the bytes that are there before anything uses it. Groups, which were withdrawn in 2008 and which no
//! message of ONNX has, are refused.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// An integer of variable length: `int32`, `int64`, `uint64`, `bool` and enumerations.
    Varint(u64),
    /// Eight bytes: `double`.
    Fixed64(u64),
    /// A length and as many bytes: strings, messages and packed lists.
    Bytes(&'a [u8]),
    /// Four bytes: `float`.
    Fixed32(u32),
}

/// A fault of the bytes: no message of protocol buffers is made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A field ends beyond the end of its message.
    #[error("a field needs {needed} bytes and its message has {left}")]
    Short {
        /// The bytes that the field takes.
        needed: u64,
        /// The bytes that are left.
        left: usize,
    },
    /// An integer of variable length has more than ten bytes.
    #[error("an integer has more than 10 bytes")]
    LongInteger,
    /// A field has an unknown encoding, such as a group.
    #[error("field {field} has wire type {wire}; 0, 1, 2 and 5 are read")]
    WireType {
        /// The number of the field.
        field: u64,
        /// Its encoding.
        wire: u8,
    },
    /// A field has the number 0.
    #[error("a field has the number 0")]
    FieldZero,
    /// A field has another encoding than its type has.
    #[error("field {field} has an encoding that its type does not have")]
    Mismatch {
        /// The number of the field.
        field: u64,
    },
    /// A string is not UTF-8.
    #[error("field {field} is no UTF-8 text")]
    Text {
        /// The number of the field.
        field: u64,
    },
    /// A field that stands once is there twice.
    #[error("field {field} stands twice")]
    Twice {
        /// The number of the field.
        field: u64,
    },
}

/// The fields of one message, in the order of its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

/// A field: its number and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Field<'a> {
    pub number: u64,
    pub value: Value<'a>,
}

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// The next field, or none at the end of the message.
    pub fn next(&mut self) -> Result<Option<Field<'a>>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let (number, wire) = (tag >> 3, (tag & 7) as u8);
        if number == 0 {
            return Err(WireError::FieldZero);
        }
        let value = match wire {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(WireError::WireType { field: number, wire }),
        };
        Ok(Some(Field { number, value }))
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0u64;
        for (place, &byte) in self.rest.iter().enumerate().take(10) {
            // The tenth byte holds one bit; protobuf drops the others.
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[place + 1..];
                return Ok(value);
            }
        }
        match self.rest.len() {
            length @ ..10 => Err(WireError::Short { needed: length as u64 + 1, left: length }),
            _ => Err(WireError::LongInteger),
        }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], WireError> {
        let short = WireError::Short { needed: length, left: self.rest.len() };
        let length = usize::try_from(length).map_err(|_| short)?;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let taken = self.take(N as u64)?;
        Ok(taken.try_into().expect("as many bytes as were taken"))
    }
}

impl<'a> Field<'a> {
    fn mismatch(&self) -> WireError {
        WireError::Mismatch { field: self.number }
    }

    pub fn int(&self) -> Result<i64, WireError> {
        match self.value {
            Value::Varint(value) => Ok(value as i64),
            _ => Err(self.mismatch()),
        }
    }

    pub fn float(&self) -> Result<f32, WireError> {
        match self.value {
            Value::Fixed32(bits) => Ok(f32::from_bits(bits)),
            _ => Err(self.mismatch()),
        }
    }

    pub fn bytes(&self) -> Result<&'a [u8], WireError> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(self.mismatch()),
        }
    }

    pub fn text(&self) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| WireError::Text { field: self.number })
    }

    /// Calls `each` for every integer of a repeated field: one that stands alone, or a packed list.
    pub fn ints<E: From<WireError>>(&self, mut each: impl FnMut(i64) -> Result<(), E>) -> Result<(), E> {
        match self.value {
            Value::Varint(value) => each(value as i64),
            Value::Bytes(bytes) => {
                let mut list = Fields::of(bytes);
                while !list.rest.is_empty() {
                    each(list.varint()? as i64)?;
                }
                Ok(())
            }
            _ => Err(self.mismatch().into()),
        }
    }

    /// Calls `each` for every float of a repeated field.
    pub fn floats<E: From<WireError>>(&self, mut each: impl FnMut(f32) -> Result<(), E>) -> Result<(), E> {
        match self.value {
            Value::Fixed32(bits) => each(f32::from_bits(bits)),
            Value::Bytes(bytes) => {
                let mut list = Fields::of(bytes);
                while !list.rest.is_empty() {
                    each(f32::from_bits(u32::from_le_bytes(list.array()?)))?;
                }
                Ok(())
            }
            _ => Err(self.mismatch().into()),
        }
    }

    /// Calls `each` for every double of a repeated field.
    pub fn doubles<E: From<WireError>>(&self, mut each: impl FnMut(f64) -> Result<(), E>) -> Result<(), E> {
        match self.value {
            Value::Fixed64(bits) => each(f64::from_bits(bits)),
            Value::Bytes(bytes) => {
                let mut list = Fields::of(bytes);
                while !list.rest.is_empty() {
                    each(f64::from_bits(u64::from_le_bytes(list.array()?)))?;
                }
                Ok(())
            }
            _ => Err(self.mismatch().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_encoding() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 2, b'o', b'k', 0x1d, 0, 0, 0x80, 0x3f, 0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
        let mut fields = Fields::of(&bytes);
        let mut next = || fields.next().expect("a message").expect("a field");
        assert_eq!(next().int(), Ok(150));
        assert_eq!(next().text(), Ok("ok"));
        assert_eq!(next().float(), Ok(1.0));
        assert_eq!(next(), Field { number: 4, value: Value::Fixed64(1f64.to_bits()) });
        assert_eq!(fields.next(), Ok(None));
    }

    #[test]
    fn faults() {
        let fault = |bytes: &[u8]| Fields::of(bytes).next().expect_err("a fault");
        assert_eq!(fault(&[0x08]), WireError::Short { needed: 1, left: 0 });
        assert_eq!(fault(&[0x08, 0x80]), WireError::Short { needed: 2, left: 1 });
        assert_eq!(fault(&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), WireError::LongInteger);
        assert_eq!(fault(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]), WireError::Short { needed: 0xffff_ffff, left: 1 });
        assert_eq!(fault(&[0x0b]), WireError::WireType { field: 1, wire: 3 });
        assert_eq!(fault(&[0x02, 0]), WireError::FieldZero);
    }

    #[test]
    fn lists_alone_and_packed() {
        for bytes in [&[0x08, 1, 0x08, 0x7f][..], &[0x0a, 2, 1, 0x7f]] {
            let (mut fields, mut found) = (Fields::of(bytes), vec![]);
            while let Some(field) = fields.next().expect("a message") {
                field
                    .ints(|value| {
                        found.push(value);
                        Ok::<(), WireError>(())
                    })
                    .expect("integers");
            }
            assert_eq!(found, [1, 127]);
        }
    }
}
